"""Sealed private keys: one form, bounded cost, one error for a wrong passphrase and for damage."""

from __future__ import annotations

import hashlib
from typing import NoReturn

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from hypothesis import given
from hypothesis import strategies as st

from maia.encoding import Sexp, encode, parse_canonical
from maia.errors import KeyFormatError, MaiaError, UsageError
from maia.principals import KeySigner, is_sealed, open_private_key, plain_private_key, seal_private_key

SEED = bytes(range(32))
SALT = b"s" * 16
NONCE = b"n" * 12
SEALED = seal_private_key(SEED, "tulip", salt=SALT, nonce=NONCE)
PLAIN = plain_private_key(SEED)
PUBLIC = KeySigner(SEED).public_key.raw
VERSION: Sexp = (b"version", b"1")


def refuse_work(*_: object, **__: object) -> NoReturn:
    """Stand in for the key derivation where none may be run."""
    raise AssertionError("did the work")


def test_what_is_sealed_opens_under_its_passphrase_only() -> None:
    """The seed comes back; it is nowhere in the sealed bytes."""
    assert open_private_key(SEALED, "tulip") == SEED
    assert SEED not in SEALED
    assert (is_sealed(SEALED), is_sealed(PLAIN)) == (True, False)
    assert open_private_key(PLAIN, None) == SEED


def test_another_implementation_opens_the_same_bytes() -> None:
    """The form is what the module says: scrypt 2^15, 8, 1; AES-256-GCM; the header as associated data."""
    head = (b"private-key", VERSION, (b"ed25519", PUBLIC), (b"scrypt", SALT, b"32768", b"8", b"1"))
    match parse_canonical(SEALED):
        case (*start, (b"aes-256-gcm", nonce, bytes() as box)):
            assert tuple(start) == head
            assert nonce == NONCE
    key = Scrypt(salt=SALT, length=32, n=32768, r=8, p=1).derive(b"tulip")
    assert AESGCM(key).decrypt(NONCE, box, encode((*head, (b"aes-256-gcm", NONCE)))) == SEED


def test_two_spellings_of_one_passphrase_are_one() -> None:
    """A keyboard that composes letters and one that does not type the same passphrase."""
    sealed = seal_private_key(SEED, "caf\u00e9", salt=SALT, nonce=NONCE)
    assert open_private_key(sealed, "cafe\u0301") == SEED


def test_a_passphrase_may_hold_anything() -> None:
    """Octets that a terminal could not decode are no reason to fail."""
    sealed = seal_private_key(SEED, "\udcff\x00", salt=SALT, nonce=NONCE)
    assert open_private_key(sealed, "\udcff\x00") == SEED


