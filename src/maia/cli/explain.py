"""`maia explain`: why somebody may do something, or what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from maia.authority import Decision
    from maia.cli.asking import Question

app = new_app()


@app.command(
    epilog=examples(
        "maia explain --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
        "maia explain --as smith --network 'pito/UK Police Network' --action install --json",
    )
)
def explain(
    *,
    principal: Annotated[str, principal_option("--as", help="Who is asked about: one key.")],
    type_: options.Type = None,
    network: options.Network = None,
    tag: options.RawTag = None,
    action: options.Actions = None,
    attribute: options.Attributes = None,
    root: options.Roots = None,
    certificates: options.Evidence = None,
    statement: Annotated[
        list[Path] | None, typer.Option("--statement", metavar="FILE", help="A further statement, for this once.")
    ] = None,
    home: options.Home = Path(),
    at: options.At = None,
    json: options.Json = False,
) -> int:
    """Draw the chains that give a right as trees, with what each link keeps and removes.

    Every chain is shown: rights of several chains add up and are never mixed. Without one, the stages that were
    passed, the nearest missing link and what to do about it; then the command exits with 3.
    """
    from maia.cli.asking import Question, book_with, parse_holder, parse_roots
    from maia.cli.explaining import effective_text, explain_chains
    from maia.cli.proving import not_proven
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.rights import parse_right
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import draw, write_json, write_line
    from maia.cli.show.proofs import grant_to_json, proof_tree
    from maia.home import Folder

    place, instant = Folder(home), decision_instant(at)
    right = parse_right(place, type_=type_, network=network, tag=tag, actions=action, attributes=attribute)
    question = Question(
        home=place, request=right.request(), principal=parse_holder(principal, place), pool=place.pool(certificates),
        book=book_with(place, statement), roots=parse_roots(root, place), at=instant,
    )  # fmt: skip
    decision = question.decide()
    if decision.grant is None:
        if not json:
            _draw_stages(decision, question)
        return not_proven(decision, place, json=json, code=ExitCode.DENIED)
    chains = explain_chains(question, decision.grant)
    if json:
        write_json({**grant_to_json(decision.grant, place), "chains": [step.to_json() for step in chains]})
        return ExitCode.DONE
    for step in chains:
        draw(proof_tree(step))
    many = f", by {len(chains)} chains that add up" if len(chains) > 1 else ""
    write_line(f"{place.show(question.principal.key_id)} holds {effective_text(question, decision.grant)}{many}")
    return ExitCode.DONE


def _draw_stages(decision: Decision, question: Question) -> None:
    from rich.text import Text
    from rich.tree import Tree

    from maia.cli.proving import STAGE_WORDS
    from maia.cli.show.output import draw

    who = question.home.show(question.principal.key_id)
    tree = Tree(Text().append("denied: ", style="bold red").append(f"{who}: {question.request}"))
    for stage, passed in decision.trace:
        mark, style = ("✓", "green") if passed else ("✗", "bold red")
        tree.add(Text().append(f"{mark} {stage.value:<15}", style=style).append(STAGE_WORDS[stage], style="dim"))
    draw(tree)
