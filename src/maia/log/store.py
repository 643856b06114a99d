"""The store: where lanes lie, as one port. Backends: `directory_store`, `object_store`, `kafka_store`.

An object has a name of folders and a last part (``type=ab/origin=cd/000000000007.record``) and octets. Whoever may
write to a store may put anything there, so nothing that is read from it is believed by this module.

Rules that every backend keeps:

- `Store.put_new` creates an object whole and durable, or finds that its name is taken; whoever races, one wins.
  `Store.put` exchanges an object in one step. `Store.create` is for what is too large to be held: its octets are
  durable when its maker has finished it, and whoever reads it knows its digest;
- an object is at most so many octets. What is larger, and what is there and cannot be read, is *unfit*
  (``OBJECT_UNFIT``): that is told at once, nothing waits for it, and `Store.put` takes its place;
- reading stops at the limit, whatever grows meanwhile; listing holds no more names than were asked for, in order;
- a store that does not answer is `UnavailableError`, never an object that is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import IO, Protocol, Self

from maia.errors import EncodingError, NotFoundError, UsageError

MAX_OBJECT = 1 << 40
"""An object larger than this is unfit, whoever reads it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a store says of an object that nobody opened: its octets, and when it was written."""

    size: int
    written: datetime


class OpenObject(Protocol):
    """An object that is read in parts, which are of one object."""

    size: int

    def get_range(self, start: int, length: int) -> bytes:
        """Return so many octets from a place on; fewer where the object ends.

        Raises:
            UnavailableError: The store did not answer, or the object is another one by now.
        """
        ...

    def close(self) -> None:
        """Let go of it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NewObject(Protocol):
    """An object in the making: ``file`` is written, finished, and read back by its maker alone.

    Leaving it before it is finished leaves nothing that counts.
    """

    file: IO[bytes]

    def finish(self) -> int:
        """Make what was written durable in the store; tell how many octets it has.

        Raises:
            UnavailableError: The store refused, or the name is taken.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ReadableStore(Protocol):
    """What a log is read by: half of a `Store`, for those who may not write to it, or have no way to."""

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets."""
        ...

    def open(self, name: str, *, limit: int) -> OpenObject:
        """Open an object of at most ``limit`` octets, to read parts of it."""
        ...

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder (last parts only) that sort after a name, in order, at most so many."""
        ...


class Store(Protocol):
    """Objects by name. Names are relative, with ``/`` between folders, which are made as they are needed."""

    @property
    def place(self) -> str:
        """Where it is: a directory, or an address."""
        ...

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object, durable when this returns; false when the name is taken, which changes nothing."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Create an object or put it in the place of what has its name, whatever that is; durable when this returns."""
        ...

    def create(self, name: str) -> NewObject:
        """Begin an object under a name that nobody has, to be filled, finished and read back by its maker."""
        ...

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets."""
        ...

    def open(self, name: str, *, limit: int) -> OpenObject:
        """Open an object of at most ``limit`` octets, to read parts of it, which are of one object."""
        ...

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the names of objects in a folder (last parts only) that sort after a name, in order, at most so many."""
        ...

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder (last parts only) that sort after a name, in order, at most so many.

        Only names of a shape, where one is given: others take nobody's place.
        """
        ...

    def look(self, name: str) -> Seen:
        """Tell how large an object is, and when it was written, without opening it."""
        ...

    def list_left(self, folder: str, *, limit: int) -> list[str]:
        """List what a `put` that was killed left in a folder (last parts only), in order, at most so many."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none."""
        ...


def split_name(name: str) -> tuple[list[str], str]:
    """Give the folders of an object's name, and its last part.

    Raises:
        UsageError: It is no name, or one that leads out of a store: ``OBJECT_NAME``.
    """
    *folders, last = name.split("/")
    # SECURITY: no part leads up or nowhere, whatever the backend makes of it.
    if any(part in ("", ".", "..") or "\0" in part for part in folders) or last in ("", "..") or "\0" in last:
        raise UsageError(f"`{name}` is no name of an object", code="OBJECT_NAME")
    return folders, last


def no_object(name: str) -> NotFoundError:
    """Tell that there is no object of a name."""
    return NotFoundError(f"there is no `{name}`", code="NO_OBJECT")


def unfit(name: str) -> EncodingError:
    """Tell that what lies under a name is no object that can be read."""
    return EncodingError(f"`{name}` is no object that can be read here", code="OBJECT_UNFIT")
