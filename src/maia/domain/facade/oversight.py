"""What whoever oversees a domain asks: whether it may, who gave what to whom, and what a revocation would end.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.delegations import Delegation, find_delegations
from maia.domain.given import AskPassphrase
from maia.domain.grants import Granted
from maia.domain.oversight import Oversight, find_oversight
from maia.domain.revocations import RevocationPreview, find_revocation
from maia.principals import PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def oversight(domain: Domain, key: PublicKey, *, at: datetime | None = None) -> Oversight:
    """Tell what a key may do with the domain as a whole: look at everybody's rights, or also change them.

    Args:
        domain: Which.
        key: Whose; that it is the asker's has been proven elsewhere.
        at: The moment; now by default.

    Raises:
        DeniedError: Nothing: ``NO_OVERSIGHT``.
    """
    return find_oversight(domain, key, at=domain.clock() if at is None else at)


def delegations(domain: Domain, name: str | None = None, *, at: datetime | None = None) -> tuple[Delegation, ...]:
    """List who gave what to whom, certificate by certificate, with those that do not stand now.

    Args:
        domain: Whose certificates.
        name: Only what is on this type, and the names by which it is given.
        at: The moment; now by default.

    Raises:
        MaiaError: The type is unknown here.
    """
    found = None if name is None else domain.find_type(name)
    return find_delegations(domain, found, at=domain.clock() if at is None else at)


def preview_revocation(
    domain: Domain,
    certificate: str | Granted,
    *,
    passphrase: AskPassphrase | None = None,
    at: datetime | None = None,
) -> RevocationPreview:
    """Tell what `revoke` would end: whose rights, which subscriptions, what stands on it; nothing is done.

    Args:
        domain: Whose certificate.
        certificate: What `grant` returned, the beginning of the certificate's id, or its file.
        passphrase: As for `revoke`.
        at: The moment; now by default.

    Raises:
        UsageError: No list can revoke it, or one did.
    """
    text = certificate.certificate.certificate_id.hex() if isinstance(certificate, Granted) else certificate
    return find_revocation(domain, text, at=domain.clock() if at is None else at, passphrase=passphrase)
