"""Upkeep records: where compaction put the parcels of old files, and up to which commit the log has expired.

    _upkeep/<number>.json       what one step of upkeep changed

Commits never change, so readers that resume know the log again. What changes is where the parcels of a committed file
lie, and that is said here. Rules kept here:

- records are numbered, whole, synced and chained like commits (`numbered`); who loses the race for a number has changed
  nothing;
- a moved file's rows are named by their digest, so a reader that follows a record finds damage as it would in the file;
- expiry only grows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import EncodingError
from maia.log.numbered import NO_RECORD, NumberedRecords, Record, named_errors

_FOLDER = "_upkeep"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parcels of a committed file lie now: one row group of a larger file, and the digest of its rows."""

    path: str
    group: int
    digest: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """How old a parcel may be, and which could be repetitions of what has expired; see `repeats`.

    Attributes:
        newest: Later than every stamp of what has expired.
        oldest: Not later than any stamp of what was still there when something last expired.
        names: The first commit whose names of events must be known.
    """

    newest: int = 0
    oldest: int = 0
    names: int = 0


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What all records up to a number say together."""

    number: int = -1
    digest: str = NO_RECORD
    expired: int = -1
    places: Mapping[str, Place] = field(default_factory=dict)
    horizon: Horizon = Horizon()


class UpkeepRecords:
    """The upkeep records of a log."""

    def __init__(self, root: Path) -> None:
        """Use the log's directory."""
        self._root = root
        self._records = NumberedRecords(root / _FOLDER, "upkeep record {} of the log")
        self._seen = Upkeep()

    def load(self) -> Upkeep:
        """Read what was recorded since this object last looked; all of it when the log is not the one it was.

        Raises:
            EncodingError: A record is missing or damaged.
        """
        seen = self._seen
        latest = self._records.latest()
        if seen.number > latest or self._records.digest(seen.number) != seen.digest:
            seen = Upkeep()
        if seen.number < latest:
            seen = _after(seen, self._records.walk(after=seen.number))
        self._seen = seen
        return seen

    def move(self, known: Upkeep, places: Mapping[str, Place]) -> bool:
        """Say where files lie from now on; false when other upkeep came first."""
        files = {old: [place.path, place.group, place.digest] for old, place in places.items()}
        return self._records.put(known.number + 1, {"kind": "move", "files": files}, known.digest)

    def expire(self, known: Upkeep, upto: int, moved: Iterable[str], horizon: Horizon) -> bool:
        """Say that a commit and all before it have expired, and which moved files were theirs; false as above."""
        value: dict[str, object] = {"kind": "expire", "upto": upto, "moved": sorted(moved), "horizon": asdict(horizon)}
        return self._records.put(known.number + 1, value, known.digest)


def _after(known: Upkeep, records: Iterable[Record]) -> Upkeep:
    places, expired, number, digest = dict(known.places), known.expired, known.number, known.digest
    horizon = known.horizon
    for record in records:
        try:
            value = record.value
            files: dict[str, list[object]] = value["files"] if value["kind"] == "move" else {}  # type: ignore[assignment]
            places |= {old: _place(item) for old, item in files.items()}
            if value["kind"] != "move":
                expired = max(expired, int(value["upto"]))  # type: ignore[call-overload]
                horizon = _later(horizon, value["horizon"])
                for old in value["moved"]:  # type: ignore[attr-defined]
                    places.pop(old, None)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"upkeep record {record.number} of the log is damaged"
            raise EncodingError(what, code="COMMIT_DAMAGED") from error
        number, digest = record.number, record.digest
    return Upkeep(number, digest, expired, places, horizon)


def _later(known: Horizon, value: object) -> Horizon:
    told = Horizon(**value)  # type: ignore[arg-type]
    return Horizon(
        *(max(int(getattr(known, name)), int(getattr(told, name))) for name in ("newest", "oldest", "names"))
    )


def _place(item: list[object]) -> Place:
    path, group, digest = item
    if not isinstance(path, str) or ".." in path or path.startswith("/") or not isinstance(group, int):
        raise ValueError
    return Place(path, group, str(digest))


def read_place(root: Path, place: Place) -> pa.Table:
    """Read the rows of one moved file, after comparing their digest.

    Raises:
        FileNotFoundError: The file is not there: it was moved again, or has expired.
        EncodingError: The rows are not those that were moved: ``LOG_FILE_DAMAGED``.
        UnavailableError: The system refused.
    """
    path = root / place.path
    with named_errors(path), path.open("rb") as source:
        try:
            with pq.ParquetFile(source) as file:
                table = file.read_row_group(place.group)
        except (pa.ArrowException, IndexError, OSError) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise _damaged(place) from error
    if rows_digest(table) != place.digest:
        raise _damaged(place)
    return table


def rows_digest(table: pa.Table) -> str:
    """Name rows of parcels by one hash over all their cells."""
    found = hashlib.sha256()
    for batch in table.to_batches():
        for row in range(batch.num_rows):
            for column in batch.columns:
                cell = column[row].as_py()
                data = cell if isinstance(cell, bytes) else b"%d" % cell
                found.update(len(data).to_bytes(8, "big"))
                found.update(data)
    return found.hexdigest()


def _damaged(place: Place) -> EncodingError:
    return EncodingError(f"the log file `{place.path}` is not what was moved there", code="LOG_FILE_DAMAGED")
