"""Running a service: where it listens, with which certificate, until it is told to stop.

Without TLS a service listens on this machine only. A stop lets requests under way end, within a limit.
"""

from __future__ import annotations

import ipaddress
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from maia.errors import MalformedError, NotFoundError, UnavailableError, UsageError
from maia.services.http.connections import GuardedProtocol
from maia.services.http.sockets import GuardedSocket
from maia.wire import LOOPBACK, channel_of

_STOP_SECONDS = 5
_KEEP_ALIVE_SECONDS = 15
_PING_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a service listens.

    Attributes:
        host: An address of this machine; without TLS a loopback address.
        port: The port.
        certificate: The server's certificate chain (PEM), for TLS.
        private_key: Its private key (PEM).
        names: Further hosts, with ports unless 443, by which clients know the service.
    """

    host: str = "127.0.0.1"
    port: int
    certificate: Path | None = None
    private_key: Path | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse half a certificate, and a network without one."""
        if (self.certificate is None) != (self.private_key is None):
            raise UsageError("TLS needs a certificate and its private key", code="TLS_CERTIFICATE")
        if self.certificate is None and not _is_loopback(self.host):
            raise UsageError(f"`{self.host}` is no loopback address: other machines need TLS", code="TLS_REQUIRED")

    @property
    def authorities(self) -> frozenset[str]:
        """The hosts that this service is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        local = {f"localhost:{self.port}"} if _is_loopback(self.host) else set()
        standard = {host} if self.port == (80 if self.certificate is None else 443) else set()
        return frozenset({f"{host}:{self.port}", *local, *standard, *self.names})

    def channel(self) -> bytes:
        """Return what handshakes over these connections are bound to.

        Raises:
            NotFoundError: There is no such certificate.
            MalformedError: It is none.
        """
        if self.certificate is None:
            return LOOPBACK
        try:
            text = self.certificate.read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError("there is no certificate to read", code="NO_FILE") from error
        end = "-----END CERTIFICATE-----"
        start = text.find("-----BEGIN CERTIFICATE-----")
        try:
            first = ssl.PEM_cert_to_DER_cert(text[start : text.index(end) + len(end)])
        except ValueError as error:
            raise MalformedError("not a certificate of a server", code="TLS_CERTIFICATE") from error
        return channel_of(first)


App = FastAPI
"""A service over HTTP."""


def serve(
    app: App,
    listening: Listening,
    *,
    started: Callable[[int], None] = lambda _port: None,
    websocket: int | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then let what is under way end; for the main thread of a process.

    Args:
        app: What `make_app` made.
        listening: Where.
        started: Called with the port once connections are accepted.
        websocket: Octets of a message, for a service that has connections; the others have none.

    Raises:
        UnavailableError: The address cannot be used.
    """
    server = _Server(_configure(app, listening, websocket), started)
    # uvicorn ends its work at SIGTERM and then sends the signal on; being told to stop is no failure.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except SystemExit as error:
        raise UnavailableError(f"cannot serve on port {listening.port}", code="ADDRESS_UNAVAILABLE") from error
    finally:
        signal.signal(signal.SIGTERM, before)
    if not server.started:
        raise UnavailableError("the service did not start", code="ADDRESS_UNAVAILABLE")


def _configure(app: FastAPI, listening: Listening, websocket: int | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=listening.host,
        port=listening.port,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.private_key,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        lifespan="on",
        ws="none" if websocket is None else GuardedSocket,
        ws_max_size=websocket or 0,
        ws_per_message_deflate=False,  # what is compressed with what others chose tells its length
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        h11_max_incomplete_event_size=32 << 10,
        http=GuardedProtocol,
        backlog=2048,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[int], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override] # the same, typed
        """Tell that connections are accepted."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._tell(self.servers[0].sockets[0].getsockname()[1])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
