"""A store in an object store: S3, Google Cloud Storage, Azure, or memory, through `obstore` (`maia.log.store`).

A name is a key below a prefix; folders are what keys have in common. Credentials come from the environment's usual
places. Rules kept here:

- `put_new` is a conditional put. That a name is taken is believed when something lies there: a conflict that left
  nothing (HTTP 409) is tried again. Each `put_new` marks what it puts, so that no winner whose answer got lost believes
  that it lost;
- `create` fills a file without a name on this machine; the store gets it whole when it is finished, or never;
- an object is opened with its tag, and each part that is read is of that tag, or is not read;
- a key that cannot be read though the store can (archived, under somebody else's key, of another account) is unfit; a
  store that refuses everything, or is not there, is unavailable, and never an empty one;
- listing goes on from key to key in order, skips what lies deeper, and holds no more names than were asked for. Keys
  that no client of Maia's would write, with which somebody wants to stop the listing, are left out of it.
"""

from __future__ import annotations

import heapq
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

import obstore
from obstore import exceptions
from obstore.store import ObjectStore as Backend

from maia.errors import EncodingError, MaiaError, NotFoundError, UnavailableError, UsageError
from maia.log.object_parts import OpenKey, Upload
from maia.log.store import Seen, no_object, split_name, unfit

if TYPE_CHECKING:
    from obstore import ObjectMeta

Names = Callable[[str], Iterator[tuple[str, bool]]]
"""Gives what lies in a folder: the names, and which are folders."""
_MARK = "maiaput"
_TRIES = 6
_PAUSE = 0.05
_ONE_PUT = 64 << 20
"""What is larger is put in parts."""
_CHUNK = 1000
_LAST = "\U0010ffff"
"""Sorts behind whatever lies deeper."""
_FAILED = (exceptions.BaseError, FileNotFoundError, PermissionError, OSError, ValueError)
# The store answered, and will not give this key: not "too slow" (408, 429), which is no answer.
_REFUSED = re.compile(r"status code: 4(?!08|29)\d\d")
_NO_STORE = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")


