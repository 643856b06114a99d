"""What the honest publisher does with its own lane beside publishing: compaction, expiry, sweeping, migration.

Its disk may fail on the way, once: the caretaker is told so by an error, and does the same thing again later.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
from stage import PEOPLE, Stage, at

from maia.encryption import parse_parcel, verify_parcel
from maia.errors import MaiaError
from maia.kernel import event_ids, event_name, instant_at
from maia.log import BEGINNING, Commit, LogFile, compact, expire, migrate, read_place, sweep
from maia.log.numbered import NumberedRecords

TARGETS = (1 << 12, 1 << 14, 1 << 20)
CALLS = ("fsync", "link", "replace", "unlink", "open")


class Caretaker:
    """Keeps the lanes of ``s`` in order."""

    def __init__(self, stage: Stage) -> None:
        """Work on the lanes of a stage."""
        self._stage = stage

    def ending(self, target: int) -> tuple[datetime, set[str]]:
        """Choose what is to expire, of what the honest reader has passed: everything before an instant, its events."""
        cut, gone = at(0), set[str]()
        commits = self._stage.lanes_commits()
        for commit in commits[: target % (len(commits) + 1)]:
            if commit.sequence > read_place(self._stage.after.get(commit.lane, BEGINNING))[0].number:
                break
            cut, gone = instant_at(commit.stamp) + timedelta(milliseconds=1), gone | events_of(commit)
        return cut, gone

    def tidy(self, how: str, target: int, before: datetime) -> None:
        """Do one kind of upkeep.

        Args:
            how: Which kind.
            target: How large files become, by its place in `TARGETS`.
            before: What is older expires.

        Raises:
            MaiaError: The lane is not as its owner knows it, or the disk refused.
        """
        stage = self._stage
        match how:
            case "compact":
                compact(stage.s.log, stage.lanes, at=at(stage.now), target=TARGETS[target % len(TARGETS)])
            case "sweep":
                sweep(stage.s.log, stage.lanes, keep_newer_than=datetime.now(UTC) + timedelta(days=1))
            case _:
                expire(stage.s.log, stage.lanes, before=before, at=at(stage.now))

    def migrate(self, source: str, number: int) -> None:
        """Let somebody plant an old log in the name of ``s``, and ``s`` take over what is its own there.

        Raises:
            MaiaError: The old log is damaged, or the disk refused.
        """
        stage = self._stage
        origin = PEOPLE["sb"].public_key.key_id.hex()
        found = sorted(stage.lane_folder(source).glob("date=*/*.parquet"))
        if found:
            self._plant(found[number % len(found)], origin)
        migrate(stage.s.log, stage.lanes, origin, at=at(stage.now), without_damaged=True)

    def _plant(self, segment: Path, origin: str) -> None:
        stage = self._stage
        type_id = stage.fixed.event_type.type_id.hex()
        records = NumberedRecords(stage.log / "_commits", "commit {}")
        number = records.latest() + 1
        path = stage.log / f"type={type_id}" / "date=2026-01-01" / f"old-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(segment, path)
        file = _file_of(stage, path)
        if file is None:
            return
        made = Commit(number, f"old{number}", type_id, origin, "00" * 32, (file,), stamp=file.last_stamp)
        value = asdict(made)
        for name in ("sequence", "digest", "wrong"):
            value.pop(name, None)
        records.put(number, value, records.digest(number - 1))


def _file_of(stage: Stage, path: Path) -> LogFile | None:
    """Say of a segment what an old commit says of it."""
    data = path.read_bytes()
    try:
        headers = [
            verify_parcel(parse_parcel(memoryview(item))).header
            for item in pq.read_table(path).column("parcel").to_pylist()
        ]
    except (OSError, ValueError, MaiaError):
        return None
    stamps = [header.stamp for header in headers]
    return LogFile(
        path.relative_to(stage.log).as_posix(), len(data), hashlib.sha256(data).hexdigest(), len(headers),
        sum(header.count for header in headers), min(stamps), max(stamps),
        tuple(header.event_base.hex() for header in headers),
    )  # fmt: skip


def events_of(commit: Commit) -> set[str]:
    """Give the names of the events of a commit; a publication of the stage is one parcel."""
    origin = bytes.fromhex(commit.origin)
    return {
        name
        for file in commit.files
        for base in file.bases
        for name in event_ids(event_name(origin, bytes.fromhex(base)), range(file.events))
    }


class DiskError(OSError):
    """What a failing disk says."""


@contextmanager
def failing(after: int) -> Iterator[Callable[[], bool]]:
    """Let the so-many-th call that reaches the disk fail, and none after it; tell in the end whether one did."""
    left = [after]
    hit: list[str] = []

    def of(name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def made(*args: Any, **named: Any) -> Any:
            if name == "open" and not (isinstance(args[0], str) and args[1] & os.O_DIRECTORY == 0):
                return call(*args, **named)
            left[0] -= 1
            if left[0] == 0:
                hit.append(name)
                raise DiskError(errno.EIO, os.strerror(errno.EIO))
            return call(*args, **named)

        return made

    with patch.multiple(os, **{name: of(name) for name in CALLS}):
        yield lambda: bool(hit)
