"""The signed objects of a lane: its records and its head, made and read.

    <folder of the lane>/<number>.record      (lane-record "1" <public key> <content> <signature>)
    <folder of the lane>/head                 (lane-head "1" <public key> <content> <signature>)

    content of a record:
        (record (lane <kind> <owner> <topic>) (number "n") (previous <digest>) (stamp "ms") (body <octets>))
    content of a head, in which places are counted by how many records there are up to them:
        (head (lane …) (number "n+1") (digest <digest>) (asserted "ms") (due "ms") (floor "n+1" <digest>))

The digest of a record is the SHA-256 of its content. A place in a lane is a number *and* a digest.

Rule kept here: an object counts only when the lane's owner signed exactly this content as such an object, and it names
this lane and the number it lies under.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, SignatureError, UsageError
from maia.kernel import milliseconds
from maia.principals import SIGNATURE_LENGTH, KeyId, Kind, PublicKey, Signer, public_key, verify_signature

MAX_RECORD = 4 << 20
"""The octets of a record, unless its lane says otherwise."""
_VERSION = b"1"
_DIGITS = 12
_MAX_NUMBER = 10**_DIGITS - 1
_MAX_STAMP = 1 << 53
HEAD_OCTETS = 4096
"""The octets of a head at most."""
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


def topic_folder(kind: str, topic: str) -> str:
    """Tell in which folder the lanes of a topic lie, one folder for each owner."""
    return f"type={topic}" if kind == _EVENTS else f"_lanes/{kind}/{topic}"


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
            (b"number", _count_upto(head.place.number)),
            (b"digest", head.place.digest),
            (b"asserted", b"%d" % head.asserted),
            (b"due", b"%d" % max(head.asserted, head.due)),
            (b"floor", _count_upto(head.floor.number), head.floor.digest),
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
    content = _opened(b"lane-head", Kind.LANE_HEAD, lane, raw, HEAD_OCTETS)
    match parse_canonical(content, limits=_limits(HEAD_OCTETS)):
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


def _count_upto(number: int) -> bytes:
    """Write a place as how many records there are up to it: its number is -1 before the first."""
    return b"%d" % (number + 1)


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 16 or (digits[0] == 48 and len(digits) > 1):
        raise EncodingError("no number", code="LANE_SHAPE")
    return int(digits)
