"""Where a client may connect: rules against being sent to places that only this machine can reach.

Rules kept here:

- an address is ``https://host[:port]`` without a user, a path, a query or a fragment; ``http://`` is for loopback, and
  only where the configuration allows loopback;
- a host that is a number in disguise (decimal, octal, hexadecimal, short forms) is refused: resolvers read it as an
  address, people and filters do not;
- a name is resolved once for each connection, and the connection goes to the address that was checked, so a name that
  changes its address in between (rebinding) gains nothing. If one of its addresses is not allowed, none is used;
- an address must be public, or in a network that the configuration names. An IPv4 address inside an IPv6 one is
  looked at as itself.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from maia.errors import MalformedError, UnavailableError, UsageError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], tuple[str, ...]]

_NAME = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_MAX_ADDRESSES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Where connections may go.

    Attributes:
        loopback: Whether this machine's own services may be reached, also without TLS.
        networks: Private networks that may be reached, such as ``10.2.0.0/16``.
        hosts: The only hosts that may be reached, if given.
    """

    loopback: bool = False
    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] | None = None

    @classmethod
    def reading(cls, *, loopback: bool = False, networks: tuple[str, ...] = ()) -> AddressPolicy:
        """Make a policy from the text of a configuration.

        Raises:
            UsageError: A network is not written as one.
        """
        try:
            return cls(loopback=loopback, networks=tuple(ip_network(text) for text in networks))
        except ValueError as error:
            raise UsageError("a network is written like `10.2.0.0/16`", code="NETWORK") from error

    def parse(self, url: str) -> Origin:
        """Read a service's address.

        Raises:
            MalformedError: It is none, or of a kind that this policy refuses.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise MalformedError("not an address of a service", code="SERVICE_ADDRESS") from error
        host = (parts.hostname or "").lower()
        plain = parts.scheme == "http" and self.loopback
        whole = not (parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/"))
        ugly = any(not 0x20 < ord(letter) < 0x7F for letter in url) or "\\" in url or "%" in parts.netloc
        if not (parts.scheme == "https" or plain) or not whole or ugly or port == 0:
            raise MalformedError("a service's address is `https://host[:port]`", code="SERVICE_ADDRESS")
        literal = _literal(host)
        if literal is not None:
            self.check(literal)
        elif not _NAME.fullmatch(host) or _NUMERIC_LABEL.fullmatch(host.rpartition(".")[2]):
            raise MalformedError("the host is neither a name nor an address", code="SERVICE_ADDRESS")
        if self.hosts is not None and host not in self.hosts:
            raise MalformedError(f"`{host}` is not among the hosts that are allowed", code="SERVICE_ADDRESS")
        if plain and not (literal.is_loopback if literal else host == "localhost"):
            raise MalformedError("without TLS a service is on this machine", code="SERVICE_ADDRESS")
        return Origin(scheme=parts.scheme, host=host, port=port or (443 if parts.scheme == "https" else 80))

    def check(self, address: Address) -> None:
        """Refuse an address that is not public, unless its network is named.

        Raises:
            MalformedError: It is not allowed (`PRIVATE_ADDRESS`).
        """
        inner = _unwrap(address)
        if self.loopback and inner.is_loopback:
            return
        if any(inner in network for network in self.networks if network.version == inner.version):
            return
        site_local = isinstance(inner, IPv6Address) and inner.is_site_local  # fec0::/10, which Python calls global
        if not inner.is_global or inner.is_multicast or inner.is_reserved or inner.is_unspecified or site_local:
            raise MalformedError("the address is in a private network", code="PRIVATE_ADDRESS")

    def resolve(self, host: str, port: int, *, seconds: float, resolver: Resolver | None = None) -> tuple[str, ...]:
        """Find the addresses of a host, all of them allowed.

        Raises:
            MalformedError: One is not allowed.
            UnavailableError: The name has no address, or the answer takes too long.
        """
        literal = _literal(host)
        found = (str(literal),) if literal is not None else _bounded(resolver or _ask_system, host, port, seconds)
        for text in found:
            self.check(ip_address(text))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A service's place."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        return f"{self.scheme}://{self.authority}"


def _literal(host: str) -> Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address


def _unwrap(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _ask_system(host: str, port: int) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))[:_MAX_ADDRESSES]


def _bounded(resolver: Resolver, host: str, port: int, seconds: float) -> tuple[str, ...]:
    """Ask in a thread, since the system's resolver knows no limit of time."""
    found: list[tuple[str, ...]] = []

    def ask() -> None:
        try:
            found.append(resolver(host, port))
        except OSError:
            found.append(())

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    if not found or not found[0]:
        raise UnavailableError(f"`{host}` has no address", code="PEER_UNAVAILABLE")
    return found[0]
