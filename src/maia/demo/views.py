"""What somebody sees, as a table: the part of a scenario that is the same each time it is played.

Every scenario gives its views with ``--json``; the terminal and the pictures of the documentation are drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Cell = str | int | float | None
"""A value; ``None`` is a cell that is closed to the reader."""
REFUSED = "refused "
"""What the text of a refused cell begins with; the code of the refusal follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneView:
    """One table.

    Attributes:
        title: Who sees it, or what it shows.
        remark: A line below it.
        columns: Their names.
        rows: One cell a column.
        wide: Whether it takes the width of two.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remark: str = ""
    wide: bool = False

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "title": self.title, "remark": self.remark, "wide": self.wide, "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }  # fmt: skip


def refused(code: str) -> str:
    """Write a refusal into a cell.

    >>> refused("NOT_PERMITTED")
    'refused NOT_PERMITTED'
    """
    return f"{REFUSED}{code}"


def seen(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Cell]], *, remark: str = "") -> SceneView:
    """Show rows as a reader got them; what it was not given stays an empty cell.

    >>> seen("Ann", ["ward", "patient"], [{"ward": "A", "patient": None}]).rows
    (('A', None),)
    """
    table = tuple(tuple(row.get(name, "") for name in columns) for row in rows)
    return SceneView(title=title, columns=tuple(columns), rows=table, remark=remark)
