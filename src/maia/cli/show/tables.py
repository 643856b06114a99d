"""Plain tables for people; what strangers wrote into them is made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maia.cli.show.output import draw, printable


def draw_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Draw rows under their titles; the columns named in ``right`` hold numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(printable(cell) for cell in row))
    draw(table)
