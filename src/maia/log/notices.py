"""Notices: signed objects beside the parcels, which members of a network follow by reading the log.

    _notices/<kind>/<hash of the topic>/<number>.notice      one signed object each
    _notices/<kind>/<hash of the topic>/<number>.floor       what lies below this number was forgotten

A topic is a key group's id (rekey messages), a signer's key id (validity statements) or a domain's key id
(certificates). Nothing here is believed: whoever reads a notice verifies the object in it.

Rules kept here:

- the notices of a topic are numbered without gaps. Each is written whole and synced before its number exists, a number
  is taken once, whoever races for it, and it is never changed;
- saying the newest thing again changes nothing, so a writer that was killed says it again without harm;
- a notice holds a digest of itself and of the one before it, and names its kind, topic and number: a flipped bit, a
  cut, a swap and a notice that is missing stop the reader with a named error. This finds damage, not a liar who may
  write here;
- what was forgotten was the oldest, and the newest is never forgotten, so no number comes twice. A reader that was away
  for longer sees it: the first notice it gets is not the next;
- a topic never becomes a path, and files with other names are left alone;
- bodies, topics and what one call reads are bounded.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, UnavailableError, UsageError
from maia.log.numbered import named_errors, sync_folder, write_once

MAX_BODY = 65 << 20
MAX_TOPIC = 256
MAX_TOPICS = 1 << 16
MAX_READ = 10_000
_FOLDER = "_notices"
_DIGITS = 12
_TRIES = 10_000
_STALE_SECONDS = 3600
_NONE = bytes(32)
_LIMITS = SexpLimits(max_bytes=MAX_BODY + 4096, max_depth=3, max_atom=MAX_BODY)


class NoticeKind(StrEnum):
    """What a notice carries."""

    REKEY = "rekey"
    STATEMENT = "statement"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice, undamaged and unverified.

    Attributes:
        kind: What the body is.
        topic: What it is about.
        number: Its place among the notices of the topic.
        body: The signed object.
        digest: Of the notice; the next one names it.
    """

    kind: NoticeKind
    topic: bytes
    number: int
    body: bytes
    digest: bytes


