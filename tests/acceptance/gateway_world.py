"""A gateway of the congestion charge service as a process, its clients, and whoever stands in between."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from processes import MAIA, environment, free_port
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_socket
from websockets.typing import Subprotocol

from maia.clients import AddressPolicy, GatewayClient, GatewaySubscription, connect
from maia.testing import NETWORK_NAME, NumberplateHomes

LOOPBACK = AddressPolicy(loopback=True)
SECONDS = 20.0


def sighting(plate: str, location: str = "Victoria") -> dict[str, Any]:
    """Make what a camera sees."""
    return {"numberplate": plate, "timestamp": "2026-06-01T09:00:00Z", "location": location}


class GatewayProcess:
    """One running gateway of a home."""

    def __init__(self, home: Path, *, tls: tuple[Path, Path] | None = None, names: tuple[str, ...] = ()) -> None:
        """Start it; clients may know it by further names."""
        self.port, self.home, self.tls = free_port(), home, tls
        shown = [] if tls is None else ["--tls-cert", str(tls[0]), "--tls-key", str(tls[1])]
        shown += [part for name in names for part in ("--name", name)]
        self.errors = (home.parent / f"gateway-{self.port}.err").open("w+b")
        self.running = subprocess.Popen(
            [*MAIA, "serve", "gateway", "--home", str(home), "--port", str(self.port), *shown], stderr=self.errors,
            env=environment(),
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Wait until it listens; the test's own limit of time ends an endless wait."""
        while True:
            assert self.running.poll() is None, self.said()
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.05)

    def said(self) -> str:
        """Give what it wrote to its standard error."""
        self.errors.seek(0)
        return self.errors.read().decode()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """End it, wherever it is."""
        if self.running.poll() is None:
            self.running.send_signal(how)
        return self.running.wait()


@contextmanager
def gateway_of(
    home: Path, *, tls: tuple[Path, Path] | None = None, between: tuple[Between, ...] = ()
) -> Iterator[GatewayProcess]:
    """Run a gateway until the block ends, with whoever stands in between; then it is killed if it still runs."""
    process = GatewayProcess(home, tls=tls, names=tuple(one.name for one in between))
    for one in between:
        one.far = process.port
    try:
        process.wait()
        yield process
    finally:
        process.kill()
        process.errors.close()
        for one in between:
            one.close()


def join(gateway: GatewayProcess, world: NumberplateHomes, who: str, **more: Any) -> GatewayClient:
    """Connect as somebody, to a broker that must be in the network."""
    named = {"network": (world.network.key("PITO"), NETWORK_NAME), "policy": LOOPBACK, "seconds": SECONDS}
    return connect(gateway.url, **({"key": world.network.people[who]} | named | more))


def take(subscription: GatewaySubscription, count: int) -> list[dict[str, Any]]:
    """Wait for so many events."""
    found = []
    while len(found) < count:
        event = subscription.next(seconds=SECONDS)
        assert event is not None, f"only {len(found)} of {count} events came"
        found.append(event)
    return found


def plates(events: list[dict[str, Any]]) -> list[str]:
    """Name the plates of events."""
    return [str(event["numberplate"]) for event in events]


@contextmanager
def raw_socket(gateway: GatewayProcess, **more: Any) -> Iterator[ClientConnection]:
    """Speak to a gateway frame by frame."""
    options: dict[str, Any] = {"subprotocols": [Subprotocol("maia.json.v1")], "proxy": None} | more
    with connect_socket(f"ws://127.0.0.1:{gateway.port}/v1/connect", **options) as connection:
        yield connection


def told(connection: ClientConnection) -> dict[str, Any]:
    """Hear one frame."""
    found: dict[str, Any] = json.loads(connection.recv(timeout=SECONDS))
    return found


class Between:
    """Carries octets between clients and a gateway, keeps them, and may end one side's."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, onward: ssl.SSLContext | None = None) -> None:
        """Listen; with contexts it ends the TLS of the client and begins its own."""
        self.far, self._tls, self._onward = 0, tls, onward
        self.up, self.down = bytearray(), bytearray()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                if self._tls is not None:
                    near = self._tls.wrap_socket(near, server_side=True)
                far: socket.socket = socket.create_connection(("127.0.0.1", self.far))
                if self._onward is not None:
                    far = self._onward.wrap_socket(far)
            except OSError:
                return
            self._open += (near, far)
            for source, target, kept in ((near, far, self.up), (far, near, self.down)):
                threading.Thread(target=self._carry, args=(source, target, kept), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        try:
            while data := source.recv(65536):
                kept += data
                target.sendall(self.change(data, kept is self.up))
            target.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            return

    change: Callable[[bytes, bool], bytes] = staticmethod(lambda data, _up: data)

    def close(self) -> None:
        """Carry no more."""
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def self_signed(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate that nobody vouches for, for no host, and its private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begun = datetime.now(UTC) - timedelta(minutes=5)
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(begun)
        .not_valid_after(begun + timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, private = folder / f"{name}.pem", folder / f"{name}-key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private


def any_certificate() -> ssl.SSLContext:
    """Believe every certificate: which broker it is, is proven by its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
