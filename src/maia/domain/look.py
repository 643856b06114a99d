"""A look at events: the first rows that a client sees, with one line that says what it did not see, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from maia.domain.sight import Sight
from maia.encoding import html_table, printable

CLOSED = "∅"
"""What a person sees in place of a cell that is closed in every row; a null is shown as null."""
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Look:
    """The first events that a client sees. In a notebook it is a table, in a shell the same as text.

    Attributes:
        columns: The attributes, in order.
        rows: The events, by attribute, as values that JSON has.
        sight: What was delivered, closed, refused and not read yet; the counts are those of these rows.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, object], ...]
    sight: Sight

    def line(self) -> str:
        """Say in one line what was delivered, closed, refused and not read yet."""
        return self.sight.line(len(self.rows))

    def cells(self) -> list[tuple[str, ...]]:
        """Give the cells as a person sees them."""
        hidden = {*self.sight.closed, *self.sight.keyless}
        return [tuple(_cell(row.get(name), hidden=name in hidden) for name in self.columns) for row in self.rows]

    def __repr__(self) -> str:
        """Show it as a table of text; its last line says what was not seen."""
        lines = [tuple(map(printable, self.columns)), *([_cut(cell) for cell in row] for row in self.cells())]
        widths = [max(len(row[at]) for row in lines) for at in range(len(self.columns))]
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in lines]
        return "\n".join([*(line.rstrip() for line in shown), self.line()])

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return html_table(self.line(), self.columns, self.cells())


def _cell(value: object, *, hidden: bool) -> str:
    if value is None:
        return CLOSED if hidden else "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(cell: str) -> str:
    shown = printable(cell)
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + "…"
