"""Sealing, signing, reading, verifying and opening; each rule where it refuses."""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sealing_world import BROKER, COLUMNS, EVE, header_of, key_of, opened, resigned, sealed, values

import maia.encryption.parcel as inner
from maia.encoding import encode
from maia.encryption import Compression, VerifiedParcel, open_parcel, parse_parcel, seal, verify_parcel
from maia.encryption.columns import encode_column
from maia.errors import EncodingError, KeyFormatError, MaiaError, SealError, SignatureError, UsageError
from maia.events import AttributeType, EncryptionMode

COMMITMENT, TAG = 32, 16


@pytest.mark.parametrize("mode", EncryptionMode)
@pytest.mark.parametrize("compression", Compression)
def test_what_is_sealed_opens(mode, compression):
    """Every mode gives the values back, compressed or not."""
    assert opened(sealed(mode=mode, compression=compression, padding=32)) == values()


def test_plain_mode_needs_no_key():
    """Plaintext mode is readable by everybody, and still signed."""
    parcel = sealed(mode=EncryptionMode.PLAIN)
    assert b"Victoria" in parcel.to_bytes()
    assert opened(parcel, lambda _: None) == values()
    with pytest.raises(SignatureError):
        opened(parcel.to_bytes().replace(b"Victoria", b"Viktoria"))


@pytest.mark.parametrize("kind, value, octets", [
    (AttributeType.DATE, pa.array([7], pa.int32()).cast(pa.date32()), 4), (AttributeType.INTEGER, pa.array([7]), 8),
    (AttributeType.STRING, pa.array(["AE05 XYZ"]), 8 + 8), (AttributeType.BOOLEAN, pa.array([True]), 1),
])  # fmt: skip
def test_sealing_adds_a_commitment_and_a_tag_and_pads_nothing(kind, value, octets):
    """Ciphertext is as long as its plaintext; beside it travel a tag of 16 octets and the commitment to the key."""
    plain = encode_column(value, kind)
    assert len(plain) == 14 + 1 + octets  # head, validity bits, values
    [block] = sealed({b"1": (kind, value)}).blocks
    assert len(block) == len(plain) + TAG + COMMITMENT


def test_a_block_is_what_the_reference_page_says():
    """Key, commitment, nonce and associated data recomputed here by hand open the block."""
    parcel = sealed()
    header, label = parcel.header, b"3265"
    info = encode((b"maia/1 block", header.type_id, header.parcel_id, b"100", label))
    key = hmac.new(key_of(label), info + b"\x01", hashlib.sha256).digest()
    commitment = hmac.new(key_of(label), key + info + b"\x02", hashlib.sha256).digest()
    block = parcel.blocks[0]
    assert block[:COMMITMENT] == commitment
    plain = AESGCM(key).decrypt(bytes(12), block[COMMITMENT:], encode((b"block", header.encoded(), label)))
    assert plain == encode_column(COLUMNS[label][1], AttributeType.STRING)


@pytest.mark.threat("T47")
def test_one_ciphertext_does_not_open_under_two_keys():
    """GCM alone does not commit to its key: a ciphertext made to open under two keys opens under neither here."""
    other = bytes([9]) * 32
    one, two = key_of(b"1"), other
    columns = {b"1": (AttributeType.INTEGER, pa.array([1]))}
    parcel = sealed(columns)
    header = parcel.header
    for wrong in (other, bytes(32), key_of(b"1", 200)):
        with pytest.raises(SealError):
            opened(parcel, lambda _, key=wrong: key)
    # An attacker who knows both keys and chooses the commitment freely still has to choose one of the two.
    for holder, mate in ((one, two), (two, one)):
        commitment = inner._block_keys(holder, header, b"1")[1]
        forged = resigned(parcel, blocks=(commitment + parcel.blocks[0][COMMITMENT:],))
        with pytest.raises(SealError):
            opened(forged, lambda _, key=mate: key)


