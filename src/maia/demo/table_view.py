"""Views as a person sees them: panels with tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.columns import Columns
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from maia.cli import screen
from maia.demo.views import REFUSED, Cell, SceneView

_CLOSED = "∅"


def draw_views(views: Sequence[SceneView]) -> None:
    """Draw views on standard output in their order, side by side where there is room."""
    out = screen()
    for wide, some in groupby(views, key=lambda view: view.wide):
        panels = [_panel(view) for view in some]
        out.print(*panels if wide else [Columns(panels)], sep="\n")


def _panel(view: SceneView) -> Panel:
    table = Table(*view.columns, box=None, pad_edge=False)
    for row in view.rows:
        table.add_row(*(_cell(cell) for cell in row))
    return Panel(table, title=Text(view.title), subtitle=Text(view.remark) if view.remark else None, expand=False)


def _cell(cell: Cell) -> Text:
    if cell is None:
        return Text(_CLOSED, style="red")
    return Text(str(cell), style="red" if str(cell).startswith(REFUSED) else "")
