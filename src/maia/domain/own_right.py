"""A broker's own right to publish, which its readers judge by themselves, later and at the stamps of its events.

Rule kept here: such a right rests on lists, never on one-time answers. An answer serves one decision and shows nothing
afterwards, so no reader could tell by it that the broker had a right when it published. A broker whose only right
demands one publishes nothing, and is told so.
"""

from __future__ import annotations

from datetime import datetime

from maia.authority import ONE_TIME_ORIGIN, CertificatePool, Grant, Request, Verifier
from maia.domain.fetched import leading_to
from maia.errors import UncheckedError
from maia.principals import PublicKey, TestKind


def prove_own_right(
    verifier: Verifier, request: Request, broker: PublicKey, pool: CertificatePool, *, at: datetime
) -> Grant:
    """Prove a broker's right to publish, in the way its readers will.

    Raises:
        UncheckedError: It rests on a one-time answer: ``ONE_TIME_ORIGIN``; or a list is missing.
        VerificationError: It is not proven.
    """
    try:
        return verifier.verify(request, principal=broker, evidence=pool, at=at)
    except UncheckedError as error:
        if error.code != "NO_STATEMENT" or not _needs_answer(verifier, broker, pool, at):
            raise
        raise UncheckedError(
            "the broker's own right to publish demands one-time answers, which show nothing to those who judge its "
            "events later: it needs one that lists confirm",
            code=ONE_TIME_ORIGIN,
        ) from error


def _needs_answer(verifier: Verifier, broker: PublicKey, pool: CertificatePool, at: datetime) -> bool:
    """Tell whether nothing is missing but answers: some certificate demands one, and every list is here."""
    tests = [test for certificate in leading_to(pool, broker.key_id) for test in certificate.body.tests]
    lists = [test for test in tests if test.kind is not TestKind.ONE_TIME]
    return len(lists) < len(tests) and all(verifier.statements.serving(test, at=at) is not None for test in lists)
