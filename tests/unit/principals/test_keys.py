"""Public keys, and signatures with them."""

from __future__ import annotations

import pickle

import pytest

from maia.errors import KeyFormatError, SignatureError
from maia.principals import KeyHash, KeySigner, Kind, PublicKey, Signer, fingerprint, public_key, verify_signature
from maia.testing import People

PEOPLE = People("a", "b")
KEY = PEOPLE.a.public_key


def test_a_key_is_a_value():
    """Equal octets are equal keys, with one hash; a key is nothing else's equal."""
    same = PublicKey(bytes(KEY.raw))
    assert same == KEY
    assert hash(same) == hash(KEY)
    assert PEOPLE.b.public_key != KEY
    assert KEY.raw != KEY
    assert public_key(KEY.raw) is public_key(KEY.raw)


def test_a_key_never_changes():
    """Setting an attribute is refused."""
    with pytest.raises(AttributeError):
        KEY.raw = bytes(32)
    with pytest.raises(AttributeError):
        KEY.note = "x"


def test_a_key_travels_as_octets_and_is_tested_on_arrival():
    """Pickling keeps the key and calls its tests again."""
    assert pickle.loads(pickle.dumps(KEY)) == KEY  # noqa: S301 - our own bytes
    assert KEY.__reduce__() == (PublicKey, (KEY.raw,))


def test_people_see_fingerprints():
    """Four groups of four, the same for a key and its hash."""
    assert repr(KEY) == f"PublicKey({KEY.fingerprint})"
    assert KEY.fingerprint == fingerprint(KEY.key_id) == KeyHash(KEY.key_id).fingerprint
    assert [len(group) for group in KEY.fingerprint.split("-")] == [4, 4, 4, 4]


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_has_32_octets(length: int):
    """Other lengths are refused, for public and private keys."""
    with pytest.raises(KeyFormatError, match="KEY_LENGTH"):
        PublicKey(bytes(length))
    with pytest.raises(KeyFormatError, match="KEY_LENGTH"):
        KeySigner(bytes(length))


def test_a_key_from_outside_must_be_on_the_curve():
    """A y without a point passes the quick test and fails the full one; it can verify nothing."""
    off_curve = next(raw for raw in ((2 + n).to_bytes(32, "little") for n in range(50)) if not _on_curve(raw))
    key = PublicKey(off_curve)
    with pytest.raises(KeyFormatError, match="KEY_NOT_ON_CURVE"):
        PublicKey.import_(off_curve)
    with pytest.raises(SignatureError):
        verify_signature(Kind.CERTIFICATE, b"", bytes(64), key)
    assert PublicKey.import_(KEY.raw) == KEY


def _on_curve(raw: bytes) -> bool:
    prime = 2**255 - 19
    y = int.from_bytes(raw, "little")
    d = -121665 * pow(121666, -1, prime) % prime
    square = (y * y - 1) * pow(d * y * y + 1, -1, prime) % prime
    return pow(square, (prime - 1) // 2, prime) in (0, 1)


def test_a_signer_signs_and_keeps_its_secret():
    """Its text shows the public half, it cannot be pickled, and its seed makes the same signer."""
    signer = PEOPLE.a
    assert isinstance(signer, Signer)
    assert repr(signer) == f"KeySigner({KEY.fingerprint})"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(signer)
    assert KeySigner(signer.export_seed()).public_key == KEY
    assert signer.export_seed().hex() not in repr(signer)
    assert KeySigner.generate().public_key != KeySigner.generate().public_key


@pytest.mark.parametrize("change", ["length", "signature", "body", "key"])
def test_a_signature_fits_one_body_and_one_key(change: str):
    """The message does not depend on what was wrong."""
    body = b"body"
    signature = PEOPLE.a.sign(Kind.PARCEL, body)
    verify_signature(Kind.PARCEL, body, signature, KEY)
    key = KEY
    if change == "length":
        signature = signature[:-1]
    elif change == "signature":
        signature = signature[:-1] + bytes((signature[-1] ^ 1,))
    elif change == "body":
        body = b"bodz"
    else:
        key = PEOPLE.b.public_key
    with pytest.raises(SignatureError) as caught:
        verify_signature(Kind.PARCEL, body, signature, key)
    assert caught.value.message == f"signature of `{key.fingerprint}` does not verify"
