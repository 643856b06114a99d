"""Keys of other programs: OpenSSL, OpenSSH and plain text come in; everything else is refused with a reason."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import KeyFormatError, MaiaError
from maia.principals import (
    KeySigner,
    import_private_key,
    import_public_key,
    plain_private_key,
    seal_private_key,
)

SEED = bytes(range(32))
THEIRS = Ed25519PrivateKey.from_private_bytes(SEED)
OURS = KeySigner(SEED).public_key
PEM = THEIRS.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
LOCKED = THEIRS.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"tulip"))
OPENSSH = THEIRS.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
LINE = THEIRS.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
PUBLIC_PEM = THEIRS.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
CURVE = ec.derive_private_key(7, ec.SECP256R1())

PRIVATE = {
    "PKCS8": (PEM, None),
    "PKCS8, with a passphrase nobody asked for": (PEM, "tulip"),
    "PKCS8 under a passphrase": (LOCKED, "tulip"),
    "PKCS8 with other line ends": (PEM.replace(b"\n", b"\r\n"), None),
    "OpenSSH": (OPENSSH, None),
    "Maia, sealed": (seal_private_key(SEED, "tulip", salt=bytes(16), nonce=bytes(12)), "tulip"),
    "Maia, not sealed": (plain_private_key(SEED), None),
}


@pytest.mark.parametrize("data, passphrase", PRIVATE.values(), ids=PRIVATE)
def test_a_private_key_comes_in(data: bytes, passphrase: str | None) -> None:
    """Each form gives the same seed."""
    assert import_private_key(data, passphrase).export_seed() == SEED


PUBLIC = {
    "PEM": PUBLIC_PEM,
    "an OpenSSH line": LINE,
    "an OpenSSH line with a comment": LINE + b" smith@met example\n",
    "64 digits": OURS.raw.hex().encode(),
    "64 capital digits": b"  " + OURS.raw.hex().upper().encode() + b"\n",
    "an expression": f"(public-key (ed25519 #{OURS.raw.hex()}#))\n".encode(),
    "an expression in base64": b"(public-key (ed25519 |" + base64.b64encode(OURS.raw) + b"|))",
}


@pytest.mark.parametrize("data", PUBLIC.values(), ids=PUBLIC)
def test_a_public_key_comes_in(data: bytes) -> None:
    """Each form gives the same key."""
    assert import_public_key(data) == OURS


def test_keys_made_by_openssh_and_openssl_come_in(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """The programs themselves are the judges of their forms."""
    ssh, ssl = require_tool("ssh-keygen"), require_tool("openssl")
    subprocess.run([ssh, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "ssh"], check=True)
    signer = import_private_key((tmp_path / "ssh").read_bytes())
    assert signer.public_key == import_public_key((tmp_path / "ssh.pub").read_bytes())
    subprocess.run([ssl, "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "ssl"], check=True)
    public = subprocess.run([ssl, "pkey", "-in", tmp_path / "ssl", "-pubout"], check=True, capture_output=True).stdout
    assert import_private_key((tmp_path / "ssl").read_bytes()).public_key == import_public_key(public)
    subprocess.run(
        [ssl, "pkcs8", "-topk8", "-in", tmp_path / "ssl", "-passout", "pass:tulip", "-out", tmp_path / "locked"],
        check=True,
    )
    locked = import_private_key((tmp_path / "locked").read_bytes(), "tulip")
    assert locked.public_key == import_public_key(public)


def test_a_protected_openssh_key_is_refused_with_a_way_out(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """Its derivation lets the file choose the work; the message says what to do instead."""
    subprocess.run(
        [require_tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "tulip", "-f", tmp_path / "ssh"], check=True
    )
    with pytest.raises(KeyFormatError, match="ssh-keygen -p") as caught:
        import_private_key((tmp_path / "ssh").read_bytes(), "tulip")
    assert caught.value.code == "KEY_PROTECTION"


def pem(kind: str, der: bytes) -> bytes:
    """Wrap octets as PEM."""
    return f"-----BEGIN {kind}-----\n{base64.b64encode(der).decode()}\n-----END {kind}-----\n".encode()


def der(tag: int, *content: bytes) -> bytes:
    """Write one DER element."""
    body = b"".join(content)
    size = bytes([len(body)]) if len(body) < 128 else b"\x82" + len(body).to_bytes(2, "big")
    return bytes([tag]) + size + body


def integer(value: int) -> bytes:
    """Write a DER integer."""
    return der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def protected(derivation: str, *numbers: int, cipher_oid: str = "60864801650304012a") -> bytes:
    """Make a protected PKCS8 file that asks for this work."""
    parameters = der(0x30, der(0x04, b"salt" * 4), *(integer(number) for number in numbers))
    function = der(0x30, der(0x06, bytes.fromhex(derivation)), parameters)
    cipher = der(0x30, der(0x06, bytes.fromhex(cipher_oid)), der(0x04, bytes(16)))
    algorithm = der(0x30, der(0x06, bytes.fromhex("2a864886f70d01050d")), der(0x30, function, cipher))
    return pem("ENCRYPTED PRIVATE KEY", der(0x30, algorithm, der(0x04, bytes(64))))


PBKDF2 = "2a864886f70d01050c"
SCRYPT = "2b06010401da47040b"
COSTLY = {
    "2^31 iterations": (protected(PBKDF2, 2**31 - 1), "KEY_FILE_COST"),
    "just over the limit": (protected(PBKDF2, 2**22 + 1), "KEY_FILE_COST"),
    "a long derived key": (protected(PBKDF2, 2**20, 2**20), "KEY_FILE_COST"),
    "a number beyond all numbers": (protected(PBKDF2, 2**500), "KEY_FILE_COST"),
    "scrypt of any cost": (protected(SCRYPT, 2**14, 8, 1), "KEY_PROTECTION"),
}


@pytest.mark.parametrize("data, code", COSTLY.values(), ids=COSTLY)
def test_a_protected_file_cannot_choose_the_work(data: bytes, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before the library sees it."""
    from maia.principals import importing

    monkeypatch.setattr(importing, "_load", lambda *_, **__: pytest.fail("did the work"))
    with pytest.raises(KeyFormatError) as caught:
        import_private_key(data, "tulip")
    assert caught.value.code == code


