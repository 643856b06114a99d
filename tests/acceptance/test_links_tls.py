"""Links over TLS: what is on the wire, and that keys and rights let a broker in, not the name of its host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from gateway_world import Between, GatewayProcess
from link_world import PLACE, PLATE, LinkWorld, make_world, smith_reads
from processes import MAIA, environment, free_port

import maia
from maia.errors import DeniedError, VerificationError
from maia.testing import TYPE_NAME, Command, read_here

EVENTS = 2


def loopback_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate for the loopback address, which has no name, and its private key."""
    key, begun = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) - timedelta(minutes=5)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(begun).not_valid_after(begun + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, private = folder / f"{name}.pem", folder / f"{name}-key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private


class _Served(GatewayProcess):
    """`maia serve log` with TLS, as a process."""

    def __init__(self, home: Path, tls: tuple[Path, Path], between: Between) -> None:
        self.port, self.home, self.tls = free_port(), home, tls
        self.errors = (home.parent / f"log-{self.port}.err").open("w+b")
        self.running = subprocess.Popen(
            [*MAIA, "serve", "log", "--home", str(home), "--port", str(self.port), "--tls-cert", str(tls[0]),
             "--tls-key", str(tls[1]), "--name", between.name],
            stderr=self.errors, env=environment(),
        )  # fmt: skip
        between.far = self.port


@contextmanager
def served_over(home: Path, folder: Path, name: str) -> Iterator[tuple[Between, str]]:
    """Serve a log with a fresh certificate, behind somebody who keeps every octet; give it and the certificate."""
    between, tls = Between(), loopback_certificate(folder, name)
    process = _Served(home, tls, between)
    try:
        process.wait()
        yield between, str(tls[0])
    finally:
        process.kill()
        process.errors.close()
        between.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build the domains, each with its own log; the congestion charge service has published."""
    return make_world(tmp_path_factory.mktemp("links-tls"), events=EVENTS)


@pytest.mark.slow
@pytest.mark.requirement("6.07")
def test_links_are_sealed_and_a_key_lets_in_not_a_host(world: LinkWorld, tmp_path: Path) -> None:
    """The wire shows nothing; a broker that moved is the same one, another with a good certificate is not."""
    met, kent = world.reader(tmp_path), Command(world.relay(tmp_path))
    maia.open(met.home).home.add_public_key("CB", world.homes.network.key("CB"))
    with served_over(world.ccs, tmp_path, "first") as (between, ca):
        address = f"https://{between.name}"
        met.do("link", "add", "ccs", address, "--key", "CB", "--ca", ca)
        assert met.do("link", "pull", "ccs")["events"] == EVENTS
        kent.do("link", "add", "ccs", address, "--key", "CB", "--ca", ca)
        assert kent.do("link", "pull", "ccs")["events"] == EVENTS
        wire = bytes(between.up + between.down)
        assert between.up[:2] == between.down[:2] == b"\x16\x03", "TLS from the first octet on"
        wire_id = world.homes.event_type.type_id.hex().encode()
        assert not [word for word in (PLATE.encode(), PLACE.encode(), wire_id, b"/v1/log") if word in wire]
        # The same host with the same certificate, and another key: who that is, its key says.
        met.do("link", "add", "posing", address, "--key", "KB", "--ca", ca)
        assert met.refused("link", "pull", "posing")[0] == 4
        met.do("link", "add", "unknown", address, "--key", "CB", "--ca", str(loopback_certificate(tmp_path, "no")[0]))
        assert met.refused("link", "pull", "unknown")[0] != 0
    world.publish(1)
    with served_over(world.ccs, tmp_path, "second") as (between, ca):
        met.do("link", "remove", "ccs")
        met.do("link", "add", "ccs", f"https://{between.name}", "--key", "CB", "--ca", ca)
        assert met.do("link", "pull", "ccs")["events"] == 1, "another address and certificate, the same broker"
    assert [row["numberplate"] for row in smith_reads(met.home)] == [PLATE] * (EVENTS + 1)
    # Connecting is not reading: the right to the type is asked for on top.
    kent.keys("carrier")
    with pytest.raises((DeniedError, VerificationError)):
        read_here(maia.open(kent.home).home, TYPE_NAME, as_="carrier")
    ran = Command(world.ccs)("serve", "log", "--host", "0.0.0.0")  # noqa: S104 - it is refused
    assert (ran.code, "TLS_REQUIRED" in ran.err) == (2, True)
