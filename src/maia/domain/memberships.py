"""The key groups of a home: what its broker knows of each tree, and how its keyring follows the log.

    groups      a member's state per group, its place in the manager's lane and how long the manager's word holds,
                sealed to the broker's key (0600)
    keyring     the keys themselves, with the starts of their epochs

Rules kept here:

- only what the group's manager signed as a record of the group's lane is read. Whoever may write to the log can be a
  nuisance, not a manager;
- a place is a number and a digest. A record that is missing, and one that is not the one that was read, are alarms:
  from then on this broker is blind in the group, until the log shows what follows or the broker is admitted anew;
- a manager says at a rhythm, which it states, what its newest record is. A broker that did not hear it for longer than
  that and the home's grace (``silence``) is blind as well. Whoever is blind seals nothing; what it can open it opens;
- messages are applied one by one. One that came before is passed over; when one is missing, or does not continue what
  was applied, the group is closed from there on and an alarm says so. It opens again when the broker is admitted anew;
- an epoch whose key this broker may not have is known by its start, so its parcels are refused and never tried with an
  older key;
- a replaced key is erased when its grace is over and nothing that the log still keeps needs it, see `retention`. Its
  grace begins when no publisher can take it for the current one any more, see `deafness`;
- keys are on disk before the place in the log is: a crash in between repeats what has no effect. Every file is written
  anew and replaces the old one; what a killed writer left is removed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.domain.heard import Heard
from maia.domain.key_erasure import erase_keys
from maia.domain.key_times import deafness
from maia.domain.operations import audit_of
from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption import (
    EpochId,
    EpochKey,
    KeyGroupId,
    Keyring,
    Tolerance,
    TreeMember,
    Welcome,
    open_welcome,
    parse_rekey,
    rekey_topic,
    verify_rekey,
)
from maia.errors import EncodingError, MaiaError, SealError, UnavailableError, UsageError, VerificationError
from maia.events import TypeId
from maia.home import PRIVATE_FILE, Home, locked, read_file, with_head, without_head, write_file
from maia.kernel import milliseconds
from maia.log import START, AuditRow, LaneRead, LaneRecord, LogDirectory, NoticeKind, NoticeLog, Place
from maia.principals import PublicKey, public_key

MAX_STATE = 64 << 20
MAX_ROUNDS = 100
_READ = 1000
_NONCE = 12
_PURPOSE = b"maia/1 groups"
_LIMITS = SexpLimits(max_bytes=MAX_STATE, max_depth=3, max_atom=1 << 16)
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Membership:
    member: TreeMember
    manager: PublicKey
    place: Place = START
    stamp: int = -1
    due: int = 0
    alarm: str = ""
    promised: int = 0

    @property
    def read(self) -> tuple[Place, int, str, int]:
        """What changes by reading."""
        return self.place, self.due, self.alarm, self.promised


@dataclass(slots=True)
class Followed:
    """What following the groups did.

    Attributes:
        keys: How many keys came.
        closed: Groups that this broker is out of since now.
        erased: How many keys were erased.
        alarms: Group and code of everything that should not have been in the log.
        behind: Whether there is more to read than one step takes.
    """

    keys: int = 0
    closed: list[KeyGroupId] = field(default_factory=list)
    erased: int = 0
    alarms: list[tuple[KeyGroupId, str]] = field(default_factory=list)
    behind: bool = False


class GroupKeys:
    """The memberships of a home's broker."""

    def __init__(self, home: Home) -> None:
        """Use a home; nothing is read yet."""
        self._home = home
        self.path = home.path / "groups"

    def groups(self) -> tuple[KeyGroupId, ...]:
        """List the groups that are followed, sorted."""
        return tuple(sorted(self._load()))

    def heard(self) -> dict[KeyGroupId, Heard]:
        """Tell what was heard of each group's manager."""
        return {
            group: Heard(manager=item.manager, place=item.place, due=item.due, promised=item.promised, alarm=item.alarm)
            for group, item in self._load().items()
        }

    def tolerance(self, *types: TypeId | None) -> Tolerance:
        """Tell how far parcels that are sealed with keys of some types may stray and still be opened."""
        tolerance = self._home.tolerance
        promised = [item.promised for group, item in self._load().items() if group.type_id in types]
        return replace(tolerance, deaf=deafness(self._home, max(promised))) if promised else tolerance

    def join(
        self,
        group: KeyGroupId,
        individual: bytes,
        *,
        manager: PublicKey,
        welcome: Welcome | None = None,
        at: datetime | None = None,
    ) -> None:
        """Follow a group from now on, as the manager has admitted this broker; a second admission replaces the first.

        Args:
            group: Which.
            individual: The key shared with the manager for this membership.
            manager: Whose messages count.
            welcome: The current key, when the admission needed no new epoch.
            at: When the manager answered, which is a word of it.

        Raises:
            VerificationError: The welcome is not the manager's.
            SealError: It is for somebody else.
        """
        name = self._home.broker.public_key.key_id
        member = TreeMember(group, name, individual)
        key = None if welcome is None else open_welcome(welcome, individual, manager)
        if welcome is not None and (welcome.group, welcome.member) != (group, name):
            raise SealError("the welcome is for somebody else")
        with locked(self.path):
            held = self._load()
            before = held.get(group)
            held[group] = _Membership(
                member, manager, due=0 if at is None else milliseconds(at), promised=before.promised if before else 0
            )
            if key is not None:
                with locked(self._home.path / "keyring"):
                    ring = self._home.keyring()
                    if _take(ring, group, key):
                        self._home.save_keyring(ring)
            self._save(held)

    def leave(self, group: KeyGroupId) -> None:
        """Follow a group no longer; its keys stay until they are retired."""
        with locked(self.path):
            held = self._load()
            if held.pop(group, None) is not None:
                self._save(held)

    def follow(self, notices: NoticeLog, *, at: datetime, log: LogDirectory | None = None) -> Followed:
        """Read what the managers said since last time, take the keys, and erase those whose time is over.

        Args:
            notices: Of the log.
            at: Now.
            log: As `retention` takes it.

        Raises:
            MaiaError: The home cannot be read or written. Nothing was taken by halves.
        """
        done = Followed()
        if not self.path.exists():
            return done
        with locked(self.path), locked(self._home.path / "keyring"):
            held = self._load()
            ring = self._home.keyring()
            before = {group: item.read for group, item in held.items()}
            for group, item in held.items():
                self._follow_group(group, item, notices, ring, done)
            if done.keys or done.closed:
                self._home.save_keyring(ring)
            if {group: item.read for group, item in held.items()} != before:
                self._save(held)
        promised: dict[TypeId, int] = {}
        for group, item in held.items():
            promised[group.type_id] = max(item.promised, promised.get(group.type_id, 0))
        done.erased = erase_keys(self._home, ring, promised, at=at, log=log)
        self._tell(done, at)
        if done.behind:
            raise UnavailableError("more rekey messages than one step follows; try again", code="REKEY_BACKLOG")
        return done

    def _follow_group(
        self, group: KeyGroupId, item: _Membership, notices: NoticeLog, ring: Keyring, done: Followed
    ) -> None:
        reader = notices.reader(NoticeKind.REKEY, item.manager.key_id, rekey_topic(group))
        for _ in range(MAX_ROUNDS):
            try:
                found = reader.since(item.place, stamp=item.stamp, limit=_READ)
            except UnavailableError as error:
                # Nothing was heard. What the manager promised until now holds, and no longer.
                _logger.warning("key group %s cannot be followed: %s", rekey_topic(group).hex(), error.code)
                return
            if _code(found) == "LANE_EXPIRED" and found.head is not None:
                # Whoever just joined needs nothing of what is gone; for anybody else the next message shows a gap.
                item.place = found.head.floor
                continue
            for record in found.records:
                self._apply(group, item, record, ring, done)
                item.place, item.stamp = record.place, record.stamp
            if len(found.records) < _READ:
                _hear(group, item, found, done)
                return
        done.behind = True

    def _apply(self, group: KeyGroupId, item: _Membership, record: LaneRecord, ring: Keyring, done: Followed) -> None:
        try:
            verified = verify_rekey(parse_rekey(record.body), item.manager)
        except MaiaError as error:
            done.alarms.append((group, error.code))
            return
        rekey = verified.rekey
        seen = item.member.number
        try:
            key = item.member.apply(verified)
        except (UnavailableError, VerificationError, SealError, UsageError) as error:
            # SECURITY: from here on this broker does not know the group's keys, and must not guess.
            done.alarms.append((group, error.code))
            self._close(group, rekey.start, ring, done)
            return
        if key is not None:
            done.keys += _take(ring, group, key)
        elif rekey.number > seen:
            self._close(group, rekey.start, ring, done)

    def _close(self, group: KeyGroupId, start: int, ring: Keyring, done: Followed) -> None:
        epochs = ring.epochs(group)
        if epochs and start > epochs[-1]:
            ring.close(group, EpochId(start))
            done.closed.append(group)

    def _tell(self, done: Followed, at: datetime) -> None:
        """Put alarms into the audit, and into the program's log by code."""
        if not done.alarms:
            return
        for group, code in done.alarms:
            _logger.warning("key group %s: %s", rekey_topic(group).hex(), code)
        audit_of(self._home).note(
            AuditRow(
                at=at, kind="alarm", principal=self._home.broker.public_key.fingerprint,
                type_id=group.type_id.hex(), source="rekey", subject=group.label.decode("utf-8", "replace"),
                code=code, events=0,
            )
            for group, code in done.alarms
        )  # fmt: skip

    def _load(self) -> dict[KeyGroupId, _Membership]:
        if not self.path.exists():
            return {}
        data = without_head("groups", read_file(self.path, limit=MAX_STATE), self.path)
        try:
            plain = AESGCM(self._secret()).decrypt(data[:_NONCE], data[_NONCE:], _PURPOSE)
        except (InvalidTag, ValueError) as error:
            raise SealError("the state of the key groups cannot be opened") from error
        match parse_canonical(plain, limits=_LIMITS):
            case (b"groups", (b"version", b"1" | b"2" | b"3"), *items):
                held = [_read_membership(item) for item in items]
            case _:
                raise _wrong()
        return {item.member.group: item for item in held}

    def _save(self, held: dict[KeyGroupId, _Membership]) -> None:
        items: list[Sexp] = [
            (
                item.member.to_bytes(), item.manager.raw, b"%d" % (item.place.number + 1), item.place.digest,
                b"%d" % (item.stamp + 1), b"%d" % item.due, item.alarm.encode(), b"%d" % item.promised,
            )
            for _, item in sorted(held.items())
        ]  # fmt: skip
        plain = encode((b"groups", (b"version", b"3"), *items))
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + AESGCM(self._secret()).encrypt(nonce, plain, _PURPOSE)
        write_file(self.path, with_head("groups", sealed), mode=PRIVATE_FILE)

    def _secret(self) -> bytes:
        return hmac.digest(self._home.broker.export_seed(), _PURPOSE + b"\x01", hashlib.sha256)


