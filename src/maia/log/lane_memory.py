"""What a reader remembers of a lane that it read and verified, so that nobody reads a lane from its beginning twice.

    <home>/seen/<folder of the lane>/seen     (lane-seen "1" <digest of the content> <content>)

    content: (seen (lane <kind> <owner> <topic>) (store <where>) (number "n") (digest <digest>) (stamp "ms")
                   (floor "n+1" <digest>) (newest "n+1" <digest> "stamp before") (anchors <octets>) (held)?
                   (moved "n" <digest> <day>*)*)
    anchors: of every 32nd record its number in eight octets, its digest, and its stamp in eight octets

Rules kept here:

- it is the reader's own: made of what it verified itself, in its home, for its owner alone. Nothing of a shared store
  goes into it, and nobody else is given it;
- it holds for the lane of one store that has exactly this record under this number, and since records are chained,
  exactly those before it. Whoever takes it up looks the record up first (`event_lane`). One that does not fit, is
  damaged or of another format is ignored and told (``LANE_MEMORY``), and the lane is read from its beginning. One
  that is whole and does not fit stays: the owner signed what it says, so it is told until the lane has that again;
- a lane of an origin that was found to have a right is *held*: it is missed when the store has nothing of it, so that
  nobody hides it by taking its folder away. Strangers' lanes are not, or strangers would fill this;
- processes of a home take turns to write, and none replaces what it did not compare with the lane first;
- it says where to read on, never what was committed: each commit that is gone through is read from the store, with
  its signature and its place in the chain;
- a kill at any moment leaves one that holds for less.
"""

from __future__ import annotations

import fcntl
import hashlib
import struct
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, UnavailableError
from maia.log.directory_store import DirectoryStore
from maia.log.lane import find_lanes
from maia.log.lane_objects import START, LaneId, LaneRecord, Place

EVERY = 32
"""Of how many records one is an anchor."""
RENEWED = 64
"""After so many records it is written anew."""
_EVENTS = "events"
_MOST = 65_536
_TURN = "turn"
_State = tuple[int, int, int]
_ANY_DAY = b"*"
_MAX_DAYS = 8
_VERSION = b"1"
_DIGEST = 32
_ANCHOR = struct.Struct(">Q32sQ")
_MAX_SEEN = 16 << 20
_LIMITS = SexpLimits(max_bytes=_MAX_SEEN, max_depth=3, max_atom=_MAX_SEEN)


@dataclass(frozen=True, slots=True)
class SeenMove:
    """A record that says where segments lie now, and of which days those are; of any day when there are many."""

    place: Place
    days: frozenset[bytes]

    def may_move(self, path: str) -> bool:
        """Tell whether it may be about a segment."""
        return not self.days.isdisjoint((_day(path), _ANY_DAY))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLane:
    """How far a lane was read and verified.

    Attributes:
        place: After which record.
        stamp: That record's.
        floor: Up to where records are gone, as the owner signed it.
        newest: The newest record with a commit, and the stamp of the record before it; `START` when there is none.
        before: That stamp.
        anchors: Places on the way with their stamps, packed.
        moves: Which records say where segments lie now.
        held: Whether its origin was found to have a right, so that it is missed when it is gone.
    """

    place: Place = START
    stamp: int = -1
    floor: Place = START
    newest: Place = START
    before: int = -1
    anchors: bytes = b""
    moves: tuple[SeenMove, ...] = ()
    held: bool = False

    def before_stamp(self, stamp: int) -> tuple[Place, int] | None:
        """Give the last anchor, with its stamp, whose record is stamped before an instant; nothing when none is."""
        size = _ANCHOR.size
        count = len(self.anchors) // size
        at = bisect_left(range(count), stamp, key=lambda index: _ANCHOR.unpack_from(self.anchors, index * size)[2])
        if not at:
            return None
        number, digest, found = _ANCHOR.unpack_from(self.anchors, (at - 1) * size)
        return (Place(number, digest), found) if number > self.floor.number else None


