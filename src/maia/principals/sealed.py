"""Private keys at rest: one canonical expression, sealed under a passphrase.

    (private-key (version "1") (ed25519 <public>) (scrypt <salt> "<n>" "<r>" "<p>") (aes-256-gcm <nonce> <sealed seed>))
    (private-key (version "1") (ed25519 <public>) (unsealed <seed>))

Rules kept here:

- a sealed file says nothing about the seed; its header (version, public key, salt, cost, nonce) is sealed along, so a
  changed header opens nothing;
- the cost is bounded on reading on both sides: a file can neither demand unbounded work nor ask for a weak derivation;
- a wrong passphrase and a damaged file give one and the same error;
- what comes out is the seed of exactly the public key that the header names;
- a key that is not sealed says so itself; nobody takes it for a sealed one.

Bytes in, bytes out: chance comes from the caller, the disk belongs to `maia.home`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, KeyFormatError, UsageError
from maia.principals.keys import ALGORITHM
from maia.principals.signing import KeySigner

SALT_LENGTH = 16
NONCE_LENGTH = 12
KEY_FILE_LIMITS = SexpLimits(max_bytes=4096, max_depth=4, max_atom=256)
_VERSION: Sexp = (b"version", b"1")
_COST = (1 << 15, 8, 1)
_LEAST_N, _MOST_N, _ONLY_R, _MOST_P = 1 << 15, 1 << 17, 8, 4
_CIPHER = b"aes-256-gcm"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sealed:
    public: bytes
    salt: bytes
    cost: tuple[int, int, int]
    nonce: bytes
    box: bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Unsealed:
    public: bytes
    seed: bytes


def seal_private_key(seed: bytes, passphrase: str, *, salt: bytes, nonce: bytes) -> bytes:
    """Seal a private key under a passphrase.

    Args:
        seed: The 32 octets of the private key.
        passphrase: Any text that is not empty; it is normalised, so that it can be typed on any keyboard.
        salt: 16 fresh random octets.
        nonce: 12 fresh random octets.

    Returns:
        The canonical bytes of the sealed key, which `open_private_key` reads.

    Raises:
        KeyFormatError: The seed has another length.
        UsageError: The passphrase is empty, or salt or nonce has another length.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - slow; most commands open no key

    if not passphrase:
        raise UsageError("a passphrase is not empty", code="EMPTY_PASSPHRASE")
    if len(salt) != SALT_LENGTH or len(nonce) != NONCE_LENGTH:
        raise UsageError(f"sealing a key takes a salt of {SALT_LENGTH} octets and a nonce of {NONCE_LENGTH}")
    public = KeySigner(seed).public_key.raw
    header = _header(public, salt, _COST, nonce)
    box = AESGCM(_derive(passphrase, salt, _COST)).encrypt(nonce, bytes(seed), header)
    return encode((b"private-key", _VERSION, (ALGORITHM, public), _scrypt(salt, _COST), (_CIPHER, nonce, box)))


def plain_private_key(seed: bytes) -> bytes:
    """Write a private key without sealing it; the bytes say so, and whoever reads them has the key."""
    public = KeySigner(seed).public_key.raw
    return encode((b"private-key", _VERSION, (ALGORITHM, public), (b"unsealed", bytes(seed))))


def is_sealed(data: bytes) -> bool:
    """Tell whether opening these bytes takes a passphrase.

    Raises:
        KeyFormatError: They are no private key of this form.
    """
    return isinstance(_parse(data), _Sealed)


def open_private_key(data: bytes, passphrase: str | None) -> bytes:
    """Open a private key.

    Args:
        data: What `seal_private_key` or `plain_private_key` wrote.
        passphrase: What it was sealed under; not used for a key that is not sealed.

    Returns:
        The seed of the public key that the bytes name.

    Raises:
        KeyFormatError: ``KEY_PASSPHRASE`` when the passphrase is wrong or missing or the bytes are damaged,
            ``KEY_FILE_COST`` when opening would cost more (or less) than allowed, ``KEY_FILE_SHAPE`` otherwise.
    """
    key = _parse(data)
    seed = key.seed if isinstance(key, _Unsealed) else _unseal(key, passphrase)
    # SECURITY: the public half is what people compare; it must not be anybody else's.
    if len(seed) != 32 or KeySigner(seed).public_key.raw != key.public:
        raise cannot_open()
    return seed


def _unseal(key: _Sealed, passphrase: str | None) -> bytes:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

    if not passphrase:
        raise needs_passphrase()
    header = _header(key.public, key.salt, key.cost, key.nonce)
    try:
        return AESGCM(_derive(passphrase, key.salt, key.cost)).decrypt(key.nonce, key.box, header)
    except InvalidTag:
        raise cannot_open() from None


def cannot_open() -> KeyFormatError:
    """Make the one error for a wrong passphrase and for damage."""
    return KeyFormatError("the passphrase is wrong, or the key file is damaged", code="KEY_PASSPHRASE")


def needs_passphrase() -> KeyFormatError:
    """Make the error for a sealed key without a passphrase."""
    return KeyFormatError("the key is sealed and needs its passphrase", code="KEY_PASSPHRASE")


def _derive(passphrase: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    n, r, p = cost
    text = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    memory = 128 * r * (n + p + 2) + (1 << 20)
    return hashlib.scrypt(text, salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=32)


def _scrypt(salt: bytes, cost: tuple[int, int, int]) -> Sexp:
    return (b"scrypt", salt, *(b"%d" % number for number in cost))


def _header(public: bytes, salt: bytes, cost: tuple[int, int, int], nonce: bytes) -> bytes:
    return encode((b"private-key", _VERSION, (ALGORITHM, public), _scrypt(salt, cost), (_CIPHER, nonce)))


def _parse(data: bytes) -> _Sealed | _Unsealed:
    try:
        expression = parse_canonical(data, limits=KEY_FILE_LIMITS)
    except EncodingError as error:
        raise KeyFormatError("not a private key file", code="KEY_FILE_SHAPE") from error
    match expression:
        case (b"private-key", version, (algorithm, bytes() as public), *rest) if algorithm == ALGORITHM:
            if version != _VERSION:
                raise KeyFormatError("a private key file of an unknown version", code="KEY_FILE_VERSION")
        case _:
            raise KeyFormatError("not a private key file", code="KEY_FILE_SHAPE")
    match rest:
        case [(b"unsealed", bytes() as seed)]:
            return _Unsealed(public=public, seed=seed)
        case [
            (b"scrypt", bytes() as salt, bytes() as n, bytes() as r, bytes() as p),
            (cipher, bytes() as nonce, bytes() as box),
        ] if cipher == _CIPHER and len(salt) == SALT_LENGTH and len(nonce) == NONCE_LENGTH:
            return _Sealed(public=public, salt=salt, cost=_parse_cost(n, r, p), nonce=nonce, box=box)
        case _:
            raise KeyFormatError("not a private key file", code="KEY_FILE_SHAPE")


def _parse_cost(*numbers: bytes) -> tuple[int, int, int]:
    if any(not text.isdigit() or len(text) > 8 or text.startswith(b"0") for text in numbers):
        raise KeyFormatError("not a private key file", code="KEY_FILE_SHAPE")
    n, r, p = (int(text) for text in numbers)
    # SECURITY: scrypt takes 128·n·r octets and n·r·p steps; the file must not choose them freely.
    if not _LEAST_N <= n <= _MOST_N or n & (n - 1) or r != _ONLY_R or not 1 <= p <= _MOST_P:
        raise KeyFormatError("the key file asks for a derivation outside the limits", code="KEY_FILE_COST")
    return n, r, p
