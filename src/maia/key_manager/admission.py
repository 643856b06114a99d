"""What brokers ask of a key manager: to join, to leave, to count.

Rules kept here:

- a request is taken on its own signature, fresh and in the order of its stamps; the last one again is answered again;
- a broker gets a place in every group that its certificates open, with the current key at once when it was authorised
  at the last refresh (16.04), and with a new epoch otherwise;
- a broker is judged before the transaction that admits it, on a snapshot and with one budget, so that evidence which
  costs much keeps nobody else waiting; the transaction checks that nothing it rests on has changed;
- how often a key was used is believed from members that may publish, up to a bound for each report and each time;
- what is refused leaves no trace: everything is written in one transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from maia.authority import Action, CertificatePool, split_evidence
from maia.database import key_groups
from maia.encryption import (
    ChangeKind,
    CountUse,
    GroupPlace,
    JoinGroups,
    KeyGroupId,
    LeaveGroups,
    VerifiedGroupRequest,
    seal_place,
    sign_join_answer,
    step_group,
    verify_group_request,
)
from maia.errors import (
    DeniedError,
    ExpiredError,
    NotFoundError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.kernel import GroupAdmission, membership_changes, milliseconds
from maia.key_manager.brokers import (
    BrokerRecord,
    count_uses,
    drop_place,
    find_broker,
    find_place,
    revoked_among,
    save_broker,
    save_place,
    usable_evidence,
    used_evidence,
)
from maia.key_manager.demanded_lists import DemandedLists
from maia.key_manager.epochs import begin, change, change_of
from maia.key_manager.groups import StoredGroup, is_group
from maia.key_manager.register import GroupRegister
from maia.key_manager.review import MAX_TRIES, Admissions, admissions_of, credentials_then
from maia.principals import PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What was found out about a broker's request, and what it rests on.

    Attributes:
        record: What was known of the broker.
        again: Whether the request was answered before.
        pool: Its certificates that were not revoked.
        admissions: By group, what they open.
        then: By group, when its key began, and the credentials that held at that moment.
    """

    record: BrokerRecord | None
    again: bool = False
    pool: CertificatePool = field(default_factory=CertificatePool)
    admissions: Admissions = field(default_factory=dict)
    then: Mapping[KeyGroupId, tuple[int | None, frozenset[bytes]]] = field(default_factory=dict)