REFUSED_PRIVATE = {
    "a wrong passphrase": (LOCKED, "rose", "KEY_PASSPHRASE"),
    "no passphrase": (LOCKED, None, "KEY_PASSPHRASE"),
    "no passphrase for a key of ours": (
        seal_private_key(SEED, "tulip", salt=bytes(16), nonce=bytes(12)),
        None,
        "KEY_PASSPHRASE",
    ),
    "a damaged protected key": (protected(PBKDF2, 1000), "tulip", "KEY_PASSPHRASE"),
    "an unknown cipher": (protected(PBKDF2, 1000, cipher_oid="2a0304"), "tulip", "KEY_PASSPHRASE"),
    "an unknown algorithm": (
        pem("PRIVATE KEY", der(0x30, integer(0), der(0x30, der(0x06, b"\x2a\x03\x04")), der(0x04, SEED))),
        None,
        "KEY_ALGORITHM",
    ),
    "another curve": (
        CURVE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        None,
        "KEY_ALGORITHM",
    ),
    "another use of the curve": (
        X25519PrivateKey.from_private_bytes(SEED).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        None,
        "KEY_ALGORITHM",
    ),
    "another curve in OpenSSH's form": (
        CURVE.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
        None,
        "KEY_ALGORITHM",
    ),
    "an old form": (
        CURVE.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
        None,
        "KEY_IMPORT",
    ),
    "a public key": (PUBLIC_PEM, None, "KEY_IMPORT"),
    "junk in PEM": (pem("PRIVATE KEY", b"junk"), None, "KEY_IMPORT"),
    "junk in protected PEM": (pem("ENCRYPTED PRIVATE KEY", b"junk"), "x", "KEY_IMPORT"),
    "an empty sequence": (pem("ENCRYPTED PRIVATE KEY", b"\x30\x00"), "x", "KEY_IMPORT"),
    "a length of lengths": (pem("ENCRYPTED PRIVATE KEY", b"\x30\x8f" + b"\xff" * 20), "x", "KEY_IMPORT"),
    "no sequence": (pem("ENCRYPTED PRIVATE KEY", b"\x04\x02ab"), "x", "KEY_IMPORT"),
    "broken base64": (
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n!!\n-----END OPENSSH PRIVATE KEY-----",
        None,
        "KEY_IMPORT",
    ),
    "no OpenSSH inside": (pem("OPENSSH PRIVATE KEY", b"junk"), None, "KEY_IMPORT"),
    "an OpenSSH header and nothing": (pem("OPENSSH PRIVATE KEY", b"openssh-key-v1\0"), None, "KEY_IMPORT"),
    "an OpenSSH key cut off": (
        pem("OPENSSH PRIVATE KEY", b"openssh-key-v1\0\0\0\0\4none\0\0\0\4none"),
        None,
        "KEY_IMPORT",
    ),
    "a huge file": (b"-----BEGIN PRIVATE KEY-----" + b"A" * 20_000, None, "KEY_IMPORT"),
    "nothing": (b"", None, "KEY_IMPORT"),
}


