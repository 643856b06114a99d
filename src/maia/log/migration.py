"""Making lanes of a log of the format before them: each broker takes over what it published itself.

    type=<id>/date=<day>/<name>.parquet      parcels, as they were
    _commits/<number>.json                   what one publication added, unsigned
    _upkeep/<number>.json                    where files moved to, what had expired

Rules kept here:

- a broker signs what its own old commits name, after the file was found to be what was committed; of other brokers'
  commits it says that they are there;
- what is damaged or missing stops it before anything is signed, unless it is said that this shall be left out. A
  damaged file may still be brought back, and is taken over then unless the lane has gone on: stamps grow;
- nothing of the old log is removed, so that every broker can do it, in any order, and again after being killed: what
  was taken over is recognised by its events;
- SECURITY: that something has expired or lies elsewhere now is nobody's word either. What lies where it was committed
  is taken over, whatever is said of it, and what is said to have expired and is not there is told as such;
- SECURITY: the old log is nobody's word, and anybody may have written to it. Only parcels that this broker signed are
  taken over, each event once, in the order of their own stamps and on the evidence that they name themselves. What an
  old commit says beside names nothing that would count: no stamp, no evidence, no publication without events;
- stamps grow along a lane. Commits that were made at the same time are taken over in parts, one behind the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

from maia.encryption import verify_parcel
from maia.errors import EncodingError, MaiaError, MalformedError, VerificationError
from maia.kernel import LoggedParcel, instant_at, logged_rows
from maia.log.commits import Commit, LogFile, MovedRows
from maia.log.directory import LogDirectory
from maia.log.moved_rows import read_moved_rows
from maia.log.numbered import NumberedRecords, Record
from maia.log.own_lanes import OwnLanes
from maia.log.segment_writer import PartitionWriter
from maia.log.segments import check_segment, read_segment

_NAMED = 20
"""How many damaged files a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What migration did.

    Attributes:
        commits: Commits that were taken over now.
        events: Events in them.
        others: Commits of other brokers, which only they can sign, by broker in hex.
        damaged: Files that were not what was committed; they were left out, as was said.
        expired: Files that are missing, and of which an unsigned record says that they have expired; left out as well.
    """

    commits: int = 0
    events: int = 0
    others: dict[str, int] | None = None
    damaged: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()


def migrate(log: LogDirectory, own: OwnLanes, origin: str, *, at: datetime, without_damaged: bool = False) -> Migrated:
    """Take over what a broker published in the old format.

    Args:
        log: The log.
        own: The broker's lanes.
        origin: The broker, in hex.
        at: Now.
        without_damaged: Leave out what is damaged or missing, instead of taking nothing over.

    Raises:
        EncodingError: The old records are damaged, or a file is, which it names: ``LOG_FILES_DAMAGED``.
        MaiaError: The system refused; do it again.
    """
    moves, expired = _upkeep(log.path, without_damaged=without_damaged)
    others: dict[str, int] = {}
    mine: dict[str, list[Commit]] = {}
    for commit in _old_commits(log.path, without_damaged=without_damaged):
        if commit.origin != origin:
            others[commit.origin] = others.get(commit.origin, 0) + 1
        else:
            mine.setdefault(commit.type_id, []).append(commit)
    damaged: list[str] = []
    gone: list[str] = []
    ready: list[_Run] = []
    for type_id, commits in mine.items():
        parcels: list[_Parcel] = []
        seen = own.bases(type_id)
        for commit in commits:
            for file in commit.files:
                try:
                    found = _found(log, commit, file, moves.get(file.path))
                except (MaiaError, OSError) as error:
                    missing = commit.sequence <= expired and getattr(error, "code", "") == "LOG_FILE_MISSING"
                    (gone if missing else damaged).append(file.path)
                    continue
                for parcel in found:
                    # SECURITY: anybody could name a file of this broker in another commit; its events count once.
                    if parcel.base not in seen:
                        seen.add(parcel.base)
                        parcels.append(parcel)
        ready += _runs(own, type_id, parcels)
    if (damaged or gone) and not without_damaged:
        raise _damaged(damaged, gone)
    for made in ready:
        files = tuple(_copy(log, own, made.type_id, source) for source in _sources(made.parcels))
        own.take_over(replace(made.commit, files=files), at=at)
    empty = _empty_batches(own, [commit for commits in mine.values() for commit in commits], at=at)
    return Migrated(
        commits=len({(made.type_id, made.commit.sequence) for made in ready}) + empty,
        events=sum(parcel.events for made in ready for parcel in made.parcels),
        others=others,
        damaged=tuple(damaged),
        expired=tuple(gone),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parcel:
    """A parcel that this broker signed: what its own header says of it, and where it lies."""

    commit: Commit
    file: LogFile
    moved: MovedRows | None
    row: int
    base: str
    stamp: int
    events: int
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Parcels of one commit that follow each other in the lane, and the commit that will name them."""

    type_id: str
    commit: Commit
    parcels: tuple[_Parcel, ...]


