"""Commits: what one publication added to a lane, as the body of a lane record.

    (commit "1" (publication <name>) (stream <query> "batch")? (evidence <hash>) (refused "n") (segment …)*)
    (segment (format "parcel-rows-1") (name <object>) (digest <sha-256>) (size "octets") (parcels "n") (events "n")
             (stamps "first" "last") (bases <16 octets for each parcel>))
    (segment (format "parcel-columns-1") (name <object>) (digest <sha-256>) (size "octets") (tail "octets" <sha-256>)
             (parcels "n") (events "n") (stamps "first" "last") (bases <16 octets for each parcel>))
    (moved "2" (segment <name> <new object> "offset")*)
    (moved "1" (segment <name> <new object> "row group" <digest of the rows>)*)

The first version of `moved` is read, and written no more. Rules kept here:

- a body that is none of these, has a field too many, names an object outside of its lane, one object twice, or more
  than `MAX_SEGMENTS` of them is no commit: it adds nothing, and is told as what it is (``COMMIT_SHAPE``);
- the stamps of a commit lie above the stamp of the record before it and not above its own (``STAMP_BEHIND``): nothing
  is dated back behind what was committed;
- the commits of one stream come from one query, batch after batch, and what is out of turn is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, UsageError
from maia.log.lane_objects import LaneRecord, Place

FORMAT = b"parcel-rows-1"
"""How parcels lie in a segment: one row each, in the columns of `segments.PARCEL_SCHEMA`."""
COLUMNS = b"parcel-columns-1"
"""Or block by block: one row each, a column for each block, see `columnar`. The commit tells the digest of its end."""
MAX_COMMIT = 32 << 20
MAX_SEGMENTS = 8192
"""Segments of one commit."""
_VERSION = b"1"
_BASE = 16
_DIGEST = 32
_LIMITS = SexpLimits(max_bytes=MAX_COMMIT, max_depth=4, max_atom=MAX_COMMIT)
_MOVED, _MOVED_ROWS = b"2", b"1"
_NAME = re.compile(r"date=\d{4}-\d\d-\d\d/[0-9a-z-]{1,100}\.(parquet|segments)")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One segment: a file of parcels. ``path`` is its name in the store, ``bases`` names the events of each parcel.

    ``tail`` is the length of the end of a columnar segment, which tells where all the rest lies; 0 for any other.
    """

    path: str
    size: int
    digest: str
    parcels: int
    events: int
    first_stamp: int
    last_stamp: int
    bases: tuple[str, ...] = ()
    tail: int = 0
    tail_digest: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a segment lies now: octet for octet as it was committed, from an offset of a larger object on."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Where the parcels of a segment lie, by an earlier Maia: one row group of a larger one, and its rows' digest."""

    path: str
    group: int
    digest: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What one publication added to a lane.

    Attributes:
        sequence: Its number in the lane.
        publication: Its name, which a retry has too.
        type_id: The type, in hex.
        origin: The broker that sealed the parcels, in hex.
        evidence: The hash of the evidence for the broker's right, in hex.
        files: The files that count from now on.
        refused: How many rows went no further.
        query: For a stream, the query that wrote it; empty for a batch.
        batch: For a stream, the micro-batch; -1 for a batch.
        stamp: Of the record.
        digest: Of the record, in hex.
        wrong: Why it adds nothing, though its owner signed it; empty when it is right.
    """

    sequence: int
    publication: str
    type_id: str
    origin: str
    evidence: str
    files: tuple[LogFile, ...]
    refused: int = 0
    query: str = ""
    batch: int = -1
    stamp: int = -1
    digest: str = ""
    wrong: str = ""

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(file.events for file in self.files)

    @property
    def name(self) -> str:
        """The publication, with the micro-batch when it is a stream's."""
        return self.publication if self.batch < 0 else f"{self.publication}/{self.batch}"

    @property
    def lane(self) -> str:
        """The lane it is in, as `lane_name` writes it."""
        return f"{self.type_id}/{self.origin}"

    @property
    def place(self) -> str:
        """The place after it, as `write_place` writes it."""
        return write_place(Place(self.sequence, bytes.fromhex(self.digest)), self.stamp)


