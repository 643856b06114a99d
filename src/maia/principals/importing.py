"""Keys made by other programs: OpenSSL's PKCS8, OpenSSH's files and lines, plain hexadecimal.

Rules kept here:

- only Ed25519 comes in; another kind is named and refused;
- a public key passes the full test of its point, since a person brought it in by hand;
- a protected file may ask for bounded work only, and for nothing weaker than PBKDF2;
- a wrong passphrase and a damaged file give one and the same error, and no error quotes what was read.
"""

from __future__ import annotations

import base64
import binascii
import re

from maia.encoding import SexpLimits, parse_advanced
from maia.errors import EncodingError, KeyFormatError
from maia.principals.keys import PublicKey
from maia.principals.principal import parse_principal
from maia.principals.sealed import cannot_open, is_sealed, needs_passphrase, open_private_key
from maia.principals.signing import KeySigner

MAX_IMPORT = 16_384
MAX_ITERATIONS = 1 << 22
_OWN_FORM = b"(11:private-key"
_HEX = re.compile(rb"[0-9A-Fa-f]{64}")
_ENCRYPTED = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END ENCRYPTED PRIVATE KEY-----")
_PBKDF2 = bytes.fromhex("06092a864886f70d01050c")  # the object identifier 1.2.840.113549.1.5.12
_LONGEST_DERIVED = 32
_SEQUENCE, _INTEGER = 0x30, 0x02
_SSH_KIND = b"ssh-ed25519"


def import_private_key(data: bytes, passphrase: str | None = None) -> KeySigner:
    """Read an Ed25519 private key: PKCS8 (PEM), OpenSSH, or a key file of Maia.

    Args:
        data: The file.
        passphrase: What protects it; not used for a file that is not protected.

    Raises:
        KeyFormatError: ``KEY_PASSPHRASE`` when the passphrase is missing or wrong or the file is damaged,
            ``KEY_ALGORITHM`` for another kind of key, ``KEY_FILE_COST`` when opening it would cost too much,
            ``KEY_PROTECTION`` for a protection that Maia cannot open, ``KEY_IMPORT`` for anything else.
    """
    text = _bounded(data).strip()
    if text.startswith(_OWN_FORM):
        if is_sealed(text) and not passphrase:
            raise needs_passphrase()
        return KeySigner(open_private_key(text, passphrase))
    if text.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----"):
        if _is_protected_openssh(text):
            # Their derivation is bcrypt, whose rounds the file chooses; it comes in by way of ssh-keygen instead.
            raise KeyFormatError(
                "a protected OpenSSH key; take the passphrase off a copy with `ssh-keygen -p` and import that",
                code="KEY_PROTECTION",
            )
        return _load(text, None, openssh=True)
    if protected := _ENCRYPTED.fullmatch(text):
        _check_cost(protected[1])
        if not passphrase:
            raise needs_passphrase()
        return _load(text, passphrase, openssh=False)
    if text.startswith(b"-----BEGIN PRIVATE KEY-----"):
        return _load(text, None, openssh=False)
    raise KeyFormatError("not a private key in PKCS8, OpenSSH or Maia's form", code="KEY_IMPORT")


def import_public_key(data: bytes) -> PublicKey:
    """Read an Ed25519 public key: PEM, an OpenSSH line, 64 hexadecimal digits, or an S-expression.

    Raises:
        KeyFormatError: It is none of these, or the key is refused.

    >>> import_public_key(b"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").fingerprint
    'pznk-zeg4-vaa3-3y45'
    """
    text = _bounded(data).strip()
    if _HEX.fullmatch(text):
        return PublicKey.import_(bytes.fromhex(text.decode("ascii")))
    if text.startswith(b"("):
        return _from_expression(text)
    if text.startswith(b"-----BEGIN PUBLIC KEY-----"):
        return _from_pem(text)
    if text.startswith(_SSH_KIND + b" "):
        return _from_ssh_line(text)
    if text.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise _other_algorithm()
    raise KeyFormatError("not a public key: PEM, an OpenSSH line, 64 hex digits or an expression", code="KEY_IMPORT")


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_IMPORT:
        raise KeyFormatError(f"a key file has at most {MAX_IMPORT} octets", code="KEY_IMPORT")
    return bytes(data)


