"""The delivery job at a terminal, and a subscription's rows out of the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import maia
from maia.cli.read.ages import instant_ago
from maia.cli.show.progress import interruptible, watching
from maia.cli.show.rows import Row
from maia.domain import (
    Client,
    Delivered,
    Domain,
    delivered_since,
    delivery_job,
    last_events,
    mark_outbox,
    read_deliveries,
)
from maia.encoding import counted


def run(home: Path, *, once: bool, every: str) -> tuple[Delivered, bool]:
    """Deliver until there is no more, or until interrupted; tell what was delivered, and whether interrupted.

    Raises:
        NotFoundError: The home keeps no subscriptions.
        MaiaError: Checkpoint, outbox and log do not belong together; the log is damaged; or Spark failed.
    """
    from maia.spark import Lag, spark_errors, start_job, start_spark, watch_query

    now = datetime.now(UTC)
    seconds = max(1, int((now - instant_ago(every, at=now)).total_seconds()))
    domain = maia.open(home)
    mark = mark_outbox(domain)
    with watching("starting Spark") as watch, interruptible() as pressed, spark_errors():
        spark = start_spark()
        watch.say(f"delivering to {counted(len(mark.events), 'subscription')}")

        def look(lag: Lag) -> None:
            done = delivered_since(domain, mark)
            events = counted(sum(done.events.values()), "event")
            watch.say(f"delivering: batch {lag.batch}, {events}, {counted(done.lag, 'commit')} to go")

        query = start_job(
            delivery_job(domain), spark, domain.path / "checkpoints" / "deliver", once=once, every=f"{seconds} seconds"
        )
        watch_query(query, stop=pressed, look=look)
    return delivered_since(domain, mark), pressed.is_set()


def rows_of(domain: Domain, client: Client, name: str, *, last: int | None = None) -> tuple[list[str], Iterator[Row]]:
    """Give the columns and the rows of a subscription, or its last rows, as values that JSON has.

    Raises:
        MaiaError: The subscription is unknown or somebody else's, or the client has no right any more.
    """
    from maia.spark import plain

    batches = read_deliveries(domain, client, name)
    if last is not None:
        batches = iter(last_events(batches, last))
    first = next(batches, None)
    if first is None:
        return [], iter(())

    def rows() -> Iterator[Row]:
        for batch in (first, *batches):
            for row in batch.to_pylist():
                yield {key: plain(value) for key, value in row.items()}

    return first.schema.names, rows()
