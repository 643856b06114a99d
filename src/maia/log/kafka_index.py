"""What a Kafka log's topic of names says, told as objects by name: pure, and the same for everybody who reads it.

A record of that topic has a name as its key and an act as its value: an object is made, put or removed. Acts are heard
in the order of the one partition, aborted ones never. Rules kept here:

- of all acts that would make an object of a name, the first one does; the others lost, and change nothing;
- an act that removes names the object that it saw, so it never removes one that came later;
- what is no act, or has a name that leads nowhere, changes nothing: whoever may write to the topic may write anything;
- an object lies in parts, which are records of the topic of data; the act names them all, so an object is whole or it
  is not there. Parts are of one length, so nobody's act says into how many pieces it is to be fetched;
- so many names are held and no more.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from heapq import nsmallest

from maia.errors import UnavailableError, UsageError
from maia.log.store import split_name

PART = 512 << 10
"""Octets of a part; with its frame it fits into what a topic takes unless told otherwise."""
MAX_PARTS = 1 << 16
MAX_NAMES = 1 << 22
MARK = 16
_MAX_NAME = 4096
_HEAD = struct.Struct(f">5sB{MARK}s{MARK}sQI")
_MAGIC = b"maia1"
_PLACE = struct.Struct(">Q")


class ActVerb(IntEnum):
    """What an act does to a name."""

    NEW = 1
    PUT = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What somebody did, or tried to do, to a name.

    Attributes:
        verb: What.
        mark: A random word by which its author knows it again.
        of: The mark of the object that is removed.
        size: The octets of the object that is made.
        part: The octets of each part but the last, which are `PART`.
        places: Where its parts lie in the topic of data, eight octets each.
    """

    verb: ActVerb
    mark: bytes
    of: bytes = bytes(MARK)
    size: int = 0
    part: int = PART
    places: bytes = b""

    def place(self, number: int) -> int:
        """Say where a part lies."""
        return int(_PLACE.unpack_from(self.places, number * _PLACE.size)[0])

    def length(self, number: int) -> int:
        """Say how many octets a part has."""
        return min(self.part, self.size - number * self.part)


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object that is there: the act that made it, and when it was written, by the node's clock."""

    act: Act
    written: datetime


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """What came of an act: whether it did what it says, and whose parts nobody needs any more."""

    done: bool
    freed: Act | None


@dataclass(slots=True)
class _Folder:
    objects: dict[str, KeptObject] = field(default_factory=dict)
    folders: dict[str, _Folder] = field(default_factory=dict)


def write_act(act: Act) -> bytes:
    """Write an act as the value of a record."""
    return _HEAD.pack(_MAGIC, act.verb, act.mark, act.of, act.size, act.part) + act.places


def pack_places(places: list[int]) -> bytes:
    """Write where parts lie."""
    return b"".join(map(_PLACE.pack, places))


def read_act(value: bytes | None) -> Act | None:
    """Read an act; nothing when it is none."""
    if value is None or len(value) < _HEAD.size:
        return None
    magic, verb, mark, of, size, part = _HEAD.unpack_from(value)
    places = value[_HEAD.size :]
    parts, rest = divmod(len(places), _PLACE.size)
    if magic != _MAGIC or verb not in tuple(ActVerb) or rest or parts > MAX_PARTS:
        return None
    # SECURITY: whoever may write to the topic would cost every reader a fetch for each octet.
    if part != PART:
        return None
    if parts != -(-size // part) or any(octet & 0x80 for octet in places[:: _PLACE.size]):  # no place is so far
        return None
    return Act(verb=ActVerb(verb), mark=mark, of=of, size=size, part=part, places=places)


class Index:
    """Objects by name, as far as the topic was heard."""

    def __init__(self) -> None:
        """Know of nothing."""
        self._root = _Folder()
        self._held = 0

    def hear(self, key: bytes | None, value: bytes | None, written: datetime) -> tuple[bytes, ActOutcome] | None:
        """Take in the next record; tell the mark of its act and what came of it, or nothing when it is no act.

        Raises:
            UnavailableError: There are more names than are held: ``STORE_UNAVAILABLE``.
        """
        act = read_act(value)
        if act is None or key is None or len(key) > _MAX_NAME:
            return None
        try:
            name = key.decode()
            folders, last = split_name(name)
        except (UnicodeDecodeError, UsageError):
            return None
        folder = self._folder(folders)
        found = folder.objects.get(last) if folder is not None else None
        if act.verb is ActVerb.DELETE:
            if found is None or found.act.mark != act.of:
                return act.mark, ActOutcome(False, None)
            self._remove(folders, last)
            return act.mark, ActOutcome(True, found.act)
        # SECURITY: this decides every race. Whoever comes second in the topic's order has lost.
        if act.verb is ActVerb.NEW and found is not None:
            return act.mark, ActOutcome(False, act)
        if found is None:
            self._held += 1
            if self._held > MAX_NAMES:
                raise UnavailableError("the log in Kafka has too many names", code="STORE_UNAVAILABLE")
        folder = self._root
        for part in folders:
            folder = folder.folders.setdefault(part, _Folder())
        folder.objects[last] = KeptObject(act, written)
        return act.mark, ActOutcome(True, found.act if found is not None else None)

    def find(self, name: str) -> KeptObject | None:
        """Give an object by its name."""
        folders, last = split_name(name)
        folder = self._folder(folders)
        return folder.objects.get(last) if folder is not None else None

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the objects of a folder as `maia.log.Store.list_after` does."""
        found = self._folder(_parts(folder))
        return nsmallest(limit, _shown(found.objects, after)) if found is not None else []

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders of a folder as `maia.log.Store.list_folders` does."""
        found = self._folder(_parts(folder))
        if found is None:
            return []
        return nsmallest(limit, (name for name in _shown(found.folders, after) if not shape or shape.fullmatch(name)))

    def _folder(self, parts: list[str]) -> _Folder | None:
        folder: _Folder | None = self._root
        for part in parts:
            folder = folder.folders.get(part) if folder is not None else None
        return folder

    def _remove(self, folders: list[str], last: str) -> None:
        way = [self._root]
        for part in folders:
            way.append(way[-1].folders[part])
        del way[-1].objects[last]
        self._held -= 1
        for folder, part in zip(reversed(way[:-1]), reversed(folders), strict=True):
            inner = folder.folders[part]
            if inner.objects or inner.folders:
                return
            del folder.folders[part]


def _parts(folder: str) -> list[str]:
    if not folder:
        return []
    with suppress(UsageError):
        folders, last = split_name(folder)
        return [*folders, last]
    return [""]  # no folder has this name


def _shown(names: dict[str, KeptObject] | dict[str, _Folder], after: str) -> Iterator[str]:
    return (name for name in names if name > after and not name.startswith("."))