def write_place(place: Place, stamp: int) -> str:
    """Write a place with the stamp of its record, for checkpoints and outboxes."""
    return f"{place.number}:{stamp}:{place.digest.hex()}"


def read_place(text: str) -> tuple[Place, int]:
    """Read what `write_place` wrote.

    Raises:
        EncodingError: It is no place: ``PLACE_SHAPE``.
    """
    match = re.fullmatch(r"(-1|\d{1,12}):(-1|\d{1,16}):([0-9a-f]{64})", text)
    if match is None:
        raise EncodingError("not a place in a lane", code="PLACE_SHAPE")
    return Place(int(match[1]), bytes.fromhex(match[3])), int(match[2])


def check_turn(newest: Commit | None, query: str, batch: int, rows: int) -> Commit | None:
    """Return the commit that already stands for this one, nothing when it is new, or refuse what is out of turn."""
    if newest is None:
        if batch > 0:
            raise UsageError(
                f"the log has nothing of this stream before batch {batch}: its checkpoint belongs to another log or "
                "time",
                code="CHECKPOINT_AHEAD",
            )
        return None
    if (newest.query, min(newest.batch, 0)) != (query, min(batch, 0)):
        raise UsageError(
            f"`{newest.publication}` was begun by another query: name it anew, or give back its checkpoint",
            code="PUBLICATION_TAKEN",
        )
    if batch > newest.batch + 1:
        raise UsageError(f"the log ends at batch {newest.batch} and the checkpoint at {batch}", code="CHECKPOINT_AHEAD")
    if batch < newest.batch:
        raise UsageError(f"the log has batch {newest.batch} and the checkpoint {batch}", code="CHECKPOINT_BEHIND")
    if batch == newest.batch:
        if batch >= 0 and rows != newest.events + newest.refused:
            raise UsageError(f"batch {batch} was committed with other rows", code="CHECKPOINT_BEHIND")
        return newest
    return None


def write_commit(commit: Commit, folder: str) -> bytes:
    """Write a commit as the body of a record of the lane that lies in a folder."""
    stream: tuple[Sexp, ...] = ()
    if commit.batch >= 0:
        stream = ((b"stream", commit.query.encode(), b"%d" % commit.batch),)
    return encode(
        (
            b"commit",
            _VERSION,
            (b"publication", commit.publication.encode()),
            *stream,
            (b"evidence", bytes.fromhex(commit.evidence)),
            (b"refused", b"%d" % commit.refused),
            *(_segment_sexp(file, folder) for file in commit.files),
        )
    )


def write_moves(moves: dict[str, Moved], folder: str) -> bytes:
    """Write where segments of a lane lie from now on, as the body of a record."""
    start = len(folder) + 1
    items = (
        (b"segment", old[start:].encode(), at.path[start:].encode(), b"%d" % at.offset) for old, at in moves.items()
    )
    return encode((b"moved", _MOVED, *items))


def read_moves(record: LaneRecord) -> dict[str, Moved | MovedRows]:
    """Read where a record says that segments lie; nothing when it is no such record."""
    folder = record.lane.folder
    try:
        match parse_canonical(record.body, limits=_LIMITS):
            case (b"moved", version, *items) if version in (_MOVED, _MOVED_ROWS):
                return dict(_read_move(item, version, folder) for item in items)
    except EncodingError:
        pass
    return {}


def read_commit(record: LaneRecord, *, before: int) -> Commit | None:
    """Read the commit that a verified record holds; nothing when it is upkeep.

    Args:
        record: Of an event lane.
        before: The stamp of the record before it.
    """
    lane = record.lane
    empty = Commit(
        record.number, "", lane.topic, lane.owner.hex(), "", (), stamp=record.stamp, digest=record.digest.hex(),
        wrong="COMMIT_SHAPE",
    )  # fmt: skip
    try:
        match parse_canonical(record.body, limits=_LIMITS):
            case (b"commit", version, (b"publication", bytes() as name), *rest) if version == _VERSION:
                found = _commit(empty, name.decode(), rest)
            case (b"moved", version, *_) if version in (_MOVED, _MOVED_ROWS):
                return None
            case _:
                return empty
    except (EncodingError, UnicodeDecodeError):
        return empty
    # INVARIANT: stamps grow along a lane, so nothing is dated back behind what was committed.
    if any(not before < file.first_stamp <= file.last_stamp <= record.stamp for file in found.files):
        return replace(found, wrong="STAMP_BEHIND")
    return found


