"""Sealing, signing, reading, verifying and opening; each rule where it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sealing_world import BROKER, COLUMNS, EVE, TYPE, key_of, opened, resigned, sealed, values

from maia.encryption import parse_parcel
from maia.errors import SealError, SignatureError
from maia.events import EncryptionMode

EPOCH_KEY = key_of(b"1")


@pytest.mark.requirement("15.02")
def test_event_mode_has_one_block_and_shows_the_type_only():
    """Event level: one ciphertext for all attributes; a keyless broker reads type id, stamp and origin."""
    parcel = sealed(mode=EncryptionMode.EVENT)
    assert parcel.header.labels == (b"*",)
    assert len(parcel.blocks) == 1
    read = parse_parcel(parcel.to_bytes()).header
    assert (read.type_id, read.stamp, read.origin) == (TYPE, 150, BROKER.public_key.key_id)
    assert opened(parcel, lambda _: None) == {}
    asked = []
    assert opened(parcel, lambda label: asked.append(label) or key_of(label)) == values()
    assert asked == [b"*"]
    assert not any(uid in parcel.to_bytes() for uid in COLUMNS)


@pytest.mark.requirement("15.03")
def test_the_key_of_one_attribute_opens_that_attribute():
    """Attribute level: a broker with the key of one of three attributes opens one; the others stay opaque."""
    parcel = sealed()
    assert opened(parcel, lambda label: key_of(label) if label == b"9058" else None) == {b"9058": [1, None, 3]}
    assert b"Victoria" not in parcel.to_bytes()


MOVES = {
    "to another attribute": {"labels": (b"9058", b"3265", b"3467")},
    "to another event": {"parcel_id": bytes([7]) * 16},
    "to another type": {"type_id": bytes([8]) * 32},
    "to another epoch": {"epoch": 120},
    "to another origin": {"origin": EVE.public_key.key_id},
    "to another stamp": {"stamp": 151},
    "to another name": {"event_base": bytes([7]) * 16},
    "to another network": {"network": bytes(32)},
    "to another evidence": {"evidence": bytes(32)},
}


@pytest.mark.threat("T48")
@pytest.mark.requirement("15.07")
@pytest.mark.parametrize("change", MOVES.values(), ids=MOVES)
def test_a_block_moved_elsewhere_does_not_open(change):
    """Ciphertexts are bound to attribute, event, type, epoch and origin: moved and signed anew, they do not open."""
    parcel = sealed()
    moved = resigned(parcel, header=replace(parcel.header, **change), by=EVE if "origin" in change else BROKER)

    def first_only(wanted):
        return lambda label: key_of(b"3265") if label == wanted.header.labels[0] else None

    assert opened(parcel, first_only(parcel)) == {b"3265": values()[b"3265"]}
    with pytest.raises(SealError) as caught:
        opened(moved, first_only(moved))
    assert str(caught.value) == "[SEAL] the parcel cannot be opened"


@pytest.mark.requirement("15.07")
def test_swapped_ciphertexts_fail_signed_anew_or_not():
    """Two attributes exchange their ciphertexts: the signature notices, and a new signature does not help."""
    parcel = sealed()
    swapped = (parcel.blocks[2], parcel.blocks[1], parcel.blocks[0])
    with pytest.raises(SignatureError):
        opened(replace(parcel, blocks=swapped))
    with pytest.raises(SealError):
        opened(resigned(parcel, blocks=swapped))
