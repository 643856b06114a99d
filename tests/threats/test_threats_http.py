"""Threats over HTTP: being sent to places that only this machine can reach, and somebody between client and service."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from echo_service import Echo, free_port
from maia.clients import AddressPolicy, ClientLimits, ServiceClient
from maia.errors import MalformedError, SignatureError, UnavailableError
from maia.principals import KeySigner
from maia.services import http

ALICE, SERVER = KeySigner(b"a" * 32), KeySigner(b"s" * 32)


@contextmanager
def canary() -> Iterator[tuple[int, list[Any]]]:
    """Listen on every loopback address and note each connection."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                try:
                    connection, peer = listener.accept()
                except TimeoutError:
                    continue
                seen.append(peer)
                connection.close()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield listener.getsockname()[1], seen
        finally:
            stop.set()
            thread.join()


PRIVATE = {
    "loopback": "https://127.0.0.1:{port}",
    "loopback without TLS": "http://127.0.0.1:{port}",
    "loopback, another": "https://127.1.2.3:{port}",
    "loopback, short": "https://127.1:{port}",
    "loopback, decimal": "https://2130706433:{port}",
    "loopback, octal": "https://0177.0.0.1:{port}",
    "loopback, hexadecimal": "https://0x7f000001:{port}",
    "loopback, hexadecimal parts": "https://0x7f.0.0.1:{port}",
    "loopback, leading zeros": "https://127.000.000.001:{port}",
    "loopback, version 6": "https://[::1]:{port}",
    "loopback, mapped": "https://[::ffff:127.0.0.1]:{port}",
    "loopback, mapped in hexadecimal": "https://[::ffff:7f00:1]:{port}",
    "loopback, translated": "https://[64:ff9b::7f00:1]:{port}",
    "loopback, 6to4": "https://[2002:7f00:1::]:{port}",
    "unspecified": "https://0.0.0.0:{port}",
    "unspecified, version 6": "https://[::]:{port}",
    "metadata": "https://169.254.169.254",
    "metadata, version 6": "https://[fd00:ec2::254]",
    "a private network": "https://10.0.0.1",
    "another private network": "https://192.168.1.1",
    "a carrier's network": "https://100.64.0.1",
    "many at once": "https://224.0.0.1",
    "by a user's name": "https://keys.example@127.0.0.1:{port}",
    "with a back slash": "https://127.0.0.1:{port}\\@keys.example",
    "with an encoded dot": "https://127%2e0.0.1:{port}",
    "with a wide dot": "https://127。0。0。1:{port}",
    "with a line break": "https://keys.example\n.127.0.0.1:{port}",
    "a file": "file:///etc/passwd",
    "another protocol": "gopher://127.0.0.1:{port}/_x",
    "a zone": "https://[fe80::1%25lo]:{port}",
}


@pytest.mark.threat("T58")
@pytest.mark.parametrize("form", PRIVATE.values(), ids=PRIVATE)
def test_no_address_leads_to_private_space(form: str) -> None:
    """Refused before a connection is made: the listener sees nobody."""
    with canary() as (port, seen):
        with pytest.raises(MalformedError):
            ServiceClient(form.format(port=port), signer=ALICE, server_key=SERVER.public_key)
        assert seen == []


REBOUND = {
    "to loopback": ("127.0.0.1",),
    "to one public and one private address": ("93.184.215.14", "127.0.0.1"),
    "to loopback, mapped": ("::ffff:127.0.0.1",),
    "to metadata": ("169.254.169.254",),
}


