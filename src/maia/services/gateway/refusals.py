"""What a client of a gateway is told of a refusal.

Rules kept here:

- what a client's own certificates, words and rows lack is told by its code: a right that was revoked or has ended, a
  filter that it may not use, an advertisement that it took back;
- a type that is not there and one that the client has no right to give one answer (``DENIED``), so nobody learns what
  exists by asking. What a client takes back and never advertised is ``NOT_ADVERTISED``, whether it is there or not.
"""

from __future__ import annotations

from maia.errors import DeniedError, MaiaError, UsageError, VerificationError
from maia.wire import Problem, problem_of

BUSY = "TOO_MANY_REQUESTS"
_TOLD = frozenset(
    (
        "CONDITION_FALSE", "EXPIRED", "FILTER_NOT_AUTHORISED", "FILTER_OUT_OF_BOUNDS", "NOT_ADVERTISED", "NOT_LOCAL",
        "NOT_YET_VALID", "NOT_YOUR_SUBSCRIPTION", "NO_SUBSCRIPTION", "REVOKED",
    )
)  # fmt: skip


def refusal_of(error: MaiaError) -> Problem:
    """Turn an error into what a client whose key was proven may know."""
    if error.code == BUSY:
        return Problem(status=429, code=BUSY)
    if isinstance(error, UsageError) and error.code.startswith("TYPE_"):  # its message lists types
        return problem_of(DeniedError("no such type, or several"))
    if error.code in _TOLD:
        status = 403 if isinstance(error, DeniedError | VerificationError) else 404
        return Problem(status=status, code=error.code, detail=_detail(error))
    return problem_of(error)


def _detail(error: MaiaError) -> str:
    """Say the words of what the client itself sent; of certificates and domains the code is enough."""
    return error.message if error.code.startswith("FILTER_") else ""
