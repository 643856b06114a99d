"""Making lanes of a log of the format before them: each broker takes over what it published itself.

    type=<id>/date=<day>/<name>.parquet      parcels, as they were
    _commits/<number>.json                   what one publication added, unsigned
    _upkeep/<number>.json                    where files moved to, what had expired

Rules kept here:

- a broker signs what its own old commits name, after the file was found to be what was committed; of other brokers'
  commits it says that they are there;
- what is damaged stops it before anything is signed, unless it is said that this shall be left out: what was taken over
  without a file counts without it for ever, and a damaged file may still be brought back;
- nothing of the old log is removed, so that every broker can do it, in any order, and again after being killed: what
  was taken over is recognised by the name of its publication;
- stamps grow along a lane. Commits whose stamps overlap, since they were made at the same time, become one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from maia.errors import EncodingError, MaiaError
from maia.log.commits import Commit, LogFile, Moved
from maia.log.directory import LogDirectory, OwnLanes
from maia.log.numbered import NumberedRecords
from maia.log.segments import PartitionWriter, check_segment, read_moved
from maia.log.store import DirectoryStore

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
    """

    commits: int = 0
    events: int = 0
    others: dict[str, int] | None = None
    damaged: tuple[str, ...] = ()


def migrate(log: LogDirectory, own: OwnLanes, origin: str, *, at: datetime, without_damaged: bool = False) -> Migrated:
    """Take over what a broker published in the old format.

    Args:
        log: The log.
        own: The broker's lanes.
        origin: The broker, in hex.
        at: Now.
        without_damaged: Leave damaged files out, instead of taking nothing over.

    Raises:
        EncodingError: The old records are damaged, or a file is, which it names: ``LOG_FILES_DAMAGED``.
        MaiaError: The system refused; do it again.
    """
    moves, expired = _upkeep(log.path)
    others: dict[str, int] = {}
    mine: dict[str, list[Commit]] = {}
    for commit in _old_commits(log.path, after=expired):
        if commit.origin != origin:
            others[commit.origin] = others.get(commit.origin, 0) + 1
        elif own.find(commit.publication) is None or commit.batch > (_batch(own, commit.publication)):
            mine.setdefault(commit.type_id, []).append(commit)
    damaged: list[str] = []
    ready: list[tuple[str, list[Commit], int, list[LogFile]]] = []
    for type_id, commits in mine.items():
        for group, end in _overlapping(commits):
            files: list[LogFile] = []
            for file in (file for commit in group for file in commit.files):
                try:
                    files.append(_copy(log, own, type_id, file, moves.get(file.path)))
                except (MaiaError, OSError):
                    damaged.append(file.path)
            ready.append((type_id, group, end, files))
    if damaged and not without_damaged:
        raise _damaged(damaged)
    for type_id, group, end, files in ready:
        for number, commit in enumerate(group):
            kept = () if number else tuple(files)
            # The others of a group keep their names, and their rows as a number, so that a retry finds them.
            rows = commit.refused + (commit.events if number else 0)
            own.commit(
                commit.publication, type_id, kept, evidence=commit.evidence, refused=rows, query=commit.query,
                batch=commit.batch, at=at, stamp=end + number,
            )  # fmt: skip
    return Migrated(
        commits=sum(len(group) for _, group, _, _ in ready),
        events=sum(file.events for _, _, _, files in ready for file in files),
        others=others,
        damaged=tuple(damaged),
    )


def _damaged(paths: Sequence[str]) -> EncodingError:
    more = len(paths) - _NAMED
    names = ", ".join(f"`{path}`" for path in paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return EncodingError(
        f"nothing was taken over, for these are not what was committed: {names}; bring them back from a copy, or leave "
        "what they held out for ever with `--without-damaged`",
        code="LOG_FILES_DAMAGED",
    )


def _batch(own: OwnLanes, publication: str) -> int:
    known = own.find(publication)
    return -1 if known is None else known.batch


def _old_commits(root: Path, *, after: int) -> Iterator[Commit]:
    records = NumberedRecords(root / "_commits", "commit {} of the log")
    for record in records.walk(after=after):
        try:
            value = dict(record.value)
            items = value.pop("files")
            files = tuple(LogFile(**{**item, "bases": tuple(item["bases"])}) for item in items)  # type: ignore[attr-defined]
            yield Commit(record.number, files=files, **value)  # type: ignore[arg-type]
        except (ValueError, TypeError, KeyError) as error:
            raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED") from error


def _upkeep(root: Path) -> tuple[dict[str, Moved], int]:
    moves: dict[str, Moved] = {}
    expired = -1
    for record in NumberedRecords(root / "_upkeep", "upkeep record {} of the log").walk():
        try:
            if record.value["kind"] == "move":
                files: dict[str, list[object]] = record.value["files"]  # type: ignore[assignment]
                moves |= {old: Moved(str(item[0]), int(str(item[1])), str(item[2])) for old, item in files.items()}
            else:
                expired = max(expired, int(str(record.value["upto"])))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise EncodingError(f"upkeep record {record.number} is damaged", code="COMMIT_DAMAGED") from error
    return moves, expired


def _overlapping(commits: Sequence[Commit]) -> Iterator[tuple[list[Commit], int]]:
    """Put commits in the order of their stamps; those that overlap are of one group, with the stamp that it ends with.

    A group has room for a record of each of its commits before the next one begins.
    """
    group: list[Commit] = []
    end = 0
    for first, commit in _ordered(commits):
        if group and first > end + len(group):
            yield group, end
            group = []
        group.append(commit)
        end = max([end, *(file.last_stamp for file in commit.files)])
    if group:
        yield group, end


def _ordered(commits: Sequence[Commit]) -> list[tuple[int, Commit]]:
    """Sort commits by their first stamp; one without files stays behind the one before it."""
    found, last = [], 0
    for commit in commits:
        first = min((file.first_stamp for file in commit.files), default=last)
        found.append((first, commit))
        last = max([last, *(file.last_stamp for file in commit.files)])
    return sorted(found, key=lambda item: (item[0], item[1].sequence))


def _copy(log: LogDirectory, own: OwnLanes, type_id: str, file: LogFile, moved: Moved | None) -> LogFile:
    """Put the parcels of an old file into the folder of the lane, byte for byte where they were not moved."""
    folder = own.writer(type_id).lane.folder
    _, day, name = file.path.split("/")
    target = f"{folder}/{day}/{name}"
    store: DirectoryStore = log.store
    if moved is None:
        check_segment(store, file)
        data = store.get(file.path, limit=file.size)
        store.put(target, data)
        return replace(file, path=target)
    stem = hashlib.sha256(f"{file.path} {moved.digest}".encode()).hexdigest()[:40]
    store.delete(f"{folder}/{day}/{stem}.parquet")
    with PartitionWriter(store, f"{folder}/{day}/{stem}.parquet") as writer:
        for row in read_moved(store, file, moved).to_pylist():
            writer.add(row)
        made = writer.close()
    if made is None:
        raise EncodingError("a file without parcels", code="LOG_FILE_DAMAGED")
    return made
