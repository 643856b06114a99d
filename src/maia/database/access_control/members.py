"""Members of a domain and invitations to become one, as a transaction sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from maia.database.access_control.rows import batches, insert_rows, record_of, row_of
from maia.database.access_control.tables import acs_invitations, acs_members


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """A member, present or gone."""

    name: str
    key: bytes
    kind: str
    joined: datetime
    gone: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRecord:
    """An open invitation, known by the hash of its code."""

    digest: bytes
    name: str
    kind: str
    until: datetime
    appointments: str


class MemberRows:
    """The members."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def all(self) -> tuple[MemberRecord, ...]:
        """List all members, also those that are gone."""
        rows = self._connection.execute(select(acs_members).order_by(acs_members.c.name))
        return tuple(record_of(MemberRecord, row) for row in rows)

    def add(self, members: Iterable[MemberRecord]) -> None:
        """Add members."""
        insert_rows(self._connection, acs_members, map(row_of, members))

    def end(self, names: Iterable[str], *, at: datetime) -> None:
        """Note that members are gone."""
        for some in batches(names):
            self._connection.execute(update(acs_members).where(acs_members.c.name.in_(some)).values(gone=at))


class InvitationRows:
    """The open invitations."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def add(self, invitations: Iterable[InvitationRecord]) -> None:
        """Keep invitations."""
        insert_rows(self._connection, acs_invitations, map(row_of, invitations))

    def take(self, digests: Iterable[bytes]) -> dict[bytes, InvitationRecord]:
        """Take invitations out, so that nobody takes them again; those that are not there are left out."""
        found: dict[bytes, InvitationRecord] = {}
        for some in batches(digests):
            chosen = acs_invitations.c.digest.in_(some)
            for row in self._connection.execute(select(acs_invitations).where(chosen)):
                found[row.digest] = record_of(InvitationRecord, row)
            self._connection.execute(delete(acs_invitations).where(chosen))
        return found

    def invited(self, names: Iterable[str], *, at: datetime) -> frozenset[str]:
        """Give those of some names under which somebody is invited."""
        found: set[str] = set()
        for some in batches(names):
            chosen = acs_invitations.c.name.in_(some), acs_invitations.c.until >= at
            found.update(self._connection.scalars(select(acs_invitations.c.name).where(*chosen)))
        return frozenset(found)

    def forget(self, *, before: datetime) -> None:
        """Drop the invitations that ended before an instant."""
        self._connection.execute(delete(acs_invitations).where(acs_invitations.c.until < before))
