"""The border to X.509: an identity becomes a name, and nothing else of it comes in."""

from __future__ import annotations

import ast
import inspect
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

import maia.authority
import maia.encryption
import maia.filters
import maia.labels
import maia.policy
import maia.routing
from maia.authority import Action, Verifier, ask_type, type_right
from maia.errors import EncodingError, KeyFormatError
from maia.principals import (
    Authorisation,
    Certificate,
    KeySigner,
    Name,
    Naming,
    Period,
    issue,
    name_certificate_from_x509,
)
from maia.testing import Command

SOURCE = Path(__file__).resolve().parents[2] / "src" / "maia"


AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


DAY = timedelta(days=1)


MET = KeySigner(b"m" * 32)


SMITH = KeySigner(b"s" * 32)


SMITH_KEY = Ed25519PrivateKey.from_private_bytes(b"s" * 32)


CA_KEY = Ed25519PrivateKey.from_private_bytes(b"c" * 32)


def usage(*, cert_sign: bool) -> x509.KeyUsage:
    """A key usage that may, or may not, sign certificates."""
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=cert_sign, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


AUTHORITY = x509.BasicConstraints(ca=True, path_length=0)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What goes into an X.509 certificate; by default a good one."""

    names: tuple[str, ...] = ("Smith",)
    key: CertificateIssuerPrivateKeyTypes = SMITH_KEY
    issuer: str = "Police CA"
    signed_by: CertificateIssuerPrivateKeyTypes = CA_KEY
    starts: datetime = AT - DAY
    ends: datetime = AT + 30 * DAY
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = ()

    def make(self) -> x509.Certificate:
        """Sign it."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in self.names]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.issuer)]))
            .public_key(self.key.public_key())
            .serial_number(1)
            .not_valid_before(self.starts)
            .not_valid_after(self.ends)
        )
        for extension, critical in self.extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self.signed_by, None if isinstance(self.signed_by, Ed25519PrivateKey) else hashes.SHA256())

    def pem(self) -> bytes:
        """Sign it and write it as text."""
        return self.make().public_bytes(Encoding.PEM)


def anchor(
    *,
    name: str = "Police CA",
    key: CertificateIssuerPrivateKeyTypes = CA_KEY,
    starts: datetime = AT - 10 * DAY,
    ends: datetime = AT + 365 * DAY,
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = ((AUTHORITY, True), (usage(cert_sign=True), True)),
) -> bytes:
    """Make a self-signed trust anchor."""
    return Identity(
        names=(name,), issuer=name, key=key, signed_by=key, starts=starts, ends=ends, extensions=extensions
    ).pem()


ANCHOR = anchor()


def imported(data: bytes, *, authority: bytes = ANCHOR, name: str | None = None, at: datetime = AT) -> Certificate:
    """Bring an identity into Met's namespace."""
    return name_certificate_from_x509(data, authority=authority, issuer=MET, name=name, at=at)


@pytest.mark.requirement("1.16")
def test_an_x509_identity_becomes_a_name_at_the_border() -> None:
    """CN=Smith becomes Met:smith -> P_Smith, and a grant to that name reaches Smith's key through it alone."""
    certificate = imported(Identity().pem())
    assert certificate.body == Naming(
        issuer=MET.public_key,
        name="smith",
        subject=SMITH.public_key,
        period=Period(AT - DAY, AT + 30 * DAY),
    )
    right = type_right(MET.public_key, "Sighting", actions=[Action.SUBSCRIBE]).to_sexp()
    to_name = issue(
        Authorisation(issuer=MET.public_key, subject=Name(MET.public_key, ("smith",)), delegate=False, tag=right), MET
    )
    request = ask_type(Action.SUBSCRIBE, MET.public_key, "Sighting", "1")
    verifier = Verifier()
    with_name, without = (to_name.raw, certificate.raw), (to_name.raw,)
    assert verifier.decide(request, principal=SMITH.public_key, evidence=with_name, at=AT)
    assert not verifier.decide(request, principal=SMITH.public_key, evidence=without, at=AT)
    beside = (to_name.raw, Identity().pem(), Identity().make().public_bytes(Encoding.DER))
    assert not verifier.decide(request, principal=SMITH.public_key, evidence=beside, at=AT), "X.509 is no evidence"
    assert not verifier.decide(request, principal=SMITH.public_key, evidence=with_name, at=AT + 31 * DAY)


DECIDING = ["authority", "kernel", "policy", "routing", "encryption", "filters", "labels", "reasoning"]


