"""`maia verify`: replay a proof, or check certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from datetime import datetime

    from maia.authority import Request
    from maia.cli.asking import Question
    from maia.home import CertificateFolder, Folder

app = new_app()


@app.command(
    epilog=examples(
        "maia verify smith.proof",
        "maia verify certificates",
        "maia verify ./evidence --as smith --type 'pito/uk.gov.pito.Numberplate@1' --action subscribe",
    )
)
def verify(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH", help="A proof, a certificate or a folder; the home's certificates when left out."
        ),
    ] = None,
    *,
    principal: Annotated[str | None, principal_option("--as", help="Decide for this key, from a folder.")] = None,
    type_: options.Type = None,
    network: options.Network = None,
    tag: options.RawTag = None,
    action: options.Actions = None,
    attribute: options.Attributes = None,
    root: options.Roots = None,
    home: options.Home = Path(),
    at: options.At = None,
    json: options.Json = False,
) -> int:
    """Check a proof, a certificate or a folder, trusting nothing in it.

    A proof is replayed from its certificates and statements alone. A folder is checked certificate by certificate,
    or, with --as and a right, decided upon. Exits with 4 when anything does not verify.
    """
    from maia.cli.proof_file import looks_like_proof
    from maia.cli.read.files import read_source
    from maia.cli.read.instants import decision_instant
    from maia.errors import UsageError
    from maia.home import Folder

    place, instant = Folder(home), decision_instant(at)
    if principal is not None:
        if path is not None and not path.is_dir():
            raise UsageError("--as decides from a folder; a proof names its principal itself", code="VERIFY_OPTIONS")
        from maia.cli.read.rights import parse_right

        right = parse_right(place, type_=type_, network=network, tag=tag, actions=action, attributes=attribute)
        return _decide(place, right.request(), principal, path, root, at=instant, json=json)
    if any(option for option in (type_, network, tag, action, attribute)):
        raise UsageError("a right is decided for somebody; give --as", code="VERIFY_OPTIONS")
    if path is not None and not path.is_dir():
        data = read_source(str(path))
        if looks_like_proof(data):
            return _replay(place, data, root, at=instant, json=json)
        return _check(place, [(str(path), data)], instant, json)
    folder = place.certificates if path is None else _folder(path)
    return _check(place, [(file.name, data) for file, data in folder], instant, json)


def _folder(path: Path) -> CertificateFolder:
    from maia.home import CertificateFolder

    return CertificateFolder(path)


def _decide(
    place: Folder,
    request: Request,
    principal: str,
    path: Path | None,
    root: list[str] | None,
    *,
    at: datetime,
    json: bool,
) -> int:
    from maia.cli.asking import Question, parse_holder, parse_roots

    question = Question(
        home=place, request=request, principal=parse_holder(principal, place), pool=place.pool(path),
        book=place.book(), roots=parse_roots(root, place), at=at,
    )  # fmt: skip
    return _answer(question, json=json)


def _replay(place: Folder, data: bytes, root: list[str] | None, *, at: datetime, json: bool) -> int:
    from maia.authority import CertificatePool
    from maia.cli.asking import Question, accept_known, parse_roots
    from maia.cli.proof_file import read_proof

    proof = read_proof(data)
    book = place.book()
    accept_known(book, proof.statements)
    question = Question(
        home=place, request=proof.request, principal=proof.principal, pool=CertificatePool(proof.certificates),
        book=book, roots=parse_roots(root, place), at=at,
    )  # fmt: skip
    return _answer(question, json=json)


def _answer(question: Question, *, json: bool) -> int:
    from maia.cli.proving import not_proven
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import write_json, write_line
    from maia.cli.show.proofs import grant_to_json
    from maia.cli.show.rights import describe_tag

    decision = question.decide()
    if decision.grant is None:
        return not_proven(decision, question.home, json=json, code=ExitCode.NOT_VERIFIED)
    if json:
        write_json(grant_to_json(decision.grant, question.home))
    else:
        shown = describe_tag(decision.grant.tag.to_sexp(), question.home)
        write_line(f"verified: {question.home.show(question.principal.key_id)} holds {shown}")
    return ExitCode.DONE


def _check(place: Folder, files: list[tuple[str, bytes]], at: datetime, json: bool) -> int:
    """Check every certificate by itself: form, signature, period, statements."""
    from maia.cli.checking import check_certificate
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import note, write_json, write_line

    book = place.book()
    results = [check_certificate(name, data, at=at, book=book) for name, data in files]
    failed = [item for item in results if item.error is not None]
    code = ExitCode.NOT_VERIFIED if failed else ExitCode.DONE
    if not results:
        # Nothing checked is nothing proven: a script that goes on after success must not go on here.
        code = ExitCode.NOT_FOUND
    if json:
        write_json({"certificates": [item.to_json() for item in results], "failed": len(failed)}, code=code)
    else:
        for item in results:
            write_line(f"{'FAILED' if item.error else 'ok':<7} {item.name}" + (f"  {item.error}" if item.error else ""))
    if not results:
        note("no certificates here")
    elif failed:
        note(f"{len(failed)} of {len(results)} certificates do not verify")
    return code
