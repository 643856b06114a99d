"""No bit of a parcel can be changed unnoticed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sealing_world import key_of, sealed

import maia
from maia.encryption import open_parcel, parse_parcel, verify_parcel
from maia.errors import MaiaError
from maia.events import EncryptionMode
from maia.testing import TYPE_NAME, Command, LaneOf, deliver_here, numberplate_homes, publish_here, rows_of


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


@pytest.mark.requirement("15.08")
def test_every_altered_parcel_is_refused_by_the_delivery_and_counted(tmp_path: Path) -> None:
    """A parcel once for each of its octets, with one bit of it flipped, and once as it was: one event is delivered.

    The lane's own broker commits them, so that nothing but the parcel itself can tell: its signature covers the
    header with stamp and origin, the ciphertexts and their tags.
    """
    homes = numberplate_homes(tmp_path / "net")
    ccs, command = maia.open(homes.ccs), Command(homes.ccs)
    now = datetime.now(UTC)
    row = {"numberplate": "P1", "timestamp": now, "location": "Victoria"}
    publish_here(ccs.home, TYPE_NAME, [row], as_="CCTV", at=now)
    [first] = ccs.log.commits()
    later, elsewhere = now + timedelta(milliseconds=5), Path(shutil.copytree(tmp_path / "net", tmp_path / "elsewhere"))
    with maia.open(elsewhere / "ccs") as other:
        publish_here(other.home, TYPE_NAME, [{**row, "numberplate": "P2"}], as_="CCTV", at=later)
        *_, made = other.log.commits()
        [genuine] = [logged.parse().to_bytes() for logged in other.log.parcels(made.lane, made.files[0])]
    flipped = [
        genuine[:place] + bytes([genuine[place] ^ 1 << place % 8]) + genuine[place + 1 :]
        for place in range(len(genuine))
    ]
    lane = LaneOf(
        tmp_path / "net" / "log", first.type_id, ccs.home.broker, ccs.home.path / "lanes",
        evidence=ccs.log.evidence(bytes.fromhex(first.evidence)),
    )  # fmt: skip
    rows = rows_of(made, *flipped, genuine)
    file = lane.segment("flips", rows, at=later, compression="none", use_dictionary=False)
    lane.say("flips", replace(file, bases=made.files[0].bases * rows.num_rows), at=later)
    command.do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)
    deliver_here(ccs.home, clock=lambda: datetime.now(UTC) + timedelta(seconds=1))
    [kept] = command.do("deliver", "list")["subscriptions"]
    assert kept["events"] == 2, "the first, and the one that was left as it was"
    dead = command.do("deliver", "dead")["dead"]
    assert len(dead) == len(flipped) > 500
    assert sorted(letter["parcel"] for letter in dead) == list(range(len(flipped)))
    told = command.do("audit", "--kind", "refuse")["rows"]
    assert sum(item["events"] for item in told) == len(flipped)