def _hear(group: KeyGroupId, item: _Membership, found: LaneRead, done: Followed) -> None:
    """Take in what the manager says of its lane's end; an alarm is told once."""
    code = _code(found)
    if code:
        if code != item.alarm:
            done.alarms.append((group, code))
        item.alarm = code
        return
    item.alarm = ""
    item.due = max(item.due, item.stamp)
    if found.head is not None:
        item.promised = max(item.promised, found.head.due - found.head.asserted)
    # SECURITY: only a head about the very place that was read says that nothing follows.
    if found.head is not None and found.head.place == item.place:
        item.due = max(item.due, found.head.due)


def _code(found: LaneRead) -> str:
    return "" if found.alarm is None else found.alarm.code


def _take(ring: Keyring, group: KeyGroupId, key: EpochKey) -> bool:
    """Put a key into the keyring, unless it is there or was erased; tell whether it is new."""
    epochs = ring.epochs(group)
    if key.start in epochs and (ring.key(group, key.start) is not None or key.start != epochs[-1]):
        return False
    ring.add(group, key.start, key.key)
    return True


def _read_membership(item: Sexp) -> _Membership:
    match item:
        case (bytes(member), bytes(manager), bytes(after)) if after.isdigit():
            # From before there were lanes: nothing of the lane was read, and no word of the manager holds.
            return _Membership(TreeMember.from_bytes(member), public_key(manager))
        case (
            bytes(member), bytes(manager), bytes(number), bytes(digest), bytes(stamp), bytes(due), bytes(alarm),
            *promised,
        ) if len(promised) <= 1 and all(
            isinstance(digits, bytes) and digits.isdigit() for digits in (number, stamp, due, *promised)
        ):  # fmt: skip
            return _Membership(
                TreeMember.from_bytes(member), public_key(manager), place=Place(int(number) - 1, digest),
                stamp=int(stamp) - 1, due=int(due), alarm=alarm.decode(),
                promised=sum(int(digits) for digits in promised if isinstance(digits, bytes)),
            )  # fmt: skip
        case _:
            raise _wrong()


def _wrong() -> EncodingError:
    return EncodingError("not the state of key groups", code="GROUPS_SHAPE")
