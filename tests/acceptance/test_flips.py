"""No bit of a parcel can be changed unnoticed."""

from __future__ import annotations

import pytest
from sealing_world import key_of, sealed

from maia.encryption import open_parcel, parse_parcel, verify_parcel
from maia.errors import MaiaError
from maia.events import EncryptionMode


@pytest.mark.requirement("15.08")
@pytest.mark.parametrize("mode", EncryptionMode)
def test_no_bit_can_be_flipped(mode):
    """Every single-bit change of every octet of a parcel is refused, keys or no keys, in every mode."""
    octets = sealed(mode=mode).to_bytes()
    assert len(open_parcel(verify_parcel(parse_parcel(octets)), key_of)) == 3
    accepted = []
    for at in range(len(octets)):
        for bit in range(8):
            changed = bytearray(octets)
            changed[at] ^= 1 << bit
            try:
                open_parcel(verify_parcel(parse_parcel(bytes(changed))), key_of)
            except MaiaError:
                continue
            accepted.append((at, bit))
    assert accepted == []