class ObjectStore:
    """A store in a bucket, below a prefix."""

    def __init__(self, place: str, backend: Backend, *, otherwise: Names | None = None) -> None:
        """Use a backend.

        Args:
            place: The address, for people and for workers.
            backend: Where the objects are.
            otherwise: Lists a folder when keys are in the way that the backend cannot name.
        """
        self.place = place
        self._backend = backend
        self._otherwise = otherwise

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object, durable when this returns; false when the name is taken, which changes nothing.

        Raises:
            UnavailableError: The store refused, or did not answer. The object may be there, whole.
        """
        split_name(name)
        mark = secrets.token_hex(16)
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE * 2**attempt)
            try:
                with self._told(name, putting=True):
                    self._put(name, data, mode="create", mark=mark)
            except _TakenError:
                found = self._mark_of(name)
                if found is not None:
                    return found == mark
                continue  # a conflict, and nothing is there
            return True
        raise _away(name, "others keep writing to it")

    def put(self, name: str, data: bytes) -> None:
        """Create an object or put it in the place of what has its name; durable when this returns.

        Raises:
            UnavailableError: The store refused; the object is the old one or the new one.
        """
        split_name(name)
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE * 2**attempt)
            try:
                with self._told(name, putting=True):
                    return self._put(name, data, mode="overwrite")
            except _TakenError:
                continue  # a conflict with somebody who puts to the same name
        raise _away(name, "others keep writing to it")

    def create(self, name: str) -> Upload:
        """Begin an object; nothing of it is in the store before it is finished."""
        split_name(name)
        return Upload(partial(self._upload, name))

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or cannot be read: ``OBJECT_UNFIT``.
            UnavailableError: The store did not answer.
        """
        split_name(name)
        with self._told(name):
            found = obstore.get(self._backend, name)
            # SECURITY: what is too large is not fetched.
            if found.meta["size"] > limit:
                raise unfit(name)
            return bytes(found.bytes())

    def open(self, name: str, *, limit: int) -> OpenKey:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or cannot be read: ``OBJECT_UNFIT``.
            UnavailableError: The store did not answer.
        """
        split_name(name)
        found = self._head(name)
        if found["size"] > limit:
            raise unfit(name)
        return OpenKey(found["size"], partial(self._fetch, name, found["e_tag"]))

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the objects in a folder that sort after a name, in order, at most so many."""
        names = (name for name, inner in self._children(folder, after) if not inner and name > after)
        return heapq.nsmallest(limit, names)

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder that sort after a name, in order, at most so many."""
        names = (name for name, inner in self._children(folder, after) if inner and name > after)
        return heapq.nsmallest(limit, (name for name in names if shape is None or shape.fullmatch(name)))

    def look(self, name: str) -> Seen:
        """Tell how large an object is, and when it was written.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It may not be looked at: ``OBJECT_UNFIT``.
            UnavailableError: The store did not answer.
        """
        split_name(name)
        found = self._head(name)
        return Seen(found["size"], found["last_modified"])

    def list_left(self, folder: str, *, limit: int) -> list[str]:
        """List nothing: a put leaves nothing behind but parts of an upload, which the store's own rules remove."""
        del folder, limit
        return []

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none.

        Raises:
            UnavailableError: The store refused.
        """
        split_name(name)
        try:
            with self._told(name, putting=True):
                obstore.delete(self._backend, name)
        except _TakenError as error:
            raise _away(name, "others keep writing to it") from error

    def _fetch(self, name: str, tag: str | None, start: int, length: int) -> bytes:
        """Return a part of an object that was opened.

        Raises:
            UnavailableError: The store did not answer, or the object is gone or another one by now.
        """
        try:
            with self._told(name):
                options = {"range": (start, start + length), "if_match": tag}
                return bytes(obstore.get(self._backend, name, options=options).bytes())  # type: ignore[arg-type]
        except (NotFoundError, EncodingError) as error:
            raise _away(name, "it is gone, or another one by now") from error

    def _upload(self, name: str, file: IO[bytes], size: int) -> None:
        """Put what a file holds under a name that nobody has.

        Raises:
            UnavailableError: The store refused, or the name is taken.
        """
        file.seek(0)
        if size <= _ONE_PUT:
            if not self.put_new(name, file.read()):
                raise _away(name, "the name is taken")
            return
        with self._told(name, putting=True):
            # Parts are put without a condition. Names are drawn by chance, and readers know the digest.
            obstore.put(self._backend, name, file, use_multipart=True)

    def _put(self, name: str, data: bytes, *, mode: str, mark: str | None = None) -> None:
        attributes = None if mark is None else {_MARK: mark}
        obstore.put(
            self._backend, name, data, mode=mode, attributes=attributes, use_multipart=False  # type: ignore[arg-type]
        )  # fmt: skip

    def _head(self, name: str) -> ObjectMeta:
        try:
            with self._told(name):
                return obstore.head(self._backend, name)
        except NotFoundError:
            # This kind of answer has no words: whether the key or the bucket is missing is not told.
            if not self._answers():
                raise _away(name, "the store did not answer") from None
            raise

    def _mark_of(self, name: str) -> str | None:
        """Tell whose `put_new` made an object; nothing when there is none."""
        try:
            with self._told(name):
                found = obstore.get(self._backend, name)
                return str(dict(found.attributes).get(_MARK, ""))
        except NotFoundError:
            return None
        except EncodingError:
            return ""

    def _children(self, folder: str, after: str) -> Iterator[tuple[str, bool]]:
        """Give what lies in a folder and may come after a name: names, and which are folders."""
        if folder:
            split_name(folder)
        given = ""
        try:
            for name, inner in self._scanned(folder, after):
                given = f"{name}/" if inner else name
                yield name, inner
        except exceptions.InvalidPathError:
            pass
        else:
            return
        # SECURITY: somebody put a key that the listing stops at. What comes behind what was given is still found.
        with self._told(folder or self.place, putting=True):
            try:
                found = obstore.list_with_delimiter(self._backend, folder or None)
                names = [(path, True) for path in found["common_prefixes"]]
                names += [(item["path"], False) for item in found["objects"]]
            except exceptions.InvalidPathError as error:
                if self._otherwise is None:
                    raise _away(folder or self.place, "a key lies there that cannot be listed; remove it") from error
                names = [(f"{folder}/{name}", inner) for name, inner in self._otherwise(folder)]
        for path, inner in names:
            name = path.rpartition("/")[2]
            if path != folder and name and not name.startswith(".") and (f"{name}/" if inner else name) > given:
                yield name, inner

    def _scanned(self, folder: str, after: str) -> Iterator[tuple[str, bool]]:
        start = f"{folder}/" if folder else ""
        offset: str | None = f"{start}{after}" or None
        last, given = "", ""
        while True:
            jump = None
            for chunk in self._chunks(folder, offset):
                inner = ""
                for item in chunk:
                    path = item[len(start) :]
                    if item < last:
                        raise _away(folder or self.place, "this store does not list names in order")
                    last = item
                    inner, slash, _ = path.partition("/")
                    inner = f"{inner}{slash}"
                    if item.startswith(start) and inner != given and not inner.startswith("."):
                        given = inner
                        yield inner.removesuffix("/"), bool(slash)
                behind = f"{start}{inner}{_LAST}"
                if (
                    len(chunk) == _CHUNK
                    and inner.endswith("/")
                    and chunk[0].startswith(start + inner)
                    and behind != offset
                ):
                    jump = behind
                    break
            if jump is None:
                return
            offset = jump

    def _chunks(self, folder: str, offset: str | None) -> Iterator[list[str]]:
        """Give the keys below a folder that come after one, by the thousand."""
        with self._told(folder or self.place, putting=True):
            for chunk in obstore.list(self._backend, folder or None, offset=offset, chunk_size=_CHUNK):
                yield [item["path"] for item in chunk]

    @contextmanager
    def _told(self, name: str, *, putting: bool = False) -> Iterator[None]:
        """Turn what the backend says into what Maia says.

        Args:
            name: What is asked for.
            putting: Whether nothing is asked that may be missing or unfit.
        """
        try:
            yield
        except (MaiaError, exceptions.InvalidPathError):
            raise
        except exceptions.AlreadyExistsError as error:
            raise _TakenError from error
        except _FAILED as error:
            text = str(error)
            if isinstance(error, ValueError) and not isinstance(error, exceptions.BaseError):
                raise UsageError(f"`{name}` is no name of an object", code="OBJECT_NAME") from error
            if not putting and isinstance(error, FileNotFoundError) and not _NO_STORE.search(text):
                raise no_object(name) from error
            denied = isinstance(error, exceptions.PermissionDeniedError | exceptions.PreconditionError)
            if not putting and (denied or _REFUSED.search(text)) and self._answers():
                raise unfit(name) from error
            raise _away(name, _reason(error, text)) from error

    def _answers(self) -> bool:
        """Tell whether the store lets us in at all."""
        try:
            next(iter(obstore.list(self._backend, chunk_size=1)), None)
        except exceptions.InvalidPathError:
            return True
        except _FAILED:
            return False
        return True


class _TakenError(Exception):
    """The backend says that a name is taken, or that somebody is just taking it."""


def _away(name: str, reason: str) -> UnavailableError:
    return UnavailableError(f"cannot use `{name}`: {reason}", code="STORE_UNAVAILABLE")


def _reason(error: Exception, text: str) -> str:
    """Say in a few words why a backend refused, without what it was asked."""
    if _NO_STORE.search(text):
        return "there is no such bucket"
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError | PermissionError):
        return "permission denied; credentials come from the environment"
    status = re.search(r"status code: (\d{3})", text)
    return f"the store answered {status[1]}" if status else "the store did not answer"
