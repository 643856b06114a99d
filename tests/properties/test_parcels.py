"""Parcels: what goes in comes out, for holders of the keys and for nobody else, and no bit of it can be changed."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from strategies_events import columns

from maia.encryption import (
    Compression,
    ParcelHeader,
    open_parcel,
    parse_header,
    parse_parcel,
    seal,
    verify_parcel,
)
from maia.errors import MaiaError
from maia.events import EncryptionMode, TypeId
from maia.principals import KeySigner

BROKER = KeySigner(bytes([1]) * 32)
MODES = [EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE]


def key_for(label):
    """A key of its own for each label."""
    return label.rjust(32, b"k")


@st.composite
def parcels(draw, modes=tuple(EncryptionMode)):
    """A random parcel and the columns in it."""
    count = draw(st.integers(1, 8))
    labels = draw(st.lists(st.integers(0, 99).map(lambda n: b"%d" % n), unique=True, min_size=1, max_size=4))
    found = {label: draw(columns(count)) for label in labels}
    mode = draw(st.sampled_from(modes))
    epoch = draw(st.integers(0, 10**15))
    header = ParcelHeader(
        type_id=TypeId(draw(st.binary(min_size=32, max_size=32))), origin=BROKER.public_key.key_id,
        parcel_id=draw(st.binary(min_size=16, max_size=16)), event_base=draw(st.binary(min_size=16, max_size=16)),
        stamp=epoch + draw(st.integers(0, 10**6)), count=count, epoch=epoch, mode=mode,
        evidence=draw(st.binary(min_size=32, max_size=32)),
        labels=(b"*",) if mode is EncryptionMode.EVENT else tuple(found),
        network=draw(st.none() | st.binary(min_size=32, max_size=32)),
    )  # fmt: skip
    options = {"compression": draw(st.sampled_from(Compression)), "padding": draw(st.sampled_from([0, 16, 256]))}
    return seal(found, header, BROKER, key_for, **options), found


@given(parcels())
def test_opening_undoes_sealing(made):
    """Sealed, written, read, verified and opened with all keys, every column is what it was."""
    parcel, found = made
    read = parse_parcel(parcel.to_bytes())
    assert read == parcel
    assert parse_header(parcel.header.encoded()) == parcel.header
    opened = open_parcel(verify_parcel(read), key_for)
    assert {uid: column.to_pylist() for uid, column in opened.items()} == {
        uid: column.to_pylist() for uid, (_, column) in found.items()
    }


@given(parcels(modes=[EncryptionMode.ATTRIBUTE]), st.data())
def test_some_keys_open_exactly_their_attributes(made, data):
    """A broker with some of the keys sees those attributes and no others."""
    parcel, found = made
    held = data.draw(st.frozensets(st.sampled_from(sorted(found))))
    opened = open_parcel(verify_parcel(parcel), lambda label: key_for(label) if label in held else None)
    assert set(opened) == held


@given(parcels(modes=MODES))
def test_without_keys_nothing_opens(made):
    """A keyless broker reads the header and no value."""
    parcel, _ = made
    assert open_parcel(verify_parcel(parcel), lambda _: None) == {}


@settings(max_examples=15)
@given(parcels())
def test_no_bit_can_be_flipped(made):
    """Every single-bit change of every octet of a parcel is refused, keys or no keys."""
    parcel, _ = made
    octets = parcel.to_bytes()
    accepted = 0
    for at in range(len(octets)):
        changed = bytearray(octets)
        changed[at] ^= 1 << (at % 8)
        try:
            open_parcel(verify_parcel(parse_parcel(bytes(changed))), key_for)
        except MaiaError:
            continue
        accepted += 1
    assert accepted == 0


@given(st.binary(max_size=300))
def test_reading_arbitrary_octets_raises_only_maia_errors(octets):
    """Bytes from anywhere are a parcel or a `MaiaError`."""
    for data in (octets, b"MPC1" + octets):
        with pytest.raises(MaiaError):
            verify_parcel(parse_parcel(data))


@given(parcels(), st.data())
def test_parcels_cut_or_stretched_are_refused(made, data):
    """A parcel with octets missing or added anywhere is refused."""
    octets = made[0].to_bytes()
    at = data.draw(st.integers(0, len(octets) - 1))
    stop = data.draw(st.integers(at + 1, len(octets)))
    for changed in (octets[:at] + octets[stop:], octets[:at] + octets[at:stop] * 2 + octets[stop:]):
        with pytest.raises(MaiaError):
            open_parcel(verify_parcel(parse_parcel(changed)), key_for)
