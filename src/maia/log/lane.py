"""Lanes: numbered, chained, signed records of one owner about one topic, and reading them.

    <folder of the lane>/<number>.record      (lane-record "1" <public key> <content> <signature>)
    <folder of the lane>/head                 (lane-head "1" <public key> <content> <signature>)

    content of a record:
        (record (lane <kind> <owner> <topic>) (number "n") (previous <digest>) (stamp "ms") (body <octets>))
    content of a head, in which places are counted by how many records there are up to them:
        (head (lane …) (number "n+1") (digest <digest>) (asserted "ms") (due "ms") (floor "n+1" <digest>))

The digest of a record is the SHA-256 of its content. A place in a lane is a number *and* a digest. Whoever can write to
the store can put, exchange and remove anything; the owner's key is all that is believed.

Rules kept here:

- a record counts only when the lane's owner signed exactly this content as a lane record, it names this lane and the
  number it lies under, and it continues the digest before. Everything else is ignored and counted;
- numbers have no gaps and stamps grow strictly. A record whose predecessor is not there is an alarm (``LANE_GAP``), one
  that continues something else, or a head about another record of the same number, is ``LANE_FORKED``, one whose stamp
  does not grow ``LANE_STAMP``. Nothing behind an alarm is read: the place stays where it is sure;
- what lies under a number is looked up by its name, never found by listing, so names such as 999999999999.record cost
  nothing and mean nothing;
- what lies below the floor that the owner signed is gone (``LANE_EXPIRED``); a reader goes on from the floor only by
  its own decision.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, KeyFormatError, NotFoundError, SignatureError, UncheckedError, UsageError
from maia.kernel import milliseconds
from maia.log.store import Store
from maia.principals import SIGNATURE_LENGTH, KeyId, Kind, PublicKey, Signer, public_key, verify_signature

MAX_RECORD = 4 << 20
"""The octets of a record, unless its lane says otherwise."""
MAX_LANES = 1024
"""How many lanes of a topic a reader looks at."""
_VERSION = b"1"
_DIGITS = 12
_MAX_NUMBER = 10**_DIGITS - 1
_MAX_STAMP = 1 << 53
_HEAD_OCTETS = 4096
_LOOK_AHEAD = 8
_DIGEST = 32
_KIND = re.compile(r"[a-z][a-z-]{0,31}")
_TOPIC = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_EVENTS = "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneId:
    """Which lane: what kind of records, whose, about what. The topic is part of a path: hash what is not a word."""

    kind: str
    owner: KeyId
    topic: str

    def __post_init__(self) -> None:
        """Refuse what is no word."""
        if not _KIND.fullmatch(self.kind) or not _TOPIC.fullmatch(self.topic) or len(self.owner) != _DIGEST:
            raise UsageError("a lane has a kind, the identity of a key, and a topic that is one word", code="LANE_ID")

    @property
    def folder(self) -> str:
        """Where it lies in a store."""
        return f"{topic_folder(self.kind, self.topic)}/origin={self.owner.hex()}"

    def record_name(self, number: int) -> str:
        """Name the object of a record."""
        return f"{self.folder}/{number:0{_DIGITS}d}.record"

    @property
    def head_name(self) -> str:
        """Name the object of the head."""
        return f"{self.folder}/head"

    def to_sexp(self) -> Sexp:
        """Write ``(lane <kind> <owner> <topic>)``."""
        return (b"lane", self.kind.encode(), bytes(self.owner), self.topic.encode())

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.kind} {self.topic[:16]} of {self.owner.hex()[:16]}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a lane: after which record. Two places with one number and different digests are of two lanes."""

    number: int
    digest: bytes


