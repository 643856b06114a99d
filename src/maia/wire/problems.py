"""Refusals over HTTP: problem details (RFC 9457) that carry Maia's codes.

Rules kept here:

- a caller's own message may be explained to it: what is malformed (400, 422), what is wrong with its signature (401);
- what the service decides is not: a right that is missing, a thing that is not there and one that the caller may not
  know of give one answer, byte for byte (403 ``DENIED``), so nobody learns what exists by asking. The service's own
  log has the code;
- an error that nobody foresaw says nothing (500) and is logged.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from maia.errors import (
    DeniedError,
    FlowError,
    MaiaError,
    MalformedError,
    NotFoundError,
    SealError,
    UnavailableError,
    UsageError,
    VerificationError,
)

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: "the request is malformed",
    401: "the request is not authenticated",
    403: "the request is denied",
    404: "there is no such path",
    405: "the path does not serve this method",
    408: "the request took too long to arrive",
    409: "the request conflicts with the present state",
    413: "the request is too large",
    415: "the request is not JSON",
    422: "the request does not fit its description",
    429: "too many requests",
    500: "the service failed",
    503: "the service is not available",
}
DECLARED = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "Problem details (RFC 9457) with Maia's code.",
    "type": "object",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "code": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
        "detail": {"type": "string"},
    },
    "additionalProperties": False,
}
_REFUSALS = (DeniedError, FlowError, NotFoundError, VerificationError)
_log = logging.getLogger(__name__)


class UnauthenticatedError(Exception):
    """The caller's message does not prove its key; made by the services only, and answered with 401."""

    def __init__(self, error: MaiaError) -> None:
        """Keep why."""
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One refusal."""

    status: int
    code: str
    detail: str = ""

    def to_json(self) -> bytes:
        """Write the body."""
        table: dict[str, object] = {"type": "about:blank", "title": _TITLES[self.status], "status": self.status}
        table["code"] = self.code
        if self.detail:
            table["detail"] = self.detail
        return json.dumps(table).encode()


DENIED = Problem(status=403, code="DENIED", detail="you have no right to this, or there is no such thing")


def problem_of(error: MaiaError, *, conflicts: frozenset[str] = frozenset()) -> Problem:
    """Turn an error of a service's logic into what its caller may know.

    Args:
        error: What the logic raised.
        conflicts: Codes that say that the request was right but came too late or twice (409).
    """
    if error.code in conflicts:
        return Problem(status=409, code=error.code, detail=error.message)
    if isinstance(error, _REFUSALS):
        _log.info("refused: %s", error.code)
        return DENIED
    if isinstance(error, UnavailableError):
        _log.warning("not available: %s", error.code)
        return Problem(status=503, code=error.code)
    if isinstance(error, MalformedError | UsageError | SealError):
        return Problem(status=400, code=error.code, detail=error.message)
    _log.error("unforeseen: %s", error.code)
    return Problem(status=500, code="INTERNAL")


def authentication_problem(error: MaiaError) -> Problem:
    """Turn what is wrong with a caller's proof into what it may know, which is all: the message is its own."""
    if error.code == "LIMIT_EXCEEDED":
        return Problem(status=429, code="TOO_MANY_REQUESTS")
    if isinstance(error, UnavailableError):
        return problem_of(error)
    return Problem(status=401, code=error.code, detail=error.message)


def declared(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe refusals for OpenAPI; those that every path can give, unless some are named."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _TITLES[status], "content": content} for status in statuses or DECLARED}
