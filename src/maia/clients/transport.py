"""Connections with a limit on the whole of an exchange, to addresses that were checked.

The server's certificate is looked at before anything is sent: it is what a session is bound to.

A limit on each read is not enough: a server that sends one octet a second never passes it. Here every wait, for a
name, a connection, a TLS handshake, each octet in or out, has what is left of the exchange's time and no more.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator

import httpcore2
import httpx2

from maia import wire
from maia.clients.addresses import AddressPolicy, Resolver

_WRITE = 16 << 10


class Deadline:
    """The end of an exchange."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Have no time until `start`."""
        self._monotonic = monotonic
        self._end = 0.0

    def start(self, seconds: float) -> None:
        """Give this much time from now on."""
        self._end = self._monotonic() + seconds

    def left(self) -> float:
        """Return what is left.

        Raises:
            httpcore2.TimeoutException: Nothing is.
        """
        left = self._end - self._monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the exchange took too long")
        return left


class ChannelChangedError(httpcore2.ConnectError):
    """The server shows another certificate than the one that the session is bound to; nothing was sent."""


class Channel:
    """What is known of the server's side of the connection.

    Attributes:
        expected: What connections must be bound to, once a handshake has said so.
        seen: What the newest connection is bound to.
    """

    __slots__ = ("expected", "seen")

    def __init__(self) -> None:
        """Know nothing, and expect a connection without TLS until there is one with it."""
        self.expected: bytes | None = None
        self.seen: bytes = wire.LOOPBACK

    def look(self, certificate: bytes | None) -> None:
        """Take note of a new connection's certificate, or of its absence.

        Raises:
            ChannelChangedError: It is not the expected one.
        """
        self.seen = wire.LOOPBACK if certificate is None else wire.channel_of(certificate)
        if self.expected not in (None, self.seen):
            raise ChannelChangedError("the server has another certificate")


class PinnedTransport(httpx2.BaseTransport):
    """HTTP/1.1 over `_Backend`, without proxies, redirects or retries."""

    def __init__(
        self,
        policy: AddressPolicy,
        deadline: Deadline,
        channel: Channel,
        *,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        """Connect where the policy allows, until the deadline, trusting the system's authorities unless told."""
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls,
            max_connections=1,
            max_keepalive_connections=0,  # a connection that the server closed meanwhile would fail the next request
            network_backend=_Backend(policy, deadline, channel, resolver),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and give its answer, whose body is still to be read."""
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.read(),
        )
        answer = self._pool.handle_request(sent)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, policy: AddressPolicy, deadline: Deadline, channel: Channel, resolver: Resolver | None) -> None:
        self._channel = channel
        self._inner = httpcore2.SyncBackend()
        self._policy = policy
        self._deadline = deadline
        self._resolver = resolver

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        del timeout
        addresses = self._policy.resolve(host, port, seconds=self._deadline.left(), resolver=self._resolver)
        for address in addresses[:-1]:
            try:
                stream = self._inner.connect_tcp(address, port, self._deadline.left(), local_address, socket_options)
                return _Stream(stream, self._deadline, self._channel)
            except httpcore2.ConnectError:
                continue
        stream = self._inner.connect_tcp(addresses[-1], port, self._deadline.left(), local_address, socket_options)
        return _Stream(stream, self._deadline, self._channel)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline, channel: Channel) -> None:
        self._inner = inner
        self._deadline = deadline
        self._channel = channel

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout
        return self._inner.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        for start in range(0, len(buffer), _WRITE):
            self._inner.write(buffer[start : start + _WRITE], self._deadline.left())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        del timeout
        stream = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left())
        try:
            self._channel.look(stream.get_extra_info("ssl_object").getpeercert(True))
        except BaseException:
            stream.close()
            raise
        return _Stream(stream, self._deadline, self._channel)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)
