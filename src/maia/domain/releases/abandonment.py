"""Giving up a release that was begun and cannot be finished: its rules, its reader or its target are gone.

Rules kept here:

- nobody knows whether it left, so that what it covers counts as released, and is never released to that destination;
- who gives it up proves a key: that of the client that began it, or the one that speaks for the domain;
- one whose publication stands in the log has left, and is finished instead;
- the audit is told before the ledger, so that no release is given up in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maia.domain.operations import audit_of
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.home import ReleaseEntry, ReleaseLedger
from maia.log import AuditRow
from maia.principals import PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain

RELEASE_ABANDONED = "RELEASE_ABANDONED"


def abandon_begun(domain: Domain, number: int, name: str, key: PublicKey) -> ReleaseEntry:
    """Give up a release that was begun; what it covers counts as released from then on.

    Args:
        domain: Whose release.
        number: Its number in the ledger.
        name: Who gives it up, by name in the home.
        key: The key that was proven.

    Raises:
        NotFoundError: There is no release of that number: ``NO_RELEASE``.
        UsageError: It is done, or was given up before: ``RELEASE_OVER``.
        DeniedError: Somebody else began it (``RELEASE_NOT_YOURS``), or it stands in the log: ``RELEASE_LEFT``.
    """
    ledger, home = ReleaseLedger(domain.path), domain.home
    with ledger.turn():
        entry = next((item for item in ledger.entries() if item.number == number), None)
        if entry is None:
            raise NotFoundError(f"there is no release {number}; `maia release list` lists them", code="NO_RELEASE")
        if not entry.begun:
            raise UsageError(
                f"release {number} is {entry.state}, so that nothing is left to give up", code="RELEASE_OVER"
            )
        # SECURITY: a client could otherwise keep from a destination what another was to release.
        known = home.folder.keys
        if key not in (known.get(entry.reader), known.get(home.config.domain)):
            raise DeniedError(
                f"release {number} was begun by `{entry.reader}`, who gives it up, or the key of the domain",
                code="RELEASE_NOT_YOURS",
            )
        if entry.publication and domain.lanes.find(entry.publication) is not None:
            raise DeniedError(
                f"release {number} stands in the log, so it has left: `maia release apply` finishes it",
                code="RELEASE_LEFT",
            )
        row = AuditRow(
            at=domain.clock(), kind="release", principal=key.fingerprint, type_id=entry.type_id, source=entry.to,
            subject=name, code=RELEASE_ABANDONED, events=0, attributes=entry.attributes,
        )  # fmt: skip
        audit_of(home).note([row])
        return ledger.abandon(entry)
