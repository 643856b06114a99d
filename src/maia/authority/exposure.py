"""How long a certificate can outlive its revocation, at worst.

The printed figure is the time between the moment its issuer decides to withdraw it and the moment no verifier that
follows the rules accepts it any more. Clock skew comes on top, and so does the broker's lag: how long it waits before
it looks again, and how long what it began then may run. Both are zero unless they are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.authority.book import StatementBook
from maia.encoding import duration
from maia.errors import UsageError
from maia.principals import Certificate, OnlineTest, TestKind, UnverifiedCertificate, check_aware

_NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Exposure:
    """The worst case, and what bounds it. A ``window`` of ``None`` is without bound."""

    window: timedelta | None
    bounded_by: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{'unbounded' if self.window is None else duration(self.window)} ({self.bounded_by})"


def exposure_window(
    certificate: Certificate | UnverifiedCertificate,
    *,
    at: datetime,
    statements: StatementBook,
    skew: timedelta = _NONE,
    lag: timedelta = _NONE,
) -> Exposure:
    """Compute the worst case if the issuer revoked a certificate at an instant.

    Each on-line test bounds it by what is already signed and cannot be taken back: the rest of the list in force, and
    early successors that still confirm the certificate. A one-time test leaves no window. The end of the validity
    period bounds it in any case; a certificate with neither has no bound.

    Args:
        certificate: The certificate in question.
        at: The instant of revocation.
        statements: The lists that verifiers may hold.
        skew: How far clocks may differ.
        lag: The broker's trigger and its longest batch.

    >>> from datetime import UTC
    >>> from maia.principals import Authorisation, KeySigner, Period, issue
    >>> met, smith = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    >>> sides = {"issuer": met.public_key, "subject": smith.public_key, "period": Period(None, noon)}
    >>> right = issue(Authorisation(**sides, delegate=False, tag=(b"read",)), met)
    >>> at = noon - timedelta(minutes=1)
    >>> str(exposure_window(right, at=at, statements=StatementBook(), lag=timedelta(seconds=2)))
    '1 minute and 3 seconds (the end of its validity period)'
    """
    check_aware(at)
    body = certificate.body
    found: list[tuple[timedelta, str]] = []
    if body.period.not_after is not None:
        # Valid in its last second, so the window ends with that second.
        rest = max(body.period.not_after - at + timedelta(seconds=1), _NONE)
        found.append((rest + skew + lag, "the end of its validity period"))
    for test in body.tests:
        window = _test_window(test, certificate, at, statements)
        if window is not None:
            found.append((window + skew + lag, f"the {test.kind.value} of {test.signer.fingerprint}"))
    if not found:
        return Exposure(None, "neither a validity period nor a timed test")
    return Exposure(*min(found, key=lambda item: item[0]))


def _test_window(
    test: OnlineTest, certificate: Certificate | UnverifiedCertificate, at: datetime, statements: StatementBook
) -> timedelta | None:
    if test.kind is TestKind.ONE_TIME:
        return _NONE
    end = statements.assured_until(test, certificate.certificate_id, at=at)
    return None if end is None else end - at


def check_revocable(certificate: Certificate | UnverifiedCertificate) -> None:
    """Refuse to revoke what no revocation can reach.

    A certificate without an on-line test is never looked up in a list, so only the end of its period withdraws it. One
    that has neither, such as a root delegation (row 5.15), is for ever, and a list that names it would promise what no
    verifier does. One that merely ends passes: its issuer withdraws it by not renewing it.

    Raises:
        UsageError: ``IRREVOCABLE``: the certificate has neither an on-line test nor an end.

    >>> from maia.principals import Authorisation, KeySigner, issue
    >>> pito, met = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> root = Authorisation(issuer=pito.public_key, subject=met.public_key, delegate=True, tag=(b"maia-type",))
    >>> check_revocable(issue(root, pito))
    Traceback (most recent call last):
    ...
    maia.errors.UsageError: [IRREVOCABLE] a certificate without an on-line test and without an end is irrevocable
    """
    if not certificate.body.tests and certificate.body.period.not_after is None:
        raise UsageError("a certificate without an on-line test and without an end is irrevocable", code="IRREVOCABLE")
