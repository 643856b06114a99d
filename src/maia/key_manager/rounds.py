"""The rounds of a key manager: what time asks for, done every second or so.

Rules kept here:

- the lists that brokers' certificates demand are followed first, so what an access control service withdraws ends
  memberships here at the next round, whoever runs the two and wherever;
- statements that did not change, and groups that are not due, cost no verification;
- brokers are judged before the transaction that writes what follows from it, and again when they changed meanwhile;
- what was signed is compared with the log, and put there again where it is missing. A group whose messages are from
  before lanes has nothing to say there, so it begins a new epoch;
- a group that waits for a repair, or a type that cannot be looked up, keeps no other from its time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection, and_, delete, exists, func, select

from maia.database import key_changes, key_groups, key_messages
from maia.encryption import ChangeKind, KeyGroupId
from maia.errors import UnavailableError
from maia.events import TypeId
from maia.kernel import milliseconds
from maia.key_manager.brokers import list_brokers, revoked_count
from maia.key_manager.demanded_lists import DemandedLists
from maia.key_manager.epochs import change, change_of, run_timers
from maia.key_manager.register import GroupRegister
from maia.key_manager.review import Admissions, Looked, look_again, review_group, snapshot, still_so


class Rounds:
    """Goes round the groups of a register; remembers only which statements it last saw."""

    def __init__(self, register: GroupRegister, lists: DemandedLists) -> None:
        """Go round a register, with the lists that its brokers demand."""
        self._register = register
        self._lists = lists
        self._statements = b""

    def run(self, at: datetime) -> tuple[KeyGroupId, ...]:
        """Go round once; see `KeyManager.tick`."""
        refreshed: set[KeyGroupId] = set()
        problems: list[UnavailableError] = []
        try:
            self._lists.follow_brokers(at)
        except UnavailableError as error:
            problems.append(error)
        with self._register.reading() as connection:
            seen = self._statements_digest(revoked_count(connection))
            types = sorted({group.type_id for group in self._register.vault.groups(connection)})
            hurried = {group.type_id for group in self._urgent(connection, at)}
        looked: dict[TypeId, tuple[Looked, ...]] = {}
        for type_id in types:
            if seen != self._statements or type_id in hurried:
                looked[type_id] = self._look_again(type_id, problems, at)
        unchanged = True
        with self._register.writing() as connection:
            groups = self._register.vault.groups(connection)
            urgent, unsaid = self._urgent(connection, at), self._unsaid(connection)
            for type_id in sorted({group.type_id for group in groups}):
                own = [group for group in groups if group.type_id == type_id]
                same = still_so(connection, looked.get(type_id, ()))
                unchanged &= len(same) == len(looked.get(type_id, ()))
                refreshed |= self._look_at(connection, own, same, urgent, unsaid, problems, at)
            pruned = self._prune(connection, at)
        if not problems and unchanged:
            self._statements = seen
        self._forget(pruned)
        for tell in (self._register.publish, self._register.compare):
            try:
                tell(at=at)
            except UnavailableError as error:
                problems.append(error)
        if problems:
            raise problems[0]
        return tuple(sorted(refreshed))

    def _look_again(self, type_id: TypeId, problems: list[UnavailableError], at: datetime) -> tuple[Looked, ...]:
        """Judge the brokers of a type, outside of any transaction."""
        brokers = snapshot(self._register, lambda connection: list_brokers(connection, type_id))
        try:
            return look_again(self._register, brokers, at)
        except UnavailableError as error:
            problems.append(error)  # what cannot be looked at now still ends when it must
            return ()

    def _look_at(
        self,
        connection: Connection,
        groups: Sequence[KeyGroupId],
        looked: Sequence[Looked],
        urgent: Collection[KeyGroupId],
        unsaid: set[KeyGroupId],
        problems: list[UnavailableError],
        at: datetime,
    ) -> set[KeyGroupId]:
        """Look at the groups of one type; tell whose key changes, and note what could not be done."""
        refreshed: set[KeyGroupId] = set()
        admitted: dict[bytes, Admissions] = {item.record.member: item.admissions for item in looked}
        for group in groups:
            try:
                if admitted and review_group(self._register, connection, group, admitted, at):
                    refreshed.add(group)
                if group in urgent and run_timers(self._register, connection, group, at):
                    refreshed.add(group)
                if group in unsaid - refreshed:
                    change(self._register, connection, group, [change_of(ChangeKind.REFRESH)], at)
                    refreshed.add(group)
            except UnavailableError as error:
                if error.code != "KEY_MANAGER_BEHIND":
                    raise
                problems.append(error)
        return refreshed

    def _urgent(self, connection: Connection, at: datetime) -> set[KeyGroupId]:
        """List the groups whose time comes within the lead."""
        due = key_groups.c.due <= milliseconds(at) + self._register.lead
        rows = connection.execute(select(key_groups.c.type_id, key_groups.c.label).where(due))
        return {KeyGroupId(TypeId(row.type_id), row.label) for row in rows}

    def _unsaid(self, connection: Connection) -> set[KeyGroupId]:
        """List the groups with messages, none of which is a record of a lane."""
        found = select(key_messages.c.type_id, key_messages.c.label).group_by(
            key_messages.c.type_id, key_messages.c.label
        )
        rows = connection.execute(found.having(func.count(key_messages.c.place) == 0))
        return {KeyGroupId(TypeId(row.type_id), row.label) for row in rows}

    def _statements_digest(self, revoked: int) -> bytes:
        """Sum up what memberships rest on beside certificates: statements, and what was revoked here."""
        digest = hashlib.sha256(b"%d" % revoked)
        for raw in self._register.verifier().statements.raw_statements():
            digest.update(hashlib.sha256(raw).digest())
        return digest.digest()

    def _prune(self, connection: Connection, at: datetime) -> list[tuple[KeyGroupId, int]]:
        """Forget records whose time is over, but never the newest of a group; tell which places they had."""
        old = at - self._register.settings.history
        later = key_messages.alias()
        followed = exists().where(
            later.c.type_id == key_messages.c.type_id, later.c.label == key_messages.c.label,
            later.c.number > key_messages.c.number, later.c.published.is_(True),
        )  # fmt: skip
        over = and_(key_messages.c.at < old, key_messages.c.published.is_(True), followed)
        rows = connection.execute(
            select(key_messages.c.type_id, key_messages.c.label, key_messages.c.place).where(over)
        ).all()
        if rows:
            connection.execute(delete(key_messages).where(over))
        connection.execute(delete(key_changes).where(key_changes.c.at < old))
        return [(KeyGroupId(TypeId(row.type_id), row.label), row.place) for row in rows if row.place is not None]

    def _forget(self, pruned: Sequence[tuple[KeyGroupId, int]]) -> None:
        """Remove from the log what is below the floor now."""
        for group, place in pruned:
            self._register.log.forget(group, (place,))
