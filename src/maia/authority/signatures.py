"""Signatures that were checked before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from maia.authority.limits import DEFAULT_VERIFIER_LIMITS
from maia.principals import (
    Certificate,
    UnverifiedCertificate,
    verify_certificate,
)


class SignatureCache:
    """Certificates whose signature was verified in this process, by their exact bytes; bounded, oldest out first."""

    def __init__(self, capacity: int = DEFAULT_VERIFIER_LIMITS.max_memory) -> None:
        """Hold up to ``capacity`` certificates."""
        self._capacity = capacity
        self._verified: OrderedDict[bytes, Certificate] = OrderedDict()
        self.verifications = 0

    def verify(self, certificate: UnverifiedCertificate) -> Certificate:
        """Return the verified certificate, checking the signature only if these bytes were never checked.

        Raises:
            SignatureError: The signature does not verify.
        """
        known = self._verified.get(certificate.raw)
        if known is not None:
            return known
        self.verifications += 1
        verified = verify_certificate(certificate)
        if len(self._verified) >= self._capacity:
            self._verified.popitem(last=False)
        self._verified[certificate.raw] = verified
        return verified

    def __len__(self) -> int:
        """Count the certificates held."""
        return len(self._verified)

    def __iter__(self) -> Iterator[Certificate]:
        """Go through the certificates, oldest first."""
        return iter(tuple(self._verified.values()))
