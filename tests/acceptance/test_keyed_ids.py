"""Keyed type ids: outsiders cannot tell which types a network carries, and members lose nothing while keys change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from own_keys_world import OwnKeys

import maia
from maia.encryption import keyed_type_id
from maia.errors import MaiaError
from maia.testing import publish_here, publish_plan, read_here

HIDING = "Hiding"
REFRESHES, EVENTS = 10, 10**5


def network(root: Path) -> OwnKeys:
    """Make a network whose types are called by keyed ids, under keys that change every hour."""
    world = OwnKeys(root, "key_period = 3600", ago_hours=12)
    world.command.do("type", "define", f"domain/{HIDING}@1", "--encryption", "event", "--attribute", "none:string:1")
    for who in ("broker", "camera"):
        given = ("--type", f"domain/{HIDING}", *world.right("publish,subscribe"))
        world.command.grant("--from", "domain", "--to", who, *given)
    for who in ("broker", "camera", "reader"):
        world.command.grant("--from", "domain", "--to", who, "--network", "domain/UKPN", *world.right("connect"))
    file = root / "maia.toml"
    head, _, rest = file.read_text("utf-8").partition("\n")
    rest += '\n[network]\nowner = "domain"\nname = "UKPN"\n'
    file.write_text(f"{head}\n{rest}", "utf-8")
    publish_here(world.home, HIDING, [{"none": "none"}], as_="camera", at=world.now)  # so that there is a key
    file.write_text(f'{head}\nkeyed_types = "{HIDING}"\n{rest}', "utf-8")
    world.wait(milliseconds=1)
    return world


@pytest.mark.slow
@pytest.mark.requirement("23.03")
def test_ids_change_with_the_keys_and_nothing_is_lost(tmp_path: Path) -> None:
    """10^5 events over ten refreshes, half of them by a publisher that did not hear of the next key: all come."""
    world = network(tmp_path / "pito")
    part = [f"P{number}" for number in range(EVENTS // (2 * REFRESHES))]
    for _ in range(REFRESHES):
        world.publish(*part)
        world.wait(minutes=59, seconds=50)
        plan = publish_plan(
            world.home, "Sighting", as_="camera", publication=f"late {world.now}", at=world.now, max_events=len(part)
        )
        world.wait(seconds=6)  # the next key is announced
        world.wait(seconds=4)  # and begins
        rows = [{"plate": plate} for plate in part]
        publish_here(world.home, "Sighting", rows, as_="camera", at=world.now, publication=plan.publication, plan=plan)
        world.wait(milliseconds=1)
    found = read_here(maia.open(tmp_path / "pito").home, "Sighting", as_="reader")
    assert len(found) == EVENTS
    headers = [parcel.header for parcel in world.parcels()[1:]]
    plain = maia.open(tmp_path / "pito").event_type("Sighting").type_id
    ids = [header.type_id for header in headers]
    assert len(set(ids)) == REFRESHES, "each hour has an id of its own"
    assert plain not in ids
    assert ids[1::2] == ids[::2], "the late ones came under the id before, within the epoch of the next"
    late, next_hour = headers[1:-1:2], headers[2::2]
    assert [header.epoch for header in late] == [header.epoch for header in next_hour], "both ids are read in one epoch"


@pytest.mark.slow
@pytest.mark.requirement("23.03")
def test_whoever_has_no_key_of_the_network_recognises_nothing(tmp_path: Path) -> None:
    """A home with the log, the definitions and the certificates, but no key: it finds no event, and publishes none."""
    world = network(tmp_path / "pito")
    world.publish("P1")
    [_, parcel] = world.parcels()
    plain = maia.open(tmp_path / "pito").event_type("Sighting").type_id
    guesses = {keyed_type_id(plain, key, parcel.header.epoch) for key in (bytes(32), plain, parcel.header.evidence)}
    assert parcel.header.type_id not in {plain, *guesses}
    evidence = b"".join(path.read_bytes() for path in (tmp_path / "pito" / "log").rglob("_evidence/*"))
    assert b"Sighting" not in evidence
    outside = tmp_path / "outside"
    shutil.copytree(tmp_path / "pito", outside)
    for name in ("keyring", "store.db", "keys/domain.key"):
        (outside / name).unlink()
    home = maia.open(outside).home
    with pytest.raises(MaiaError) as caught:
        publish_here(home, "Sighting", [{"plate": "P2"}], as_="camera", at=world.now)
    assert caught.value.code == "NO_KEY"
    assert seen(home) == []
    assert [row["plate"] for row in read_here(world.home, "Sighting", as_="reader")] == ["P1"]


def seen(home: Any) -> list[Any]:
    """Read as the reader; what is refused shows nothing."""
    try:
        return read_here(home, "Sighting", as_="reader")
    except MaiaError as error:
        return [] if error.code == "NO_KEY" else [error.code]
