"""Small tables for notebooks. Everything in a cell is text of strangers: it is escaped, cut, and shown as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from maia.encoding.printable import printable

MAX_ROWS = 200
_MAX_CELL = 500


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Write a table whose cells cannot become markup.

    Characters that a browser would obey rather than show (controls, changes of direction) are written as escapes; long
    cells and long tables are cut, and say so.

    >>> html_table("a<b", ["x"], [["<script>"]])
    '<table><caption>a&lt;b</caption><tr><th>x</th></tr><tr><td>&lt;script&gt;</td></tr></table>'
    """
    found = [list(row) for _, row in zip(range(MAX_ROWS + 1), rows, strict=False)]
    parts = [f"<table><caption>{_cell(caption)}</caption><tr>", *(f"<th>{_cell(item)}</th>" for item in head), "</tr>"]
    for row in found[:MAX_ROWS]:
        parts += ["<tr>", *(f"<td>{_cell(item)}</td>" for item in row), "</tr>"]
    if len(found) > MAX_ROWS:
        parts.append(f'<tr><td colspan="{len(head)}">…</td></tr>')
    return "".join([*parts, "</table>"])


def _cell(text: str) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= _MAX_CELL else shown[:_MAX_CELL] + "…")
