"""What every operation of a key manager stands on: its transactions, the rules of its groups, and publishing.

Every function here that takes a connection runs inside a transaction and reads what it decides on in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Engine, select, update

from maia.authority import CertificatePool, Verifier
from maia.database import Leadership, key_messages, reading, transaction
from maia.encryption import (
    ChangeKind,
    GroupChange,
    KeyGroupId,
    KeyTree,
    Refresh,
    next_refresh,
    step_group,
)
from maia.errors import (
    NotFoundError,
    UnavailableError,
    VerificationError,
)
from maia.events import EventType, TypeId
from maia.kernel import GroupAdmission, admit_broker, membership_changes, milliseconds
from maia.key_manager.brokers import BrokerRecord, usable_evidence
from maia.key_manager.groups import GroupVault, StoredGroup, is_group
from maia.key_manager.heeding import Heed, Mark, brokers_mark, demanded_by, demanded_by_brokers
from maia.key_manager.log import RekeyLog
from maia.key_manager.settings import DEFAULT_SETTINGS, KeySettings
from maia.log import NoticeLog
from maia.principals import KeyId, Principal, PublicKey, Signer

VersionsOf = Callable[[TypeId, datetime], Sequence[EventType]]
"""Gives the versions of a type that verify at an instant."""


class ManagerCore:
    """The groups of a key manager, without its operations."""

    def __init__(
        self,
        engine: Engine,
        signer: Signer,
        secret: bytes,
        *,
        verifier: Callable[[], Verifier],
        versions: VersionsOf,
        notices: NoticeLog,
        network: tuple[Principal, str] | None = None,
        settings: KeySettings = DEFAULT_SETTINGS,
        leadership: Leadership | None = None,
        heed: Heed | None = None,
    ) -> None:
        """Stand on a migrated database; nothing is read or written yet.

        Args:
            engine: The database.
            signer: Signs messages and answers.
            secret: Seals what is stored, see `manager_secret`.
            verifier: Gives a verifier with the statements known now.
            versions: Gives the verified versions of a type.
            notices: Where messages are published.
            network: The network whose ``connect`` brokers must hold, if any.
            settings: Periods and limits.
            leadership: Lets only the leader of several processes write.
            heed: Brings the verifier's statements up to date; without it somebody else does.
        """
        self._engine = engine
        self._signer = signer
        self._verifier = verifier
        self._versions = versions
        self._network = network
        self._settings = settings
        self._leadership = leadership
        self._period = None if settings.period is None else settings.period // timedelta(milliseconds=1)
        self._lead = settings.lead // timedelta(milliseconds=1)
        self._vault = GroupVault(secret, period=self._period)
        self._log = RekeyLog(notices, signer.public_key)
        self._statements = b""
        self._heed = heed
        self._heeded: tuple[Mark, frozenset[KeyId]] = ((0, 0), frozenset())

    @property
    def public_key(self) -> PublicKey:
        """The key whose messages and answers count."""
        return self._signer.public_key

    @property
    def settings(self) -> KeySettings:
        """How it works."""
        return self._settings

    def close(self) -> None:
        """Let go of the database's connections; they come back when the manager is used again."""
        self._engine.dispose()

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
        with reading(self._engine) as connection:
            rows = connection.execute(pending.distinct()).all()
        return sorted(KeyGroupId(TypeId(row.type_id), row.label) for row in rows)

    def _publish_next(self, group: KeyGroupId) -> bool:
        """Publish the oldest message that waits; one a transaction, so that a crash repeats the last one only."""
        waiting = is_group(key_messages, group) & key_messages.c.published.is_(False)
        with self._writing() as connection:
            row = connection.execute(
                select(key_messages.c.number, key_messages.c.body).where(waiting).order_by(key_messages.c.number)
            ).first()
            if row is None:
                return False
            self._log.publish(group, row.number, row.body)
            connection.execute(
                update(key_messages)
                .where(is_group(key_messages, group), key_messages.c.number == row.number)
                .values(published=True, body=b"")
            )
        return True

    def _heed_evidence(self, type_id: TypeId, evidence: Iterable[bytes], at: datetime) -> None:
        """Take up the lists that a broker's evidence demands, before it is judged."""
        if self._heed is None:
            return
        owners: list[Principal] = [version.name.owner for version in self._versions(type_id, at)[:1]]
        if self._network is not None:
            owners.append(self._network[0])
        signers = demanded_by(CertificatePool(evidence), owners)
        if signers:
            self._heed(signers, at)

    def _heed_brokers(self, at: datetime) -> None:
        """Take up the lists on which the brokers that are known stand."""
        if self._heed is None:
            return
        with reading(self._engine) as connection:
            mark = brokers_mark(connection)
            if mark != self._heeded[0]:
                self._heeded = (mark, demanded_by_brokers(connection))
        self._heed(self._heeded[1], at)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with transaction(self._engine) if self._leadership is None else self._leadership.transaction() as connection:
            yield connection

    def _admissions(
        self, type_id: TypeId, broker: PublicKey, pool: CertificatePool, at: datetime
    ) -> dict[KeyGroupId, list[GroupAdmission]]:
        versions = self._versions(type_id, at)
        if not versions:
            raise NotFoundError("no version of the type verifies now", code="UNKNOWN_TYPE")
        found: dict[KeyGroupId, list[GroupAdmission]] = {}
        for admission in admit_broker(broker, versions, pool, verifier=self._verifier(), at=at, network=self._network):
            found.setdefault(admission.group, []).append(admission)
        return found

    def _was_admitted(
        self, admission: GroupAdmission, stored: StoredGroup, broker: PublicKey, pool: CertificatePool
    ) -> bool:
        """Tell whether an admission that rests on statements held when the group's current key began."""
        if stored.state.last is None:
            return False
        then = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=stored.state.last)
        try:
            known = self._admissions(stored.group.type_id, broker, pool, then).get(stored.group, ())
        except (VerificationError, NotFoundError):
            return False
        return any(item.credential == admission.credential for item in known)

    def _reviewed(
        self, connection: Connection, record: BrokerRecord, at: datetime
    ) -> dict[KeyGroupId, list[GroupAdmission]]:
        pool = usable_evidence(connection, record.evidence)
        try:
            return self._admissions(record.type_id, record.key, pool, at)
        except (VerificationError, NotFoundError):
            return {}

    def _review(
        self, connection: Connection, type_id: TypeId, brokers: Iterable[BrokerRecord], at: datetime
    ) -> list[KeyGroupId]:
        """Look at brokers' certificates again, and let their groups know what changed; tell whose key changes."""
        admitted = self._look_again(connection, brokers, at)
        groups = self._vault.groups(connection, type_id) if admitted else ()
        return [group for group in groups if self._review_group(connection, group, admitted, at)]

    def _look_again(
        self, connection: Connection, brokers: Iterable[BrokerRecord], at: datetime
    ) -> dict[bytes, dict[KeyGroupId, list[GroupAdmission]]]:
        return {record.member: self._reviewed(connection, record, at) for record in brokers}

    def _review_group(
        self,
        connection: Connection,
        group: KeyGroupId,
        admitted: Mapping[bytes, Mapping[KeyGroupId, list[GroupAdmission]]],
        at: datetime,
    ) -> bool:
        stored = self._vault.load(connection, group)
        instant = self._instant(stored, at)
        changes: list[GroupChange] = []
        for member, admissions in admitted.items():
            inside = member in stored.state.members
            if inside or member in stored.state.leavers:
                changes += membership_changes(stored.state, member, admissions.get(group, ()), at=instant, joins=inside)
        return bool(changes) and self._change(connection, group, changes, at).tree.number > stored.tree.number

    def _change(
        self,
        connection: Connection,
        group: KeyGroupId,
        changes: Sequence[GroupChange],
        at: datetime,
    ) -> StoredGroup:
        """Let the rules of a group take changes in, and begin an epoch when they ask for it."""
        stored = self._vault.load(connection, group)
        instant, due = self._instant(stored, at), next_refresh(stored.state, period=self._period)
        renewed = all(change.kind is ChangeKind.JOIN for change in changes)
        if renewed and (due is None or due > milliseconds(at)):
            instant = milliseconds(at)  # nobody's key changes for it, so what is due soon keeps its time
        before = stored.state.members
        stored.state, refresh = step_group(stored.state, changes, at=instant, period=self._period)
        self._settle(connection, stored, refresh, before, changes, at)
        return stored

    def _run_timers(self, connection: Connection, group: KeyGroupId, at: datetime) -> list[KeyGroupId]:
        """Let time pass for a group: what is due within the lead is announced now and begins when it is due."""
        now = milliseconds(at)
        stored = self._vault.load(connection, group)
        due = next_refresh(stored.state, period=self._period)
        if due is None or due > now + self._lead:
            return []
        before = stored.state.members
        instant = due if due >= now else self._instant(stored, at)
        stored.state, refresh = step_group(stored.state, (), at=instant, period=self._period)
        self._settle(connection, stored, refresh, before, (), at)
        return [] if refresh is None else [group]

    def _settle(
        self,
        connection: Connection,
        stored: StoredGroup,
        refresh: Refresh | None,
        before: frozenset[bytes],
        changes: Sequence[GroupChange],
        at: datetime,
    ) -> None:
        """Write down what a step made of a group."""
        if refresh is not None:
            self._log.check(stored.tree)  # before anything is written, so that other groups may go on
        revoked = {change.member for change in changes if change.kind is ChangeKind.REVOKE}
        left = {change.member for change in changes if change.kind is ChangeKind.LEAVE}
        gone = sorted(before - stored.state.members)
        kinds = [("revoke" if m in revoked else "leave" if m in left else "end", m) for m in gone]
        self._vault.record_changes(connection, stored.group, kinds, at=at)
        if refresh is not None:
            self._begin(connection, stored, refresh, at)
        self._vault.save(connection, stored)

    def _begin(
        self,
        connection: Connection,
        stored: StoredGroup,
        refresh: Refresh,
        at: datetime,
        *,
        joins: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Begin an epoch: everybody who is not inside is put out, and whoever joins gets a place."""
        # INVARIANT: no epoch is begun that the log could already have; checked in the transaction that begins it.
        self._log.check(stored.tree)
        members = stored.tree.members
        leaves = (members - stored.state.members) | (members & frozenset(joins or {}))
        message = stored.tree.rekey(self._signer, start=refresh.at, joins=joins, leaves=leaves)
        self._vault.record_epoch(connection, stored, message, refresh, at=at)

    def _instant(self, stored: StoredGroup, at: datetime) -> int:
        """Tell when a change that comes by surprise takes effect: a lead from now, and after the newest epoch began."""
        last = -1 if stored.state.last is None else stored.state.last
        return max(milliseconds(at) + self._lead, last + 1)

    def _is_behind(self, tree: KeyTree) -> bool:
        try:
            self._log.check(tree)
        except UnavailableError as error:
            return error.code == "KEY_MANAGER_BEHIND"
        return False


def change_of(kind: ChangeKind, member: KeyId | None = None) -> GroupChange:
    """Write a change that carries no credential."""
    return GroupChange(at=0, kind=kind, member=b"" if member is None else member)
