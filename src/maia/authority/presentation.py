"""A request as it reaches a broker: a proven key, evidence, and one operation on one object (row 6.01).

Each of the three is needed; the first that is missing names the stage of the denial. The key that was proven is the
principal of the decision, so a copied chain is worth nothing to whoever cannot sign for its subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maia.authority.decision import Decision, Stage
from maia.authority.request import Request
from maia.authority.verifier import Verifier
from maia.errors import VerificationError
from maia.principals import Authenticated


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """What a client shows."""

    authenticated: Authenticated | None
    evidence: Sequence[bytes] | None
    request: Request | None


def decide_presentation(presentation: Presentation, verifier: Verifier, *, at: datetime) -> Decision:
    """Decide a presented request, naming the first of its three parts that is missing."""
    missing = (
        (presentation.authenticated, Stage.AUTHENTICATION, "no proof of a key", "NOT_AUTHENTICATED"),
        (presentation.evidence, Stage.EVIDENCE, "no evidence", "NO_EVIDENCE"),
        (presentation.request, Stage.REQUEST, "no request", "NO_REQUEST"),
    )
    for part, stage, what, code in missing:
        if part is None:
            return Decision(None, VerificationError(f"{what} was presented", code=code), stage)
    assert presentation.authenticated is not None  # noqa: S101 - tested above, for the type checker
    assert presentation.evidence is not None  # noqa: S101
    assert presentation.request is not None  # noqa: S101
    return verifier.decide(
        presentation.request, principal=presentation.authenticated.key, evidence=presentation.evidence, at=at
    )