PARTS = {
    "the public key": PUBLIC,
    "the salt": SALT,
    "the nonce": NONCE,
    "the sealed seed": SEALED[SEALED.index(b"48:") + 3 :][:32],
    "its mark": SEALED[SEALED.index(b"48:") + 3 :][32:48],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_damage_and_a_wrong_passphrase_give_one_error(part: bytes) -> None:
    """Whoever guesses learns nothing from the message."""
    damaged = SEALED.replace(part, bytes([part[0] ^ 1]) + part[1:])
    assert damaged != SEALED
    said = set()
    for data, passphrase in ((damaged, "tulip"), (SEALED, "tulip2")):
        with pytest.raises(KeyFormatError) as caught:
            open_private_key(data, passphrase)
        said.add((caught.value.code, str(caught.value)))
    assert said == {("KEY_PASSPHRASE", "[KEY_PASSPHRASE] the passphrase is wrong, or the key file is damaged")}


def test_a_header_that_asks_for_other_work_opens_nothing() -> None:
    """The cost is sealed along, so nobody can weaken or strengthen it afterwards."""
    with pytest.raises(KeyFormatError) as caught:
        open_private_key(SEALED.replace(b"1:81:1)", b"1:81:2)"), "tulip")
    assert caught.value.code == "KEY_PASSPHRASE"


def test_a_key_sealed_for_another_public_key_is_refused() -> None:
    """A file whose public half is somebody else's is refused, sealed or not."""
    other = KeySigner(bytes(32)).public_key.raw
    with pytest.raises(KeyFormatError):
        open_private_key(PLAIN.replace(PUBLIC, other), None)
    header: tuple[Sexp, ...] = (
        b"private-key", VERSION, (b"ed25519", other), (b"scrypt", SALT, b"32768", b"8", b"1"),
    )  # fmt: skip
    key = hashlib.scrypt(b"tulip", salt=SALT, n=32768, r=8, p=1, maxmem=1 << 26, dklen=32)
    box = AESGCM(key).encrypt(NONCE, SEED, encode((*header, (b"aes-256-gcm", NONCE))))
    with pytest.raises(KeyFormatError) as caught:
        open_private_key(encode((*header, (b"aes-256-gcm", NONCE, box))), "tulip")
    assert caught.value.code == "KEY_PASSPHRASE"


COSTS = {
    "more memory than allowed": (b"262144", b"8", b"1"),
    "as much as numbers go": (b"67108864", b"8", b"1"),
    "wider blocks": (b"32768", b"16", b"1"),
    "more lanes": (b"32768", b"8", b"5"),
    "a weak derivation": (b"16384", b"8", b"1"),
    "no work at all": (b"2", b"8", b"1"),
    "no power of two": (b"40000", b"8", b"1"),
    "nothing": (b"0", b"0", b"0"),
    "a leading zero": (b"032768", b"8", b"1"),
    "a sign": (b"+32768", b"8", b"1"),
    "no number": (b"x", b"8", b"1"),
    "empty": (b"", b"8", b"1"),
    "endless digits": (b"9" * 100, b"8", b"1"),
}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_a_file_cannot_choose_the_work(cost: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost outside the limits is refused before any of it is done."""
    monkeypatch.setattr(hashlib, "scrypt", refuse_work)
    data = encode(
        (b"private-key", VERSION, (b"ed25519", PUBLIC), (b"scrypt", SALT, *cost), (b"aes-256-gcm", NONCE, b"x" * 48))
    )
    with pytest.raises(KeyFormatError) as caught:
        open_private_key(data, "tulip")
    assert caught.value.code in {"KEY_FILE_COST", "KEY_FILE_SHAPE"}


SHAPES: dict[str, Sexp] = {
    "no list": b"private-key",
    "another version": (b"private-key", (b"version", b"2"), (b"ed25519", PUBLIC), (b"unsealed", SEED)),
    "another algorithm": (b"private-key", VERSION, (b"rsa", PUBLIC), (b"unsealed", SEED)),
    "neither sealed nor not": (b"private-key", VERSION, (b"ed25519", PUBLIC)),
    "both": (b"private-key", VERSION, (b"ed25519", PUBLIC), (b"unsealed", SEED), (b"unsealed", SEED)),
    "a short seed": (b"private-key", VERSION, (b"ed25519", PUBLIC), (b"unsealed", SEED[1:])),
    "a short salt": (
        *(b"private-key", VERSION, (b"ed25519", PUBLIC), (b"scrypt", SALT[1:], b"32768", b"8", b"1")),
        (b"aes-256-gcm", NONCE, b"x" * 48),
    ),
    "another cipher": (
        *(b"private-key", VERSION, (b"ed25519", PUBLIC), (b"scrypt", SALT, b"32768", b"8", b"1")),
        (b"none", NONCE, SEED),
    ),
}


@pytest.mark.parametrize("expression", SHAPES.values(), ids=SHAPES)
def test_another_shape_is_refused(expression: Sexp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not exactly the form is no key file."""
    monkeypatch.setattr(hashlib, "scrypt", refuse_work)
    with pytest.raises(KeyFormatError):
        open_private_key(encode(expression), "tulip")


def test_one_bit_flipped_in_an_unsealed_key_never_opens() -> None:
    """Every bit counts: form, public key and seed hold one another."""
    for position in range(len(PLAIN) * 8):
        flipped = bytearray(PLAIN)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(KeyFormatError):
            open_private_key(bytes(flipped), None)


@pytest.mark.parametrize("passphrase", [None, ""])
def test_a_sealed_key_needs_a_passphrase(passphrase: str | None) -> None:
    """None and an empty one are the same refusal."""
    with pytest.raises(KeyFormatError) as caught:
        open_private_key(SEALED, passphrase)
    assert caught.value.code == "KEY_PASSPHRASE"


def test_sealing_refuses_weak_ingredients() -> None:
    """No empty passphrase, no short salt or nonce, no short seed."""
    with pytest.raises(UsageError):
        seal_private_key(SEED, "", salt=SALT, nonce=NONCE)
    with pytest.raises(UsageError):
        seal_private_key(SEED, "x", salt=SALT[1:], nonce=NONCE)
    with pytest.raises(UsageError):
        seal_private_key(SEED, "x", salt=SALT, nonce=NONCE + b"n")
    with pytest.raises(KeyFormatError):
        seal_private_key(SEED[1:], "x", salt=SALT, nonce=NONCE)
    with pytest.raises(KeyFormatError):
        plain_private_key(SEED + b"x")


@given(st.binary(max_size=200))
def test_any_bytes_raise_only_errors_of_this_house(data: bytes) -> None:
    """A reader of files never crashes."""
    for candidate in (data, PLAIN[: len(data)] + data, PLAIN + data + b"x"):
        with pytest.raises(MaiaError):
            open_private_key(candidate, None)