class Admission:
    """A key manager's answers to brokers."""

    def __init__(self, register: GroupRegister, lists: DemandedLists) -> None:
        """Admit to the groups of a register, with the lists that brokers' certificates demand."""
        self._register = register
        self._lists = lists

    def join(
        self, request: bytes, evidence: Iterable[bytes], *, at: datetime, window: timedelta | None = None
    ) -> bytes:
        """Admit a broker to all groups of a type that its certificates open.

        The same request again is answered as before, so a broker whose answer was lost asks again. A later request of a
        member gives it new places: it lost what it knew.

        Args:
            request: As `sign_group_request` wrote it.
            evidence: The broker's certificates, and the lists that they demand.
            at: Now.
            window: How old the request may be; as the settings say, unless something else than its stamp shows that it
                is wanted now: an agreement that its domain signed with it.

        Returns:
            An answer for `open_join_answer`, given once everything is durable and in the log.

        Raises:
            MalformedError: It is no such request.
            VerificationError: Its signature, its freshness or the broker's right is not proven.
            NotFoundError: The type's groups are not managed here: ``KEY_GROUP_UNKNOWN``.
            UncheckedError: A group is full.
        """
        verified = verify_group_request(request, self._register.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, JoinGroups):
            raise UsageError("not a request to join", code="GROUP_REQUEST_KIND")
        certificates, brought = split_evidence(evidence)
        shown = tuple(certificates)
        self._lists.follow_evidence(verified.request.type_id, shown, brought, at)
        places: list[GroupPlace] | None = None
        for _ in range(MAX_TRIES):
            judged = self._judge(verified, what, shown, at, window)
            with self._register.writing() as connection:
                places = self._join(connection, verified, what, judged, at, window)
            if places is not None:
                break
        if places is None:
            raise UnavailableError("the key groups change faster than a broker is judged", code="KEY_MANAGER_BUSY")
        self._register.publish(at=at)  # INVARIANT: nobody gets a key of an epoch that the log does not show
        return sign_join_answer(places, what.key, member=verified.sender.key_id, signer=self._register.signer)

    def leave(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Let a broker go; the keys it knows change when its right ends or the period is over (16.05).

        Returns:
            The groups that it was in.

        Raises:
            MaiaError: As `join` does.
        """
        verified = verify_group_request(request, self._register.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, LeaveGroups):
            raise UsageError("not a request to leave", code="GROUP_REQUEST_KIND")
        member = verified.sender.key_id
        left: list[KeyGroupId] = []
        with self._register.writing() as connection:
            record = self._check_fresh(connection, verified, at)
            if record is not None and record.stamp < verified.request.stamp:
                for group in self._register.vault.groups(connection, verified.request.type_id):
                    if (not what.labels or group.label in what.labels) and find_place(connection, group, member):
                        change(self._register, connection, group, [change_of(ChangeKind.LEAVE, member)], at)
                        drop_place(connection, group, member)
                        left.append(group)
                save_broker(connection, replace(record, stamp=verified.request.stamp, join_key=bytes(32)), at=at)
        self._register.tell(at=at)
        return tuple(left)

    def count_use(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Take a broker's count of the blocks it sealed; a key that is used up is refreshed at once (T46).

        Only who may publish seals blocks, and nobody seals more of them than time allows since the epoch began.

        Returns:
            The groups that were refreshed for it.

        Raises:
            DeniedError: The broker may not publish (``NOT_A_PUBLISHER``), or cannot have sealed so much
                (``USE_NOT_BELIEVED``).
            MaiaError: As `join` does.
        """
        verified = verify_group_request(request, self._register.public_key.key_id)
        what = verified.request.what
        if not isinstance(what, CountUse):
            raise UsageError("not a count of use", code="GROUP_REQUEST_KIND")
        member = verified.sender.key_id
        with self._register.reading() as connection:
            known = self._check_fresh(connection, verified, at)
            if known is None or known.stamp == verified.request.stamp:
                return ()
            pool = usable_evidence(connection, known.evidence)
        published = self._published_by(known, pool, at)
        refreshed: list[KeyGroupId] = []
        with self._register.writing() as connection:
            record = self._check_fresh(connection, verified, at)
            if record is None or record.stamp == verified.request.stamp:
                return ()
            for label, number, uses in what.uses:
                group = KeyGroupId(verified.request.type_id, label)
                if group not in published or find_place(connection, group, member) is None:
                    continue
                self._check_plausible(self._register.vault.load(connection, group), uses, at)
                newest = connection.scalar(select(key_groups.c.number).where(is_group(key_groups, group)))
                if number != newest:
                    continue  # an epoch that is over, or not begun
                if count_uses(connection, group, member, number=number, uses=uses) >= self._register.settings.cap:
                    change(self._register, connection, group, [change_of(ChangeKind.EXHAUST)], at)
                    refreshed.append(group)
            save_broker(connection, replace(record, stamp=verified.request.stamp, join_key=bytes(32)), at=at)
        self._register.tell(at=at)
        return tuple(refreshed)

    def _published_by(self, record: BrokerRecord, pool: CertificatePool, at: datetime) -> frozenset[KeyGroupId]:
        """Tell in which groups a broker may seal, or refuse one that may in none."""
        try:
            opened = admissions_of(self._register, record.type_id, record.key, pool, at, actions=(Action.PUBLISH,))
        except UncheckedError:
            raise
        except VerificationError as error:
            raise DeniedError("only who may publish reports use", code="NOT_A_PUBLISHER") from error
        return frozenset(opened)

    def _check_plausible(self, stored: StoredGroup, uses: int, at: datetime) -> None:
        began = milliseconds(at) if stored.state.last is None else stored.state.last
        seconds = 1 + max(0, milliseconds(at) - began) // 1000
        if uses > seconds * self._register.settings.max_use_rate:
            raise DeniedError("no broker seals so many blocks in this time", code="USE_NOT_BELIEVED")

    def _check_fresh(
        self, connection: Connection, verified: VerifiedGroupRequest, at: datetime, window: timedelta | None = None
    ) -> BrokerRecord | None:
        """Return what is known of the sender, or refuse a request that is stale or was overtaken by a later one."""
        usual = self._register.settings.window
        stamp, age = verified.request.stamp, timedelta(milliseconds=milliseconds(at) - verified.request.stamp)
        if not -usual <= age <= (usual if window is None else window):
            raise ExpiredError("the request to the key manager is not fresh", code="STALE_PROOF")
        record = find_broker(connection, verified.request.type_id, verified.sender.key_id)
        if record is not None and stamp < record.stamp:
            raise VerificationError("a later request of this broker was answered before", code="REPLAY")
        return record

    def _judge(
        self,
        verified: VerifiedGroupRequest,
        what: JoinGroups,
        evidence: tuple[bytes, ...],
        at: datetime,
        window: timedelta | None,
    ) -> _Judged:
        """Judge a broker on a snapshot of what is known, outside of any transaction."""
        type_id, broker = verified.request.type_id, verified.sender
        with self._register.reading() as connection:
            groups = self._register.vault.groups(connection, type_id)
            if not groups:
                raise NotFoundError("the key manager has no key groups of this type", code="KEY_GROUP_UNKNOWN")
            record = self._check_fresh(connection, verified, at, window)
            if record is not None and record.stamp == verified.request.stamp:
                if record.join_key != what.key:
                    raise VerificationError("two requests of this broker with one stamp", code="REPLAY")
                return _Judged(record=record, again=True)
            pool = usable_evidence(connection, (*evidence, *(() if record is None else record.evidence)))
            began = {group: self._register.vault.load(connection, group).state.last for group in groups}
        # One budget for all that the request asks, whatever it needs to be looked at.
        budget = self._register.verifier().budget(pool)
        admissions = admissions_of(self._register, type_id, broker, pool, at, budget)
        then: dict[KeyGroupId, tuple[int | None, frozenset[bytes]]] = {}
        for group, own in admissions.items():
            last = began.get(group)
            tested = last is not None and any(item.tested for item in own)
            held = credentials_then(self._register, group, last or 0, broker, pool, budget) if tested else frozenset()
            then[group] = (last, held)
        return _Judged(record=record, pool=pool, admissions=admissions, then=then)

    def _join(
        self,
        connection: Connection,
        verified: VerifiedGroupRequest,
        what: JoinGroups,
        judged: _Judged,
        at: datetime,
        window: timedelta | None,
    ) -> list[GroupPlace] | None:
        """Write an admission down; ``None`` when something that it rests on has changed."""
        type_id, broker = verified.request.type_id, verified.sender
        groups = self._register.vault.groups(connection, type_id)
        if self._check_fresh(connection, verified, at, window) != judged.record:
            return None
        if judged.again:
            return self._places_again(connection, groups, broker, what)
        if revoked_among(connection, (item.certificate_id for item in judged.pool)):
            return None
        places = []
        for group in groups:
            own = judged.admissions.get(group)
            if own is None:
                continue
            stored = self._register.vault.load(connection, group)
            last, held = judged.then[group]
            if stored.state.last != last:
                return None
            place = self._join_group(connection, stored, broker, what, own, held, at)
            if place is not None:
                places.append(place)
        if not places:
            raise ExpiredError("the broker's right ends before its keys would begin", code="RIGHT_ENDS")
        save_broker(
            connection,
            BrokerRecord(
                type_id=type_id, key=broker, stamp=verified.request.stamp, join_key=what.key,
                evidence=used_evidence(judged.pool, (item for own in judged.admissions.values() for item in own)),
            ),
            at=at,
        )  # fmt: skip
        return places

    def _join_group(
        self,
        connection: Connection,
        stored: StoredGroup,
        broker: PublicKey,
        what: JoinGroups,
        admissions: Sequence[GroupAdmission],
        held: frozenset[bytes],
        at: datetime,
    ) -> GroupPlace | None:
        group = stored.group
        member, instant = broker.key_id, self._register.instant(stored, at)
        changes = membership_changes(
            stored.state, member, admissions, at=instant, joins=True,
            authorised_then=lambda admission: admission.credential in held,
        )  # fmt: skip
        was_inside = member in stored.state.members
        state, refresh = step_group(stored.state, changes, at=instant, period=self._register.period)
        if member not in state.members:
            return None
        if member not in stored.tree.members and len(stored.tree.members) >= self._register.settings.max_members:
            raise UncheckedError("the key group is full", code="LIMIT_EXCEEDED")
        stored.state = state
        individual, welcome = secrets.token_bytes(32), b""
        if not was_inside:
            self._register.vault.record_changes(connection, group, [("join", member)], at=at)
        if refresh is not None:
            begin(self._register, connection, stored, refresh, at, joins={member: individual})
        else:
            self._register.log.check(group, self._register.vault.lane_end(connection, group)[0])
            admit = stored.tree.readmit if member in stored.tree.members else stored.tree.admit
            welcome = admit(member, individual, self._register.signer).to_bytes()
        self._register.vault.save(connection, stored)
        save_place(connection, group, member, number=stored.tree.number, welcome=welcome)
        sealed = seal_place(individual, what.key, group=group, member=member, manager=self._register.public_key)
        return GroupPlace(group=group, number=stored.tree.number, sealed=sealed, welcome=welcome)

    def _places_again(
        self, connection: Connection, groups: Iterable[KeyGroupId], broker: PublicKey, what: JoinGroups
    ) -> list[GroupPlace]:
        """Answer a request as it was answered before: the same keys, sealed anew."""
        places = []
        for group in groups:
            place = find_place(connection, group, broker.key_id)
            individual = self._register.vault.load(connection, group).tree.individual(broker.key_id)
            if place is not None and individual is not None:
                sealed = seal_place(
                    individual, what.key, group=group, member=broker.key_id, manager=self._register.public_key
                )
                places.append(GroupPlace(group=group, number=place[0], sealed=sealed, welcome=place[1]))
        return places
