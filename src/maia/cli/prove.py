"""`maia prove`: find the certificates that prove a right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

app = new_app()


@app.command(
    epilog=examples(
        "maia prove --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
        "maia prove --as mb --network 'pito/UK Police Network' --action connect --out mb.proof",
        "maia prove --as jones --tag '(ftp read)' --root admin --certificates ./evidence",
    )
)
def prove(
    *,
    principal: Annotated[str, principal_option("--as", help="Who claims the right: one key.")],
    type_: options.Type = None,
    network: options.Network = None,
    tag: options.RawTag = None,
    action: options.Actions = None,
    attribute: options.Attributes = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything that was asked for must be held, not only a part of it.")
    ] = False,
    root: options.Roots = None,
    certificates: options.Evidence = None,
    statement: Annotated[
        list[Path] | None, typer.Option("--statement", metavar="FILE", help="A further statement, for this once.")
    ] = None,
    nonce: Annotated[
        str | None, typer.Option("--nonce", metavar="HEX", help="The nonce that one-time answers must carry.")
    ] = None,
    verifier: Annotated[
        str | None, typer.Option("--verifier", metavar="NAME", help="The verifier that one-time answers must name.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Write the proof: to a file, to stdout (`-`), or its certificates to an existing folder.",
        ),
    ] = None,
    home: options.Home = Path(),
    at: options.At = None,
    json: options.Json = False,
) -> int:
    """Find a proof of a right in a folder of certificates, and print it.

    Certificates may lie in any order, and more of them than needed. A proof that is written out can be replayed by
    anybody with `maia verify`. Exits with 3 when there is no proof; `maia explain` says what is missing.
    """
    from maia.cli.asking import Question, book_with, parse_challenge, parse_holder, parse_roots
    from maia.cli.proving import is_whole, not_proven, write_out
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.rights import parse_right
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import draw, write_json, write_line
    from maia.cli.show.proofs import explain_grant, grant_to_json, proof_tree
    from maia.home import Folder

    place, instant = Folder(home), decision_instant(at)
    right = parse_right(place, type_=type_, network=network, tag=tag, actions=action, attributes=attribute)
    question = Question(
        home=place, request=right.request(), principal=parse_holder(principal, place), pool=place.pool(certificates),
        book=book_with(place, statement), roots=parse_roots(root, place), at=instant,
        challenge=parse_challenge(nonce, verifier, at=instant),
    )  # fmt: skip
    decision = question.decide()
    if decision.grant is None:
        return not_proven(decision, place, json=json, code=ExitCode.DENIED)
    covered = is_whole(question)
    if whole and not covered:
        from maia.errors import DeniedError

        raise DeniedError(f"only a part of it is proven: {right.text}", code="PROVEN_IN_PART")
    if out is not None:
        write_out(question, decision.grant, out)
    if json:
        write_json({**grant_to_json(decision.grant, place), "whole": covered})
    elif str(out) != "-":
        draw(proof_tree(explain_grant(decision.grant, place)))
        write_line(f"proven: {right.text}" if covered else f"proven in part: {right.text}")
    return ExitCode.DONE
