"""Rights that were taken from members for good, as a transaction sees them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from maia.database.access_control.rows import batches
from maia.database.access_control.tables import acs_bars


class BarRows:
    """The bars."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def add(self, holder: str, right: bytes, *, privilege: str | None, since: datetime) -> None:
        """Bar a right of a member; barring it twice changes nothing."""
        if not self.lift(holder, right, only_look=True):
            row = {"holder": holder, "digest": right_digest(right), "privilege": privilege, "since": since}
            self._connection.execute(insert(acs_bars).values(**row))

    def of(self, holders: Iterable[str]) -> dict[str, frozenset[bytes]]:
        """Give the digests of the rights that are barred for some members."""
        found: dict[str, set[bytes]] = {}
        for some in batches(holders):
            for row in self._connection.execute(select(acs_bars).where(acs_bars.c.holder.in_(some))):
                found.setdefault(row.holder, set()).add(row.digest)
        return {holder: frozenset(digests) for holder, digests in found.items()}

    def lift(self, holder: str, right: bytes | None = None, *, only_look: bool = False) -> int:
        """Lift what is barred for a member, one right or all; give how many there were."""
        chosen = [acs_bars.c.holder == holder]
        if right is not None:
            chosen.append(acs_bars.c.digest == right_digest(right))
        found = len(self._connection.execute(select(acs_bars.c.digest).where(*chosen)).all())
        if not only_look:
            self._connection.execute(delete(acs_bars).where(*chosen))
        return found


def right_digest(right: bytes) -> bytes:
    """Sum up what a certificate gives."""
    return hashlib.sha256(right).digest()
