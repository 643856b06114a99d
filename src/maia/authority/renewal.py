"""Short-lived certificates: renewed on request, revoked by declining (row 13.02).

The issuer's policy is asked at each renewal. A refusal needs no list and no message to verifiers: the old certificate
ends by itself, and `exposure_window` says when at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from maia.errors import DeniedError, UsageError
from maia.principals import Body, Certificate, Period, Signer, check_aware, issue


def renew(
    certificate: Certificate, signer: Signer, *, at: datetime, still_granted: Callable[[Body], bool]
) -> Certificate:
    """Issue a certificate anew for as long as it was issued for, if its issuer still wants to.

    The new certificate says the same, from ``at`` on; it has an identity of its own, so a list that names the old one
    does not reach it.

    Args:
        certificate: The certificate to renew; it may have expired.
        signer: Its issuer.
        at: When the new life starts, to the second.
        still_granted: The issuer's policy, asked about what is to be signed.

    Raises:
        DeniedError: ``RENEWAL_REFUSED``: the policy says no.
        UsageError: The certificate has no bounded life, or the signer is not its issuer.

    >>> from datetime import UTC
    >>> from maia.principals import Authorisation, KeySigner
    >>> met, smith = KeySigner(bytes(32)), KeySigner(bytes(31) + b"1")
    >>> hour = Period(datetime(2026, 6, 1, 9, tzinfo=UTC), datetime(2026, 6, 1, 10, tzinfo=UTC))
    >>> sides = {"issuer": met.public_key, "subject": smith.public_key}
    >>> old = issue(Authorisation(**sides, delegate=False, tag=(b"read",), period=hour), met)
    >>> new = renew(old, met, at=datetime(2026, 6, 1, 12, tzinfo=UTC), still_granted=lambda body: True)
    >>> new.body.period.not_after.hour
    13
    """
    period = certificate.body.period
    if period.not_before is None or period.not_after is None:
        raise UsageError("a certificate without a bounded life needs no renewal")
    starts = check_aware(at).replace(microsecond=0)
    body = replace(certificate.body, period=Period(starts, starts + (period.not_after - period.not_before)))
    if not still_granted(body):
        raise DeniedError("its issuer does not renew the certificate", code="RENEWAL_REFUSED")
    return issue(body, signer)
