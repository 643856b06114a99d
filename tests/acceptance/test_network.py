"""The numberplate scenario with `maia network up`: domains as processes, and a relay that may connect and no more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from gateway_world import sighting, take
from network_world import (
    CLAIMED,
    CLIENTS,
    LINKS,
    OTHER,
    PLACE,
    RELAY,
    WANTED,
    NetworkProcess,
    NetworkWorld,
    in_memory,
    make_network,
    network_up,
)

import maia
from maia.errors import DeniedError
from maia.testing import ATTRIBUTES, TYPE_NAME, Command

SECRETS = tuple(word.encode() for word in (WANTED, OTHER, PLACE, CLAIMED))
PATIENCE = 240.0
"""Seconds within which processes that died are started again, and links look again, on a machine with other work."""
READERS = (("ccs", "bo"), ("ccs", "so"), ("billing", "clerk"), ("met", "smith"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NetworkWorld:
    """Build the homes."""
    return make_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def running(world: NetworkWorld) -> Iterator[NetworkProcess]:
    """Run the network."""
    with network_up(world.file) as process:
        yield process


def shown(events: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Name what was seen of the plate and of the place."""
    return [(event["numberplate"], event["location"]) for event in events]


def octets(path: Path) -> bytes:
    """Read a file of a home that is at work: one that was only for a moment is gone."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


@pytest.mark.slow
@pytest.mark.timeout(900)  # thirteen processes, on a machine with other work
@pytest.mark.requirement("24.07")
def test_a_relay_without_a_type_right_carries_ciphertext_only(world: NetworkWorld, running: NetworkProcess) -> None:
    """Everything passes Kent, which may connect: readers get what is theirs, and Kent's files and memory nothing."""
    assert all(RELAY in ends for ends in LINKS)
    every, when = set(ATTRIBUTES.values()), {ATTRIBUTES["numberplate"], ATTRIBUTES["timestamp"]}
    assert {name: world.join(name) for name in ("ccs", "met", "billing")} == {
        "ccs": every, "met": every, "billing": when,
    }, "what a broker may hold follows from its rights: Billing's has no key of places"  # fmt: skip
    assert world.command(RELAY).refused("keys", "join", TYPE_NAME)[0] == 3

    clients = {who: world.client(name, who) for name, who in READERS}
    inboxes = {who: client.subscribe(TYPE_NAME, name=who) for who, client in clients.items()}
    camera = world.client("ccs", "camera")
    done = camera.publish([sighting(WANTED, CLAIMED), sighting(OTHER, CLAIMED)], TYPE_NAME)
    assert (done.events, done.refused) == (2, ())
    seen = {who: shown(take(inboxes[who], 1 if who == "smith" else 2)) for _, who in READERS}
    paid = [(plate, None) for plate in (WANTED, OTHER)]
    assert seen == {
        "bo": paid, "clerk": paid, "so": [(None, PLACE)] * 2, "smith": [(WANTED, PLACE)],
    }, "one broker holds all keys and keeps its clients apart; the other has no more than its client"  # fmt: skip

    home = world.root / RELAY
    carried = {path for path in home.rglob("*") if path.is_file()}
    assert [path for path in carried if path.match("log/type=*/origin=*/date=*/*")], "the events lie at Kent"
    said = set(world.file.with_suffix(".running").glob(f"{RELAY}.*"))
    for path in carried | said:
        assert not any(word in octets(path) for word in SECRETS), path
    pids = world.pids(RELAY)
    assert set(pids) == {"log", "gateway", "link pito", "link ccs"}
    for what, pid in pids.items():
        assert in_memory(pid, str(home).encode(), *SECRETS) == {str(home).encode()}, what

    assert maia.open(home).home.keyring().groups() == ()
    with pytest.raises(DeniedError) as refused, world.client(RELAY, "carol") as carol:
        carol.subscribe(TYPE_NAME)
    assert refused.value.code == "DENIED"
    [kent] = [item for item in world.status()["domains"] if item["name"] == RELAY]
    assert kent["refused"], "and whoever watches the network sees it"

    # The relay dies in the middle: it is named and started again, and nothing is lost.
    os.kill(pids["log"], signal.SIGKILL)
    os.kill(pids["link ccs"], signal.SIGKILL)
    assert camera.publish([sighting(WANTED, CLAIMED)], TYPE_NAME).events == 1
    late = inboxes["smith"].next(seconds=PATIENCE)
    assert late is not None
    assert shown([late]) == [(WANTED, PLACE)]
    assert inboxes["smith"].next(seconds=2) is None, "once"
    changes = {(item.get("part"), item["change"]) for item in running.said if item.get("domain") == RELAY}
    assert {(part, change) for part in ("log", "link ccs") for change in ("died", "again")} <= changes
    for client in (*clients.values(), camera):
        client.close()


@pytest.mark.slow
def test_status_and_graph_show_what_runs(world: NetworkWorld, running: NetworkProcess) -> None:
    """Domains, processes, links and how far behind they are; drawn as text, for Mermaid and as a picture."""
    running.wait()
    found = world.status()
    assert {item["name"] for item in found["domains"]} == set(CLIENTS)
    while any(link["lag"] for link in world.status()["links"]):
        time.sleep(0.2)
    assert {(link["source"], link["target"]) for link in found["links"]} == set(LINKS)
    command = Command(world.root)
    text = command.do("network", "graph", str(world.file))["graph"]
    assert all(name in text for name in CLIENTS)
    assert "d_ccs -->" in command.do("network", "graph", str(world.file), "--format", "mermaid")["graph"]
    command.do("network", "graph", str(world.file), "--format", "svg", "--out", str(world.root / "police.svg"))
    drawn = (world.root / "police.svg").read_text("utf-8")
    assert (drawn.count("<rect"), drawn.count("<line")) == (len(CLIENTS), len(LINKS))
    assert command.refused("network", "graph", str(world.file), "--format", "png") == (2, "GRAPH_FORMAT")
