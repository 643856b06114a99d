"""One subscription from the command line: what is asked, read or followed, and what became of it in one line.

Nothing is kept but what the user asked to be written: a stream to a file keeps its place beside the home's other
checkpoints, and a stream to standard output keeps none.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from maia.authority import Action
from maia.cli.read.clients import denial, named_type, open_client
from maia.cli.show.output import note
from maia.cli.show.progress import Watch, interruptible
from maia.cli.show.rows import TABLE_ROWS, Row, json_line, show_table
from maia.domain import Client, Domain, Sight, TypeOrTopic, TypePart, hidden_attributes, plan_parts, reader_of, sight_of
from maia.encoding import counted, did_you_mean
from maia.errors import UsageError
from maia.kernel import DeliverPlan

_FORMATS = ("table", "json", "parquet")
_STDOUT = (None, "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is read, as whom, and where it goes."""

    domain: Domain
    client: Client
    asked: TypeOrTopic
    type: str
    parts: tuple[TypePart, ...]
    where: str
    attributes: tuple[str, ...] | None
    kind: str
    out: Path | None
    limit: int | None
    starting: str
    follow: bool
    since: datetime

    @property
    def plans(self) -> tuple[DeliverPlan, ...]:
        """The plans of what the client may see."""
        return tuple(part.plan for part in self.parts if part.plan is not None)

    def octets(self) -> int:
        """Tell how large the log is."""
        return sum(file.size for commit in self.domain.log.commits() for file in commit.files)

    @property
    def file(self) -> Path | None:
        """The file that lines go to; nothing for standard output."""
        return None if self.out is None or str(self.out) in _STDOUT else self.out

    @property
    def checkpoint(self) -> Path:
        """Where a stream into this file or folder keeps its place; a name never becomes a path."""
        place = str(Path(self.out or "").resolve())
        parts = (self.asked.text, self.client.name, self.where, ",".join(self.attributes or ()), self.kind, place)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self.domain.path / "checkpoints" / f"subscribe-{digest[:24]}"

    def closed(self) -> frozenset[str]:
        """Name the attributes that are closed in every row, by want of a right or of a key."""
        return frozenset[str]().union(*hidden_attributes(self.domain.home, self.plans, self.attributes))

    def sight(self) -> Sight:
        """Tell what was delivered, closed and refused."""
        return sight_of(
            self.domain.home, self.plans, client=self.client.name, since=self.since, attributes=self.attributes,
            reader=reader_of(self.client.name, self.asked.text, batch=not self.follow),
            refused_types=[part.name.type_id for part in self.parts if part.plan is None],
        )  # fmt: skip


def prepare(
    folder: Path,
    asked: TypeOrTopic,
    *,
    client: str,
    where: str,
    attributes: str | None,
    kind: str,
    out: Path | None,
    limit: int | None,
    starting: str,
    follow: bool,
    passphrase_file: Path | None,
) -> View:
    """Look at everything that can be refused before Spark starts: the options, the type, the right and the filter.

    Raises:
        DeniedError: The client may not subscribe to the type, or not by this filter.
        MaiaError: Something is unknown or malformed.
    """
    if kind not in _FORMATS:
        raise UsageError(f"events are written as {', '.join(_FORMATS)}, not `{kind}`", code="OUTPUT_FORMAT")
    if starting not in ("earliest", "latest"):
        raise UsageError("--starting is earliest or latest", code="OUTPUT_FORMAT")
    if kind == "parquet" and (out is None or str(out) == "-"):
        raise UsageError("parquet needs a folder: --out PATH", code="OUTPUT_PLACE")
    if kind == "table" and out is not None:
        raise UsageError("a table goes to standard output; write json or parquet to --out", code="OUTPUT_PLACE")
    if out is not None and str(out) != "-" and out.exists() and not follow:
        raise UsageError(f"`{out}` exists already", code="OUTPUT_EXISTS")
    domain, reader = open_client(folder, client, passphrase_file)
    type_ = named_type(domain, asked)
    asked = asked if asked.topic is not None else TypeOrTopic(type=type_)
    with denial(domain, client=client, action=Action.SUBSCRIBE, type_text=type_):
        parts = plan_parts(domain, asked, client=reader.proven, where=where)
    names = attributes_of([part.plan for part in parts if part.plan is not None])
    wanted = None if attributes is None else tuple(item.strip() for item in attributes.split(","))
    for name in wanted or ():
        if name not in names:
            near = did_you_mean(name, names)
            raise UsageError(f"`{type_}` has no attribute `{name}`{near}", code="NO_SUCH_ATTRIBUTE")
    return View(
        domain=domain, client=reader, asked=asked, type=type_, parts=parts, where=where, attributes=wanted, kind=kind,
        out=out, limit=limit, starting=starting, follow=follow, since=domain.clock(),
    )  # fmt: skip


