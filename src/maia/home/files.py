"""Files that are whole or absent: atomic writes, bounded reads.

Rules kept here:

- a file is written beside its place, synced, and moved there in one step; a crash at any point leaves the old file
  whole or the new one, never a part;
- the folder is synced too, so that the move itself survives a power cut;
- a file has its mode from its first octet on, so a secret is never readable in between;
- a read is bounded, and only regular files are read: a pipe or a device in their place neither blocks nor floods;
- what the system refuses becomes `NotFoundError` or `UnavailableError`.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from maia.errors import EncodingError, MaiaError, NotFoundError, UnavailableError

PRIVATE_FILE = 0o600
PUBLIC_FILE = 0o644
PRIVATE_FOLDER = 0o700
PUBLIC_FOLDER = 0o755


def write_file(path: Path, data: bytes, *, mode: int, replace: bool = True) -> bool:
    """Put ``data`` at ``path`` in one step.

    Args:
        path: Where the file goes; its folder exists.
        data: All of it.
        mode: Permissions, exactly; the umask does not count.
        replace: Whether a file that is there gives way.

    Returns:
        Whether the file was written: false only when ``replace`` is false and something was there already.

    Raises:
        UnavailableError: The system refused; what was at ``path`` is unchanged.
    """
    with _translated(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                os.replace(name, path)  # noqa: PTH105 - the same call the tests interrupt
            else:
                os.link(name, path)  # refuses what is there, where a check before a rename would race
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()
        _sync_folder(path.parent)
    return True


def read_file(path: Path, *, limit: int) -> bytes:
    """Read a regular file of at most ``limit`` octets.

    Raises:
        NotFoundError: There is none.
        EncodingError: It is larger, or no regular file.
        UnavailableError: The system refused.
    """
    with open_file(path) as descriptor:
        return read_descriptor(descriptor, path, limit=limit)


def read_start(path: Path, *, limit: int) -> bytes:
    """Read a regular file, or the first ``limit`` octets of a longer one."""
    with open_file(path) as descriptor:
        return _read(descriptor, limit)


@contextmanager
def open_file(path: Path) -> Iterator[int]:
    """Open a regular file for reading and give its descriptor, so that checks and reading see the same file."""
    with _translated(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EncodingError(f"`{path}` is no regular file", code="FILE_KIND")
            yield descriptor
        finally:
            os.close(descriptor)


def read_descriptor(descriptor: int, path: Path, *, limit: int) -> bytes:
    """Read an open file of at most ``limit`` octets."""
    data = _read(descriptor, limit + 1)
    if len(data) > limit:
        raise EncodingError(f"`{path}` has more than {limit} octets", code="FILE_TOO_LARGE")
    return data


def list_files(folder: Path, *, suffix: str) -> tuple[Path, ...]:
    """List the regular files of a folder whose names end so, by name; none when there is no such folder."""
    with _translated(folder):
        if not folder.is_dir():
            return ()
        return tuple(sorted(path for path in folder.iterdir() if path.name.endswith(suffix) and path.is_file()))


def remove_file(path: Path) -> None:
    """Remove a file and sync its folder."""
    with _translated(path):
        path.unlink()
        _sync_folder(path.parent)


def make_folder(path: Path, *, mode: int) -> None:
    """Make a folder, and those above it, unless it is there; a new one has exactly this mode."""
    with _translated(path):
        if not path.is_dir():
            path.mkdir(mode=mode, parents=True, exist_ok=True)
            path.chmod(mode)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes that write ``path`` waiting; the lock is a file beside it and ends with the process."""
    with _translated(path):
        descriptor = os.open(
            path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE
        )
    try:
        with _translated(path):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what the system says into what Maia says."""
    try:
        yield
    except MaiaError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else "not a path"
        raise UnavailableError(f"cannot use `{path}`: {reason}", code="FILE_UNAVAILABLE") from error