def _load(text: bytes, passphrase: str | None, *, openssh: bool) -> KeySigner:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - slow to import, and seldom needed
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - as above
        load_pem_private_key,
        load_ssh_private_key,
    )

    secret = passphrase.encode("utf-8", "surrogatepass") if passphrase else None
    try:
        key = load_ssh_private_key(text, None) if openssh else load_pem_private_key(text, secret)
    except UnsupportedAlgorithm:
        raise _other_algorithm() from None
    except (ValueError, TypeError, IndexError):
        raise cannot_open() if secret else _no_key() from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _other_algorithm()
    return KeySigner(key.private_bytes_raw())


def _is_protected_openssh(text: bytes) -> bool:
    """Tell from the header of an OpenSSH file whether its private half is encrypted."""
    body = b"".join(text.split(b"\n")[1:-1])
    head = _base64(body)
    magic = b"openssh-key-v1\x00"
    if not head.startswith(magic):
        raise _no_key()
    cipher, _ = _ssh_string(head[len(magic) :])
    return cipher != b"none"


def _check_cost(body: bytes) -> None:
    """Refuse a protected PKCS8 file that asks for too much work, before any of it is done."""
    algorithm = _first(_first(_base64(b"".join(body.split()))))
    if _PBKDF2 not in algorithm:
        raise KeyFormatError(
            "a private key protected in another way than PBKDF2; convert it with `openssl pkcs8 -topk8`",
            code="KEY_PROTECTION",
        )
    total = 1
    for number in _integers(algorithm):
        # SECURITY: the numbers are the iterations and the length derived; their product is the work.
        total *= max(number, 1)
        if number > MAX_ITERATIONS or total > MAX_ITERATIONS * _LONGEST_DERIVED:
            raise KeyFormatError("the key file asks for a derivation outside the limits", code="KEY_FILE_COST")


def _integers(der: bytes) -> list[int]:
    """List the integers in nested DER sequences; bounded, since each step consumes octets."""
    found: list[int] = []
    stack = [der]
    while stack:
        rest = stack.pop()
        while rest:
            tag, value, rest = _take(rest)
            if tag == _INTEGER:
                found.append(int.from_bytes(value, "big"))
            elif tag == _SEQUENCE:
                stack.append(value)
    return found


def _first(der: bytes) -> bytes:
    """Give the content of the sequence that ``der`` starts with."""
    tag, value, _ = _take(der)
    if tag != _SEQUENCE:
        raise _no_key()
    return value


def _take(der: bytes) -> tuple[int, bytes, bytes]:
    """Split one DER element off: its tag, its content, and what follows."""
    if len(der) < 2:
        raise _no_key()
    length, start = der[1], 2
    if length >= 0x80:
        start += length & 0x7F
        if not 2 < start <= 4:
            raise _no_key()
        length = int.from_bytes(der[2:start], "big")
    if start + length > len(der):
        raise _no_key()
    return der[0], der[start : start + length], der[start + length :]


def _from_expression(text: bytes) -> PublicKey:
    try:
        key = parse_principal(parse_advanced(text.decode("ascii"), limits=SexpLimits(max_bytes=MAX_IMPORT)))
    except (EncodingError, UnicodeDecodeError) as error:
        raise _no_key() from error
    if not isinstance(key, PublicKey):
        raise _no_key()
    return PublicKey.import_(key.raw)


def _from_pem(text: bytes) -> PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - slow to import, and seldom needed
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415 - as above

    try:
        key = load_pem_public_key(text)
    except UnsupportedAlgorithm:
        raise _other_algorithm() from None
    except ValueError:
        raise _no_key() from None
    if not isinstance(key, Ed25519PublicKey):
        raise _other_algorithm()
    return PublicKey.import_(key.public_bytes_raw())


def _from_ssh_line(text: bytes) -> PublicKey:
    """Read ``ssh-ed25519 <base64> <comment>``: one line, whose inside must be nothing but the key."""
    if b"\n" in text:
        raise _no_key()
    blob = _base64(text.split(None, 2)[1])
    kind, rest = _ssh_string(blob)
    raw, rest = _ssh_string(rest)
    if kind != _SSH_KIND or rest:
        raise _no_key()
    return PublicKey.import_(raw)


def _ssh_string(blob: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(blob[:4], "big")
    if len(blob) < 4 + length:
        raise _no_key()
    return blob[4 : 4 + length], blob[4 + length :]


def _base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _no_key() from None


def _no_key() -> KeyFormatError:
    return KeyFormatError("not a key that can be read", code="KEY_IMPORT")


def _other_algorithm() -> KeyFormatError:
    return KeyFormatError("a key of another kind than ed25519; make one with `maia key new`", code="KEY_ALGORITHM")