def attributes_of(plans: Sequence[DeliverPlan]) -> tuple[str, ...]:
    """Name the attributes of what is read; those of topics are the same."""
    return tuple(item.name for item in plans[0].subscriptions[0].event_type.attributes)


def read(view: View, watch: Watch) -> Callable[[], int]:
    """Read what the log holds now; return what shows it, for when the bar is gone, and counts the rows.

    Raises:
        DeniedError: The right ended meanwhile.
        MaiaError: The log is damaged, or Spark failed.
    """
    from maia.spark import plain_rows, spark_errors, write_parquet

    refused = denial(view.domain, client=view.client.name, action=Action.SUBSCRIBE, type_text=view.type)
    with refused, spark_errors():
        frame = view.client.read(
            view.asked.type, topic=view.asked.topic, where=view.where, attributes=view.attributes
        )  # fmt: skip
        if view.kind == "table":
            most = view.limit or TABLE_ROWS
            rows = list(plain_rows(frame, limit=most + 1))
            return lambda: show_table(frame.columns, rows, most=most, closed=view.closed())
        if view.kind == "parquet" and view.out is not None:
            write_parquet(frame, view.out, limit=view.limit)
            note(f"written to {view.out}")
            return lambda: view.sight().events
        with _lines(view) as write:
            count = write(watch.counting(plain_rows(frame, limit=view.limit)))
    return lambda: count


def follow(view: View, watch: Watch) -> tuple[int, bool]:
    """Follow the log until interrupted, or until so many events came; return how many, and whether interrupted.

    A stream into a file or a folder goes on where it ended, and holds every event once; with a limit it begins anew.

    Raises:
        MaiaError: The log is damaged or expired, or Spark failed.
    """
    from maia.spark import Lag, OnceFile, follow_rows, follow_to_parquet

    seen = 0

    def look(lag: Lag) -> None:
        watch.say(f"following {view.asked.text}: batch {lag.batch}, {counted(seen, 'event')}, {lag.rate:,.0f}/s")

    frame = view.client.subscribe(
        view.asked.type, topic=view.asked.topic, where=view.where, attributes=view.attributes, starting=view.starting
    )  # fmt: skip
    with interruptible() as pressed:
        if view.kind == "parquet" and view.out is not None:
            follow_to_parquet(frame, view.out, stop=pressed, look=look, checkpoint=view.checkpoint)
            return view.sight().events, pressed.is_set()
        if view.file is not None and view.limit is None:
            file = OnceFile(view.file, view.checkpoint)

            def append(rows: Iterator[Row], batch: int) -> bool:
                nonlocal seen
                seen += file.append((json_line(row).encode() for row in rows), batch)
                return True

            try:
                follow_rows(frame, append, stop=pressed, look=look, checkpoint=view.checkpoint)
            finally:
                file.close()
            return seen, pressed.is_set()
        with _lines(view) as write:

            def take(rows: Iterator[Row], _batch: int) -> bool:
                nonlocal seen
                try:
                    seen += write(rows if view.limit is None else _first(rows, view.limit - seen))
                except BrokenPipeError:
                    return False
                return seen != view.limit

            follow_rows(frame, take, stop=pressed, look=look)
    return seen, pressed.is_set()


def _first(rows: Iterator[Row], most: int) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number >= most:
            return
        yield row


@contextmanager
def _lines(view: View) -> Iterator[Callable[[Iterator[Row]], int]]:
    """Open where rows go: a table, standard output, or a file that only its owner reads."""

    def write_to(stream: TextIO, rows: Iterator[Row]) -> int:
        count = 0
        for row in rows:
            stream.write(json_line(row))
            count += 1
        stream.flush()
        return count

    if view.kind == "table":
        yield lambda rows: _table(view, list(rows))
    elif view.file is None:
        yield lambda rows: write_to(sys.stdout, rows)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with open(os.open(view.file, flags, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123
            yield lambda rows: write_to(stream, rows)


def _table(view: View, rows: list[Row]) -> int:
    # Of a type that omits what is closed, rows have fewer columns than the type.
    return show_table(list(rows[0]), rows, closed=view.closed()) if rows else 0
