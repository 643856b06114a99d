"""`maia explain`: why somebody may do something, or what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, RightOptions, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import draw, note, printable, write_json, write_line

if TYPE_CHECKING:
    from maia.authority import Decision
    from maia.domain import BrokerNeeds, RightQuestion

app = new_app()


@app.command(
    epilog=examples(
        "maia explain --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
        "maia explain --as smith --network 'pito/UK Police Network' --action install --json",
    )
)
@unpacked
def explain(
    *,
    principal: Annotated[str, principal_option("--as", help="Who is asked about: one key.")],
    asked: RightOptions,
    certificates: options.Evidence = None,
    statement: options.Statements = None,
    place: CommandPlace,
) -> int:
    """Draw the chains that give a right as trees, with what each link keeps and removes.

    Every chain is shown: rights of several chains add up and are never mixed. Conditions are asked now, and in a home
    the broker is looked at as well: it has to hold the right itself, and keys to deliver. Publishing under a topic
    needs the right on each super-topic, and the first that is missing is shown. Without a chain, the stages that were
    passed, the nearest missing link and what to do about it; then, and when no condition holds, the command exits with
    3. What a type inherits is decided by rights on the type that it comes from: a line for each.
    """
    from maia.cli.read.question import check_version, read_question
    from maia.cli.show.decisions import not_proven
    from maia.cli.show.proofs import grant_to_json, proof_tree
    from maia.domain import explain_chains, inherited_rights

    check_version(asked.type_, place.folder)
    question = read_question(place, asked, principal, certificates=certificates, statements=statement)
    decision = question.decide()
    for above in asked.super_topics(place.folder) if decision.grant is not None else ():
        note(f"publishing under a topic needs the right on each super-topic: {above.type_}")
        needed = read_question(place, above, principal, certificates=certificates, statements=statement)
        if (found := needed.decide()).grant is None:
            question, decision = needed, found
            break
    if decision.grant is None:
        if not place.json:
            _draw_stages(decision, question)
        return not_proven(question, decision, json=place.json, code=ExitCode.DENIED)
    chains = explain_chains(question, decision.grant)
    if chains.count > len(chains.steps):
        note(f"showing {len(chains.steps)} of {chains.count} chains")
    lacks, inherited = _lacks(chains.broker, question), inherited_rights(question)
    code = ExitCode.DONE if chains.usable else ExitCode.DENIED
    if place.json:
        data = {**grant_to_json(decision.grant, question.home), **chains.to_json()}
        if inherited:
            data["inherited"] = [item.to_json() for item in inherited]
        write_json(data | ({} if lacks is None else {"broker_lacks": lacks[0]}), code=code)
    else:
        for step in chains.steps:
            draw(proof_tree(step))
        write_line(f"{question.home.show(question.principal.key_id)} {chains.text()}")
        for item in inherited:
            write_line(printable(item.text(question.home)))
    if lacks is not None:
        note(f"warning: {lacks[0]}")
        note(f"hint: {lacks[1]}")
    return code


def _lacks(broker: BrokerNeeds | None, question: RightQuestion) -> tuple[str, str] | None:
    """Say what the broker lacks for the right to be of use, and what to do about it; nothing when it lacks nothing."""
    from maia.cli.show.decisions import denial_of

    if broker is None:
        return None
    if broker.publish is not None and not broker.publish.allowed:
        why = denial_of(broker.publish, question.home).message
        return (
            f"the broker {broker.name} of this home may not publish the type, so nothing is published: {why}",
            f"ask for the right to publish for {broker.name}, as for the client",
        )
    if broker.deliver is not None and not broker.deliver.allowed:
        why = denial_of(broker.deliver, question.home).message
        return (
            f"the broker {broker.name} of this home may not open the type itself, so nothing is delivered: {why}",
            f"ask for the right to subscribe for {broker.name}, as for the client",
        )
    if broker.keyless:
        names = ", ".join(f"`{name}`" for name in broker.keyless)
        return f"this home holds no key of {names}: null in every event", "`maia keys join TYPE` asks for keys"
    return None


def _draw_stages(decision: Decision, question: RightQuestion) -> None:
    from rich.text import Text
    from rich.tree import Tree

    from maia.cli.show.decisions import STAGE_WORDS

    who = question.home.show(question.principal.key_id)
    tree = Tree(Text().append("denied: ", style="bold red").append(f"{who}: {question.request}"))
    for stage, passed in decision.trace:
        mark, style = ("✓", "green") if passed else ("✗", "bold red")
        tree.add(Text().append(f"{mark} {stage.value:<15}", style=style).append(STAGE_WORDS[stage], style="dim"))
    draw(tree)
