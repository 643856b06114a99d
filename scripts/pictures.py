"""Draw what the scenarios show: one picture each in docs/images, made from what `maia demo NAME --json` prints.

Without names all pictures are drawn. A scenario whose output is at hand is not played again: ``--from FOLDER`` reads
``NAME.json`` there. The tests play the scenarios and compare the pictures with what was printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
TITLES = {
    "numberplate": "One stream of sightings, as four parties see it",
    "detective": "A court order that is lost in three ways, on a live stream",
    "stock": "Flows of an exchange, sold to firms until their contracts end",
    "miklos": "What access-control filters allow and refuse",
    "clinic": "A hospital's first day",
    "pathology": "A report of seven parts, and who may see which",
}
OPTIONS = {"numberplate": ("--events", "4000")}
"""How a picture's scenario is played; as printed otherwise."""

WIDTH, MARGIN, GAP, ROW, INNER = 900, 20, 20, 24, 10
HALF = (WIDTH - 2 * MARGIN - GAP) // 2
HEAD, FOOT = 36, 28
SMALL, CAPITAL, BOLD = 6.8, 10.0, 8.0
"""Widths of letters, on the generous side: of cells, and of the names of columns."""
REFUSED, CROSS = "refused ", "✗ "

STYLE = """\
    .card{fill:#fff;stroke:#d5dbe6}.panel{fill:#f3f6fb;stroke:#3b5b92}.table,.cell{fill:#fff;stroke:#c5cddb}
    .title{fill:#1d2a44;font-weight:600;font-size:14px}.name,.remark{fill:#44506a;font-size:12px}.name{font-weight:600}
    .value{fill:#1d2a44;font-size:12.5px}.no{fill:#a3262a;font-size:12.5px}.shut{fill:url(#h);stroke:#c5cddb}
    .ground{fill:#eceff4}.stripe{stroke:#d6dce6}.lock{fill:#6a7488;stroke:none}.bow{fill:none;stroke:#6a7488}
    @media (prefers-color-scheme:dark){
    .card{fill:#12161d;stroke:#323a48}.panel{fill:#1a212d;stroke:#6f93d6}.table,.cell{fill:#12161d;stroke:#3d4656}
    .title,.value{fill:#e6ebf5}.name,.remark{fill:#aab6cb}.no{fill:#ff9a94}.shut{stroke:#3d4656}
    .ground{fill:#222a36}.stripe{stroke:#333d4d}.lock{fill:#96a2b8}.bow{stroke:#96a2b8}}"""
DEFINITIONS = """\
  <defs>
    <pattern id="h" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="ground" width="6" height="6"/><path class="stripe" d="M0 0V6" stroke-width="2"/>
    </pattern>
    <g id="l">
      <path class="bow" d="M-3.5 0v-3a3.5 3.5 0 0 1 7 0v3" stroke-width="1.6"/>
      <rect class="lock" x="-5.5" y="-0.5" width="11" height="8" rx="1.5"/>
    </g>
  </defs>"""

View = dict[str, Any]


