"""Reading and delivering without Spark, at a time that the caller may tell; for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from maia.domain import Domain, begin_read, delivery_job, keep_parked, parts_of, reader_of, scan, type_stretch
from maia.home import Home


def _now() -> datetime:
    return datetime.now(UTC)


def deliver_here(home: Home, *, clock: Callable[[], datetime] = _now) -> int:
    """Fill the outbox of the subscriptions that a home keeps, as `maia deliver --once` does; count the commits.

    Raises:
        MaiaError: The outbox or the home is damaged, or plans are over whenever something is to be handed over.
    """
    with Domain(home, clock=clock) as domain:
        return delivery_job(domain).run_here()


def read_here(
    home: Home,
    type_name: str,
    *,
    as_: str,
    where: str = "",
    version: str | None = None,
    attributes: Sequence[str] | None = None,
    lenient: bool = False,
    clock: Callable[[], datetime] = _now,
) -> list[dict[str, object]]:
    """Read all events of a type as a client, as `format("maia")` does, in the order of the log.

    With ``attributes`` only those are read; a ``lenient`` reader passes damaged segments by with an alarm in the audit,
    as one without an offset does.

    Raises:
        MaiaError: The type is unknown, the client has no right, the filter is refused, or a lane waits.
    """
    with Domain(home, clock=clock) as domain:
        at, client = domain.follow(), domain.prove(as_)
        found = type_stretch(domain, domain.find_type(type_name, version), after={}, at=at, deep=not lenient)
        keep_parked(home, reader_of(as_, type_name, batch=True), found.alarms, at=at)
        plan = domain.deliver_plan(
            type_name, client=client, where=where, version=version, commits=found.commits, at=at, followed=True
        )
        parts = parts_of(found.commits, plan)
        number = begin_read(home, plan, found.commits, client, attributes=attributes, parts=1, at=at)
        batches = scan(
            home, plan, parts, client=as_, columns=attributes, with_event_id=False, clock=domain.clock,
            operation=number, lenient=lenient,
        )  # fmt: skip
        return [row for batch in batches for row in batch.to_pylist()]
