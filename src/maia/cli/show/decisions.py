"""Decisions: what is held, or a denial in words with the first thing that is missing."""

from __future__ import annotations

from maia.authority import Decision, Stage
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import report_error, write_json
from maia.domain import RightQuestion
from maia.errors import VerificationError
from maia.home import Folder

STAGE_WORDS = {
    Stage.AUTHENTICATION: "the key is taken as proven",
    Stage.EVIDENCE: "certificates are there",
    Stage.SIGNATURES: "their signatures verify",
    Stage.VALIDITY: "they are valid now",
    Stage.TESTS: "no statement revokes them",
    Stage.NAMES: "names stand for keys",
    Stage.REDUCTION: "they form a chain",
    Stage.ROOT: "the chain starts at the owner",
    Stage.REQUEST: "the chain permits the request",
}


def denial_of(decision: Decision, home: Folder) -> VerificationError:
    """Say why a decision is a denial, with the names that this home knows."""
    error = decision.error if decision.error is not None else VerificationError("not proven")
    return VerificationError(home.decorate(error.message), code=error.code)


def not_proven(question: RightQuestion, decision: Decision, *, json: bool, code: ExitCode) -> ExitCode:
    """Report a denial: who lacks the right, the first stage that failed, and the nearest missing link."""
    error, who = denial_of(decision, question.home), question.home.show(question.principal.key_id)
    hint = None if error.hint is None else f"{who}: {error.hint}"
    if json:
        data: dict[str, object] = {
            "allowed": False, "error": error.code, "message": error.message, "principal": who,
            "stage": None if decision.stage is None else decision.stage.value,
            "trace": [{"stage": stage.value, "passed": passed} for stage, passed in decision.trace],
        }  # fmt: skip
        write_json(data | ({"hint": hint} if hint else {}), code=code)
    report_error(error, code=code, as_json=False, hint=hint)
    return code
