"""The key manager: admits brokers to key groups, begins epochs when the rules ask for it, and never goes back.

    manager = KeyManager(engine, signer, secret, verifier=…, versions=…, notices=…)
    manager.open_groups(versions, evidence, at=now)         once for each type, and when a version was added
    answer = manager.join(request, evidence, at=now)        a broker's signed request; answered with signed places
    manager.tick(at=now)                                    every second or so: ends, periods, renewed statements

Rules kept here:

- 16.02: a broker is admitted on its own signed request and the very certificates of its API requests, verified then
  and again whenever statements change, a certificate is revoked, or an admission comes to its end;
- 16.04 to 16.06 and T46 decide when a key changes (`maia.encryption.step_group`);
- F23: a change is one transaction: the new tree, the state of the rules, the places and the signed message of the
  epoch with its number. Only what is committed is put into the log, in order; what a crash left unpublished is
  published at the next start. So no epoch has two keys and no number is used twice, whenever the manager dies;
- a database that is older than the log (a restored backup) begins no epoch: `repair` goes on behind what the log shows;
- every transaction reads what it decides on, so several managers on one database do no harm; with a `Leadership` only
  the leader writes;
- an epoch is announced ``lead`` before it begins, so that brokers know its key in time and lose no event. What ends is
  announced ahead and ends when it must; what comes by surprise (a join, a revocation) takes effect ``lead`` later.

Nothing is on disk in the clear, see `maia.stores.key_manager_groups`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Engine, delete, select, update

from maia.authority import CertificatePool, VerifiedEventType, Verifier
from maia.broker import (
    GroupAdmission,
    admit_broker,
    groups_of_type,
    membership_changes,
    milliseconds,
    prove_key_manager,
)
from maia.encryption import (
    DEFAULT_CAP,
    ChangeKind,
    CountUse,
    GroupChange,
    GroupPlace,
    GroupState,
    JoinGroups,
    KeyGroupId,
    KeyTree,
    LeaveGroups,
    Refresh,
    VerifiedGroupRequest,
    next_refresh,
    seal_place,
    sign_join_answer,
    step_group,
    verify_group_request,
)
from maia.errors import (
    ExpiredError,
    NotFoundError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import EventType, TypeId
from maia.pipeline import NoticeLog
from maia.principals import CertificateId, KeyId, Principal, PublicKey, Signer
from maia.stores.database.engine import reading, transaction
from maia.stores.database.key_groups import key_changes, key_groups, key_messages
from maia.stores.database.leadership import Leadership
from maia.stores.key_manager_brokers import (
    BrokerRecord,
    certificate_ids,
    count_uses,
    drop_place,
    find_broker,
    find_place,
    list_brokers,
    revoke_certificates,
    save_broker,
    save_place,
    usable_evidence,
    used_evidence,
)
from maia.stores.key_manager_groups import GroupVault, StoredGroup, is_group
from maia.stores.key_manager_log import RekeyLog
from maia.stores.key_manager_views import (
    EpochRecord,
    GroupStatus,
    MembershipRecord,
    TreePicture,
    read_changes,
    read_epochs,
    read_status,
)

MAX_GROUPS = 10_000
VersionsOf = Callable[[TypeId, datetime], Sequence[EventType]]
"""Gives the versions of a type that verify at an instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """How a key manager works.

    Attributes:
        period: How long a key may be current; ``None`` for ever.
        lead: How long before its start an epoch is announced.
        window: How old, or how far ahead, a broker's request may be.
        cap: How many blocks all brokers together seal in one epoch.
        max_members: The most brokers in one group.
        history: How long records of epochs and changes are kept.
    """

    period: timedelta | None = timedelta(days=1)
    lead: timedelta = timedelta(seconds=5)
    window: timedelta = timedelta(seconds=60)
    cap: int = DEFAULT_CAP
    max_members: int = 16_384
    history: timedelta = timedelta(days=400)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if (self.period is not None and self.period <= timedelta(0)) or self.lead < timedelta(0):
            raise UsageError("a refresh period is positive and a lead is not negative", code="REFRESH_PERIOD")
        if self.period is not None and self.lead >= self.period:
            raise UsageError("an epoch is announced within the one before", code="REFRESH_PERIOD")
        if min(self.cap, self.max_members) < 1 or min(self.window, self.history) <= timedelta(0):
            raise UsageError("limits of a key manager are positive", code="KEY_SETTINGS")


