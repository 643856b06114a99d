"""The store: where lanes lie, as a port of eight verbs, and the directory that keeps it today.

An object has a name of folders and a last part (``type=ab/origin=cd/000000000007.record``) and octets. Whoever may
write to a store may put anything there, so nothing that is read from it is believed by this module.

Rules kept here:

- `Store.put_new` creates an object whole and durable, or finds that its name is taken: file synced, linked, folder
  synced; whoever races, one wins. `Store.put` exchanges an object in one step. `Store.create` is for what is too large
  for that: its octets are durable when its writer has synced them, and whoever reads it knows its digest;
- no folder on the way and no object is a symbolic link that is followed: each part of a name is opened in the folder
  before it. What is no folder and has the name of one steps aside when something is written there;
- an object is a regular file of at most so many octets. A pipe, a device, a socket, a link, a folder, a file that may
  not be read and one that is too large are *unfit* (``OBJECT_UNFIT``): that is told at once, nothing waits for them;
- reading stops at the limit, whatever grows meanwhile; listing holds no more names than were asked for;
- nothing that is made is writable for everybody, whatever the umask; a private store is for its owner alone.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from heapq import nsmallest
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Protocol

from maia.errors import EncodingError, NotFoundError, UnavailableError, UsageError

MAX_OBJECT = 1 << 40
"""An object larger than this is unfit, whoever reads it."""
_FILE, _FOLDER = 0o664, 0o775
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_PART = ".part"
_UNFIT = frozenset(
    (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ENODEV, errno.ENAMETOOLONG)
)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Store(Protocol):
    """Objects by name. Names are relative, with ``/`` between folders, which are made as they are needed."""

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object, durable when this returns; false when the name is taken, which changes nothing."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Create an object or put it in the place of what has its name, whatever that is; durable when this returns."""
        ...

    def create(self, name: str) -> BufferedRandom:
        """Create an empty object under a name that nobody has, to be filled, synced and read back by its maker."""
        ...

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets."""
        ...

    def open(self, name: str, *, limit: int) -> BufferedReader:
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

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none."""
        ...


