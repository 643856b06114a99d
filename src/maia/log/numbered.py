"""Numbered records: the commits of outboxes, and of logs before lanes. Each is whole, written once, behind the last.

Rules kept here:

- a number exists only with all of its record, synced; it is taken once, whoever races for it, and never changed;
- a record holds a digest of itself and the digest of the record before it, so that a flipped bit, a cut, a swap and a
  record of another time are seen when it is read. This finds damage; it does not stop a liar who may write here.
- what the system refuses (no space, no permission, an input or output error) becomes `UnavailableError`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from maia.errors import EncodingError, UnavailableError

_DIGITS = 12
_MAX_RECORD = 64 << 20
NO_RECORD = "0" * 64
"""Stands for the record before the first."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its own digest and that of the record before it."""

    number: int
    value: dict[str, object]
    previous: str
    digest: str


class NumberedRecords:
    """Records 0, 1, 2 … in a folder."""

    def __init__(self, folder: Path, what: str) -> None:
        """Use a folder, made on the first write. ``what`` names a record in messages (``commit {} of the log``)."""
        self._folder = folder
        self._what = what

    def latest(self) -> int:
        """Return the highest number; -1 when there is none."""
        return max(self.numbers(), default=-1)

    def numbers(self) -> list[int]:
        """List the numbers under which something lies, in order."""
        if not self._folder.is_dir():
            return []
        names = (path.stem for path in self._folder.iterdir() if path.suffix == ".json")
        return sorted(int(name) for name in names if name.isdigit())

    def read(self, number: int) -> Record:
        """Read one record.

        Raises:
            EncodingError: It is missing (``COMMIT_MISSING``) or not what was written (``COMMIT_DAMAGED``).
            UnavailableError: The system refused.
        """
        path = self._folder / _name(number)
        try:
            with named_errors(path), path.open("rb") as file:
                data = file.read(_MAX_RECORD + 1)
        except FileNotFoundError as error:
            raise EncodingError(f"{self._what.format(number)} is missing", code="COMMIT_MISSING") from error
        value, previous = _decode(data)
        if value is None or data != _encode(number, value, previous):
            raise EncodingError(f"{self._what.format(number)} is damaged", code="COMMIT_DAMAGED")
        return Record(number, value, previous, hashlib.sha256(data).hexdigest())

    def walk(self, *, after: int = -1, upto: int | None = None) -> Iterator[Record]:
        """Read records in order, comparing each with what the next says of it.

        Raises:
            EncodingError: One is missing or damaged, or does not follow from the one before.
        """
        end = self.latest() if upto is None else upto
        before = self.digest(after) if after < end else NO_RECORD
        for number in range(after + 1, end + 1):
            record = self.read(number)
            if record.previous != before:
                raise EncodingError(f"{self._what.format(number)} follows from another one", code="COMMIT_DAMAGED")
            before = record.digest
            yield record

    def digest(self, number: int) -> str:
        """Return the digest of a record; of -1, the mark of none."""
        return NO_RECORD if number < 0 else self.read(number).digest

    def written(self, number: int) -> datetime:
        """Tell when the system wrote a record."""
        with named_errors(self._folder):
            return datetime.fromtimestamp((self._folder / _name(number)).stat().st_mtime, UTC)

    def put(self, number: int, value: dict[str, object], previous: str) -> bool:
        """Write a record under a number; false when the number is taken, which changes nothing.

        Raises:
            UnavailableError: The system refused; nothing counts that did not count before.
        """
        with named_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            return write_once(self._folder / _name(number), _encode(number, value, previous))


def write_once(path: Path, data: bytes) -> bool:
    """Create a file whole and synced, or find that its name is taken."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    sync_folder(path.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn what the system says into what Maia says; that a file is not there is left to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "input or output error"
        raise UnavailableError(f"cannot use `{path}`: {reason}", code="FILE_UNAVAILABLE") from error


def _name(number: int) -> str:
    return f"{number:0{_DIGITS}d}.json"


def _decode(data: bytes) -> tuple[dict[str, object] | None, str]:
    if len(data) > _MAX_RECORD:
        return None, ""
    try:
        outer = json.loads(data)
        value, previous = outer["value"], outer["previous"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None, ""
    return (value, previous) if isinstance(value, dict) and isinstance(previous, str) else (None, "")


def _encode(number: int, value: dict[str, object], previous: str) -> bytes:
    body = json.dumps({"number": number, "previous": previous, "value": value}, sort_keys=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps({"number": number, "previous": previous, "sha256": digest, "value": value}).encode()