def _commit(empty: Commit, name: str, rest: list[Sexp]) -> Commit:
    query, batch = "", -1
    match rest[:1]:
        case [(b"stream", bytes() as text, bytes() as digits)]:
            query, batch, rest = text.decode(), _number(digits), rest[1:]
    match rest[:2]:
        case [(b"evidence", bytes() as evidence), (b"refused", bytes() as refused)] if len(evidence) == _DIGEST:
            folder = f"type={empty.type_id}/origin={empty.origin}"
            # SECURITY: each segment costs whoever copies or reads it a look, however small it is.
            if len(rest) - 2 > MAX_SEGMENTS:
                raise _shape()
            files = tuple(_read_segment(item, folder) for item in rest[2:])
        case _:
            raise _shape()
    if len({file.path for file in files}) < len(files):
        raise _shape()
    return Commit(
        empty.sequence, name, empty.type_id, empty.origin, evidence.hex(), files, _number(refused), query, batch,
        empty.stamp, empty.digest,
    )  # fmt: skip


def _segment_sexp(file: LogFile, folder: str) -> Sexp:
    tail: tuple[Sexp, ...] = ()
    if file.tail:
        tail = ((b"tail", b"%d" % file.tail, bytes.fromhex(file.tail_digest)),)
    return (
        b"segment",
        (b"format", COLUMNS if file.tail else FORMAT),
        (b"name", file.path[len(folder) + 1 :].encode()),
        (b"digest", bytes.fromhex(file.digest)),
        (b"size", b"%d" % file.size),
        *tail,
        (b"parcels", b"%d" % file.parcels),
        (b"events", b"%d" % file.events),
        (b"stamps", b"%d" % file.first_stamp, b"%d" % file.last_stamp),
        (b"bases", bytes.fromhex("".join(file.bases))),
    )


def _read_segment(item: Sexp, folder: str) -> LogFile:
    tail, tail_digest = 0, b""
    match item:
        case (b"segment", (b"format", form), *rest) if form == FORMAT:
            pass
        case (
            b"segment",
            (b"format", form),
            named,
            whole,
            sized,
            (b"tail", bytes() as octets, bytes() as tail_digest),
            *more,
        ) if form == COLUMNS and len(tail_digest) == _DIGEST and (tail := _number(octets)) > 0:
            rest = [named, whole, sized, *more]
        case _:
            raise _shape()
    match rest:
        case [
            (b"name", bytes() as name),
            (b"digest", bytes() as digest),
            (b"size", bytes() as size),
            (b"parcels", bytes() as parcels),
            (b"events", bytes() as events),
            (b"stamps", bytes() as first, bytes() as last),
            (b"bases", bytes() as bases),
        ] if len(digest) == _DIGEST and len(bases) == _BASE * _number(parcels) and tail <= _number(size):
            return LogFile(
                _path(name, folder), _number(size), digest.hex(), _number(parcels), _number(events), _number(first),
                _number(last), tuple(bases[at : at + _BASE].hex() for at in range(0, len(bases), _BASE)), tail,
                tail_digest.hex(),
            )  # fmt: skip
    raise _shape()


def _read_move(item: Sexp, version: Sexp, folder: str) -> tuple[str, Moved | MovedRows]:
    match item:
        case (b"segment", bytes() as old, bytes() as new, bytes() as offset) if version == _MOVED:
            return _path(old, folder), Moved(_path(new, folder), _number(offset))
        case (b"segment", bytes() as old, bytes() as new, bytes() as group, bytes() as rows) if version == _MOVED_ROWS:
            return _path(old, folder), MovedRows(_path(new, folder), _number(group), rows.hex())
    raise _shape()


def _path(name: bytes, folder: str) -> str:
    text = name.decode("ascii", "replace")
    if not _NAME.fullmatch(text):
        raise _shape()
    return f"{folder}/{text}"


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 16:
        raise _shape()
    return int(digits)


def _shape() -> EncodingError:
    return EncodingError("not a commit", code="COMMIT_SHAPE")
