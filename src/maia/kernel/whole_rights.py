"""Rights that are about no cells: to connect, to install, to transform. They hold as a whole, or not at all.

Their conditions are asked now, and none of them may wait for an event: there is none to ask it of.
"""

from __future__ import annotations

from datetime import datetime

from maia.authority import Action, CertificatePool, Grant, Request, Verifier, first_end
from maia.errors import ChainError
from maia.kernel.conditions import CONDITION_FALSE, MakeSurroundings, make_guard
from maia.principals import KeyHash, PublicKey


def prove_whole(
    principal: PublicKey | KeyHash,
    action: Action,
    request: Request,
    evidence: CertificatePool,
    *,
    type_name: str,
    verifier: Verifier,
    make: MakeSurroundings,
    at: datetime,
) -> tuple[Grant, datetime | None]:
    """Prove that somebody has a right now.

    Returns:
        The grant; and the first instant at which what proves it carries no longer, statements being as they are.

    Raises:
        VerificationError: It has no such right, or the conditions of it do not hold: ``CONDITION_FALSE``.
    """
    grant = verifier.verify(request, principal=principal, evidence=evidence, at=at)
    if not grant.conditions:
        return grant, grant.ends
    for right in verifier.clauses(request, principal=principal, evidence=evidence, at=at):
        guard = make_guard(
            right.conditions, right.proof.certificate_ids(), action=action, principal=principal.key_id,
            event_type=type_name, evidence=evidence, make=make, at=at,
        )  # fmt: skip
        if guard is not None and not guard.conditions:  # nothing is left that would need an event
            return grant, first_end(right.period, right.until)
    raise ChainError("the conditions of the right do not hold", code=CONDITION_FALSE)