def draw(name: str, views: Sequence[View]) -> str:
    """Draw the views of a scenario: narrow ones in pairs, wide ones alone, on a card of its own colour."""
    parts, y = [], MARGIN
    for row in _rows(views):
        height = max(_height(view) for view in row)
        for place, view in enumerate(row):
            x = MARGIN + place * (HALF + GAP)
            parts.append(_panel(view, x, y, WIDTH - 2 * MARGIN if view["wide"] else HALF, height))
        y += height + GAP
    height = y - GAP + MARGIN
    size = f'viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t d">'
    return "\n".join(
        [
            head,
            f'  <title id="t">{escape(TITLES[name])}</title>',
            f'  <desc id="d">{escape(_words(views))}</desc>',
            f"  <style>\n{STYLE}\n  </style>",
            DEFINITIONS,
            f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _rows(views: Sequence[View]) -> Iterator[list[View]]:
    """Put narrow views in pairs."""
    pair: list[View] = []
    for view in views:
        if view["wide"] or len(pair) == 2:
            if pair:
                yield pair
            pair = []
        if view["wide"]:
            yield [view]
        else:
            pair.append(view)
    if pair:
        yield pair


def _height(view: View) -> int:
    return HEAD + ROW * (len(view["rows"]) + 1) + (FOOT if view["remark"] else INNER)


def _panel(view: View, x: int, y: int, width: int, height: int) -> str:
    columns = _columns(view, width - 2 * INNER)
    lines = [
        f'  <g transform="translate({x} {y})">',
        f'    <rect class="panel" width="{width}" height="{height}" rx="8" stroke-width="1.3"/>',
        f'    <text class="title" x="12" y="23">{escape(view["title"])}</text>',
        f'    <g transform="translate({INNER} {HEAD})">',
        f'      <rect class="table" width="{width - 2 * INNER}" height="{ROW * (len(view["rows"]) + 1)}"/>',
    ]
    for name, (left, _) in zip(view["columns"], columns, strict=True):
        lines.append(f'      <text class="name" x="{left + 8}" y="16">{escape(name)}</text>')
    for number, row in enumerate(view["rows"], start=1):
        for cell, (left, wide) in zip(row, columns, strict=True):
            lines.append(_cell(cell, left, number * ROW, wide))
    lines.append("    </g>")
    if view["remark"]:
        lines.append(f'    <text class="remark" x="12" y="{height - 10}">{escape(view["remark"])}</text>')
    return "\n".join([*lines, "  </g>"])


def _columns(view: View, width: int) -> list[tuple[int, int]]:
    """Share the width among the columns, by the longest text of each."""
    needs = [
        16 + max(BOLD * len(name), *(_width(_text(row[place])) for row in view["rows"]))
        for place, name in enumerate(view["columns"])
    ]
    found, left, total = [], 0, sum(needs)
    for place, need in enumerate(needs):
        wide = width - left if place == len(needs) - 1 else round(width * need / total)
        found.append((left, wide))
        left += wide
    return found


def _width(text: str) -> float:
    return sum(CAPITAL if letter.isupper() else SMALL for letter in text)


def _cell(cell: object, x: int, y: int, width: int) -> str:
    if cell is None:
        lock = f'<use href="#l" x="{x + width // 2}" y="{y + 10}"/>'
        return f'      <rect class="shut" x="{x}" y="{y}" width="{width}" height="{ROW}"/>{lock}'
    text = _text(cell)
    kind = "no" if str(cell).startswith(REFUSED) else "value"
    box = f'      <rect class="cell" x="{x}" y="{y}" width="{width}" height="{ROW}"/>'
    return f'{box}<text class="{kind}" x="{x + 8}" y="{y + 16}">{escape(text)}</text>' if text else box


def _text(cell: object) -> str:
    if cell is None:
        return "closed"
    text = f"{cell:,}" if isinstance(cell, int) else str(cell)
    return f"{CROSS}{text.removeprefix(REFUSED) or 'refused'}" if text.startswith(REFUSED) else text


def _words(views: Sequence[View]) -> str:
    """Say the picture for those who do not see it."""
    said = []
    for view in views:
        rows = "; ".join(
            ", ".join(f"{name} {_text(cell)}" for name, cell in zip(view["columns"], row, strict=True) if cell != "")
            for row in view["rows"]
        )
        remark = f" ({view['remark']})" if view["remark"] else ""
        said.append(f"{view['title']}{remark}: {rows}.")
    return " ".join(said)


def play(name: str) -> dict[str, Any]:
    """Play a scenario in a process of its own, and return what it printed for machines."""
    program = "from maia.cli import main; main()"
    command = [sys.executable, "-c", program, "demo", name, "--json", *OPTIONS.get(name, ())]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(TITLES)}")
    parser.add_argument("--from", dest="folder", type=Path, help="where outputs are, as NAME.json")
    options = parser.parse_args(arguments)
    for name in options.names or TITLES:
        at_hand = options.folder / f"{name}.json" if options.folder else None
        found = json.loads(at_hand.read_text("utf-8")) if at_hand and at_hand.is_file() else play(name)
        (IMAGES / f"demo-{name}.svg").write_text(draw(name, found["views"]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
