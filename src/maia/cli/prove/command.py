"""`maia prove`: find the certificates that prove a right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.authority import Grant, parse_statement, write_proof
from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, RightOptions, unpacked
from maia.cli.read.files import write_target
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.question import read_question
from maia.cli.show.decisions import not_proven
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import draw, note, write_json, write_line
from maia.cli.show.proofs import grant_to_json, proof_tree
from maia.domain import RightQuestion
from maia.encoding import counted
from maia.errors import DeniedError
from maia.home import CertificateFolder, words

app = new_app()


@app.command(
    epilog=examples(
        "maia prove --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
        "maia prove --as mb --network 'pito/UK Police Network' --action connect --out mb.proof",
        "maia prove --as jones --tag '(ftp read)' --root admin --certificates ./evidence",
    )
)
@unpacked
def prove(
    *,
    principal: Annotated[str, principal_option("--as", help="Who claims the right: one key.")],
    asked: RightOptions,
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything that was asked for must be held, not only a part of it.")
    ] = False,
    certificates: options.Evidence = None,
    statement: options.Statements = None,
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
    place: CommandPlace,
) -> int:
    """Find a proof of a right in a folder of certificates, and print it.

    Certificates may lie in any order, and more of them than needed. A proof that is written out can be replayed by
    anybody with `maia verify`. Exits with 3 when there is no proof; `maia explain` says what is missing.
    """
    question = read_question(
        place, asked, principal, certificates=certificates, statements=statement, nonce=nonce, verifier=verifier
    )
    decision = question.decide()
    if decision.grant is None:
        return not_proven(question, decision, json=place.json, code=ExitCode.DENIED)
    covered = question.is_whole()
    if whole and not covered:
        raise DeniedError(f"only a part of it is proven: {question.request}", code="PROVEN_IN_PART")
    if out is not None:
        _write_out(question, decision.grant, out)
    if place.json:
        write_json({**grant_to_json(decision.grant, question.home), "whole": covered})
    elif str(out) != "-":
        draw(proof_tree(words.explain_proof(decision.grant.proof, question.request, question.home)))
        write_line(f"proven: {question.request}" if covered else f"proven in part: {question.request}")
    return ExitCode.DONE


def _write_out(question: RightQuestion, grant: Grant, out: Path) -> None:
    """Write a proof to a file, or its certificates to a folder that exists."""
    if out.is_dir():
        folder = CertificateFolder(out)
        for certificate in grant.certificates:
            folder.add(certificate)
        note(f"wrote {counted(len(grant.certificates), 'certificate')} to {out}")
        return
    signers = {test.signer.key_id for item in grant.certificates for test in item.body.tests}
    raws = question.book.raw_statements() if signers else ()
    statements = tuple(raw for raw in raws if parse_statement(raw).body.signer.key_id in signers)
    write_target(out, write_proof(grant, question.principal, statements))
    note(f"wrote the proof to {out}")
