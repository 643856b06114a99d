"""The stock ticker as a person sees it: flows by investor before and after, and what the exchange has of accounts."""

from __future__ import annotations

from rich.columns import Columns
from rich.panel import Panel
from rich.table import Table

from maia.cli import screen
from maia.demo.stock import INVESTORS, StockFacts
from maia.testing import FLOWS

_HIDDEN = "∅"


def draw_stock(facts: StockFacts) -> None:
    """Draw what happened."""
    out = screen()
    firms = {who: firm for who, firm, _ in INVESTORS}
    bought = Table("firm", "bought", box=None, pad_edge=False)
    for firm, flows in facts.contracts.items():
        bought.add_row(firm, ", ".join(flows))
    out.print(
        Columns(
            [
                Panel(bought, title="contracts", expand=False),
                Panel(_counts(facts.before, firms), title="trades read", expand=False),
                Panel(_counts(facts.after, firms), title="after the contracts' end", expand=False),
            ]
        )
    )
    for title, row in facts.rows.items():
        shown = (f"{name} {_HIDDEN if value is None else value}" for name, value in row.items())
        out.print(f"  {title}: {', '.join(shown)}")
    out.print(
        f"Bob's live stream of derivatives: {facts.live[0]} trades before the contract's end, {facts.live[1]} after"
    )
    before, after = facts.exchange
    rate = facts.accounts / facts.seconds if facts.seconds else 0.0
    out.print(
        f"{facts.accounts} accounts opened and closed at firm B in {facts.seconds:.1f} s ({rate:.0f} a second); "
        f"certificates of the exchange: {before} before, {after} after"
    )


def _counts(counts: dict[str, dict[str, int | str]], firms: dict[str, str]) -> Table:
    table = Table("investor", *FLOWS, box=None, pad_edge=False)
    for who, flows in counts.items():
        table.add_row(f"{who} of {firms[who]}", *(str(flows.get(flow, "")) for flow in FLOWS))
    return table
