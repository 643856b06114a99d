"""The border to X.509: an identity becomes a name, and nothing else of it comes in."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, ExpiredError, KeyFormatError, MaiaError, SignatureError, UsageError
from maia.principals import (
    Certificate,
    KeySigner,
    Naming,
    Period,
    name_certificate_from_x509,
)

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MET = KeySigner(b"m" * 32)
SMITH = KeySigner(b"s" * 32)
SMITH_KEY = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
CA_KEY = Ed25519PrivateKey.from_private_bytes(b"c" * 32)
CURVE_KEY = ec.derive_private_key(7, ec.SECP256R1())


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


@pytest.mark.parametrize(
    "source",
    [
        "import cryptography.x509",
        "from cryptography import x509",
        "from maia.principals import name_certificate_from_x509",
    ],
)
def test_an_import_of_x509_is_found(source: str) -> None:
    """The inspection above sees each way in."""
    assert foreign_words(source) != []


def test_der_comes_in_as_well_as_pem() -> None:
    """The same identity in either form is the same name certificate."""
    certificate = Identity().make()
    assert imported(certificate.public_bytes(Encoding.DER)).raw == imported(certificate.public_bytes(Encoding.PEM)).raw


def test_a_name_may_be_chosen() -> None:
    """The issuer says what to call a key; the common name is only the default."""
    body = imported(Identity(names=()).pem(), name="Inspector Smith").body
    assert isinstance(body, Naming)
    assert body.name == "Inspector Smith"


def test_one_of_several_anchors_is_enough() -> None:
    """The right one is found wherever it stands, also one with another kind of key."""
    other = anchor(name="Other CA", key=CURVE_KEY)
    assert imported(Identity().pem(), authority=other + ANCHOR).body.period == Period(AT - DAY, AT + 30 * DAY)
    assert imported(Identity(issuer="Other CA", signed_by=CURVE_KEY).pem(), authority=ANCHOR + other)


def test_the_name_ends_with_the_anchor() -> None:
    """An identity is good no longer than who vouches for it."""
    short = anchor(starts=AT - timedelta(hours=1), ends=AT + DAY)
    assert imported(Identity().pem(), authority=short).body.period == Period(AT - timedelta(hours=1), AT + DAY)


@pytest.mark.parametrize("at", [AT - DAY, AT + 30 * DAY])
def test_both_ends_of_the_period_are_inside(at: datetime) -> None:
    """Periods are closed, there as here."""
    assert imported(Identity().pem(), at=at)


UNKNOWN = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00")
CONSTRAINED = x509.NameConstraints(permitted_subtrees=[x509.DNSName("met.example")], excluded_subtrees=None)
REFUSED = {
    "an anchor that did not sign": (
        Identity(signed_by=Ed25519PrivateKey.from_private_bytes(b"x" * 32)).pem(), ANCHOR, SignatureError,
        "X509_NOT_ISSUED",
    ),
    "an issuer of another name": (Identity(issuer="Police  CA").pem(), ANCHOR, SignatureError, "X509_NOT_ISSUED"),
    "itself, without an anchor": (
        Identity(issuer="Smith", signed_by=SMITH_KEY).pem(), ANCHOR, SignatureError, "X509_NOT_ISSUED",
    ),
    "an anchor that is no authority": (
        Identity().pem(), anchor(extensions=((x509.BasicConstraints(ca=False, path_length=None), True),)),
        SignatureError, "X509_NOT_ISSUED",
    ),
    "an anchor that does not say so": (Identity().pem(), anchor(extensions=()), SignatureError, "X509_NOT_ISSUED"),
    "an anchor that may not sign": (
        Identity().pem(), anchor(extensions=((AUTHORITY, True), (usage(cert_sign=False), True))), SignatureError,
        "X509_NOT_ISSUED",
    ),
    "an anchor for other names": (
        Identity().pem(), anchor(extensions=((AUTHORITY, True), (CONSTRAINED, True))), EncodingError, "X509_EXTENSION",
    ),
    "a critical extension nobody knows": (
        Identity(extensions=((UNKNOWN, True),)).pem(), ANCHOR, EncodingError, "X509_EXTENSION",
    ),
    "an expired anchor": (Identity().pem(), anchor(ends=AT - timedelta(seconds=1)), ExpiredError, "X509_EXPIRED"),
    "an expired identity": (
        Identity(ends=AT - timedelta(seconds=1)).pem(), ANCHOR, ExpiredError, "X509_EXPIRED",
    ),
    "an identity of tomorrow": (Identity(starts=AT + DAY).pem(), ANCHOR, ExpiredError, "X509_EXPIRED"),
    "another kind of key": (Identity(key=CURVE_KEY).pem(), ANCHOR, KeyFormatError, "X509_KEY_KIND"),
    "no common name": (Identity(names=()).pem(), ANCHOR, EncodingError, "X509_NAME"),
    "two common names": (Identity(names=("Smith", "Jones")).pem(), ANCHOR, EncodingError, "X509_NAME"),
    "a name with a line in it": (Identity(names=("Smith\nJones",)).pem(), ANCHOR, EncodingError, "NAME_CHARACTER"),
    "two certificates at once": (Identity().pem() * 2, ANCHOR, EncodingError, "X509_SHAPE"),
    "no certificate": (b"junk", ANCHOR, EncodingError, "X509_SHAPE"),
    "nothing": (b"", ANCHOR, EncodingError, "X509_SHAPE"),
    "a huge file": (b"\x30" * 70_000, ANCHOR, EncodingError, "X509_SHAPE"),
    "no anchors": (Identity().pem(), b"", EncodingError, "X509_ANCHORS"),
    "a broken anchor": (Identity().pem(), ANCHOR[:100] + ANCHOR[140:], EncodingError, "X509_ANCHORS"),
    "too many anchors": (Identity().pem(), ANCHOR * 257, EncodingError, "X509_ANCHORS"),
}  # fmt: skip


@pytest.mark.parametrize("data, authority, kind, code", REFUSED.values(), ids=REFUSED)
def test_another_identity_is_refused(data: bytes, authority: bytes, kind: type[MaiaError], code: str) -> None:
    """Each rule of the border refuses."""
    with pytest.raises(kind) as caught:
        imported(data, authority=authority)
    assert caught.value.code == code


def signed_again(der: bytes) -> bytes:
    """Let the authority sign what was changed: one that signs anything does not make it good."""
    return der[:-64] + CA_KEY.sign(x509.load_der_x509_certificate(der).tbs_certificate_bytes)


ED25519 = bytes.fromhex("2b6570")
GOOD = Identity().make().public_bytes(Encoding.DER)
HEAD, SPKI = GOOD[: GOOD.index(SMITH.public_key.raw) - 12], GOOD[GOOD.index(SMITH.public_key.raw) - 12 :]
CRAFTED = {
    "a key of small order": (GOOD.replace(SMITH.public_key.raw, bytes(32)), "KEY_SMALL_ORDER"),
    "a key off the curve": (GOOD.replace(SMITH.public_key.raw, (2).to_bytes(32, "little")), "KEY_NOT_ON_CURVE"),
    "a key of an unknown kind": (HEAD + SPKI.replace(ED25519, b"\x2b\x65\x7f", 1), "X509_KEY_KIND"),
    "a subject that is no text": (GOOD.replace(b"\x0c\x05Smith", b"\x0c\x05Smit\xff"), "X509_NAME"),
}


@pytest.mark.parametrize("der, code", CRAFTED.values(), ids=CRAFTED)
def test_what_an_authority_signed_is_still_checked(der: bytes, code: str) -> None:
    """A signature says who wrote it, not that it is good."""
    assert der != GOOD
    with pytest.raises(MaiaError) as caught:
        imported(signed_again(der))
    assert caught.value.code == code


def test_extensions_that_cannot_be_read_are_refused() -> None:
    """Junk where a known extension should be."""
    junk = x509.UnrecognizedExtension(x509.BasicConstraints.oid, b"junk")
    with pytest.raises(EncodingError) as caught:
        imported(Identity(extensions=((junk, False),)).pem())
    assert caught.value.code == "X509_EXTENSION"


def test_extensions_without_bearing_are_let_by() -> None:
    """Other names, purposes, and whatever is not critical; an authority without a stated usage."""
    extensions = (
        (x509.SubjectAlternativeName([x509.DNSName("smith.example")]), True),
        (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH]), True),
        (usage(cert_sign=False), True),
        (UNKNOWN, False),
    )
    assert imported(Identity(extensions=extensions).pem(), authority=anchor(extensions=((AUTHORITY, True),)))


@pytest.mark.parametrize("digest, accepted", [("sha1", False), ("sha256", True)])
def test_a_signature_over_a_broken_hash_counts_as_none(
    tmp_path: Path, require_tool: Callable[[str], str], digest: str, accepted: bool
) -> None:
    """Who can make two certificates with one hash can make a name that nobody signed."""
    openssl = require_tool("openssl")
    (tmp_path / "ca.pem").write_bytes(anchor(key=CURVE_KEY))
    (tmp_path / "ca.key").write_bytes(CURVE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "smith.key").write_bytes(SMITH_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    subprocess.run(
        [openssl, "req", "-new", "-key", "smith.key", "-subj", "/CN=Smith", "-out", "smith.csr"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        [openssl, "x509", "-req", "-in", "smith.csr", "-CA", "ca.pem", "-CAkey", "ca.key", f"-{digest}",
         "-days", "3650", "-set_serial", "1", "-out", "smith.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    data = (tmp_path / "smith.pem").read_bytes()
    at = x509.load_pem_x509_certificate(data).not_valid_before_utc
    authority = anchor(key=CURVE_KEY, ends=at + DAY)
    if accepted:
        assert imported(data, authority=authority, at=at)
        return
    with pytest.raises(SignatureError) as caught:
        imported(data, authority=authority, at=at)
    assert caught.value.code == "X509_NOT_ISSUED"


@pytest.mark.parametrize("name", ["", "x" * 257, "a\x00b"])
def test_a_chosen_name_must_be_a_name(name: str) -> None:
    """The names of this house have their own rules."""
    with pytest.raises(EncodingError):
        imported(Identity().pem(), name=name)


def test_an_instant_without_a_zone_is_refused() -> None:
    """Time comes in with its zone."""
    with pytest.raises(UsageError):
        imported(Identity().pem(), at=AT.replace(tzinfo=None))


def flips(data: bytes) -> Iterable[bytes]:
    """Flip one bit of every octet."""
    for position in range(len(data)):
        yield data[:position] + bytes([data[position] ^ 1 << position % 8]) + data[position + 1 :]


def test_one_bit_flipped_never_comes_in() -> None:
    """The signature of the anchor covers everything."""
    for damaged in flips(Identity().make().public_bytes(Encoding.DER)):
        with pytest.raises(MaiaError):
            imported(damaged)


@given(st.sampled_from([b"", b"0\x82", b"-----BEGIN CERTIFICATE-----\n"]), st.binary(max_size=100))
def test_any_bytes_raise_only_errors_of_this_house(start: bytes, data: bytes) -> None:
    """Neither as a certificate nor as an anchor."""
    with pytest.raises(MaiaError):
        imported(start + data)
    with pytest.raises(MaiaError):
        imported(Identity().pem(), authority=start + data)
