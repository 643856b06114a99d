"""Fetching a small document from a host that was allowed by name, and from nowhere else.

Addresses come from certificates, statements and configuration, so whoever writes them must not be able to make a broker
knock on doors of its own house.

Rules kept here:

- https only; plain http only to a loopback host that was allowed explicitly, for a service beside this one;
- the host and port must be on the list, letter for letter; no user, no fragment, nothing but printable ASCII;
- the name is resolved once, every address it has must be public, and the connection goes to one of *those* addresses:
  a name that changes its mind in between changes nothing;
- redirects are not followed, nor is anything else but the answer 200 an answer;
- the whole takes at most ``seconds``, resolving, shaking hands and the slowest drip of octets included, and brings at
  most ``octets``.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from maia.errors import DeniedError, MaiaError, UnavailableError

Resolve = Callable[[str, int], Sequence[str]]
"""Gives the addresses of a host."""

_HEAD = 16_384
_PRINTABLE = re.compile(r"[!-~]{1,2048}")
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?")
_PORTS = {"https": 443, "http": 80}
_NAT64 = ip_network("64:ff9b::/96")
_RESOLVERS = threading.BoundedSemaphore(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Where to and how much.

    Attributes:
        hosts: Allowed hosts, ``name`` or ``name:port``.
        loopback: Whether a host of the list may be this machine.
        octets: The most that an answer's body has.
        seconds: The most that the whole takes.
    """

    hosts: frozenset[str]
    loopback: bool = False
    octets: int = 65_536
    seconds: float = 3.0


def fetch(
    url: str,
    limits: FetchLimits,
    *,
    resolve: Resolve | None = None,
    context: ssl.SSLContext | None = None,
    accept: str = "application/json",
) -> bytes:
    """Fetch a document.

    Args:
        url: Where from.
        limits: What is allowed.
        resolve: Gives addresses; the system's resolver by default.
        context: Which certificate authorities are trusted; the system's by default.
        accept: What kind of document is wanted.

    Returns:
        The body of the answer 200.

    Raises:
        DeniedError: The address is not allowed: ``FETCH_REFUSED``. Nothing was sent.
        UnavailableError: There was no such answer within the limits.
    """
    ends = time.monotonic() + limits.seconds
    parts = _checked(url, limits)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    found = _addresses(host, port, resolve or _system, ends)
    for address in found:
        _check_address(address, loopback=limits.loopback)
    try:
        with socket.create_connection((str(found[0]), port), timeout=_left(ends)) as plain:
            if parts.scheme == "http":
                return _answer(plain, parts, limits, accept, ends)
            plain.settimeout(_left(ends))
            with (context or ssl.create_default_context()).wrap_socket(plain, server_hostname=host) as secured:
                return _answer(secured, parts, limits, accept, ends)
    except TimeoutError as error:
        raise _slow() from error
    except (OSError, ValueError) as error:
        raise UnavailableError("a host could not be reached", code="PROVIDER_FAILED") from error


def _checked(url: str, limits: FetchLimits) -> SplitResult:
    """Take an address apart, and refuse it unless it is on the list."""
    refused = DeniedError("an address that is not allowed", code="FETCH_REFUSED")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise refused
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise refused from error
    host = parts.hostname or ""
    names = {
        f"{host}:{port or _PORTS.get(parts.scheme)}",
        *((host,) if port in {None, _PORTS.get(parts.scheme)} else ()),
    }
    if (
        parts.scheme not in _PORTS
        or (parts.scheme == "http" and not limits.loopback)
        or parts.username is not None
        or parts.password is not None
        or parts.fragment
        or not names & limits.hosts
    ):
        raise refused
    return parts


def _check_address(address: IPv4Address | IPv6Address, *, loopback: bool) -> None:
    """Refuse an address of this house: private, local, reserved, or one of those in another dress."""
    inner: IPv4Address | IPv6Address = address
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        inner = embedded or address
    if loopback and inner.is_loopback:
        return
    site_local = isinstance(inner, IPv6Address) and inner.is_site_local  # fec0::/10, which Python calls global
    if not inner.is_global or inner.is_multicast or inner.is_reserved or site_local or loopback:
        raise DeniedError("an address that is not allowed", code="FETCH_REFUSED")


def _addresses(host: str, port: int, resolve: Resolve, ends: float) -> list[IPv4Address | IPv6Address]:
    """Resolve a name once, within the time; the system's resolver has no limit of its own."""
    if not _RESOLVERS.acquire(timeout=_left(ends)):
        raise _slow()
    found: list[Sequence[str]] = []

    def look() -> None:
        try:
            found.append(resolve(host, port))
        except (OSError, ValueError, MaiaError):  # ValueError: a name that cannot be written as one
            found.append(())
        finally:
            _RESOLVERS.release()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_left(ends))
    if not found:
        raise _slow()
    try:
        addresses = [ip_address(text.partition("%")[0]) for text in found[0]]
    except ValueError:
        addresses = []
    if not addresses:
        raise UnavailableError("a host has no address", code="PROVIDER_FAILED")
    return addresses


def _system(host: str, port: int) -> Sequence[str]:
    return [str(item[4][0]) for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _answer(line: socket.socket, parts: SplitResult, limits: FetchLimits, accept: str, ends: float) -> bytes:
    """Ask, read to the end within the limits, and take nothing but a plain 200."""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # HTTP/1.0: the answer comes in one piece and ends with the connection.
    lines = [f"GET {target} HTTP/1.0", f"Host: {parts.netloc}", f"Accept: {accept}", "Connection: close", "", ""]
    line.settimeout(_left(ends))
    line.sendall("\r\n".join(lines).encode("ascii"))
    data = bytearray()
    while True:
        line.settimeout(_left(ends))
        piece = line.recv(65_536)
        if not piece:
            break
        data += piece
        if len(data) > _HEAD + limits.octets:
            raise UnavailableError("an answer is too large", code="PROVIDER_LIMIT")
    head, mark, body = bytes(data).partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    headers = [field.partition(b":") for field in fields]
    names = {name.strip().lower(): value.strip() for name, _, value in headers}
    length = names.get(b"content-length")
    whole = length is None or (length.isdigit() and len(length) <= 9 and int(length) == len(body))
    if status is None or not mark or len(head) > _HEAD or b"transfer-encoding" in names or not whole:
        raise UnavailableError("an answer is not well-formed", code="PROVIDER_VALUE")
    if len(body) > limits.octets:
        raise UnavailableError("an answer is too large", code="PROVIDER_LIMIT")
    if status[1] != b"200":
        raise UnavailableError(f"a host answers {status[1].decode()}", code="PROVIDER_FAILED")
    return body


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise _slow()
    return left


def _slow() -> UnavailableError:
    return UnavailableError("a host took too long", code="PROVIDER_SLOW")