class LaneMemory:
    """Keeps what a home has seen of lanes."""

    def __init__(self, folder: Path) -> None:
        """Use a folder of a home, made on the first write."""
        self._own = DirectoryStore(folder, private=True)
        self._held: dict[LaneId, tuple[_State | None, bool]] = {}

    def topics(self) -> list[str]:
        """List the topics of which lanes are remembered."""
        folders = self._own.list_folders("", "type=", limit=_MOST)
        return [name.removeprefix("type=") for name in folders]

    def held(self, topic: str, where: str) -> list[LaneId]:
        """List the lanes of a topic of a store that are missed when they are gone; one that is damaged may be.

        Raises:
            UsageError: It is no topic.
        """
        found = []
        for lane in find_lanes(self._own, _EVENTS, topic, limit=_MOST):
            state = self.state(lane)
            known = self._held.get(lane)
            if known is None or known[0] != state:
                try:
                    seen = self.read(lane, where)
                    known = state, seen is not None and seen.held
                except EncodingError:
                    known = state, True
                self._held[lane] = known
            if known[1]:
                found.append(lane)
        return found

    def state(self, lane: LaneId) -> _State | None:
        """Tell by which another process of the home is seen to have written since; nothing when there is nothing."""
        try:
            found = (self._own.path / _name(lane)).lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep other processes of this home from writing meanwhile; ends with the process.

        Raises:
            UnavailableError: The system refused.
        """
        if not (self._own.path / _TURN).exists():
            self._own.put_new(_TURN, b"")
        with self._own.open(_TURN, limit=0) as file:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX)
            yield

    def read(self, lane: LaneId, where: str) -> SeenLane | None:
        """Return what is remembered of a lane of a store; nothing when that is nothing.

        Raises:
            EncodingError: What lies there is damaged, or of another format: ``LANE_MEMORY_SHAPE``.
        """
        try:
            return _parse(lane, where, self._own.get(_name(lane), limit=_MAX_SEEN))
        except (NotFoundError, UnavailableError):
            return None
        except EncodingError as error:
            raise EncodingError(f"what was remembered of lane {lane} is damaged", code="LANE_MEMORY_SHAPE") from error

    def write(self, lane: LaneId, where: str, seen: SeenLane) -> None:
        """Remember how far a lane was read; when that cannot be kept, the next look takes longer."""
        content = encode(
            (
                b"seen",
                lane.to_sexp(),
                (b"store", where.encode()),
                (b"number", b"%d" % seen.place.number),
                (b"digest", seen.place.digest),
                (b"stamp", b"%d" % seen.stamp),
                (b"floor", *_counted(seen.floor)),
                (b"newest", *_counted(seen.newest), b"%d" % (seen.before + 1)),
                (b"anchors", seen.anchors),
                *(((b"held",),) if seen.held else ()),
                *((b"moved", b"%d" % item.place.number, item.place.digest, *sorted(item.days)) for item in seen.moves),
            )
        )
        whole = encode((b"lane-seen", _VERSION, hashlib.sha256(content).digest(), content))
        if len(whole) <= _MAX_SEEN:
            with suppress(UnavailableError):
                self._own.put(_name(lane), whole)


def anchor_of(record: LaneRecord) -> bytes:
    """Pack a record as an anchor when it is one; nothing otherwise."""
    if record.number % EVERY != EVERY - 1:
        return b""
    return _ANCHOR.pack(record.number, record.digest, record.stamp)


def move_of(record: LaneRecord, paths: list[str]) -> SeenMove:
    """Note a record that moves segments."""
    days = frozenset(_day(path) for path in paths)
    return SeenMove(record.place, days if len(days) <= _MAX_DAYS else frozenset((_ANY_DAY,)))


def _name(lane: LaneId) -> str:
    return f"{lane.folder}/seen"


def _day(path: str) -> bytes:
    return path.rpartition("/")[0].rpartition("/")[2].encode()


def _counted(place: Place) -> tuple[bytes, bytes]:
    return b"%d" % (place.number + 1), place.digest


def _parse(lane: LaneId, where: str, raw: bytes) -> SeenLane | None:
    match parse_canonical(raw, limits=_LIMITS):
        # It finds damage; whoever may write here may write anything in this home.
        case (b"lane-seen", version, bytes() as digest, bytes() as content) if (
            version == _VERSION and hashlib.sha256(content).digest() == digest
        ):
            match parse_canonical(content, limits=_LIMITS):
                case (
                    b"seen",
                    named,
                    (b"store", bytes() as store),
                    (b"number", bytes() as number),
                    (b"digest", bytes() as last),
                    (b"stamp", bytes() as stamp),
                    (b"floor", bytes() as floor, bytes() as floor_digest),
                    (b"newest", bytes() as newest, bytes() as newest_digest, bytes() as before),
                    (b"anchors", bytes() as anchors),
                    *rest,
                ) if named == lane.to_sexp() and len(anchors) % _ANCHOR.size == 0:
                    if store != where.encode():
                        return None  # of the log that this home had before
                    held = rest[:1] == [(b"held",)]
                    return SeenLane(
                        place=_place(_number(number), last),
                        stamp=_number(stamp),
                        floor=_place(_number(floor) - 1, floor_digest),
                        newest=_place(_number(newest) - 1, newest_digest),
                        before=_number(before) - 1,
                        anchors=anchors,
                        moves=tuple(_move(item) for item in rest[held:]),
                        held=held,
                    )
    raise _shape()


def _move(item: Sexp) -> SeenMove:
    match item:
        case (b"moved", bytes() as number, bytes() as digest, *days):
            return SeenMove(_place(_number(number), digest), frozenset(day for day in days if isinstance(day, bytes)))
    raise _shape()


def _place(number: int, digest: bytes) -> Place:
    if len(digest) != _DIGEST:
        raise _shape()
    return Place(number, digest)


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 16:
        raise _shape()
    return int(digits)


def _shape() -> EncodingError:
    return EncodingError("not what was seen of this lane", code="LANE_MEMORY_SHAPE")
