"""The border to X.509: an identity becomes a name, and nothing else of it comes in."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

import maia.authority
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


@pytest.mark.requirement("1.16")
def test_nothing_that_decides_knows_x509() -> None:
    """No module of a deciding floor imports or names it, and no public function there takes such an object."""
    modules = [path for floor in DECIDING for path in sorted((SOURCE / floor).rglob("*.py"))]
    assert len([path for path in modules if path.parent.name == "authority"]) > 10
    assert {path.name: words for path in modules if (words := foreign_words(path.read_text("utf-8")))} == {}
    for name in maia.authority.__all__:
        value = getattr(maia.authority, name)
        signature = str(inspect.signature(value)) if inspect.isfunction(value) else ""
        assert "x509" not in signature.lower()


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
