"""Reading and writing the tables of the access control service, inside a transaction that somebody else began."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from maia.database.access_control.bars import BarRows
from maia.database.access_control.certificates import CertificateRows
from maia.database.access_control.lists import ListRows
from maia.database.access_control.members import InvitationRows, MemberRows
from maia.database.access_control.outbox import JournalRows, OutboxRows
from maia.database.access_control.roles import RoleRows
from maia.database.access_control.tables import acs_policies, acs_state
from maia.errors import UsageError
from maia.principals import KeyId


class AccessControlRecords:
    """The records of one domain, as one transaction sees them.

    Attributes:
        members: Those who belong to the domain.
        invitations: Open invitations.
        roles: Recorded facts and active roles.
        certificates: The register of certificates.
        bars: Rights that are not issued anew.
        lists: The validity lists that were signed.
        outbox: What others must hear of.
        journal: What was done.
    """

    def __init__(self, connection: Connection, domain: KeyId) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection
        self._domain = domain
        self.members = MemberRows(connection)
        self.invitations = InvitationRows(connection)
        self.roles = RoleRows(connection)
        self.certificates = CertificateRows(connection)
        self.bars = BarRows(connection)
        self.lists = ListRows(connection)
        self.outbox = OutboxRows(connection)
        self.journal = JournalRows(connection)

    def state(self) -> tuple[int, int]:
        """Give the revision and the number of the policy in force; zeros for a domain that was never written to.

        Raises:
            UsageError: The database belongs to another domain.
        """
        rows = self._connection.execute(select(acs_state)).all()
        if not rows:
            return 0, 0
        if len(rows) > 1 or rows[0].domain != self._domain:
            raise UsageError("the database belongs to another domain", code="OTHER_DOMAIN")
        return rows[0].revision, rows[0].policy

    def touch(self, *, policy: int | None = None) -> int:
        """Raise the revision, and put another policy in force."""
        revision, current = self.state()
        values = {"revision": revision + 1, "policy": current if policy is None else policy}
        if revision == 0:
            self._connection.execute(insert(acs_state).values(domain=self._domain, **values))
        else:
            self._connection.execute(update(acs_state).values(**values))
        return revision + 1

    def policy(self, number: int) -> str:
        """Give the text of a policy; the empty one has number 0."""
        text = self._connection.scalar(select(acs_policies.c.text).where(acs_policies.c.number == number))
        return "" if text is None else str(text)

    def add_policy(self, text: str, *, at: datetime) -> int:
        """Keep a further policy and give its number."""
        number = int(self._connection.scalar(select(func.coalesce(func.max(acs_policies.c.number), 0))) or 0) + 1
        self._connection.execute(insert(acs_policies).values(number=number, text=text, applied=at))
        return number
