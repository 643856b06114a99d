"""Who carries for others without a right to the type: deliveries do not depend on it, and it sees ids and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from link_world import PLACE, PLATE, LinkWorld, LogProcess, log_of, make_world, segments, serving_log, smith_reads

import maia
from maia.errors import DeniedError, VerificationError
from maia.testing import TYPE_NAME, Command, read_here

EVENTS = 3


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build the domains, each with its own log; the congestion charge service has published."""
    return make_world(tmp_path_factory.mktemp("relays"), events=EVENTS)


@pytest.fixture(scope="module")
def relay(world: LinkWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give Kent all that a curious relay can collect: the definition, every certificate, and the log."""
    kent = world.relay(tmp_path_factory.mktemp("relay"))
    with serving_log(world.ccs) as ccs:
        Command(kent).do("link", "add", "ccs", ccs.url, "--key", "CB")
        assert Command(kent).do("link", "pull", "ccs")["events"] == EVENTS
    return kent


@pytest.fixture(scope="module")
def service(relay: Path) -> Iterator[LogProcess]:
    """Serve Kent's log."""
    with serving_log(relay) as served:
        yield served


@pytest.mark.requirement("8.10")
def test_deliveries_do_not_depend_on_the_domain_that_stands_in_between(
    world: LinkWorld, relay: Path, service: LogProcess, tmp_path: Path
) -> None:
    """Over a foreign domain the Met gets what it gets straight from the source; nothing there is plaintext."""
    straight, over = world.reader(tmp_path / "straight"), world.reader(tmp_path / "over")
    straight.do("link", "add", "ccs", str(log_of(world.ccs)))
    over.do("link", "add", "kent", service.url, "--key", "KB")
    assert straight.do("link", "pull", "ccs")["events"] == over.do("link", "pull", "kent")["events"] == EVENTS
    rows = smith_reads(over.home)
    assert rows == smith_reads(straight.home)
    assert [(row["numberplate"], row["location"]) for row in rows] == [(PLATE, PLACE)] * EVENTS
    for path in relay.rglob("*"):
        if path.is_file() and path.parent.name != "certificates":  # a right may name the plate that it is on
            assert not any(word.encode() in path.read_bytes() for word in (PLATE, PLACE)), path


@pytest.mark.requirement("22.07")
def test_a_curious_relay_without_a_right_sees_ids_only(world: LinkWorld, relay: Path) -> None:
    """It has the lanes, the definition and all certificates, and no key: the ids of type and attributes are there."""
    home = maia.open(relay).home
    assert home.keyring().groups() == ()
    wire = world.homes.event_type.type_id.hex()
    assert {path.parents[2].name for path in segments(relay)} == {f"type={wire}"}
    assert all(b"3265" in path.read_bytes() and b"3467" in path.read_bytes() for path in segments(relay))
    Command(relay).keys("carrier")
    with pytest.raises((DeniedError, VerificationError)):
        read_here(home, TYPE_NAME, as_="carrier")
    seal = ("filter", "seal", f"numberplate = '{PLATE}'", "--type", TYPE_NAME, "--out", str(relay / "own"))
    assert Command(relay).refused(*seal)[1] == "NO_KEY"
