"""The register of a key manager's groups: what it holds, its transactions, and what they publish.

Every operation of the manager is handed the register. Rules kept here:

- whatever is decided is read in the transaction that decides it;
- F23: a change is one transaction; only what is committed is put into the log, in order, and what a crash left
  unpublished is published by whoever publishes next. So no epoch has two keys and no number is used twice;
- no transaction is open while the log is written to. What the log refuses waits, and is told;
- in every round the log is compared with what was signed, and told again what it lost;
- with a `Leadership` only the leader of several processes writes.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, or_, select, update

from maia import database
from maia.authority import Verifier
from maia.database import Leadership, key_messages, transaction
from maia.encryption import KeyGroupId
from maia.errors import UnavailableError
from maia.events import EventType, TypeId
from maia.kernel import milliseconds
from maia.key_manager.groups import GroupVault, StoredGroup, is_group
from maia.key_manager.log import RekeyLog, floor_below
from maia.key_manager.settings import KeySettings
from maia.log import NoticeLog
from maia.principals import Principal, PublicKey, Signer

_DEPTH = 4
"""How many records before the newest, or before the first that waits, are compared with the log; and as many older
ones, which change from round to round."""
_TOGETHER = 32
"""How many groups are compared in one round."""
_logger = logging.getLogger(__name__)

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
        self.log = RekeyLog(notices, signer, rhythm=settings.rhythm)
        self._next: KeyGroupId | None = None
        self._older: dict[KeyGroupId, int] = {}

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

    def tell(self, *, at: datetime) -> None:
        """Publish what is committed, if that can be done now; else it waits for the next round."""
        try:
            self.publish(at=at)
        except UnavailableError as error:
            _logger.warning("rekey messages wait: %s", error.code)

    def publish(self, *, at: datetime) -> int:
        """Put messages that the log lacks into it, oldest first; return how many.

        Raises:
            UnavailableError: ``REKEYS_UNPUBLISHED``: the log cannot be used, what waits counts and is tried again.
                ``KEY_MANAGER_BEHIND``: the log holds other messages of this manager.
        """
        published = 0
        problem: UnavailableError | None = None
        for group in self._unpublished():
            try:
                published += self._assert(group, at)
            except UnavailableError as error:
                problem = problem or error
        if problem is not None:
            raise _named(problem)
        return published

    def compare(self, *, at: datetime) -> int:
        """Compare the log with what was signed, some groups at a time, and tell it again what it lost.

        Returns:
            How many messages were put again.

        Raises:
            UnavailableError: As `publish` does, after the others were compared.
        """
        put = 0
        problem: UnavailableError | None = None
        for group in self._turn():
            try:
                put += self._assert(group, at)
            except UnavailableError as error:
                problem = problem or error
        if problem is not None:
            raise _named(problem)
        return put

    def _turn(self) -> list[KeyGroupId]:
        """Choose the groups that are compared now, going round."""
        with self.reading() as connection:
            groups = list(self.vault.groups(connection))
        first = bisect_right(groups, self._next) if self._next is not None else 0
        chosen = (groups[first:] + groups[:first])[:_TOGETHER]
        self._next = chosen[-1] if chosen else None
        return chosen

    def _unpublished(self) -> list[KeyGroupId]:
        pending = select(key_messages.c.type_id, key_messages.c.label).where(_waits())
        with self.reading() as connection:
            rows = connection.execute(pending.distinct()).all()
        return sorted(KeyGroupId(TypeId(row.type_id), row.label) for row in rows)

    def _assert(self, group: KeyGroupId, at: datetime) -> int:
        """Let the log have the newest records of a group and their head; tell how many it lacked."""
        mine = is_group(key_messages, group) & key_messages.c.place.is_not(None)
        with self.writing() as connection:  # refused to whoever does not lead, before the log is touched
            first = connection.scalar(select(func.min(key_messages.c.place)).where(mine, _waits()))
            newest = connection.scalar(select(func.max(key_messages.c.place)).where(mine))
            if newest is None:
                return 0
            since = min(newest if first is None else first, newest) - _DEPTH
            older = self._older.get(group, since)
            self._older[group] = since if older - _DEPTH < -1 else older - _DEPTH
            chosen = or_(key_messages.c.place > since, key_messages.c.place.between(older - _DEPTH, older))
            wanted = select(key_messages.c.place, key_messages.c.body).where(mine, chosen)
            rows = connection.execute(wanted.order_by(key_messages.c.place)).all()
            kept = select(key_messages.c.place, key_messages.c.body).where(mine).order_by(key_messages.c.place)
            oldest = connection.execute(kept.limit(1)).one()
        records = [self.log.parse(group, row.place, row.body) for row in rows]
        self.log.check(group, records[-1].place)
        put = self.log.publish(records)
        if first is not None:
            with self.writing() as connection:
                done = update(key_messages).where(mine, key_messages.c.place <= newest, _waits())
                connection.execute(done.values(published=True))
        self.log.assert_head(records[-1], floor_below(self.log.parse(group, oldest.place, oldest.body)), at=at)
        return put


def _waits() -> ColumnElement[bool]:
    return and_(key_messages.c.published.is_(False), key_messages.c.place.is_not(None))


def _named(error: UnavailableError) -> UnavailableError:
    """Tell a log that cannot be used from a database that cannot be."""
    if error.code in ("KEY_MANAGER_BEHIND", "NOT_LEADER", "DATABASE_UNAVAILABLE"):
        return error
    return UnavailableError(f"rekey messages wait for the log: {error.message}", code="REKEYS_UNPUBLISHED")
