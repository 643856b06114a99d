"""The stream part of the demonstration as a person sees it: three readers side by side, a relay, and the price."""

from __future__ import annotations

from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from maia.cli import screen
from maia.demo.stream import StreamFacts
from maia.testing import ATTRIBUTES

_HIDDEN = Text("∅", style="red")


def draw_stream(facts: StreamFacts) -> None:
    """Draw what happened to the sightings."""
    out = screen()
    _title(out, "One stream, three readers", f"{facts.published:,} sightings published; ∅ is a closed cell")
    out.print(Columns([_reader(who, view) for who, view in facts.readers.items()]))
    _title(out, "Refused", "nothing disappears: each refused event has a code in the audit")
    for code, count in facts.refused.items():
        out.print(f"  {count:>7,} events  {code}: older than the second camera may send")
    for what, code in facts.denied.items():
        out.print(f"  {what:>14}  {code}")
    _title(out, "What a relay broker sees", f"it holds {facts.relay['holds_keys']} keys")
    for name, value in facts.relay["sees"].items():
        out.print(f"  {name:>11}  {value}")
    found = "found" if facts.relay["finds_plate_in_log"] else "not found"
    out.print(f"  the detective's numberplate in the relay's bytes: {found}")
    _title(out, "Why a cell is withheld", "from the certificates, not from a log")
    for line in facts.explanation:
        out.print(f"  {line}")
    _title(out, "The price", "the same rows through a plain Parquet log, in the same session")
    out.print(_price(facts))


def _title(out: Console, title: str, remark: str) -> None:
    out.print(Text().append(f"\n{title}", style="bold underline").append(f"  {remark}", style="dim"))


def _reader(who: str, view: dict[str, Any]) -> Panel:
    table = Table(*ATTRIBUTES, box=None, pad_edge=False)
    for row in view["rows"]:
        table.add_row(*(_HIDDEN if row[name] is None else str(row[name]).replace("T", " ") for name in ATTRIBUTES))
    return Panel(table, title=f"{who}, the {view['title']}", subtitle=f"{view['events']:,} events", expand=False)


def _price(facts: StreamFacts) -> Table:
    table = Table("", "write s", "read s", "events/s", box=None, pad_edge=False)
    for name in ("parquet", "maia"):
        write, read = facts.seconds[f"{name} write"], facts.seconds[f"{name} read"]
        table.add_row(name, f"{write:.2f}", f"{read:.2f}", f"{facts.published / (write + read):,.0f}")
    table.add_row("ratio", "", "", f"{facts.ratio:.2f}")
    return table
