"""The plaintext cache: each block is opened once between equals, and nothing cached reaches anybody else."""

from __future__ import annotations

import pickle

import pytest
from sealing_world import COLUMNS, key_of, sealed, values

from maia.bench.cache import CachedParcel, from_wire, open_cached, strip, to_wire
from maia.encryption import parse_parcel, verify_parcel
from maia.errors import EncodingError, MaiaError, SignatureError
from maia.events import EncryptionMode

ALL = frozenset(COLUMNS)


def counting():
    """Keys that count how often they are asked for."""
    asked = []
    return asked, lambda label: asked.append(label) or key_of(label)


def plain(cached):
    """The cache as plain values."""
    return {uid: column.to_pylist() for uid, column in cached.columns.items()}


@pytest.mark.parametrize("mode, opens", [(EncryptionMode.ATTRIBUTE, 3), (EncryptionMode.EVENT, 1)])
def test_three_brokers_in_a_row_decrypt_once(mode, opens):
    """The first of three authorised brokers opens the blocks; the next two find everything in the cache."""
    rights = ALL | {b"*"}
    data = to_wire(CachedParcel(verify_parcel(sealed(mode=mode))), allowed=rights)
    decryptions = []
    for _ in range(3):
        _, keys = counting()
        cached = open_cached(from_wire(data, believed=rights), keys)
        assert plain(cached) == values()
        decryptions.append(cached.decryptions)
        data = to_wire(cached, allowed=rights)
    assert decryptions == [opens, 0, 0]


@pytest.mark.parametrize("mode", [EncryptionMode.ATTRIBUTE, EncryptionMode.EVENT])
def test_a_foreign_broker_gets_no_cached_value(mode):
    """The octets for a broker without rights are the parcel and nothing else."""
    cached = open_cached(CachedParcel(verify_parcel(sealed(mode=mode))), key_of)
    octets = to_wire(cached, allowed=())
    assert not any(text in octets for text in (b"AE05 XYZ", b"BX51 ABC", b"Victoria", b"Kent"))
    assert octets[8:] == cached.verified.parcel.to_bytes()
    assert from_wire(octets, believed=ALL).columns == {}


def test_with_partly_equal_rights_the_closed_attributes_stay_sealed():
    """Between equals all is plain; towards a broker without `location` that one stays sealed, the rest is plain."""
    cached = open_cached(CachedParcel(verify_parcel(sealed())), key_of)
    to_equal, to_partner = (to_wire(cached, allowed=rights) for rights in (ALL, ALL - {b"3467"}))
    assert b"Victoria" in to_equal
    assert b"Victoria" not in to_partner
    assert b"AE05 XYZ" in to_partner
    received = from_wire(to_partner, believed=ALL - {b"3467"})
    assert set(received.columns) == ALL - {b"3467"}
    # A broker that does hold the key opens the one block that is left.
    asked, keys = counting()
    assert plain(open_cached(received, keys)) == values()
    assert asked == [b"3467"]


def test_the_parcel_always_travels_sealed():
    """Whoever the neighbour is, the sealed and signed parcel is what arrives; it was sealed once, by its origin."""
    parcel = sealed()
    data = to_wire(open_cached(CachedParcel(verify_parcel(parcel)), key_of), allowed=ALL)
    for _ in range(3):
        cached = from_wire(data, believed=ALL)
        assert cached.verified.parcel == parcel
        data = to_wire(cached, allowed=ALL)


def test_a_cache_is_believed_only_for_what_the_caller_names():
    """Plaintext that this broker did not ask for, or that belongs to no block, is dropped unread."""
    cached = open_cached(CachedParcel(verify_parcel(sealed())), key_of)
    octets = to_wire(cached, allowed=ALL)
    assert set(from_wire(octets, believed={b"9058"}).columns) == {b"9058"}
    assert from_wire(octets, believed=()).columns == {}
    stranger = CachedParcel(cached.verified, {b"777": COLUMNS[b"3265"][1]})
    assert from_wire(to_wire(stranger, allowed={b"777"}), believed={b"777"}).columns == {}


def test_stripping_in_event_mode_is_all_or_nothing():
    """One key opens the whole event, so the cache goes whole or not at all."""
    cached = open_cached(CachedParcel(verify_parcel(sealed(mode=EncryptionMode.EVENT))), key_of)
    assert strip(cached, ALL).columns == {}
    assert set(strip(cached, {b"*"}).columns) == ALL


def test_plain_parcels_are_read_once():
    """In plain mode there is nothing to decrypt; the cache spares the reading."""
    cached = open_cached(CachedParcel(verify_parcel(sealed(mode=EncryptionMode.PLAIN))), lambda _: None)
    assert (plain(cached), cached.decryptions) == (values(), 0)
    assert open_cached(cached, lambda _: None) is cached


def wire():
    """A parcel with a full cache."""
    return to_wire(open_cached(CachedParcel(verify_parcel(sealed())), key_of), allowed=ALL)


PARCEL_END = 8 + len(sealed().to_bytes())
WRONG = {
    "another magic": lambda data: b"MPC1" + data[4:],
    "nothing": lambda _: b"",
    "a parcel past the end": lambda data: data[:4] + b"\xff\xff\xff\xff" + data[8:],
    "a column cut off": lambda data: data[:-1],
    "a uid cut off": lambda data: data[:PARCEL_END] + b"\xff\xff1",
    "a column twice": lambda data: data + data[PARCEL_END:],
    "an empty uid": lambda data: data[:PARCEL_END] + bytes(6),
    "a column that is none": lambda data: data[:PARCEL_END] + b"\x00\x043265\x00\x00\x00\x01\x00",
    "columns without end": lambda data: data[:PARCEL_END] + b"\x00\x01x\x00\x00\x00\x00" * 4097,
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_octets_that_are_no_cached_parcel_are_refused(change):
    """A neighbour's octets are read as carefully as a stranger's."""
    with pytest.raises(EncodingError):
        from_wire(change(wire()), believed=ALL)


def test_a_parcel_altered_beside_its_cache_is_refused():
    """The signature is checked whatever the cache says."""
    data = bytearray(wire())
    data[PARCEL_END - 110] ^= 1
    with pytest.raises(SignatureError):
        from_wire(bytes(data), believed=ALL)
    for at in range(0, PARCEL_END, 7):
        changed = bytearray(wire())
        changed[at] ^= 1
        with pytest.raises(MaiaError):
            from_wire(bytes(changed), believed=ALL)


def test_cached_plaintext_does_not_leave_by_accident():
    """Neither a repr nor a pickle carries it."""
    cached = open_cached(CachedParcel(verify_parcel(parse_parcel(sealed().to_bytes()))), key_of)
    assert "Victoria" not in repr(cached)
    with pytest.raises(TypeError):
        pickle.dumps(cached)