def two_key_ciphertext(key_one, key_two, nonce, associated, size):
    """A ciphertext that AES-GCM accepts under both keys: one block of it is solved for (Dodis and others, 2018)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    def encrypt(key, block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)  # noqa: S305 - the bare cipher

    def multiply(x, y):
        product = 0
        for bit in range(127, -1, -1):
            if y >> bit & 1:
                product ^= x
            x = (x >> 1) ^ (0xE1 << 120 if x & 1 else 0)
        return product

    def power(x, exponent):
        out = 1 << 127
        while exponent:
            if exponent & 1:
                out = multiply(out, x)
            x, exponent = multiply(x, x), exponent >> 1
        return out

    def number(block):
        return int.from_bytes(block.ljust(16, b"\0"), "big")

    def blocks(data):
        return [number(data[at : at + 16]) for at in range(0, len(data), 16)]

    lengths = (len(associated) * 8) << 64 | (size * 8)
    mask = {k: number(encrypt(k, nonce + b"\0\0\0\1")) for k in (key_one, key_two)}
    point = {k: number(encrypt(k, bytes(16))) for k in (key_one, key_two)}
    body = [number(hashlib.sha256(b"%d" % n).digest()[:16]) for n in range(size // 16 - 1)]

    def ghash(key, ciphertext):
        total = 0
        for block in [*blocks(associated), *ciphertext, lengths]:
            total = multiply(total ^ block, point[key])
        return total

    # The last block enters each polynomial times the square of its point: solve for equal tags.
    square = {k: multiply(point[k], point[k]) for k in point}
    difference = ghash(key_one, [*body, 0]) ^ ghash(key_two, [*body, 0]) ^ mask[key_one] ^ mask[key_two]
    last = multiply(difference, power(square[key_one] ^ square[key_two], 2**128 - 2))
    ciphertext = [*body, last]
    tag = ghash(key_one, ciphertext) ^ mask[key_one]
    return b"".join(block.to_bytes(16, "big") for block in ciphertext) + tag.to_bytes(16, "big")


@pytest.mark.threat("T47")
def test_a_ciphertext_made_for_two_keys_opens_under_neither():
    """The published attack on GCM works on GCM itself, and not on a block, whose commitment fits one key at most."""
    columns = {b"1": (AttributeType.INTEGER, pa.array([1]))}
    parcel = sealed(columns)
    header = parcel.header
    associated = inner._associated(header.encoded(), b"1")
    derived = {k: inner._block_keys(k, header, b"1") for k in (key_of(b"1"), bytes([9]) * 32)}
    (key_one, commitment_one), (key_two, commitment_two) = derived.values()
    ciphertext = two_key_ciphertext(key_one, key_two, bytes(12), associated, 64)
    plain = {AESGCM(key).decrypt(bytes(12), ciphertext, associated) for key in (key_one, key_two)}
    assert len(plain) == 2, "the control: both keys decrypt, to different plaintexts"
    for commitment in (commitment_one, commitment_two):
        forged = resigned(parcel, blocks=(commitment + ciphertext,))
        refused = 0
        for epoch_key in derived:
            with pytest.raises(SealError):
                opened(forged, lambda _, key=epoch_key: key)
            refused += 1
        assert refused == 2


def test_a_task_that_runs_twice_never_seals_two_texts_under_one_key():
    """A retry has other rows, the same stamp and event names, a fresh parcel id: no key and nonce meet two texts."""
    texts: dict[bytes, set[bytes]] = {}
    for run in range(20):
        columns = {b"1": (AttributeType.INTEGER, pa.array([run]))}
        parcel = sealed(columns, parcel_id=hashlib.sha256(b"%d" % run).digest()[:16])
        assert parcel.header.event_base == bytes([5]) * 16
        key, _ = inner._block_keys(key_of(b"1"), parcel.header, b"1")
        texts.setdefault(key, set()).add(parcel.blocks[0])
    assert {len(found) for found in texts.values()} == {1}


@pytest.mark.threat("T69")
def test_a_reader_cannot_forge_with_its_keys():
    """Whoever holds the read keys can seal, but not sign for the origin."""
    forged = sealed(signer=EVE, origin=EVE.public_key.key_id)
    claimed = replace(forged, header=replace(forged.header, origin=BROKER.public_key.key_id))
    with pytest.raises(SignatureError) as caught:
        verify_parcel(parse_parcel(claimed.to_bytes()))
    assert caught.value.code == "WRONG_SIGNER"
    with pytest.raises(SignatureError) as caught:
        verify_parcel(replace(claimed, signer=BROKER.public_key))
    assert caught.value.code == "BAD_SIGNATURE"


def test_opening_says_nothing_about_why():
    """A wrong key, a damaged tag and a column of another length give the same words and the same code."""
    parcel = sealed()
    short = resigned(parcel, blocks=(b"", *parcel.blocks[1:]))
    bent = resigned(parcel, blocks=(parcel.blocks[0][:-1] + b"\0", *parcel.blocks[1:]))
    header = replace(parcel.header, mode=EncryptionMode.PLAIN)
    unreadable = resigned(parcel, header=header)
    said = set()
    for forged, keys in ((parcel, lambda _: bytes(32)), (short, key_of), (bent, key_of), (unreadable, key_of)):
        with pytest.raises(SealError) as caught:
            opened(forged, keys)
        said.add(str(caught.value))
    assert said == {"[SEAL] the parcel cannot be opened"}


def test_only_verification_makes_a_verified_parcel():
    """The type that opens cannot be made by hand or by copying, and is verified again when it comes out of a pickle."""
    parcel = sealed()
    verified = verify_parcel(parcel)
    with pytest.raises(UsageError):
        VerifiedParcel(parcel, inner._Proof())
    with pytest.raises(ValueError, match="_proof"):
        replace(verified, parcel=sealed(stamp=151))
    data = pickle.dumps(verified)
    assert pickle.loads(data) == verified  # noqa: S301 - our own bytes
    with pytest.raises(SignatureError):
        pickle.loads(data.replace(b"(5:stamp3:150)", b"(5:stamp3:151)"))  # noqa: S301 - our own bytes


WRONG_CALLS = {
    "signed by another than the origin": lambda: sealed(signer=EVE),
    "columns of two lengths": lambda: sealed({**COLUMNS, b"1": (AttributeType.INTEGER, pa.array([1]))}),
    "labels in another order": lambda: sealed(labels=(b"9058", b"3265", b"3467")),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_parts_that_do_not_fit_are_not_sealed(call):
    """Header, columns and signer belong together."""
    with pytest.raises(UsageError):
        call()


def test_a_parcel_nobody_could_read_is_not_sealed(monkeypatch):
    """What is larger than a reader takes is refused by the writer, in every mode."""
    monkeypatch.setattr(inner, "MAX_PARCEL", inner._ROOM + 200)
    for mode in EncryptionMode:
        with pytest.raises(UsageError) as caught:
            sealed(mode=mode, padding=256)
        assert caught.value.code == "BLOCK_TOO_LARGE"
    data = sealed({b"1": (AttributeType.INTEGER, pa.array([1]))}).to_bytes()
    monkeypatch.setattr(inner, "MAX_PARCEL", len(data) - 1)
    with pytest.raises(EncodingError) as caught:
        parse_parcel(data)
    assert caught.value.code == "PARCEL_TOO_LARGE"


def test_sealing_without_a_key_is_refused():
    """A missing key refuses the parcel; nothing goes out in the clear instead."""
    with pytest.raises(SealError) as caught:
        seal(COLUMNS, header_of(), BROKER, lambda _: None)
    assert caught.value.code == "NO_KEY"


MALFORMED = {
    "nothing": b"",
    "another magic": b"MPC2" + bytes(200),
    "a header past the end": b"MPC1" + (2**32 - 1).to_bytes(4, "big") + bytes(200),
    "an empty header": b"MPC1" + bytes(4) + bytes(96),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_octets_that_are_no_parcel_are_refused(data):
    """Lengths are compared with what is there."""
    with pytest.raises(EncodingError):
        parse_parcel(data)


def test_blocks_past_the_end_and_octets_after_them_are_refused():
    """The blocks fill the parcel exactly."""
    data = sealed({b"1": (AttributeType.INTEGER, pa.array([1]))}).to_bytes()
    start = 8 + int.from_bytes(data[4:8], "big")
    for size in (0, 1, 2**31, 2**32 - 1):
        with pytest.raises(EncodingError):
            parse_parcel(data[:start] + size.to_bytes(4, "big") + data[start + 4 :])
    with pytest.raises(EncodingError):
        parse_parcel(data[: start + 2] + data[-96:])


def test_a_weak_signing_key_is_refused():
    """A parcel signed under a point of small order is refused when it is read."""
    data = sealed().to_bytes()
    with pytest.raises(KeyFormatError):
        parse_parcel(data[:-96] + bytes(32) + data[-64:])


def event_block(*parts):
    """The plaintext of an event block, put together by hand."""
    return b"".join(len(u).to_bytes(2, "big") + u + len(c).to_bytes(4, "big") + c for u, c in parts)


COLUMN = encode_column(pa.array([1]), AttributeType.INTEGER)
EVENT_BLOCKS = {
    "a uid twice": event_block((b"1", COLUMN), (b"1", COLUMN)),
    "an empty uid": event_block((b"", COLUMN)),
    "a column cut off": event_block((b"1", COLUMN))[:-1],
    "a uid cut off": b"\xff\xff1",
    "a length cut off": b"\x00\x011\x00",
    "a column of another count": event_block((b"1", encode_column(pa.array([1, 2]), AttributeType.INTEGER))),
    "more columns than a type has": event_block(*((b"%d" % n, COLUMN) for n in range(4097))),
}


@pytest.mark.parametrize("plain", EVENT_BLOCKS.values(), ids=EVENT_BLOCKS)
def test_an_event_block_is_read_with_care(plain):
    """What an origin with the key seals may still be wrong; it is refused like anything else."""
    columns = {b"1": (AttributeType.INTEGER, pa.array([1]))}
    parcel = sealed(columns, EncryptionMode.EVENT)
    block = inner._seal_block(plain, parcel.header, parcel.header.encoded(), b"*", key_of)
    with pytest.raises(SealError) as caught:
        opened(resigned(parcel, blocks=(block,)))
    assert str(caught.value) == "[SEAL] the parcel cannot be opened"


def test_errors_carry_no_key_and_no_value():
    """No message, cause or repr of a failure holds a key or a plaintext."""
    parcel = sealed()
    try:
        opened(parcel, lambda _: b"K" * 32)
    except MaiaError as error:
        told = repr(error) + str(error) + repr(error.__cause__)
    assert "KKKK" not in told
    assert "Victoria" not in told
    assert "AE05" not in told
    assert open_parcel(verify_parcel(parcel), lambda _: None) == {}


@pytest.mark.slow
def test_no_two_sealings_share_a_key():
    """Two brokers, one millisecond, one type, a million publications: a million keys, so no key and nonce repeat."""
    seen = set()
    for broker in (BROKER, EVE):
        header = header_of(origin=broker.public_key.key_id)
        for _ in range(500_000):
            object.__setattr__(header, "parcel_id", os.urandom(16))
            seen.add(inner._block_keys(key_of(b"1"), header, b"1")[0][:12])
    assert len(seen) == 1_000_000