class DirectoryStore:
    """A store in a directory."""

    def __init__(self, path: Path | str, *, private: bool = False) -> None:
        """Use a directory, made on the first write.

        Args:
            path: The directory. This path itself may lead through links; nothing below it may.
            private: Whether what is made is for the owner alone (0600, 0700), whatever the umask. Otherwise the umask
                decides, and nothing is writable for everybody.
        """
        self.path = Path(path)
        self._modes = (_PRIVATE_FILE, _PRIVATE_FOLDER) if private else (_FILE, _FOLDER)

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object, durable when this returns; false when the name is taken, which changes nothing.

        Raises:
            UnavailableError: The system refused. The object may be there, whole, when the refusal came last.
        """
        with self._folder_of(name, make=True) as (folder, last), self._staged(folder, last, data) as part:
            try:
                os.link(part, last, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                return False
            os.fsync(folder)
            return True

    def put(self, name: str, data: bytes) -> None:
        """Create an object or put it in the place of what has its name, whatever that is; durable when this returns.

        Raises:
            UnavailableError: The system refused; the object is the old one or the new one.
        """
        with self._folder_of(name, make=True) as (folder, last), self._staged(folder, last, data) as part:
            try:
                os.replace(part, last, src_dir_fd=folder, dst_dir_fd=folder)
            except IsADirectoryError:
                _set_aside(last, folder)
                os.replace(part, last, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def create(self, name: str) -> BufferedRandom:
        """Create an empty object under a name that nobody has; the name is durable when this returns.

        Raises:
            UnavailableError: The system refused, or the name is taken.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with self._folder_of(name, make=True) as (folder, last):
                descriptor = os.open(last, flags, self._modes[0], dir_fd=folder)
                os.fsync(folder)
                # SECURITY: what is written goes to this file, whatever others put under its name meanwhile.
                return os.fdopen(descriptor, "w+b")
        except EncodingError as error:
            raise UnavailableError(f"cannot use `{name}`: permission denied", code="FILE_UNAVAILABLE") from error

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or no regular file: ``OBJECT_UNFIT``.
            UnavailableError: The system refused.
        """
        with self.open(name, limit=limit) as file, _told(name):
            data = file.read(limit + 1)
        if len(data) > limit:
            raise _unfit(name)
        return data

    def open(self, name: str, *, limit: int) -> BufferedReader:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or no regular file: ``OBJECT_UNFIT``.
            UnavailableError: The system refused.
        """
        with self._folder_of(name) as (folder, last):
            descriptor = os.open(last, _READ, dir_fd=folder)
            try:
                found = os.fstat(descriptor)
                # SECURITY: what was opened is looked at, so nobody exchanges it between the look and the reading.
                if stat.S_ISREG(found.st_mode) and found.st_size <= limit:
                    kept = os.dup(descriptor)
                    return os.fdopen(kept, "rb")
            finally:
                os.close(descriptor)
            raise _unfit(name)

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the objects in a folder that sort after a name, in order, at most so many; none without the folder."""
        return self._list(folder, after, limit, folders=False)

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder that sort after a name, in order, at most so many; none without the folder."""
        return self._list(folder, after, limit, folders=True, shape=shape)

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none.

        Raises:
            UnavailableError: The system refused.
        """
        with suppress(NotFoundError), self._folder_of(name) as (folder, last):
            os.unlink(last, dir_fd=folder)
            os.fsync(folder)

    def _list(
        self, folder: str, after: str, limit: int, *, folders: bool, shape: re.Pattern[str] | None = None
    ) -> list[str]:
        try:
            with self._folder_of(f"{folder}/." if folder else ".") as (descriptor, _), os.scandir(descriptor) as found:
                names = (
                    entry.name
                    for entry in found
                    if entry.name > after
                    and not entry.name.startswith(".")
                    and (shape is None or shape.fullmatch(entry.name) is not None)
                    and entry.is_dir(follow_symlinks=False) is folders
                )
                return nsmallest(limit, names)
        except (NotFoundError, EncodingError):
            return []

    @contextmanager
    def _folder_of(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of an object, part by part, and give its descriptor and the last part of the name."""
        *folders, last = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in folders) or last in ("", "..") or "\0" in last:
            raise UsageError(f"`{name}` is no name of an object", code="OBJECT_NAME")
        with _told(name):
            if make:
                self.path.mkdir(mode=self._modes[1], parents=True, exist_ok=True)
            descriptor = os.open(self.path, _OPEN_FOLDER & ~os.O_NOFOLLOW)
            try:
                for part in folders:
                    inner = self._make(part, descriptor) if make else os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = inner
                yield descriptor, last
            finally:
                os.close(descriptor)

    def _make(self, part: str, folder: int) -> int:
        """Open a folder in a folder, and make it when it is not there."""
        with suppress(FileExistsError):
            os.mkdir(part, self._modes[1], dir_fd=folder)
            os.fsync(folder)
        try:
            return os.open(part, _OPEN_FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            # SECURITY: a link or a file in place of a folder neither leads astray nor keeps an owner from writing.
            _set_aside(part, folder)
            os.mkdir(part, self._modes[1], dir_fd=folder)
            return os.open(part, _OPEN_FOLDER, dir_fd=folder)

    @contextmanager
    def _staged(self, folder: int, last: str, data: bytes) -> Iterator[str]:
        """Write octets beside their place and sync them; what is left of it in the end is removed."""
        part = f".{last}.{secrets.token_hex(6)}{_PART}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(part, flags, self._modes[0], dir_fd=folder), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield part
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)


def _set_aside(name: str, folder: int) -> None:
    os.rename(name, f".{secrets.token_hex(8)}.aside", src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn what the system says into what Maia says."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{name}`", code="NO_OBJECT") from error
    except OSError as error:
        if error.errno in _UNFIT:
            raise _unfit(name) from error
        reason = os.strerror(error.errno).lower() if error.errno else "input or output error"
        raise UnavailableError(f"cannot use `{name}`: {reason}", code="FILE_UNAVAILABLE") from error


def _unfit(name: str) -> EncodingError:
    return EncodingError(f"`{name}` is no object that can be read here", code="OBJECT_UNFIT")