def _found(log: LogDirectory, commit: Commit, file: LogFile, moved: MovedRows | None) -> list[_Parcel]:
    """Read the parcels of an old file where it was committed, or else where it is said to lie."""
    try:
        return _parcels(log, commit, file, None)
    except (MaiaError, OSError):
        if moved is None:
            raise
        return _parcels(log, commit, file, moved)


def _parcels(log: LogDirectory, commit: Commit, file: LogFile, moved: MovedRows | None) -> list[_Parcel]:
    """Read the parcels of an old file that this broker signed; nothing else that is said of them is believed."""
    found: list[_Parcel] = []
    for row, item in enumerate(_rows(log, file, moved)):
        try:
            header = verify_parcel(item.parse()).header
        except (MalformedError, VerificationError):
            continue  # nobody's, so nothing is lost with it
        if header.origin.hex() == commit.origin:
            found.append(
                _Parcel(
                    commit=commit, file=file, moved=moved, row=row, base=header.event_base.hex(), stamp=header.stamp,
                    events=header.count, evidence=header.evidence.hex(),
                )
            )  # fmt: skip
    return found


def _rows(log: LogDirectory, file: LogFile, moved: MovedRows | None) -> Iterator[LoggedParcel]:
    return read_segment(log.store, file) if moved is None else logged_rows(read_moved_rows(log.store, file, moved))


def _runs(own: OwnLanes, type_id: str, parcels: Sequence[_Parcel]) -> list[_Run]:
    """Put parcels in the order of their stamps, and those of one commit and evidence together.

    The first run of a commit has its name, and all of its rows as a number, so that a retry finds them.
    """
    found: list[_Run] = []
    named: set[tuple[str, int]] = set()
    ordered = sorted(parcels, key=lambda parcel: parcel.stamp)
    for (sequence, evidence), items in groupby(ordered, key=lambda item: (item.commit.sequence, item.evidence)):
        run = tuple(items)
        old, events = run[0].commit, sum(parcel.events for parcel in run)
        made = replace(old, evidence=evidence, files=(), stamp=run[-1].stamp)
        known = own.find(old.publication)
        if (old.publication, old.batch) in named or (known is not None and known.batch >= old.batch):
            name = f"{old.publication} ({sequence}, {run[0].base[:16]})"
            made = replace(made, publication=name, query="", batch=-1, refused=0)
        else:
            named.add((old.publication, old.batch))
            all_ = sum(parcel.events for parcel in parcels if parcel.commit.sequence == sequence)
            made = replace(made, refused=old.refused + all_ - events)
        found.append(_Run(type_id=type_id, commit=made, parcels=run))
    return found


def _sources(parcels: Sequence[_Parcel]) -> list[list[_Parcel]]:
    """Put the parcels of a run together by the file in which they lie."""
    found: dict[str, list[_Parcel]] = {}
    for parcel in parcels:
        found.setdefault(parcel.file.path, []).append(parcel)
    return list(found.values())


def _empty_batches(own: OwnLanes, commits: Sequence[Commit], *, at: datetime) -> int:
    """Say of micro-batches without events that they were, where a stream goes on with the next."""
    done = 0
    for commit in commits:
        known = own.find(commit.publication) if commit.batch > 0 else None
        # SECURITY: nobody but its own stream has a name by this; whoever could write to the log could claim any.
        if known is not None and (known.query, known.batch + 1) == (commit.query, commit.batch) and not commit.files:
            own.commit(
                commit.publication, known.type_id, (), evidence=known.evidence, refused=commit.refused,
                query=commit.query, batch=commit.batch, at=at,
            )  # fmt: skip
            done += 1
    return done


