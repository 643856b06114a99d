"""One subscription from the command line: what is asked, read or followed, and written as a table, lines or a folder.

Times leave as text in UTC and octets in base64, whatever the machine's time zone. Nothing is kept but what the user
asked to be written: the checkpoint of a stream to standard output holds positions and is removed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import maia
from maia.cli.show.output import draw, note, printable
from maia.cli.streaming import Watch, check_client, denial, find_type, interruptible, spark_errors
from maia.domain import Client, Domain
from maia.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

_FORMATS = ("table", "json", "parquet")
_TABLE_ROWS = 50
_LOOK = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read, as whom, and where it goes."""

    domain: Domain
    reader: Client
    type_name: str
    version: str
    shown: str
    client: str
    where: str
    kind: str
    out: Path | None
    limit: int | None
    starting: str

    def octets(self) -> int:
        """Tell how large the log is."""
        return sum(file.size for commit in self.domain.log.commits() for file in commit.files)


def prepare(
    folder: Path,
    type_text: str,
    *,
    client: str,
    where: str,
    version: str | None,
    kind: str,
    out: Path | None,
    limit: int | None,
    starting: str,
    follow: bool,
    passphrase: Callable[[], str] | None = None,
) -> Reading:
    """Look at everything that can be refused before Spark starts: the options, the type, the right and the filter.

    Raises:
        DeniedError: The client may not subscribe to the type, or not by this filter.
        MaiaError: Something is unknown or malformed.
    """
    domain = maia.open(folder)
    home = domain.home
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
    check_client(home, client)
    reader = domain.client(client, passphrase=passphrase)
    name, exact, shown = find_type(home, type_text, version)
    with denial(home, principal=client, action="subscribe", type_text=shown):
        domain.deliver_plan(name, client=client, where=where, version=exact, commits=())
    return Reading(
        domain=domain, reader=reader, type_name=name, version=exact, shown=shown, client=client, where=where, kind=kind, out=out,
        limit=limit, starting=starting,
    )  # fmt: skip


def read_events(asked: Reading) -> Callable[[], None]:
    """Read what the log holds now; return what shows it, for when the bar is gone.

    Raises:
        DeniedError: The right ended meanwhile.
        MaiaError: The log is damaged, or Spark failed.
    """
    with spark_errors(), denial(asked.domain.home, principal=asked.client, action="subscribe", type_text=asked.shown):
        frame = asked.reader.read(asked.type_name, where=asked.where, version=asked.version)
        if asked.kind == "table":
            most = asked.limit or _TABLE_ROWS
            rows = as_text(frame.limit(most + 1)).collect()
            return lambda: show_table(frame.columns, rows[:most], more=len(rows) > most)
        frame = frame if asked.limit is None else frame.limit(asked.limit)
        if asked.kind == "parquet":
            frame.write.mode("errorifexists").parquet(str(asked.out))
            return lambda: note(f"written to {asked.out}")
        with _target(asked) as stream:
            write_lines(as_text(frame).toLocalIterator(), stream)
    return lambda: None


def follow_events(asked: Reading, watch: Watch) -> Callable[[], None]:
    """Follow the log until interrupted, or until so many events came.

    Raises:
        KeyboardInterrupt: Somebody pressed Ctrl-C; the query was stopped.
        MaiaError: The log is damaged or expired, or Spark failed.
    """
    with spark_errors(), _target(asked) as stream, tempfile.TemporaryDirectory(prefix="maia-subscribe-") as folder:
        frame = asked.reader.subscribe(
            asked.type_name, where=asked.where, version=asked.version, starting=asked.starting
        )  # fmt: skip
        state = _Following(asked, stream, watch)
        if asked.kind == "parquet":
            writer = frame.writeStream.format("parquet").option("path", str(asked.out))
            place = asked.domain.path / "checkpoints" / f"subscribe-{_name(asked)}"
        else:
            writer = frame.writeStream.foreachBatch(state.each)
            place = Path(folder)
        with interruptible() as pressed:
            query = writer.option("checkpointLocation", str(place)).trigger(processingTime="1 second").start()
            try:
                while query.isActive and not state.ended and not pressed.wait(_LOOK):
                    state.look(query)
                failed = None if state.ended else query.exception()
            finally:
                query.stop()
        if failed is not None:
            raise failed
    return lambda: None


@dataclass(slots=True)
class _Following:
    asked: Reading
    stream: TextIO
    watch: Watch
    seen: int = 0
    ended: bool = False

    def each(self, frame: DataFrame, _batch: int) -> None:
        """Write one micro-batch, up to the limit."""
        if self.ended:
            return
        left = None if self.asked.limit is None else self.asked.limit - self.seen
        rows = as_text(frame if left is None else frame.limit(left)).collect()
        self.seen += len(rows)
        try:
            if self.asked.kind == "table":
                if rows:
                    show_table(frame.columns, rows, more=False)
            else:
                write_lines(rows, self.stream)
        except BrokenPipeError:
            self.ended = True
        self.ended = self.ended or self.seen == self.asked.limit

    def look(self, query: StreamingQuery) -> None:
        """Show how far it is."""
        progress = query.lastProgress
        if progress is not None:
            self.watch.say(f"following {self.asked.shown}: batch {progress.batchId}, {self.seen} events")


def as_text(frame: DataFrame) -> DataFrame:
    """Let times leave Spark as text in UTC; Python would read them in the time zone of the machine."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
    from pyspark.sql.types import TimestampType

    cells = []
    for item in frame.schema.fields:
        column = F.col(f"`{item.name.replace('`', '``')}`")
        if isinstance(item.dataType, TimestampType):
            column = F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
        cells.append(column.alias(item.name))
    return frame.select(*cells)


def write_lines(rows: Iterable[Row], stream: TextIO) -> None:
    """Write events as JSON, one a line."""
    for row in rows:
        print(json.dumps({name: plain(value) for name, value in row.asDict().items()}), file=stream, flush=False)
    stream.flush()


def show_table(names: list[str], rows: list[Row], *, more: bool) -> None:
    """Draw events as a table."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in names:
        table.add_column(printable(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text("null", style="dim") if cell is None else Text(_cell(cell)) for cell in row))
    draw(table)
    if more:
        note(f"showing {len(rows)} events; --limit N shows more, --format json all")


def plain(value: object) -> object:
    """Give a cell in a form that JSON has.

    >>> plain(Decimal("1.50")), plain(b"ab"), plain(float("nan"))
    ('1.50', 'YWI=', 'nan')
    """
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (Decimal, date)):
        return str(value)
    return value.replace(".000000Z", "Z") if isinstance(value, str) and value.endswith(".000000Z") else value


def _cell(value: object) -> str:
    found = plain(value)
    return printable(found if isinstance(found, str) else json.dumps(found))


def _name(asked: Reading) -> str:
    text = "\0".join((asked.type_name, asked.version, asked.client, asked.where, str(Path(asked.out or "").resolve())))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@contextmanager
def _target(asked: Reading) -> Iterator[TextIO]:
    """Open where lines go: standard output, or a file that only its owner reads."""
    if asked.out is None or str(asked.out) == "-" or asked.kind == "parquet":
        yield sys.stdout
        return
    with open(os.open(asked.out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123
        yield stream