@pytest.mark.threat("T58")
@pytest.mark.parametrize("addresses", REBOUND.values(), ids=REBOUND)
def test_a_name_that_resolves_to_private_space_is_refused(addresses: tuple[str, ...]) -> None:
    """The address that is connected to is the one that was checked."""
    asked = []

    def resolver(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return addresses

    with canary() as (port, seen):
        url = f"https://keys.example:{port}"
        with (
            ServiceClient(url, signer=ALICE, server_key=SERVER.public_key, resolver=resolver) as client,
            pytest.raises(MalformedError) as refusal,
        ):
            client.call("GET", "/v1/x")
        assert (refusal.value.code, asked, seen) == ("PRIVATE_ADDRESS", ["keys.example"], [])


@pytest.mark.threat("T58")
def test_a_name_is_resolved_once_for_a_connection(tmp_path: Path) -> None:
    """A name that has another address the next time it is asked for is used as it was checked."""
    echo = Echo(str(tmp_path / "store.db"), **tls_files(tmp_path, "keys.example"))
    asked = []

    def resolver(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return ("127.0.0.1",) if len(asked) <= 3 else ("169.254.169.254",)

    echo_url = f"https://keys.example:{echo.port}"
    with named(echo, f"keys.example:{echo.port}"):
        client = ServiceClient(
            echo_url,
            signer=echo.owner,
            server_key=echo.server.public_key,
            policy=AddressPolicy(loopback=True),
            tls=trusting(tmp_path),
            clock=echo.clock,
            resolver=resolver,
        )
        with client:
            assert client.call("GET", "/v1/things/gold") == {"word": "gold"}
            assert asked == ["keys.example"] * 3  # two questions of the handshake and the request
            with pytest.raises(MalformedError) as refusal:
                client.call("GET", "/v1/things/gold")
    assert refusal.value.code == "PRIVATE_ADDRESS"


def test_networks_that_are_named_are_allowed_and_hosts_that_are_not_are_refused() -> None:
    """The configuration opens what it names, and no more."""
    policy = AddressPolicy.reading(networks=("10.2.0.0/16", "fd12::/16"))
    for allowed in ("https://10.2.3.4", "https://[fd12::1]:8443", "https://[::ffff:10.2.3.4]"):
        policy.parse(allowed)
    with pytest.raises(MalformedError):
        policy.parse("https://10.3.0.1")
    with pytest.raises(MalformedError):
        AddressPolicy(hosts=frozenset(("keys.example",))).parse("https://other.example")
    with pytest.raises(MalformedError):
        AddressPolicy(loopback=True).parse("http://93.184.215.14")
    policy.check(IPv4Address("93.184.215.14"))


def tls_files(folder: Path, *names: str) -> dict[str, Path]:
    """Make a certificate of a server that this folder's authority signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = [x509.IPAddress(IPv4Address("127.0.0.1"))]
    alternatives += [x509.DNSName(text) for text in names]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([*alternatives, x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    certificate, private = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return {"certificate": certificate, "private_key": private}


def trusting(*folders: Path) -> Any:
    """Trust these folders' authorities, and no other."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for folder in folders:
        context.load_verify_locations(folder / "server.pem")
    return context


@contextmanager
def named(echo: Echo, *names: str) -> Iterator[None]:
    """Run a service that is known by further names."""
    real = http.Listening

    def listening(**options: Any) -> http.Listening:
        return real(**options, names=names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "Listening", listening)
        with echo.running():
            yield


def test_a_client_talks_to_its_service_over_tls(tmp_path: Path) -> None:
    """Both proofs are bound to the service's certificate."""
    echo = Echo(str(tmp_path / "store.db"), **tls_files(tmp_path, "localhost"))
    with echo.running(), echo.client(tls=trusting(tmp_path)) as client:
        assert client.call("GET", "/v1/things/gold") == {"word": "gold"}


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """The system's authorities know nothing of this one."""
    echo = Echo(str(tmp_path / "store.db"), **tls_files(tmp_path, "localhost"))
    with echo.running(), echo.client() as client, pytest.raises(UnavailableError) as refusal:
        client.call("GET", "/v1/things/gold")
    assert refusal.value.code == "PEER_UNAVAILABLE"


@contextmanager
def in_between(echo: Echo, folder: Path) -> Iterator[int]:
    """Stand between client and service: end the client's TLS with another good certificate, and pass all octets on."""
    import ssl

    front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    front.load_cert_chain(folder / "server.pem", folder / "server.key")
    back = trusting(echo.certificate.parent if echo.certificate else folder)
    stop = threading.Event()

    def pump(client: ssl.SSLSocket, server: ssl.SSLSocket) -> None:
        # one thread for both ways: TLS of one connection is not for two
        other = {client: server, server: client}
        with client, server, suppress(OSError):
            while not stop.is_set():
                held = [side for side in other if side.pending()]
                for side in held or select.select(list(other), [], [], 0.1)[0]:
                    side.settimeout(0.05)  # what is there may be of TLS alone
                    try:
                        part = side.recv(65536)
                    except TimeoutError:
                        continue
                    if not part:
                        return
                    other[side].settimeout(10)
                    other[side].sendall(part)

    def work(listener: socket.socket) -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
                client = front.wrap_socket(connection, server_side=True)
                server = back.wrap_socket(
                    socket.create_connection(("127.0.0.1", echo.port)), server_hostname="127.0.0.1"
                )
            except OSError:
                continue
            threading.Thread(target=pump, args=(client, server), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=work, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def test_somebody_in_between_with_a_good_certificate_gains_nothing(tmp_path: Path) -> None:
    """Trusted by the client's TLS, passing the service's own answers on: the proofs are for another channel."""
    echo = Echo(str(tmp_path / "store.db"), **tls_files(tmp_path / "server", "localhost"))
    tls_files(tmp_path / "between", "localhost")
    trusted = trusting(tmp_path / "server", tmp_path / "between")
    with in_between(echo, tmp_path / "between") as port, named(echo, f"127.0.0.1:{port}"):
        deceived = ServiceClient(
            f"https://127.0.0.1:{port}",
            signer=echo.owner,
            server_key=echo.server.public_key,
            policy=AddressPolicy(loopback=True),
            limits=ClientLimits(seconds=60),
            tls=trusted,
            clock=echo.clock,
        )
        with deceived as client, pytest.raises(SignatureError):
            client.call("GET", "/v1/things/gold")


def test_a_service_that_changes_its_certificate_is_met_with_a_new_handshake(tmp_path: Path) -> None:
    """A session is bound to one certificate; nothing is sent over another before a new handshake."""
    port = free_port()
    first = Echo(str(tmp_path / "store.db"), port=port, **tls_files(tmp_path / "one", "localhost"))
    second = Echo(
        first.database_url,
        port=port,
        server=first.server,
        owner=first.owner,
        **tls_files(tmp_path / "two", "localhost"),
    )
    with first.client(tls=trusting(tmp_path / "one", tmp_path / "two")) as client:
        with first.running():
            client.call("GET", "/v1/things/gold")
            before = client._channel.expected
        with second.running():
            assert client.call("GET", "/v1/things/gold") == {"word": "gold"}
        assert client._channel.expected not in (None, before)