class NoticeLog:
    """The notices of a log."""

    def __init__(self, path: Path | str) -> None:
        """Use a log's directory; it is made when something is written."""
        self.path = Path(path)

    def append(self, kind: NoticeKind, topic: bytes, body: bytes) -> int:
        """Say something about a topic, after all that was said; durable when this returns.

        Returns:
            The notice's number; that of the newest when it says the same.

        Raises:
            UsageError: The topic or the body is too large (``NOTICE_SIZE``), or there are too many topics
                (``NOTICE_TOPICS``).
            EncodingError: The newest notice is damaged.
            UnavailableError: The system refused; nothing counts that did not count before.
        """
        if not 0 < len(topic) <= MAX_TOPIC or len(body) > MAX_BODY:
            raise UsageError("a notice whose topic or body is too large", code="NOTICE_SIZE")
        folder = self._folder(kind, topic)
        with named_errors(folder):
            self._make(kind, folder)
            for _ in range(_TRIES):
                newest = self.latest(kind, topic)
                if newest is not None and newest.body == body:
                    return newest.number
                number, previous = (0, _NONE) if newest is None else (newest.number + 1, newest.digest)
                data = _encode(kind, topic, number, previous, body)
                if write_once(folder / _name(number, "notice"), data):
                    return number
        raise UnavailableError("others keep writing to this topic", code="NOTICE_BUSY")

    def latest(self, kind: NoticeKind, topic: bytes) -> Notice | None:
        """Return the newest notice of a topic, or ``None`` when there is none.

        Raises:
            EncodingError: It is not what was written: ``NOTICE_DAMAGED``.
        """
        return _newest(self._folder(kind, topic), kind)

    def read(self, kind: NoticeKind, topic: bytes, *, after: int = -1, limit: int = 1000) -> tuple[Notice, ...]:
        """Read the notices of a topic in order, after a number; at most so many, the oldest first.

        The first one has a number above ``after + 1`` when those between were forgotten: who needs them alarms.

        Raises:
            EncodingError: One is missing (``NOTICE_MISSING``) or not what was written (``NOTICE_DAMAGED``).
            UsageError: The topic ends before ``after``: this is not the log it was (``NOTICES_BEHIND``).
        """
        if not 0 < limit <= MAX_READ:
            raise UsageError(f"one call reads 1 to {MAX_READ} notices", code="NOTICE_SIZE")
        floor, numbers = self._list(kind, topic)
        if after > (numbers[-1] if numbers else -1):
            raise UsageError(f"notice {after} was read here, and the notices end earlier", code="NOTICES_BEHIND")
        found: list[Notice] = []
        before: bytes | None = None
        for number in (number for number in numbers if number > after):
            expected = found[-1].number + 1 if found else max(floor, after + 1)
            if number != expected:
                raise EncodingError(f"notice {expected} of the log is missing", code="NOTICE_MISSING")
            if len(found) == limit:
                break
            try:
                notice, previous = _read(self._folder(kind, topic), kind, number)
            except FileNotFoundError as error:
                if number >= self._list(kind, topic)[0]:
                    raise EncodingError(f"notice {number} of the log is missing", code="NOTICE_MISSING") from error
                # It was forgotten while we read: start anew above the new floor.
                return self.read(kind, topic, after=after, limit=limit)
            if before is not None and previous != before:
                raise EncodingError(f"notice {number} of the log follows from another one", code="NOTICE_DAMAGED")
            before = notice.digest
            found.append(notice)
        return tuple(found)

    def has(self, kind: NoticeKind, topic: bytes, number: int) -> bool:
        """Tell whether a notice is there, for a look that costs next to nothing; one that was forgotten is not."""
        return (self._folder(kind, topic) / _name(number, "notice")).exists()

    def forget(self, kind: NoticeKind, topic: bytes, *, before: int) -> int:
        """Remove the notices below a number, but never the newest; return how many went.

        Raises:
            UnavailableError: The system refused; a part may have gone, the oldest first.
        """
        folder = self._folder(kind, topic)
        floor, numbers = self._list(kind, topic)
        if not numbers or min(before, numbers[-1]) <= floor:
            return 0
        floor = min(before, numbers[-1])
        with named_errors(folder):
            # The floor is durable before anything goes, so that no crash makes forgetting look like damage.
            write_once(folder / _name(floor, "floor"), b"")
            gone = [number for number in _numbers(folder, "notice") if number < floor]
            for number in gone:
                _remove(folder / _name(number, "notice"))
            for number in _numbers(folder, "floor"):
                if number < floor:
                    _remove(folder / _name(number, "floor"))
            for part in folder.glob(".*.part"):
                with suppress(FileNotFoundError):
                    if part.stat().st_mtime < time.time() - _STALE_SECONDS:
                        _remove(part)
            sync_folder(folder)
        return len(gone)

    def _folder(self, kind: NoticeKind, topic: bytes) -> Path:
        return self.path / _FOLDER / kind.value / hashlib.sha256(topic).hexdigest()

    def _folders(self, kind: NoticeKind) -> Iterator[Path]:
        top = self.path / _FOLDER / kind.value
        if not top.is_dir():
            return
        with named_errors(top):
            folders = sorted(path for path in top.iterdir() if len(path.name) == 2 * len(_NONE))
        if len(folders) > MAX_TOPICS:
            raise UsageError(f"a log has at most {MAX_TOPICS} topics of a kind", code="NOTICE_TOPICS")
        yield from folders

    def _make(self, kind: NoticeKind, folder: Path) -> None:
        """Make a topic's folder, whose name survives a power cut before anything in it counts."""
        if folder.is_dir():
            return
        if sum(1 for _ in self._folders(kind)) >= MAX_TOPICS:
            raise UsageError(f"a log has at most {MAX_TOPICS} topics of a kind", code="NOTICE_TOPICS")
        folder.mkdir(parents=True, exist_ok=True)
        for parent in (folder.parent, folder.parent.parent, self.path):
            sync_folder(parent)

    def _list(self, kind: NoticeKind, topic: bytes) -> tuple[int, list[int]]:
        """Return the floor, and the numbers that count."""
        folder = self._folder(kind, topic)
        while True:
            numbers = _numbers(folder, "notice")
            # The floor is read after the numbers: what went between is below it.
            floor = max(_numbers(folder, "floor"), default=0)
            counting = [number for number in numbers if number >= floor]
            if counting or not numbers:
                return floor, counting


def _newest(folder: Path, kind: NoticeKind) -> Notice | None:
    for _ in range(_TRIES):
        numbers = _numbers(folder, "notice")
        if not numbers:
            return None
        # Between the two, a newer one may have come and this one been forgotten.
        with suppress(FileNotFoundError):
            return _read(folder, kind, numbers[-1])[0]
    raise UnavailableError("others keep writing to this topic", code="NOTICE_BUSY")


def _read(folder: Path, kind: NoticeKind, number: int) -> tuple[Notice, bytes]:
    path = folder / _name(number, "notice")
    with named_errors(path), path.open("rb") as file:
        data = file.read(_LIMITS.max_bytes + 1)
    try:
        expression = parse_canonical(data, limits=_LIMITS)
    except EncodingError:
        expression = ()
    match expression:
        case (b"notice", bytes(), bytes() as topic, bytes(), bytes() as previous, bytes() as body, bytes()) if (
            data == _encode(kind, topic, number, previous, body) and hashlib.sha256(topic).hexdigest() == folder.name
        ):
            digest = hashlib.sha256(data).digest()
            return Notice(kind=kind, topic=topic, number=number, body=body, digest=digest), previous
        case _:
            raise EncodingError(f"notice {number} of the log is damaged", code="NOTICE_DAMAGED")


def _numbers(folder: Path, suffix: str) -> list[int]:
    try:
        with named_errors(folder):
            names = os.listdir(folder)  # noqa: PTH208 - names alone, of thousands
    except FileNotFoundError:
        return []
    stems = (name[:_DIGITS] for name in names if name[_DIGITS:] == f".{suffix}")
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def _name(number: int, suffix: str) -> str:
    return f"{number:0{_DIGITS}d}.{suffix}"


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


def _encode(kind: NoticeKind, topic: bytes, number: int, previous: bytes, body: bytes) -> bytes:
    inner = (b"notice", kind.value.encode(), topic, b"%d" % number, previous, body)
    return encode((*inner, hashlib.sha256(encode(inner)).digest()))