@pytest.mark.parametrize("data, passphrase, code", REFUSED_PRIVATE.values(), ids=REFUSED_PRIVATE)
def test_another_private_key_is_refused(data: bytes, passphrase: str | None, code: str) -> None:
    """The code says what is wrong, the message quotes nothing of the file."""
    with pytest.raises(KeyFormatError) as caught:
        import_private_key(data, passphrase)
    assert caught.value.code == code
    assert len(data) < 8 or data[28:40].decode("latin-1") not in str(caught.value)


def ssh_line(*parts: bytes) -> bytes:
    """Write an OpenSSH line with this inside."""
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return b"ssh-ed25519 " + base64.b64encode(blob)


REFUSED_PUBLIC = {
    "small order": (bytes(32).hex().encode(), "KEY_SMALL_ORDER"),
    "not canonical": (b"ff" * 32, "KEY_NOT_CANONICAL"),
    "off the curve": ((2).to_bytes(32, "little").hex().encode(), "KEY_NOT_ON_CURVE"),
    "off the curve, in a line": (ssh_line(b"ssh-ed25519", (2).to_bytes(32, "little")), "KEY_NOT_ON_CURVE"),
    "63 digits": (OURS.raw.hex().encode()[1:], "KEY_IMPORT"),
    "another curve": (
        CURVE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "KEY_ALGORITHM",
    ),
    "another line": (CURVE.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH), "KEY_ALGORITHM"),
    "an old line": (b"ssh-rsa AAAA", "KEY_ALGORITHM"),
    "an unknown algorithm": (
        pem("PUBLIC KEY", der(0x30, der(0x30, der(0x06, b"\x2a\x03\x04")), der(0x03, b"\0" + bytes(8)))),
        "KEY_ALGORITHM",
    ),
    "junk in PEM": (pem("PUBLIC KEY", b"junk"), "KEY_IMPORT"),
    "another kind inside": (ssh_line(b"ssh-rsa", OURS.raw), "KEY_IMPORT"),
    "more inside": (ssh_line(b"ssh-ed25519", OURS.raw, b"x"), "KEY_IMPORT"),
    "a short key inside": (ssh_line(b"ssh-ed25519", OURS.raw[1:]), "KEY_LENGTH"),
    "cut off inside": (ssh_line(b"ssh-ed25519", OURS.raw)[:-8], "KEY_IMPORT"),
    "two lines": (LINE + b"\n" + LINE, "KEY_IMPORT"),
    "no base64": (b"ssh-ed25519 !!!", "KEY_IMPORT"),
    "a hash": (f"(hash sha256 #{bytes(32).hex()}#)".encode(), "KEY_IMPORT"),
    "an unfinished expression": (b"(public-key", "KEY_IMPORT"),
    "letters of another alphabet": ("(é)".encode(), "KEY_IMPORT"),
    "a private key": (PEM, "KEY_IMPORT"),
    "nothing": (b"", "KEY_IMPORT"),
}


@pytest.mark.parametrize("data, code", REFUSED_PUBLIC.values(), ids=REFUSED_PUBLIC)
def test_another_public_key_is_refused(data: bytes, code: str) -> None:
    """A key from outside passes the full test, or does not come in."""
    with pytest.raises(KeyFormatError) as caught:
        import_public_key(data)
    assert caught.value.code == code


STARTS = [b"", b"(", b"ssh-ed25519 ", b"ssh-ed25519 AAAA", *(form[:60] for form in (PEM, LOCKED, OPENSSH, PUBLIC_PEM))]


@given(st.sampled_from(STARTS), st.binary(max_size=120))
def test_any_bytes_raise_only_errors_of_this_house(start: bytes, data: bytes) -> None:
    """Readers of files never crash."""
    for call in (lambda: import_private_key(start + data, "x"), lambda: import_public_key(start + data)):
        with pytest.raises(MaiaError):
            call()


@given(st.sampled_from([PEM, LOCKED, OPENSSH]), st.data())
def test_one_damaged_octet_gives_a_key_or_an_error_of_this_house(form: bytes, data: st.DataObject) -> None:
    """Changed base64 may be another key; it is never a crash."""
    position = data.draw(st.integers(0, len(form) - 1))
    damaged = form[:position] + data.draw(st.binary(min_size=1, max_size=1)) + form[position + 1 :]
    with suppress(KeyFormatError):
        assert isinstance(import_private_key(damaged, "tulip"), KeySigner)
