"""The answers of a decision on the command line: a proof written out, or a denial in words."""

from __future__ import annotations

from pathlib import Path

from maia.authority import Decision, Grant, Stage, Verifier, covers, one_of, parse_statement
from maia.cli.asking import Question
from maia.cli.proof_file import write_proof
from maia.cli.read.files import write_target
from maia.cli.show.exits import ExitCode, hint_for
from maia.cli.show.output import note, report_error, write_json
from maia.errors import UncheckedError, VerificationError
from maia.home import CertificateFolder, Folder


def is_whole(question: Question) -> bool:
    """Tell whether the principal's chains together cover all that was asked for, not only a part."""
    if question.request.ground is not None:
        return True
    verifier = Verifier(question.roots, statements=question.book)
    try:
        clauses = verifier.clauses(
            question.request, principal=question.principal, evidence=question.pool, at=question.at
        )
    except UncheckedError:
        return False
    return bool(clauses) and covers(one_of(clause.tag for clause in clauses), question.request.wanted)


def write_out(question: Question, grant: Grant, out: Path) -> None:
    """Write a proof to a file, or its certificates to a folder that exists."""
    if out.is_dir():
        folder = CertificateFolder(out)
        for certificate in grant.certificates:
            folder.add(certificate)
        note(f"wrote {len(grant.certificates)} certificates to {out}")
        return
    signers = {test.signer.key_id for item in grant.certificates for test in item.body.tests}
    raws = question.book.raw_statements() if signers else ()
    statements = tuple(raw for raw in raws if parse_statement(raw).body.signer.key_id in signers)
    write_target(out, write_proof(grant, question.principal, statements))
    note(f"wrote the proof to {out}")


def denial_of(decision: Decision) -> VerificationError:
    """Return why a decision is a denial."""
    return decision.error if decision.error is not None else VerificationError("not proven")


def not_proven(decision: Decision, home: Folder, *, json: bool, code: ExitCode) -> ExitCode:
    """Report a denial: the first stage that failed, and the nearest missing link."""
    error = denial_of(decision)
    if json:
        write_json(denial_to_json(decision, home), code=code)
    shown = VerificationError(home.decorate(error.message), code=error.code)
    report_error(shown, code=code, as_json=False)
    return code


def denial_to_json(decision: Decision, home: Folder) -> dict[str, object]:
    """Give a denial for machines."""
    error = denial_of(decision)
    data: dict[str, object] = {
        "allowed": False,
        "error": error.code,
        "message": home.decorate(error.message),
        "stage": None if decision.stage is None else decision.stage.value,
        "trace": [{"stage": stage.value, "passed": passed} for stage, passed in decision.trace],
    }
    hint = hint_for(error.code)
    return data | ({"hint": hint} if hint else {})


STAGE_WORDS = {
    Stage.AUTHENTICATION: "the key is taken as proven",
    Stage.EVIDENCE: "certificates are there",
    Stage.SIGNATURES: "their signatures verify",
    Stage.VALIDITY: "they are valid now",
    Stage.TESTS: "no statement withdraws them",
    Stage.NAMES: "names stand for keys",
    Stage.REDUCTION: "they form a chain",
    Stage.ROOT: "the chain starts at the owner",
    Stage.REQUEST: "the chain permits the request",
}
