"""Proofs for people, as trees, and for machines, as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maia.authority import Grant
from maia.cli.show.certificates import period_text, period_to_json
from maia.encoding import format_advanced
from maia.home import Folder, words

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree


def proof_tree(step: words.ProofStep) -> Tree:
    """Draw a walked proof."""
    from rich.text import Text
    from rich.tree import Tree

    head = Text().append(step.who, style="bold")
    _line(head, "has", step.shown, "")
    tree = Tree(head)
    _draw(tree, step.then)
    return tree


def _draw(tree: Tree, steps: list[words.ProofStep]) -> None:
    from rich.text import Text

    for step in steps:
        label = Text().append(step.who, style="bold")
        label.append(f"  by {(step.certificate or '')[:16]}", style="cyan")
        _line(label, "keeps", step.shown, "green")
        _line(label, "removes", ", ".join(step.removes) or "nothing", "red" if step.removes else "dim")
        if not step.delegate:
            _line(label, "", "may not pass it on", "yellow")
        for name in step.names:
            _line(label, "name", name, "cyan")
        for condition in step.conditions:
            _line(label, "if", condition, "yellow")
        if step.period is not None and (step.period.not_before or step.period.not_after):
            _line(label, "valid", period_text(step.period), "")
        _draw(tree.add(label), step.then)


def _line(label: Text, word: str, text: str, style: str) -> None:
    label.append(f"\n{word:<8}", style="dim").append(text, style=style)


def grant_to_json(grant: Grant, home: Folder) -> dict[str, object]:
    """Give a grant for machines."""
    return {
        "allowed": True,
        "request": str(grant.request),
        "principal": grant.principal.hex(),
        "effective": format_advanced(grant.tag.to_sexp()),
        "grants": words.describe_tag(grant.tag.to_sexp(), home),
        "valid": period_to_json(grant.period),
        "until": None if grant.until is None else grant.until.isoformat(),
        "may_delegate": grant.may_delegate,
        "conditions": list(grant.conditions),
        "certificates": [item.certificate_id.hex() for item in grant.certificates],
    }