START = Place(-1, bytes(_DIGEST))
"""Before the first record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRecord:
    """One record whose signature and shape were checked; ``raw`` is the object as it lies in a store."""

    lane: LaneId
    number: int
    previous: bytes
    stamp: int
    body: bytes
    digest: bytes
    raw: bytes

    @property
    def place(self) -> Place:
        """The place after this record."""
        return Place(self.number, self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHead:
    """What an owner said of its lane's end, and when (milliseconds). Up to ``floor`` records are gone.

    By ``due`` the owner promises to have said it anew; ``asserted`` when it promises nothing.
    """

    place: Place
    asserted: int
    floor: Place
    due: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRead:
    """What reading on brought.

    Attributes:
        records: In order, each continuing the one before.
        place: After the last of them; where to go on from.
        head: The head as it lies there now, when it is the owner's and about this lane; it may be an old one.
        ignored: How many objects were there that the owner did not sign.
        alarm: Why nothing can be read behind ``place``, though there is more: `UncheckedError` with ``LANE_GAP``,
            ``LANE_FORKED``, ``LANE_STAMP`` or ``LANE_EXPIRED``.
    """

    records: tuple[LaneRecord, ...]
    place: Place
    head: LaneHead | None
    ignored: int = 0
    alarm: UncheckedError | None = None


def topic_folder(kind: str, topic: str) -> str:
    """Tell in which folder the lanes of a topic lie, one folder for each owner."""
    return f"type={topic}" if kind == _EVENTS else f"_lanes/{kind}/{topic}"


def find_lanes(store: Store, kind: str, topic: str, *, limit: int = MAX_LANES) -> tuple[LaneId, ...]:
    """List the lanes of a topic by the names of their folders, which prove nothing; at most so many."""
    prefix = "origin="
    names = store.list_folders(topic_folder(kind, topic), prefix, limit=limit)
    keys = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(
        LaneId(kind=kind, owner=KeyId(bytes.fromhex(key)), topic=topic)
        for key in keys
        if re.fullmatch(r"[0-9a-f]{64}", key)
    )


def sign_record(lane: LaneId, place: Place, *, stamp: int, body: bytes, signer: Signer) -> LaneRecord:
    """Make the record that follows a place.

    Raises:
        UsageError: The signer is not the lane's owner, or the number or stamp is out of range.
    """
    number = place.number + 1
    if signer.public_key.key_id != lane.owner:
        raise UsageError("a lane is signed by its owner", code="WRONG_SIGNER")
    if not 0 <= stamp <= _MAX_STAMP or number > _MAX_NUMBER:
        raise UsageError("a lane record's number or stamp is out of range", code="LANE_RANGE")
    content = encode(
        (
            b"record",
            lane.to_sexp(),
            (b"number", b"%d" % number),
            (b"previous", place.digest),
            (b"stamp", b"%d" % stamp),
            (b"body", body),
        )
    )
    return LaneRecord(
        lane=lane,
        number=number,
        previous=place.digest,
        stamp=stamp,
        body=body,
        digest=hashlib.sha256(content).digest(),
        raw=_seal(b"lane-record", Kind.LANE_RECORD, content, signer),
    )


def sign_head(lane: LaneId, head: LaneHead, signer: Signer) -> bytes:
    """Sign what a lane's end is."""
    if signer.public_key.key_id != lane.owner:
        raise UsageError("a lane is signed by its owner", code="WRONG_SIGNER")
    content = encode(
        (
            b"head",
            lane.to_sexp(),
            (b"number", _signed_number(head.place.number)),
            (b"digest", head.place.digest),
            (b"asserted", b"%d" % head.asserted),
            (b"due", b"%d" % max(head.asserted, head.due)),
            (b"floor", _signed_number(head.floor.number), head.floor.digest),
        )
    )
    return _seal(b"lane-head", Kind.LANE_HEAD, content, signer)


def parse_record(lane: LaneId, number: int, raw: bytes, *, limit: int = MAX_RECORD) -> LaneRecord:
    """Read a record of a lane, verifying before anything in it is looked at.

    Raises:
        EncodingError: It is no record of this lane under this number.
        SignatureError: The lane's owner did not sign it.
    """
    content = _opened(b"lane-record", Kind.LANE_RECORD, lane, raw, limit)
    match parse_canonical(content, limits=_limits(limit)):
        case (
            b"record",
            named,
            (b"number", bytes() as digits),
            (b"previous", bytes() as previous),
            (b"stamp", bytes() as stamp),
            (b"body", bytes() as body),
        ) if named == lane.to_sexp() and _number(digits) == number and len(previous) == _DIGEST:
            return LaneRecord(
                lane=lane,
                number=number,
                previous=previous,
                stamp=_number(stamp),
                body=body,
                digest=hashlib.sha256(content).digest(),
                raw=raw,
            )
    raise EncodingError("no record of this lane", code="LANE_SHAPE")


def parse_head(lane: LaneId, raw: bytes) -> LaneHead:
    """Read the head of a lane, verifying before anything in it is looked at.

    Raises:
        EncodingError: It is no head of this lane.
        SignatureError: The lane's owner did not sign it.
    """
    content = _opened(b"lane-head", Kind.LANE_HEAD, lane, raw, _HEAD_OCTETS)
    match parse_canonical(content, limits=_limits(_HEAD_OCTETS)):
        case (
            b"head",
            named,
            (b"number", bytes() as number),
            (b"digest", bytes() as digest),
            (b"asserted", bytes() as asserted),
            (b"due", bytes() as due),
            (b"floor", bytes() as floor, bytes() as below),
        ) if named == lane.to_sexp() and len(digest) == len(below) == _DIGEST:
            return LaneHead(
                place=Place(_number(number) - 1, digest),
                asserted=_number(asserted),
                due=_number(due),
                floor=Place(_number(floor) - 1, below),
            )
    raise EncodingError("no head of this lane", code="LANE_SHAPE")


