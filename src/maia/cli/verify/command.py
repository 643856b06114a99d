"""`maia verify`: replay a proof, or check certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.authority import (
    CertificatePool,
    check_standing,
    looks_like_proof,
    parse_statement,
    read_proof,
    verify_statement,
)
from maia.cli.read.bundles import CommandPlace, RightOptions, unpacked
from maia.cli.read.files import read_source
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.question import read_question
from maia.cli.show.decisions import not_proven
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, write_json, write_line
from maia.cli.show.proofs import grant_to_json
from maia.domain import RightQuestion
from maia.encoding import counted
from maia.errors import UsageError
from maia.home import CertificateFolder, words

app = new_app()


@app.command(
    epilog=examples(
        "maia verify smith.proof",
        "maia verify certificates",
        "maia verify ./evidence --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
    )
)
@unpacked
def verify(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH", help="A proof, a certificate or a folder; the home's certificates when left out."
        ),
    ] = None,
    *,
    principal: Annotated[str | None, principal_option("--as", help="Decide for this key, from a folder.")] = None,
    asked: RightOptions,
    place: CommandPlace,
) -> int:
    """Check a proof, a certificate or a folder, trusting nothing in it.

    A proof is replayed from its certificates and statements alone. A folder is checked certificate by certificate,
    or, with --as and a right, decided upon. Exits with 4 when anything does not verify.
    """
    is_file = path is not None and not path.is_dir()
    if principal is not None:
        if is_file:
            raise UsageError("--as decides from a folder; a proof names its principal itself", code="VERIFY_OPTIONS")
        return _answer(read_question(place, asked, principal, certificates=path), json=place.json)
    if asked.given:
        raise UsageError("a right is decided for somebody; give --as", code="VERIFY_OPTIONS")
    if not is_file:
        folder = place.folder.certificates if path is None else CertificateFolder(path)
        return _check(place, [(file.name, data) for file, data in folder])
    data = read_source(str(path))
    if looks_like_proof(data):
        return _answer(_replay(place, asked, data), json=place.json)
    return _check(place, [(str(path), data)])


def _replay(place: CommandPlace, asked: RightOptions, data: bytes) -> RightQuestion:

    proof, book = read_proof(data), place.folder.book()
    for raw in proof.statements:
        if not book.accept_unless_known(verify_statement(parse_statement(raw))):
            note("a statement of the proof is left out: this home knows better")
    return RightQuestion(
        home=place.folder, request=proof.request, principal=proof.principal, pool=CertificatePool(proof.certificates),
        book=book, roots=asked.roots(place.folder), at=place.instant,
    )  # fmt: skip


def _answer(question: RightQuestion, *, json: bool) -> int:

    decision = question.decide()
    if decision.grant is None:
        return not_proven(question, decision, json=json, code=ExitCode.NOT_VERIFIED)
    if json:
        write_json(grant_to_json(decision.grant, question.home))
    else:
        shown = words.describe_tag(decision.grant.tag.to_sexp(), question.home)
        conditions = "".join(f", if {text}" for text in decision.grant.conditions)
        write_line(f"verified: {question.home.show(question.principal.key_id)} holds {shown}{conditions}")
    return ExitCode.DONE


def _check(place: CommandPlace, files: list[tuple[str, bytes]]) -> int:
    """Check every certificate by itself: form, signature, period, statements."""
    book = place.folder.book()
    rows, failed = [], 0
    for name, data in files:
        identity, error = check_standing(data, at=place.instant, statements=book)
        failed += error is not None
        row: dict[str, object] = {
            "file": name, "id": None if identity is None else identity.hex(), "verified": error is None
        }  # fmt: skip
        rows.append(row if error is None else row | {"error": error.code, "message": error.message})
        if not place.json:
            write_line(f"{'FAILED' if error else 'ok':<7} {name}" + (f"  {error}" if error else ""))
    # Nothing checked is nothing proven: a script that goes on after success must not go on here.
    code = ExitCode.NOT_VERIFIED if failed else ExitCode.DONE if rows else ExitCode.NOT_FOUND
    if place.json:
        write_json({"certificates": rows, "failed": failed}, code=code)
    if not rows:
        note("no certificates here")
    elif failed:
        note(f"{failed} of {counted(len(rows), 'certificate')} {'does' if failed == 1 else 'do'} not verify")
    return code
