"""Objects of an object store that are read in parts, or in the making (`maia.log.object_store`)."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import IO, Self

_WHOLE = 1 << 20
"""Objects of so many octets are read in one request, whatever is asked of them."""
_IN_MEMORY = 8 << 20


class OpenKey:
    """An object of a known size, of which parts are fetched."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        """Fetch so many octets from a place on, all of them within the object."""
        self.size = size
        self._fetch = fetch
        self._all: bytes | None = None

    def get_range(self, start: int, length: int) -> bytes:
        """Return so many octets from a place on; fewer where the object ends."""
        length = min(length, self.size - start)
        if length <= 0 or start < 0:
            return b""
        if self.size > _WHOLE:
            return self._fetch(start, length)
        if self._all is None:
            self._all = self._fetch(0, self.size)
        return self._all[start : start + length]

    def close(self) -> None:
        """Forget what was read."""
        self._all = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Upload:
    """An object in the making, in a file without a name."""

    def __init__(self, put: Callable[[IO[bytes], int], None]) -> None:
        """Put the file with so many octets when it is finished."""
        self.file: IO[bytes] = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by whoever fills it
        self._put = put

    def finish(self) -> int:
        """Put what was written into the store; tell how many octets it has."""
        self.file.flush()
        size = self.file.seek(0, 2)
        self._put(self.file, size)
        return size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()
