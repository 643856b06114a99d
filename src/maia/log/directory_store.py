"""A store in a directory (`maia.log.store`).

Rules kept here:

- `put_new` writes beside its place, syncs the file, links it and syncs the folder; whoever races, one wins;
- no folder on the way and no object is a symbolic link that is followed: each part of a name is opened in the folder
  before it. What is no folder and has the name of one steps aside when something is written there;
- an object is a regular file. A pipe, a device, a socket, a link, a folder, a file that may not be read and one that is
  too large are unfit, and nothing waits for them;
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
from datetime import UTC, datetime
from heapq import nsmallest
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from maia.errors import EncodingError, MaiaError, NotFoundError, UnavailableError
from maia.log.store import Seen, no_object, split_name, unfit

_FILE, _FOLDER = 0o664, 0o775
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_PART = ".part"
_UNFIT = frozenset(
    (errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ENODEV, errno.ENAMETOOLONG)
)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _OpenFile:
    """A file that was looked at after it was opened."""

    def __init__(self, name: str, descriptor: int, size: int) -> None:
        self.size = size
        self.descriptor = descriptor
        self._name = name

    def get_range(self, start: int, length: int) -> bytes:
        """Return so many octets from a place on; fewer where the file ends."""
        try:
            return os.pread(self.descriptor, length, start)
        except OSError as error:
            raise _said(self._name, error) from error

    def close(self) -> None:
        """Close the file, once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class _NewFile:
    """A file under its name, which counts when somebody says its digest."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.file: IO[bytes] = file
        self._name = name

    def finish(self) -> int:
        """Sync what was written; tell how many octets it has."""
        with _told(self._name):
            self.file.flush()
            os.fsync(self.file.fileno())
            return os.fstat(self.file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _told(self._name):
            self.file.close()


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
        self.place = str(path)
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

    def create(self, name: str) -> _NewFile:
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
                return _NewFile(name, os.fdopen(descriptor, "w+b"))
        except EncodingError as error:
            raise UnavailableError(f"cannot use `{name}`: permission denied", code="FILE_UNAVAILABLE") from error

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or no regular file: ``OBJECT_UNFIT``.
            UnavailableError: The system refused.
        """
        with self.open(name, limit=limit) as file:
            data = file.get_range(0, file.size + 1)
            if len(data) > file.size:  # it grows while we look
                data = file.get_range(0, limit + 1)
        if len(data) > limit:
            raise unfit(name)
        return data

    def open(self, name: str, *, limit: int) -> _OpenFile:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or no regular file: ``OBJECT_UNFIT``.
            UnavailableError: The system refused.
        """
        with self._folder_of(name) as (folder, last):
            opened = _OpenFile(name, os.open(last, _READ, dir_fd=folder), 0)
            found = os.fstat(opened.descriptor)
            # SECURITY: what was opened is looked at, so nobody exchanges it between the look and the reading.
            if stat.S_ISREG(found.st_mode) and found.st_size <= limit:
                opened.size = found.st_size
                return opened
            opened.close()
            raise unfit(name)

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the objects in a folder that sort after a name, in order, at most so many; none without the folder."""
        return self._list(folder, after, limit, folders=False)

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder that sort after a name, in order, at most so many; none without the folder."""
        return self._list(folder, after, limit, folders=True, shape=shape)

    def look(self, name: str) -> Seen:
        """Tell how large an object is, and when it was written; what is no regular file has a size as well.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is a folder: ``OBJECT_UNFIT``.
            UnavailableError: The system refused.
        """
        with self._folder_of(name) as (folder, last):
            found = os.stat(last, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                raise unfit(name)
            return Seen(found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def list_left(self, folder: str, *, limit: int) -> list[str]:
        """List what a `put` that was killed left in a folder, in order, at most so many; none without the folder."""
        try:
            with self._folder_of(f"{folder}/." if folder else ".") as (descriptor, _), os.scandir(descriptor) as found:
                left = (entry.name for entry in found if entry.name.startswith(".") and entry.name.endswith(_PART))
                return nsmallest(limit, left)
        except (NotFoundError, EncodingError):
            return []

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
        folders, last = split_name(name)
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
    except OSError as error:
        raise _said(name, error) from error


def _said(name: str, error: OSError) -> MaiaError:
    if isinstance(error, FileNotFoundError):
        return no_object(name)
    if error.errno in _UNFIT:
        return unfit(name)
    reason = os.strerror(error.errno).lower() if error.errno else "input or output error"
    return UnavailableError(f"cannot use `{name}`: {reason}", code="FILE_UNAVAILABLE")
