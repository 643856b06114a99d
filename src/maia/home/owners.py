"""The exchanges of owners' members that a home believes: certificates in the folder ``owners``, beside the statements.

They are kept apart from what a home presents as evidence: a verifier is told by its own home who speaks for an owner.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from maia.authority import Successions
from maia.errors import VerificationError
from maia.home.certificates import CertificateFolder
from maia.principals import Certificate, verify_certificate

OWNERS_FOLDER = "owners"


def read_successions(home: Path) -> Successions:
    """Read who speaks for owners of several keys, by what a home keeps; what does not verify counts for nothing."""
    folder = home / OWNERS_FOLDER
    if not folder.is_dir():
        return Successions()
    found: list[Certificate] = []
    for item in CertificateFolder(folder).pool():
        with suppress(VerificationError):
            found.append(verify_certificate(item))
    return Successions(found)


def keep_exchange(home: Path, certificate: Certificate) -> Path:
    """Keep what a member signed."""
    return CertificateFolder(home / OWNERS_FOLDER).add(certificate)