def foreign_words(source: str) -> list[str]:
    """List the imports of a module that bring X.509 in."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if "x509" in alias.name]
        elif isinstance(node, ast.ImportFrom):
            found += [alias.name for alias in node.names if "x509" in f"{node.module}.{alias.name}"]
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            found += [name] if "x509" in name else []
    return found


DOORS = (maia.authority, maia.encryption, maia.filters, maia.labels, maia.policy, maia.routing)


def signatures(package: ModuleType) -> list[str]:
    """Write what the public functions of a package, and the methods of its public classes, take and give."""
    public = [getattr(package, name) for name in package.__all__]
    methods = [item for value in public if isinstance(value, type) for item in vars(value).values()]
    return [str(inspect.signature(item)) for item in (*public, *methods) if inspect.isfunction(item)]


@pytest.mark.requirement("1.16")
def test_nothing_that_decides_knows_x509() -> None:
    """No module of a deciding floor imports or names it; no public function or method there takes such an object."""
    modules = [path for floor in DECIDING for path in sorted((SOURCE / floor).rglob("*.py"))]
    assert len([path for path in modules if path.parent.name == "authority"]) > 10
    assert {path.name: words for path in modules if (words := foreign_words(path.read_text("utf-8")))} == {}
    written = {package.__name__: signatures(package) for package in DOORS}
    assert min(len(found) for found in written.values()) > 5
    assert [text for found in written.values() for text in found if "x509" in text.lower()] == []


@pytest.fixture
def met(maia_command: Command, tmp_path: Path) -> Command:
    """Give the Met's home, and beside it Smith's identity, two others, and the authority's and another's anchor."""
    files = {
        "smith": Identity().pem(),
        "old": Identity(ends=AT - timedelta(hours=1)).pem(),
        "brokers": Identity(names=("Brokers",)).pem(),
        "ca": ANCHOR,
        "evil": anchor(key=Ed25519PrivateKey.from_private_bytes(b"e" * 32)),
    }
    for name, data in files.items():
        (tmp_path / f"{name}.pem").write_bytes(data)
    maia_command.keys("met")
    maia_command.do("key", "import", "inspector", SMITH.public_key.raw.hex())
    return maia_command


AT_NOON = ("--at", "2026-06-01T12:00:00Z")


@pytest.mark.requirement("1.16")
def test_the_command_brings_an_identity_in_as_a_name_and_nothing_else(met: Command, tmp_path: Path) -> None:
    """Met:smith is P_Smith once it was imported, and no sooner; other anchors, other times and X.509 itself give no."""

    def bring(file: str, anchors: str = "ca") -> tuple[str, ...]:
        given = ("--x509", str(tmp_path / f"{file}.pem"), "--anchors", str(tmp_path / f"{anchors}.pem"))
        return ("name", "add", "--from", "met", *given, *AT_NOON)

    asked = ("--as", "inspector", "--type", "met/Sighting@1", "--action", "subscribe")
    met.grant("--from", "met", "--to", "met: smith", "--type", "met/Sighting", "--action", "subscribe",
              "--irrevocable", *AT_NOON)  # fmt: skip
    refused = {
        "another authority": (bring("smith", "evil"), (4, "X509_NOT_ISSUED")),
        "over": (bring("old"), (4, "X509_EXPIRED")),
        "a name that means something": (bring("brokers"), (1, "X509_NAME")),
        "no authority": (bring("smith")[:-4] + AT_NOON, (2, "NAME_OPTIONS")),
        "X.509 as a certificate": (("cert", "add", str(tmp_path / "smith.pem")), (1, "SEXP_NOT_CANONICAL")),
    }
    for what, (line, code) in refused.items():
        assert met.refused(*line) == code, what
    shutil.copy(tmp_path / "smith.pem", met.home / "certificates" / "smith.cert")
    assert met.refused("explain", *asked, *AT_NOON)[0] == 3, "X.509 among the certificates proves nothing"
    (met.home / "certificates" / "smith.cert").unlink()
    assert met.refused("explain", *asked, *AT_NOON)[0] == 3
    made = met.do(*bring("smith"))
    assert (made["kind"], made["name"]) == ("name", "smith")
    assert made["issuer"]["fingerprint"] == met.do("key", "show", "met")["keys"][0]["fingerprint"]
    assert made["subject"]["key"] == SMITH.public_key.raw.hex()
    assert made["valid"]["not_after"] == "2026-07-01T12:00:00Z"
    assert met("explain", *asked, *AT_NOON).code == 0
    assert met.refused("explain", *asked, "--at", "2026-07-02T12:00:00Z")[0] == 3


def test_an_identity_makes_a_domain_no_other_kind_of_group(met: Command, tmp_path: Path) -> None:
    """A domain that has sub-domains gets no broker by way of X.509 either, and nothing is kept."""
    met.keys("kent")
    met.do("name", "add", "domains", "--from", "met", "--to", "kent", *AT_NOON)
    before = met.do("cert", "show")["certificates"]
    given = ("--x509", str(tmp_path / "smith.pem"), "--anchors", str(tmp_path / "ca.pem"), *AT_NOON)
    assert met.refused("name", "add", "brokers", "--from", "met", *given)[1] == "DOMAIN_KIND"
    assert met.do("cert", "show")["certificates"] == before
    assert met.refused("name", "add", "--from", "met", "--to", "kent")[1] == "NAME_OPTIONS"


@pytest.mark.requirement("1.16")
def test_another_key_type_is_refused_with_a_way_out() -> None:
    """The message says what to do: make a key here, and name it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(KeyFormatError, match=r"maia key new.*maia name add"):
        imported(Identity(key=key).pem())


@pytest.mark.parametrize("common", ["BROKERS", "bro\u212aers", "Key-Manager", "caf\u00e9"])
def test_a_common_name_becomes_no_name_that_means_something(common: str) -> None:
    """What somebody else's certificate says never makes a key a broker; a name that is given by hand may."""
    with pytest.raises(EncodingError, match="X509_NAME"):
        imported(Identity(names=(common,)).pem())
    assert imported(Identity(names=(common,)).pem(), name="smith").body.name == "smith"
