"""`maia keys join` against a real `maia serve key-manager`: homes over one log join by hand, publish and read."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from key_network import Network, build
from typer.testing import CliRunner

from maia.authority import Action, network_right, type_right
from maia.cli import app
from maia.errors import UnavailableError
from maia.home import Home
from maia.kernel import BROKERS
from maia.principals import KeySigner, TestKind
from maia.testing import ATTRIBUTES, NETWORK_NAME, TYPE_NAME, book, grant, listing, naming, online
from service_process import Process, serving

pytestmark = pytest.mark.slow


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Give the network without a manager in process."""
    made = build(tmp_path)
    made.close()
    yield made
    made.close()


@pytest.fixture
def served(network: Network) -> Iterator[Process]:
    """Run PITO's key manager, whose address and key stand in the settings of all other homes."""
    with serving("key-manager", network.homes["pito"].path, str(network.root / "keys.db")) as process:
        for name, home in network.homes.items():
            if name != "pito":
                point_to(home, process.url)
                home.add_public_key("key-manager", network.people.key("PITO"))
                network.homes[name] = Home.open(home.path)
        yield process


def point_to(home: Home, url: str) -> None:
    """Write an address of a key manager into a home's settings."""
    (home.path / "maia.toml").write_text(replace(home.config, key_manager=url).to_toml())


def maia(home: Home, *args: str) -> tuple[int, dict[str, Any]]:
    """Run the program in a home, for machines."""
    result = CliRunner().invoke(app, [*args, "--json"], env={"MAIA_HOME": str(home.path), "NO_COLOR": "1"})
    return result.exit_code, json.loads(result.stdout)


def test_homes_that_join_a_served_manager_publish_and_read(network: Network, served: Process) -> None:
    """Before joining they are told how; then the Met reads what the CCS publishes, which leaves and is told again."""
    ccs, met = network.homes["ccs"], network.homes["met"]
    with pytest.raises(UnavailableError) as refusal:
        network.plan("too early")
    assert refusal.value.code == "KEYS_NOT_JOINED"
    for home in (ccs, met):
        code, data = maia(home, "keys", "join", TYPE_NAME)
        assert (code, data["address"], data["manager"]) == (0, served.url, network.people.key("PITO").fingerprint)
        assert {row["uid"] for row in data["groups"]} == {None, *ATTRIBUTES.values()}
        assert all(row["start"] is not None for row in data["groups"])
    network.now = datetime.now(UTC) + timedelta(seconds=6)  # the manager's lead is over
    network.publish("first", ["AE05 XYZ", "BX51 ABC"])
    assert network.read("met", "Smith") == [("AE05 XYZ", "Victoria")]
    assert network.read("ccs", "BO") == [("AE05 XYZ", None), ("BX51 ABC", None)]
    code, data = maia(ccs, "keys", "leave", TYPE_NAME)
    assert (code, len(data["groups"])) == (0, 4)
    with pytest.raises(UnavailableError, match="maia keys join"):
        network.plan("too late")
    assert network.read("ccs", "BO") == [("AE05 XYZ", None), ("BX51 ABC", None)]
    assert maia(ccs, "keys", "leave", TYPE_NAME)[1]["groups"] == []
    assert maia(ccs, "keys", "join", TYPE_NAME)[0] == 0
    assert network.plan("again").publication == "again"


def test_home_without_a_chain_is_refused_and_learns_why_from_its_own_certificates(
    network: Network, served: Process
) -> None:
    """Kent may only connect. The manager says no and nothing else; the home itself knows what it lacks."""
    kent = network.homes["kent"]
    code, data = maia(kent, "keys", "join", TYPE_NAME)
    assert (code, data["error"]) == (3, "DENIED")
    assert "(`NOT_PERMITTED`)" in data["message"]
    assert kent.keyring().groups() == ()
    assert not (kent.path / "groups").exists()


def test_manager_that_proves_less_refuses_and_the_home_says_so(network: Network, served: Process) -> None:
    """Essex has a plain list, and may join by itself; the manager takes none that has no end, but a timed one."""
    pito, essex, broker = network.people.people["PITO"], KeySigner.generate(), KeySigner.generate()
    subscribe = type_right(pito.public_key, TYPE_NAME, actions=[Action.SUBSCRIBE])
    connect = network_right(pito.public_key, NETWORK_NAME, [Action.CONNECT])
    home = network.add("essex", broker)
    network.grant(
        naming(essex, BROKERS, broker),
        grant(pito, essex, connect, delegate=True),
        grant(essex, broker, connect),
        grant(pito, essex, subscribe, delegate=True, tests=[online(TestKind.CRL, pito)]),
        grant(essex, broker, type_right(None, actions=[Action.SUBSCRIBE])),
    )
    point_to(home, served.url)
    home.add_public_key("key-manager", pito.public_key)
    code, data = maia(home, "keys", "join", TYPE_NAME)
    assert (code, data["error"]) == (3, "DENIED")
    assert "(`NO_STATEMENT`)" in data["message"]
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    plain = listing(TestKind.CRL, pito)
    home.statements.save(book(plain))
    code, data = maia(home, "keys", "join", TYPE_NAME)
    assert (code, data["error"]) == (3, "DENIED")
    assert "lacks a statement" in data["message"]
    hour = (start, start + timedelta(hours=1))
    home.statements.save(book(plain, listing(TestKind.CRL, pito, sequence=2, valid=hour)))
    assert maia(home, "keys", "join", TYPE_NAME)[0] == 0


def test_somebody_else_at_the_address_gets_no_request_and_a_dead_one_is_named(
    network: Network, served: Process
) -> None:
    """A service that does not hold the manager's key is not asked; a killed one ends the command with 1."""
    met = network.homes["met"]
    met.add_public_key("key-manager", network.people.key("Met"))
    code, data = maia(met, "keys", "join", TYPE_NAME)
    assert code == 4, data
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    met.add_public_key("key-manager", network.people.key("PITO"))
    code, data = maia(met, "keys", "join", TYPE_NAME)
    assert (code, data["error"]) == (1, "PEER_UNAVAILABLE")
    assert "maia serve key-manager" in data["message"]
    assert not (met.path / "groups").exists()
