"""Events as people and programs read them: a table on standard output, or JSON, one object a line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from maia.cli.show.output import draw, note, printable
from maia.domain import CLOSED
from maia.encoding import counted

Row = dict[str, object]
TABLE_ROWS = 50


def json_line(row: Row) -> str:
    """Write one event."""
    return json.dumps(row) + "\n"


def show_table(
    names: Sequence[str], rows: Iterable[Row], *, most: int | None = None, closed: Collection[str] = ()
) -> int:
    """Draw events as a table, at most so many; say when there are more, and return how many are shown.

    What is closed to the reader in every row is shown as such, so that nobody takes it for a null.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in names:
        table.add_column(printable(name), overflow="fold")
    shown, more = 0, False
    for row in rows:
        if shown == most:
            more = True
            break
        missing = (Text(CLOSED if name in closed else "null", style="dim") for name in names)
        cells = zip((row[name] for name in names), missing, strict=True)
        table.add_row(*(empty if cell is None else Text(_cell(cell)) for cell, empty in cells))
        shown += 1
    draw(table)
    if more:
        note(f"showing {counted(shown, 'event')}; --limit N shows more, --format json all")
    return shown


def _cell(value: object) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value))