class LaneReader:
    """Reads one lane of a store that others can write to."""

    def __init__(self, store: Store, lane: LaneId, *, limit: int = MAX_RECORD) -> None:
        """Read records of at most ``limit`` octets each."""
        self.lane = lane
        self._store = store
        self._limit = limit

    def head(self) -> LaneHead | None:
        """Return the head as it lies there now, when it is the owner's; it may be an old one."""
        try:
            return parse_head(self.lane, self._store.get(self.lane.head_name, limit=_HEAD_OCTETS))
        except (NotFoundError, EncodingError, SignatureError, KeyFormatError):
            return None

    def record(self, number: int) -> LaneRecord | None:
        """Return what lies under a number when the owner signed it, whatever it continues.

        Raises:
            UnavailableError: The store did not answer.
        """
        return self._look(number)[0]

    def since(self, place: Place = START, *, stamp: int = -1, limit: int = 1000) -> LaneRead:
        """Read on from a place, at most so many records.

        Args:
            place: Where reading stopped; `START` for the beginning.
            stamp: The stamp of the last record that was read, above which the next one lies.
            limit: How many records at most.

        Raises:
            UnavailableError: The store did not answer: nothing is known, and the place stays.
        """
        records: list[LaneRecord] = []
        ignored, alarm = 0, None
        while len(records) < limit:
            record, junk = self._look(place.number + 1)
            ignored += junk
            if record is None:
                break
            if record.previous != place.digest:
                alarm = _alarm(self.lane, "LANE_FORKED", f"record {record.number} continues another one")
                break
            # INVARIANT: stamps grow along a lane, so nothing is dated back behind what was committed.
            if record.stamp <= stamp:
                alarm = _alarm(self.lane, "LANE_STAMP", f"record {record.number} is stamped behind the one before")
                break
            records.append(record)
            place, stamp = record.place, record.stamp
        head = self.head()
        if alarm is None and len(records) < limit:
            alarm = self._end(place, head)
        return LaneRead(records=tuple(records), place=place, head=head, ignored=ignored, alarm=alarm)

    def reaches_beyond(self, place: Place, *, further: int = _LOOK_AHEAD) -> bool:
        """Tell whether the owner signed more than what ends at a place, or something else under its number.

        Args:
            place: The end, as the owner's own record says.
            further: How many numbers behind the next one are looked up, so that one removed object hides nothing.

        Raises:
            UnavailableError: The store did not answer.
        """
        if any(self.record(place.number + 1 + step) is not None for step in range(1 + further)):
            return True
        head = self.head()
        if head is not None and head.place.number >= place.number and head.place != place:
            return True
        last = None if place.number < 0 else self.record(place.number)
        return last is not None and last.digest != place.digest

    def _end(self, place: Place, head: LaneHead | None) -> UncheckedError | None:
        """Tell whether the lane really ends here, by its head and by a look at the next few numbers."""
        if head is not None:
            if head.place.number == place.number and head.place.digest != place.digest:
                return _alarm(self.lane, "LANE_FORKED", f"its owner signed another record {place.number}")
            if place.number < head.floor.number:
                return _alarm(self.lane, "LANE_EXPIRED", f"it begins after record {head.floor.number} now")
            if place.number < head.place.number and self._look(place.number + 1)[0] is None:
                return _alarm(self.lane, "LANE_GAP", f"record {place.number + 1} is missing")
        for number in range(place.number + 2, place.number + 2 + _LOOK_AHEAD):
            if self._look(number)[0] is not None and self._look(place.number + 1)[0] is None:
                return _alarm(self.lane, "LANE_GAP", f"record {place.number + 1} is missing")
        return None

    def _look(self, number: int) -> tuple[LaneRecord | None, int]:
        """Look what lies under a number: the owner's record, or how many others' objects."""
        try:
            raw = self._store.get(self.lane.record_name(number), limit=self._limit)
            return parse_record(self.lane, number, raw, limit=self._limit), 0
        except NotFoundError:
            return None, 0
        except (EncodingError, SignatureError, KeyFormatError):
            return None, 1


def stamp_of(at: datetime, *, after: int) -> int:
    """Choose the stamp of the next record: now, or one more than the last."""
    return max(milliseconds(at), after + 1)


def _seal(head: bytes, kind: Kind, content: bytes, signer: Signer) -> bytes:
    return encode((head, _VERSION, signer.public_key.raw, content, signer.sign(kind, content)))


def _opened(head: bytes, kind: Kind, lane: LaneId, raw: bytes, limit: int) -> bytes:
    """Return the content of an object that the lane's owner signed."""
    match parse_canonical(raw, limits=_limits(limit)):
        case (word, version, bytes() as key, bytes() as content, bytes() as signature) if word == head:
            if version != _VERSION:
                raise EncodingError("a lane object of an unknown version", code="LANE_VERSION")
        case _:
            raise EncodingError("no object of a lane", code="LANE_SHAPE")
    if len(signature) != SIGNATURE_LENGTH:
        raise EncodingError("no object of a lane", code="LANE_SHAPE")
    owner: PublicKey = public_key(key)
    if owner.key_id != lane.owner:
        raise SignatureError("not signed by the lane's owner", code="WRONG_SIGNER")
    verify_signature(kind, content, signature, owner)
    return content


def _limits(limit: int) -> SexpLimits:
    return SexpLimits(max_bytes=limit, max_depth=3, max_atom=limit)


def _signed_number(number: int) -> bytes:
    """Write the number of a place, which is -1 before the first record, without a sign."""
    return b"%d" % (number + 1)


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 16 or (digits[0] == 48 and len(digits) > 1):
        raise EncodingError("no number", code="LANE_SHAPE")
    return int(digits)


def _alarm(lane: LaneId, code: str, what: str) -> UncheckedError:
    return UncheckedError(f"lane {lane}: {what}", code=code)
