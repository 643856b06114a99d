"""A log that any web server shows: its objects by their names below an address, and pages that list folders.

    https://host/path/type=<id>/origin=<key>/000000000000.record

Rules kept here:

- nobody proves anything here, and nothing is believed: whoever copies verifies all of it (`maia.log.copy_lane`), so a
  cache, a mirror or a proxy may stand in between;
- where connections go, how long an exchange takes and how large an answer is are limited as for services. A redirect is
  not followed, and packed answers are refused;
- from a server without ranges so much of an object is read: its beginning is sent anew for each part, and not kept;
- of a page that lists a folder only links count that are names of the shape that is asked for.
"""

from __future__ import annotations

import re
import ssl
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote, urlsplit

import httpcore2
import httpx2

from maia.clients.addresses import AddressPolicy
from maia.clients.transport import Channel, Deadline, PinnedTransport
from maia.errors import EncodingError, MalformedError, NotFoundError, UnavailableError

_SECONDS = 30.0
_PART = 4 << 20
_MAX_PAGE = 4 << 20
_MAX_SKIPPED = 64 << 20
_HREF = re.compile(r"""href\s*=\s*["']([^"'<>]{1,200})/["']""", re.IGNORECASE)
_SIZE = re.compile(r"bytes (?:\d{1,16}-\d{1,16}|\*)/(\d{1,16})")


class WebLog:
    """Reads a log from a web server."""

    def __init__(self, url: str, *, policy: AddressPolicy | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Know where it is; no connection is made yet.

        Args:
            url: ``https://host[:port][/path]``, or ``http://`` on this machine.
            policy: Where connections may go; public addresses only unless given.
            tls: Which certificate authorities are trusted; the system's unless given.

        Raises:
            MalformedError: The address is refused.
        """
        policy = policy or AddressPolicy()
        parts = urlsplit(url)
        if parts.query or parts.fragment or ".." in parts.path or "%" in parts.path:
            raise MalformedError("an address of a log is `https://host[:port][/path]`", code="SERVICE_ADDRESS")
        self._base = policy.parse(f"{parts.scheme}://{parts.netloc}").url + parts.path.rstrip("/")
        self._deadline = Deadline()
        transport = PinnedTransport(policy, self._deadline, Channel(), tls=tls, resolver=None)
        self._http = httpx2.Client(transport=transport, follow_redirects=False, trust_env=False)

    def close(self) -> None:
        """Close the connection; it may be used again."""
        self._http.close()

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger: ``OBJECT_UNFIT``.
            UnavailableError: The server did not answer.
        """
        return self._fetch(name, limit=limit)[1]

    def open(self, name: str, *, limit: int) -> WebObject:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger: ``OBJECT_UNFIT``.
            UnavailableError: The server did not answer.
        """
        opened = WebObject(self, name)
        if opened.size > limit:
            raise _unfit(name)
        return opened

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder that sort after a name, as the server's page of that folder does."""
        try:
            page = self._fetch(f"{folder}/" if folder else "", limit=_MAX_PAGE)[1].decode("utf-8", "replace")
        except NotFoundError:
            return []
        names = {unquote(found).rpartition("/")[2] for found in _HREF.findall(page)}
        return sorted(name for name in names if name > after and (shape is None or shape.fullmatch(name)))[:limit]

    def part(self, name: str, start: int, length: int) -> tuple[int, bytes]:
        """Ask for a part of an object; give how large the whole is, too."""
        length = min(length, _PART)
        return self._fetch(name, limit=length, span=(start, start + length - 1))

    def _fetch(self, name: str, *, limit: int, span: tuple[int, int] | None = None) -> tuple[int, bytes]:
        """Ask for a whole object, or a part of it; give how large the whole is and the octets."""
        headers = {"accept-encoding": "identity"} | ({} if span is None else {"range": f"bytes={span[0]}-{span[1]}"})
        self._deadline.start(_SECONDS)
        try:
            with self._http.stream("GET", f"{self._base}/{quote(name, safe='/=')}", headers=headers) as answer:
                if answer.status_code == 404:
                    raise NotFoundError(f"there is no `{name}`", code="NO_OBJECT")
                if answer.status_code not in (200, 206) or "content-encoding" in answer.headers:
                    raise UnavailableError(f"the server answers with {answer.status_code}", code="PEER_UNAVAILABLE")
                # A server without ranges sends the whole; its beginning is skipped.
                skip = span[0] if span is not None and answer.status_code == 200 else 0
                # SECURITY: such an answer may have no end, so what is skipped is limited, and goes as it comes.
                if skip > _MAX_SKIPPED:
                    raise _unfit(name)
                data, gone = bytearray(), 0
                for piece in answer.iter_raw():
                    over = min(len(piece), skip - gone)
                    gone += over
                    data += piece[over:]
                    if span is None and len(data) > limit:
                        raise _unfit(name)
                    if len(data) >= limit and span is not None:
                        break
                size = _size(answer, gone + len(data))
        except (httpcore2.TimeoutException, httpx2.TimeoutException) as error:
            raise UnavailableError("the server took too long", code="PEER_TIMEOUT") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpx2.HTTPError, ssl.SSLError, OSError) as error:
            raise UnavailableError("the server cannot be reached", code="PEER_UNAVAILABLE") from error
        return size, bytes(data[:limit])


class WebObject:
    """An object of a web server, read in parts; that they are of one object is for its digest to tell."""

    def __init__(self, log: WebLog, name: str) -> None:
        """Ask for its beginning."""
        self._log, self._name = log, name
        self.size, self._begin = log.part(name, 0, _PART)

    def get_range(self, start: int, length: int) -> bytes:
        """Return so many octets from a place on; fewer where the object ends."""
        parts, end = [], min(start + length, self.size)
        while start < end:
            data = self._begin[start:end]
            if not data:
                _, data = self._log.part(self._name, start, end - start)
            if not data:
                break
            parts.append(data)
            start += len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of it."""
        self._begin = b""

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it."""
        self.close()


def _size(answer: httpx2.Response, read: int) -> int:
    """Tell how large an object is: by its range, or by its length."""
    found = _SIZE.fullmatch(answer.headers.get("content-range", ""))
    if found is not None:
        return int(found[1])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) <= 16 and answer.status_code == 200 else read


def _unfit(name: str) -> EncodingError:
    return EncodingError(f"`{name}` is no object that can be read here", code="OBJECT_UNFIT")
