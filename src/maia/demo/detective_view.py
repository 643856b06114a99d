"""The detective's story as a person sees it: the phases, and beside them what reached him last."""

from __future__ import annotations

from rich.columns import Columns
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from maia.cli import screen
from maia.demo.detective import DetectiveFacts, Phase
from maia.testing import ATTRIBUTES, DETECTIVE_POLICY


def draw_detective(facts: DetectiveFacts) -> None:
    """Draw what happened."""
    out = screen()
    out.print(Panel(Text(DETECTIVE_POLICY.rstrip()), title="the policy of the Metropolitan Police", expand=False))
    same = "the right of Cap10" if facts.equals_cap10 else "another right than Cap10"
    out.print(f"The role became a certificate: {same}, until {facts.ends}, when the court order ends.\n")
    table = Table("what happened", "certificate", "sighted", "received", "printed window", "still received after")
    for phase in facts.phases:
        table.add_row(*_cells(phase))
    seen = Table(*ATTRIBUTES, box=None, pad_edge=False)
    for row in facts.rows:
        seen.add_row(*(str(row[name]).replace("T", " ")[:22] for name in ATTRIBUTES))
    out.print(Columns([table, Panel(seen, title="what Smith saw last", expand=False)]))
    out.print(f"{facts.batches} micro-batches of a live stream, one every {facts.trigger} s or slower")


def _cells(phase: Phase) -> list[str]:
    return [
        phase.title,
        phase.reason or phase.certificate or "none",
        str(phase.sighted),
        str(phase.received),
        "" if phase.window is None else f"{phase.window:.1f} s",
        "" if phase.late is None else f"{phase.late:.1f} s",
    ]