DEFAULT_SETTINGS = KeySettings()


class KeyManager:
    """The manager of the key groups of some types. May be used by several threads and processes."""

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

    # -- starting, publishing, repairing

    def start(self) -> int:
        """Publish what was committed and not published; return how many messages that were.

        Raises:
            UnavailableError: The log shows a later epoch than the database: ``KEY_MANAGER_BEHIND``. Other groups are
                published all the same.
        """
        published = self.publish()
        behind = [status for status in self.status() if status.behind]
        if behind:
            raise UnavailableError(
                f"{len(behind)} key groups are older than the log shows: the database was restored from a backup; "
                "repair them",
                code="KEY_MANAGER_BEHIND",
            )
        return published

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

    def repair(self, group: KeyGroupId, *, at: datetime) -> int:
        """Let a group that is older than the log go on, in an epoch after all that the log shows.

        Brokers that the log shows inside, and that may still join, keep their place under the keys that the backup
        knows; everybody else joins again. Revocations that only the lost database knew of must be given again, unless
        statements say so as well.

        Returns:
            The number of the new epoch.

        Raises:
            UsageError: The group is not behind: ``KEY_MANAGER_NOT_BEHIND``.
        """
        with self._writing() as connection:
            stored = self._vault.load(connection, group)
            later = self._log.after(group, stored.tree.number)
            if not later:
                newest = self._log.newest(group)
                if newest is None or newest.message.digest == stored.tree.digest:
                    raise UsageError("the key group is not behind its log", code="KEY_MANAGER_NOT_BEHIND")
                later = (newest,)
            connection.execute(
                delete(key_messages).where(is_group(key_messages, group), key_messages.c.published.is_(False))
            )
            start = max(milliseconds(at) + self._lead, later[-1].rekey.start + 1)
            admitted = self._admitted_now(connection, group, at)
            message = stored.tree.restart(self._signer, later, start=start, keep=admitted.keys())
            changes = [
                change
                for member in sorted(stored.tree.members)
                for change in membership_changes(GroupState(), member, admitted[member], at=start, joins=True)
            ]
            order = GroupChange(at=start, kind=ChangeKind.REFRESH)
            stored.state, refresh = step_group(GroupState(), (order, *changes), at=start, period=self._period)
            assert refresh is not None  # noqa: S101 - ordered
            self._vault.save(connection, stored)
            self._vault.record_epoch(connection, stored, message, refresh, at=at)
            self._vault.record_changes(connection, group, [("repair", bytes(32))], at=at)
        self.publish()
        return message.rekey.number

    # -- what brokers ask for

    def open_groups(
        self, versions: Iterable[VerifiedEventType], evidence: CertificatePool, *, at: datetime
    ) -> tuple[KeyGroupId, ...]:
        """Manage the key groups of a type from now on; groups that are there stay as they are.

        Args:
            versions: The versions of one type, verified.
            evidence: Shows that the type's owner names this manager, unless it is the owner.
            at: Now.

        Returns:
            The groups of the type.

        Raises:
            ChainError: This manager is not the type's: ``NOT_THE_KEY_MANAGER``.
            UncheckedError: There would be more groups than are managed.
        """
        known = [version.event_type for version in versions]
        groups = groups_of_type(known)
        prove_key_manager(self.public_key, known[0].name, evidence, verifier=self._verifier(), at=at)
        with self._writing() as connection:
            have = set(self._vault.groups(connection))
            new = [group for group in groups if group not in have]
            if len(have) + len(new) > MAX_GROUPS:
                raise UncheckedError(f"a key manager has at most {MAX_GROUPS} key groups", code="LIMIT_EXCEEDED")
            for group in new:
                self._vault.create(connection, group)
        return groups

    def join(self, request: bytes, evidence: Iterable[bytes], *, at: datetime) -> bytes:
        """Admit a broker to all groups of a type that its certificates open.

        The same request again is answered as before, so a broker whose answer was lost asks again. A later request of a
        member gives it new places: it lost what it knew.

        Args:
            request: As `sign_group_request` wrote it.
            evidence: The broker's certificates.
            at: Now.

        Returns:
            An answer for `open_join_answer`, given once everything is durable and in the log.

        Raises:
            MalformedError: It is no such request.
            VerificationError: Its signature, its freshness or the broker's right is not proven.
            NotFoundError: The type's groups are not managed here: ``KEY_GROUP_UNKNOWN``.
            UncheckedError: A group is full.
        """
        verified = verify_group_request(request, self.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, JoinGroups):
            raise UsageError("not a request to join", code="GROUP_REQUEST_KIND")
        with self._writing() as connection:
            places = self._join(connection, verified, what, tuple(evidence), at)
        self.publish()
        return sign_join_answer(places, what.key, member=verified.sender.key_id, signer=self._signer)

    def leave(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Let a broker go; the keys it knows change when its right ends or the period is over (16.05).

        Returns:
            The groups that it was in.

        Raises:
            MaiaError: As `join` does.
        """
        verified = verify_group_request(request, self.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, LeaveGroups):
            raise UsageError("not a request to leave", code="GROUP_REQUEST_KIND")
        member = verified.sender.key_id
        left: list[KeyGroupId] = []
        with self._writing() as connection:
            record = self._check_fresh(connection, verified, at)
            if record is not None and record.stamp < verified.request.stamp:
                for group in self._vault.groups(connection, verified.request.type_id):
                    if (not what.labels or group.label in what.labels) and find_place(connection, group, member):
                        self._change(connection, group, [_change(ChangeKind.LEAVE, member)], at)
                        drop_place(connection, group, member)
                        left.append(group)
                save_broker(connection, replace(record, stamp=verified.request.stamp, join_key=bytes(32)), at=at)
        self.publish()
        return tuple(left)

    def count_use(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Take a broker's count of the blocks it sealed; a key that is used up is refreshed at once (T46).

        Returns:
            The groups that were refreshed for it.

        Raises:
            MaiaError: As `join` does.
        """
        verified = verify_group_request(request, self.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, CountUse):
            raise UsageError("not a count of use", code="GROUP_REQUEST_KIND")
        member = verified.sender.key_id
        refreshed: list[KeyGroupId] = []
        with self._writing() as connection:
            record = self._check_fresh(connection, verified, at)
            if record is None or record.stamp == verified.request.stamp:
                return ()
            for label, number, uses in what.uses:
                group = KeyGroupId(verified.request.type_id, label)
                if find_place(connection, group, member) is None:
                    continue
                newest = connection.scalar(select(key_groups.c.number).where(is_group(key_groups, group)))
                if number != newest:
                    continue  # an epoch that is over, or not begun
                if count_uses(connection, group, member, number=number, uses=uses) >= self._settings.cap:
                    self._change(connection, group, [_change(ChangeKind.EXHAUST)], at)
                    refreshed.append(group)
            save_broker(connection, replace(record, stamp=verified.request.stamp, join_key=bytes(32)), at=at)
        self.publish()
        return tuple(refreshed)

    # -- what happens otherwise

    def revoke(self, certificates: Iterable[CertificateId], *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Admit nobody on these certificates any more, and put out whoever stands on nothing else.

        Returns:
            The groups whose key changes for it.
        """
        identities = frozenset(certificates)
        refreshed: list[KeyGroupId] = []
        with self._writing() as connection:
            revoke_certificates(connection, identities, at=at)
            for type_id in sorted({group.type_id for group in self._vault.groups(connection)}):
                hit = [record for record in list_brokers(connection, type_id) if identities & certificate_ids(record)]
                refreshed += self._review(connection, type_id, hit, at)
        self.publish()
        return tuple(refreshed)

    def tick(self, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Do what time asks for: renew or end admissions, refresh keys whose period is over.

        Call it at least every ``lead``; a call that has nothing to do reads and writes little.

        Returns:
            The groups whose key changes.
        """
        horizon = milliseconds(at) + self._lead
        refreshed: list[KeyGroupId] = []
        seen = self._statements_digest()
        with self._writing() as connection:
            groups = self._vault.groups(connection)
            due = select(key_groups.c.type_id, key_groups.c.label).where(key_groups.c.due <= horizon)
            urgent = {KeyGroupId(TypeId(row.type_id), row.label) for row in connection.execute(due)}
            for type_id in sorted({group.type_id for group in groups}):
                brokers: list[BrokerRecord] = []
                if seen != self._statements or any(group.type_id == type_id for group in urgent):
                    brokers = list_brokers(connection, type_id)
                refreshed += self._review(connection, type_id, brokers, at)
            for group in sorted(urgent):
                refreshed += self._run_timers(connection, group, at)
            self._prune(connection, at)
        self._statements = seen
        self.publish()
        return tuple(sorted(set(refreshed)))

    def refresh(self, group: KeyGroupId, *, at: datetime) -> int:
        """Change a group's key because somebody says so; return the number of the epoch."""
        with self._writing() as connection:
            stored = self._change(connection, group, [_change(ChangeKind.REFRESH)], at)
        self.publish()
        return stored.tree.number

    # -- what it shows

    def status(self) -> tuple[GroupStatus, ...]:
        """Tell where every group stands, sorted by group."""
        with reading(self._engine) as connection:
            found = read_status(connection)
            trees = {status.group: self._vault.load(connection, status.group).tree for status in found}
        return tuple(replace(status, behind=self._is_behind(trees[status.group])) for status in found)

    def history(self, group: KeyGroupId) -> tuple[EpochRecord, ...]:
        """List the epochs of a group, oldest first."""
        with reading(self._engine) as connection:
            return read_epochs(connection, group)

    def changes(self, group: KeyGroupId) -> tuple[MembershipRecord, ...]:
        """List what happened to the membership of a group, oldest first."""
        with reading(self._engine) as connection:
            return read_changes(connection, group)

    def picture(self, group: KeyGroupId) -> TreePicture:
        """Show the shape of a group's tree."""
        with reading(self._engine) as connection:
            tree = self._vault.load(connection, group).tree
        placed = {member for _, member in tree.places}
        return TreePicture(height=tree.height, places=tree.places, waiting=tuple(sorted(tree.members - placed)))

    # -- inside a transaction

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with transaction(self._engine) if self._leadership is None else self._leadership.transaction() as connection:
            yield connection

    def _check_fresh(self, connection: Connection, verified: VerifiedGroupRequest, at: datetime) -> BrokerRecord | None:
        """Return what is known of the sender, or refuse a request that is stale or was overtaken by a later one."""
        stamp, window = verified.request.stamp, self._settings.window // timedelta(milliseconds=1)
        if abs(stamp - milliseconds(at)) > window:
            raise ExpiredError("the request to the key manager is not fresh", code="STALE_PROOF")
        record = find_broker(connection, verified.request.type_id, verified.sender.key_id)
        if record is not None and stamp < record.stamp:
            raise VerificationError("a later request of this broker was answered before", code="REPLAY")
        return record

    def _join(
        self,
        connection: Connection,
        verified: VerifiedGroupRequest,
        what: JoinGroups,
        evidence: tuple[bytes, ...],
        at: datetime,
    ) -> list[GroupPlace]:
        type_id, broker = verified.request.type_id, verified.sender
        groups = self._vault.groups(connection, type_id)
        if not groups:
            raise NotFoundError("the key manager has no key groups of this type", code="KEY_GROUP_UNKNOWN")
        record = self._check_fresh(connection, verified, at)
        if record is not None and record.stamp == verified.request.stamp:
            if record.join_key != what.key:
                raise VerificationError("two requests of this broker with one stamp", code="REPLAY")
            return self._places_again(connection, groups, broker, what)
        pool = usable_evidence(connection, (*evidence, *(() if record is None else record.evidence)))
        admissions = self._admissions(type_id, broker, pool, at)
        places = []
        for group in groups:
            own = admissions.get(group)
            place = None if own is None else self._join_group(connection, group, broker, what, own, pool, at)
            if place is not None:
                places.append(place)
        if not places:
            raise ExpiredError("the broker's right ends before its keys would begin", code="RIGHT_ENDS")
        save_broker(
            connection,
            BrokerRecord(
                type_id=type_id, key=broker, stamp=verified.request.stamp, join_key=what.key,
                evidence=used_evidence(pool, (item for own in admissions.values() for item in own)),
            ),
            at=at,
        )  # fmt: skip
        return places

    def _join_group(
        self,
        connection: Connection,
        group: KeyGroupId,
        broker: PublicKey,
        what: JoinGroups,
        admissions: Sequence[GroupAdmission],
        pool: CertificatePool,
        at: datetime,
    ) -> GroupPlace | None:
        stored = self._vault.load(connection, group)
        member, instant = broker.key_id, self._instant(stored, at)
        changes = membership_changes(
            stored.state, member, admissions, at=instant, joins=True,
            authorised_then=lambda admission: self._was_admitted(admission, stored, broker, pool),
        )  # fmt: skip
        was_inside = member in stored.state.members
        state, refresh = step_group(stored.state, changes, at=instant, period=self._period)
        if member not in state.members:
            return None
        if member not in stored.tree.members and len(stored.tree.members) >= self._settings.max_members:
            raise UncheckedError("the key group is full", code="LIMIT_EXCEEDED")
        stored.state = state
        individual, welcome = secrets.token_bytes(32), b""
        if not was_inside:
            self._vault.record_changes(connection, group, [("join", member)], at=at)
        if refresh is not None:
            self._begin(connection, stored, refresh, at, joins={member: individual})
        else:
            self._log.check(stored.tree)
            admit = stored.tree.readmit if member in stored.tree.members else stored.tree.admit
            welcome = admit(member, individual, self._signer).to_bytes()
        self._vault.save(connection, stored)
        save_place(connection, group, member, number=stored.tree.number, welcome=welcome)
        sealed = seal_place(individual, what.key, group=group, member=member, manager=self.public_key)
        return GroupPlace(group=group, number=stored.tree.number, sealed=sealed, welcome=welcome)

    def _places_again(
        self, connection: Connection, groups: Iterable[KeyGroupId], broker: PublicKey, what: JoinGroups
    ) -> list[GroupPlace]:
        """Answer a request as it was answered before: the same keys, sealed anew."""
        places = []
        for group in groups:
            place = find_place(connection, group, broker.key_id)
            individual = self._vault.load(connection, group).tree.individual(broker.key_id)
            if place is not None and individual is not None:
                sealed = seal_place(individual, what.key, group=group, member=broker.key_id, manager=self.public_key)
                places.append(GroupPlace(group=group, number=place[0], sealed=sealed, welcome=place[1]))
        return places

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

    def _admitted_now(
        self, connection: Connection, group: KeyGroupId, at: datetime
    ) -> Mapping[bytes, list[GroupAdmission]]:
        """List who may be in a group now, on the evidence that is kept."""
        found: dict[bytes, list[GroupAdmission]] = {}
        for record in list_brokers(connection, group.type_id):
            own = self._reviewed(connection, record, at).get(group)
            if own:
                found[record.member] = own
        return found

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
        """Look at brokers' certificates again, and let their groups know what changed."""
        admitted = {record.member: self._reviewed(connection, record, at) for record in brokers}
        refreshed: list[KeyGroupId] = []
        if not admitted:
            return refreshed
        for group in self._vault.groups(connection, type_id):
            stored = self._vault.load(connection, group)
            instant = self._instant(stored, at)
            changes: list[GroupChange] = []
            for member, admissions in admitted.items():
                inside = member in stored.state.members
                if inside or member in stored.state.leavers:
                    changes += membership_changes(
                        stored.state, member, admissions.get(group, ()), at=instant, joins=inside
                    )
            if changes and self._change(connection, group, changes, at).tree.number > stored.tree.number:
                refreshed.append(group)
        return refreshed

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

    def _statements_digest(self) -> bytes:
        digest = hashlib.sha256()
        for raw in self._verifier().statements.raw_statements():
            digest.update(hashlib.sha256(raw).digest())
        return digest.digest()

    def _prune(self, connection: Connection, at: datetime) -> None:
        """Forget records whose time is over."""
        old = at - self._settings.history
        connection.execute(delete(key_messages).where(key_messages.c.at < old, key_messages.c.published.is_(True)))
        connection.execute(delete(key_changes).where(key_changes.c.at < old))


def _change(kind: ChangeKind, member: KeyId | None = None) -> GroupChange:
    return GroupChange(at=0, kind=kind, member=b"" if member is None else member)
