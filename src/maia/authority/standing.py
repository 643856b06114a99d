"""One certificate by itself: does it read, is it signed by its issuer, does it count now?"""

from __future__ import annotations

from datetime import datetime

from maia.authority.book import StatementBook
from maia.errors import ExpiredError, MaiaError
from maia.principals import CertificateId, TestKind, parse_certificate, verify_certificate


def check_standing(
    raw: bytes, *, at: datetime, statements: StatementBook
) -> tuple[CertificateId | None, MaiaError | None]:
    """Check form, signature, period and the statements that a certificate demands.

    One-time tests need a challenge and are left out.

    Returns:
        Which certificate it is, when its signature verifies, and what is wrong with it.

    >>> from datetime import UTC
    >>> check_standing(b"()", at=datetime(2026, 6, 1, tzinfo=UTC), statements=StatementBook())[0] is None
    True
    """
    identity: CertificateId | None = None
    try:
        certificate = verify_certificate(parse_certificate(raw))
        identity, period = certificate.certificate_id, certificate.body.period
        if not period.contains(at):
            over = period.not_after is not None and at > period.not_after
            raise ExpiredError("expired" if over else "not valid yet")
        for test in certificate.body.tests:
            if test.kind is not TestKind.ONE_TIME:
                statements.check(test, certificate.certificate_id, at=at)
    except MaiaError as error:
        return identity, error
    return identity, None
