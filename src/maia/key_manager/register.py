"""The register of a key manager's groups: what it holds, its transactions, and what they publish.

Every operation of the manager is handed the register. Rules kept here:

- whatever is decided is read in the transaction that decides it;
- F23: a change is one transaction; only what is committed is put into the log, in order, and what a crash left
  unpublished is published by whoever publishes next. So no epoch has two keys and no number is used twice;
- with a `Leadership` only the leader of several processes writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, select, update

from maia import database
from maia.authority import Verifier
from maia.database import Leadership, key_messages, transaction
from maia.encryption import KeyGroupId
from maia.errors import UnavailableError
from maia.events import EventType, TypeId
from maia.kernel import milliseconds
from maia.key_manager.groups import GroupVault, StoredGroup, is_group
from maia.key_manager.log import RekeyLog
from maia.key_manager.settings import KeySettings
from maia.log import NoticeLog
from maia.principals import Principal, PublicKey, Signer

VersionsOf = Callable[[TypeId, datetime], Sequence[EventType]]
"""Gives the versions of a type that verify at an instant."""


class GroupRegister:
    """The groups of a key manager in their database and their log.

    Attributes:
        signer: Signs messages and answers.
        verifier: Gives a verifier with the statements known now.
        versions: Gives the verified versions of a type.
        network: The network whose ``connect`` brokers must hold, if any.
        settings: Periods and limits.
        period: How long a key may be current, in milliseconds, if not for ever.
        lead: How long before its start an epoch is announced, in milliseconds.
        vault: Reads and writes groups inside a transaction.
        log: The messages that others see.
    """

    def __init__(
        self,
        engine: Engine,
        signer: Signer,
        secret: bytes,
        *,
        verifier: Callable[[], Verifier],
        versions: VersionsOf,
        notices: NoticeLog,
        network: tuple[Principal, str] | None,
        settings: KeySettings,
        leadership: Leadership | None,
    ) -> None:
        """Stand on a migrated database; nothing is read or written yet."""
        self._engine = engine
        self._leadership = leadership
        self.signer = signer
        self.verifier = verifier
        self.versions = versions
        self.network = network
        self.settings = settings
        self.period = None if settings.period is None else settings.period // timedelta(milliseconds=1)
        self.lead = settings.lead // timedelta(milliseconds=1)
        self.vault = GroupVault(secret, period=self.period)
        self.log = RekeyLog(notices, signer.public_key)

    @property
    def public_key(self) -> PublicKey:
        """The key whose messages and answers count."""
        return self.signer.public_key

    def close(self) -> None:
        """Let go of the database's connections; they come back when the register is used again."""
        self._engine.dispose()

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a transaction that only reads."""
        return database.reading(self._engine)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes; with a leadership, refused to everybody but the leader."""
        with transaction(self._engine) if self._leadership is None else self._leadership.transaction() as connection:
            yield connection

    def instant(self, stored: StoredGroup, at: datetime) -> int:
        """Tell when a change that comes by surprise takes effect: a lead from now, and after the newest epoch began."""
        last = -1 if stored.state.last is None else stored.state.last
        return max(milliseconds(at) + self.lead, last + 1)

    def publish(self) -> int:
        """Put messages that the log lacks into it, oldest first; return how many.

        Raises:
            UnavailableError: The log cannot be used, or holds another message of an epoch.
        """
        published = 0
        problem: UnavailableError | None = None
        for group in self._unpublished():
            try:
                while self._publish_next(group):
                    published += 1
            except UnavailableError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return published

    def _unpublished(self) -> list[KeyGroupId]:
        pending = select(key_messages.c.type_id, key_messages.c.label).where(key_messages.c.published.is_(False))
        with self.reading() as connection:
            rows = connection.execute(pending.distinct()).all()
        return sorted(KeyGroupId(TypeId(row.type_id), row.label) for row in rows)

    def _publish_next(self, group: KeyGroupId) -> bool:
        """Publish the oldest message that waits; one a transaction, so that a crash repeats the last one only."""
        waiting = is_group(key_messages, group) & key_messages.c.published.is_(False)
        with self.writing() as connection:
            row = connection.execute(
                select(key_messages.c.number, key_messages.c.body).where(waiting).order_by(key_messages.c.number)
            ).first()
            if row is None:
                return False
            self.log.publish(group, row.number, row.body)
            connection.execute(
                update(key_messages)
                .where(is_group(key_messages, group), key_messages.c.number == row.number)
                .values(published=True, body=b"")
            )
        return True