def _damaged(damaged: Sequence[str], gone: Sequence[str]) -> EncodingError:
    paths = [*(f"`{path}`" for path in damaged), *(f"`{path}` (said to have expired)" for path in gone)]
    more = len(paths) - _NAMED
    names = ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return EncodingError(
        f"nothing was taken over, for these are missing or not what was committed: {names}; bring them back from a "
        "copy, or leave what they held out with `--without-damaged`",
        code="LOG_FILES_DAMAGED",
    )


def _old_commits(root: Path, *, without_damaged: bool) -> Iterator[Commit]:
    for record in _records(root / "_commits", "commit {} of the log", without_damaged=without_damaged):
        try:
            yield _old_commit(record)
        except EncodingError:
            if not without_damaged:
                raise


def _records(folder: Path, what: str, *, without_damaged: bool) -> Iterator[Record]:
    """Give the records of a folder, or those of them that can be read, whatever lies between them."""
    records = NumberedRecords(folder, what)
    try:
        yield from _readable(records) if without_damaged else records.walk()
    except EncodingError as error:
        raise EncodingError(
            f"{error.message}; bring it back from a copy, remove what is none, or leave it out with "
            "`--without-damaged`",
            code=error.code,
        ) from error


def _readable(records: NumberedRecords) -> Iterator[Record]:
    for number in records.numbers():
        with suppress(EncodingError):
            yield records.read(number)


def _old_commit(record: Record) -> Commit:
    try:
        value = dict(record.value)
        items = value.pop("files")
        files = tuple(LogFile(**{**item, "bases": tuple(item["bases"])}) for item in items)  # type: ignore[attr-defined]
        return Commit(record.number, files=files, **value)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED") from error


def _upkeep(root: Path, *, without_damaged: bool) -> tuple[dict[str, MovedRows], int]:
    moves: dict[str, MovedRows] = {}
    expired = -1
    for record in _records(root / "_upkeep", "upkeep record {} of the log", without_damaged=without_damaged):
        try:
            if record.value["kind"] == "move":
                files: dict[str, list[object]] = record.value["files"]  # type: ignore[assignment]
                moves |= {old: MovedRows(str(item[0]), int(str(item[1])), str(item[2])) for old, item in files.items()}
            else:
                expired = max(expired, int(str(record.value["upto"])))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            if without_damaged:
                continue
            raise EncodingError(f"upkeep record {record.number} is damaged", code="COMMIT_DAMAGED") from error
    return moves, expired


def _copy(log: LogDirectory, own: OwnLanes, type_id: str, parcels: Sequence[_Parcel]) -> LogFile:
    """Put parcels of an old file into the folder of the lane, byte for byte where it holds nothing else."""
    folder, file, moved = own.writer(type_id).lane.folder, parcels[0].file, parcels[0].moved
    store = log.store
    day = instant_at(parcels[0].stamp).date().isoformat()
    rows = [parcel.row for parcel in parcels]
    true = replace(
        file, parcels=len(parcels), events=sum(parcel.events for parcel in parcels),
        first_stamp=min(parcel.stamp for parcel in parcels), last_stamp=max(parcel.stamp for parcel in parcels),
        bases=tuple(parcel.base for parcel in sorted(parcels, key=lambda parcel: parcel.row)),
    )  # fmt: skip
    if moved is None and true == file:
        check_segment(store, file)
        target = f"{folder}/date={day}/{file.digest[:40]}.parquet"
        store.put(target, store.get(file.path, limit=file.size))
        return replace(file, path=target)
    stem = hashlib.sha256(f"{file.path} {file.digest} {rows}".encode()).hexdigest()[:40]
    store.delete(f"{folder}/date={day}/{stem}.parquet")
    with PartitionWriter(store, f"{folder}/date={day}/{stem}.parquet") as writer:
        for row, item in enumerate(_rows(log, file, moved)):
            if row in rows:
                writer.add(item.parse())
        made = writer.close()
    if made is None:
        raise EncodingError("a file without parcels", code="LOG_FILE_DAMAGED")
    return made
