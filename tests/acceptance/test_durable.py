"""Acknowledged is durable: whoever looks at a home, and whatever is killed, what was answered with yes is there.

The service of a home and commands on the same home are processes of their own, as they are for a user.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from processes import Service, run_maia, serving

from maia.clients import AccessControlClient
from maia.errors import UnavailableError
from maia.testing import TYPE_NAME, Command, NumberplateHomes, naming, numberplate_homes

ROUNDS = 40 if os.environ.get("MAIA_TORTURE") else 2
LOOKING = (("role", "list"), ("status",), ("doctor",), ("role", "list"))


@pytest.fixture
def homes(tmp_path: Path) -> NumberplateHomes:
    """Give the numberplate homes; the Met runs an access control service."""
    return numberplate_homes(tmp_path)


@pytest.mark.slow
@pytest.mark.fault("F01")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_looking_at_a_home_whose_service_runs_loses_nothing(
    kind: str, homes: NumberplateHomes, request: pytest.FixtureRequest
) -> None:
    """Other processes read and write the same home; appointments are acknowledged; kill -9: all of them are there."""
    if kind == "postgresql":
        _set(homes.met, database=str(request.getfixturevalue("postgres")))
    expected: set[str] = set()
    for number in range(ROUNDS):
        with serving("acs", homes.met) as service, _chief(homes, service) as chief:
            assert expected <= {str(line["what"]) for line in chief.journal()}
            for step, words in enumerate((*LOOKING, ("role", "appoint", f"detective(other{number})"))):
                run_maia(*words, home=homes.met)
                fact = f"detective(smith{number}x{step})"
                assert chief.appoint(fact)
                expected.add(fact)
            expected.add(f"detective(other{number})")
            service.kill()
    with serving("acs", homes.met) as service, _chief(homes, service) as chief:
        assert expected <= {str(line["what"]) for line in chief.journal()}


@pytest.mark.slow
@pytest.mark.fault("F23")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_looking_at_a_key_manager_that_runs_loses_no_member_and_no_epoch(
    kind: str, homes: NumberplateHomes, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Somebody looks at the groups; a broker is let in, and told so; kill -9: it is in, and no group is behind."""
    pito = _key_manager(homes, tmp_path / "pito")
    if kind == "postgresql":
        _set(pito, database=str(request.getfixturevalue("postgres")))
    for _ in range(ROUNDS):
        with serving("key-manager", pito) as service:
            _set(homes.met, key_manager=service.url)
            for words in (("keys", "status"), ("keys", "groups"), ("keys", "refresh", f"{TYPE_NAME}/location")):
                run_maia(*words, home=pito)
            run_maia("keys", "leave", TYPE_NAME, home=homes.met)
            joined = run_maia("keys", "join", TYPE_NAME, home=homes.met)["groups"]
            assert joined
            service.kill()
        groups = run_maia("keys", "groups", home=pito)["groups"]
        assert not any(group["behind"] for group in groups)
        assert sum(group["members"] for group in groups) == len(joined)


@pytest.mark.slow
@pytest.mark.fault("F09")
def test_doctor_finds_a_home_whose_database_lost_what_was_acknowledged(homes: NumberplateHomes, tmp_path: Path) -> None:
    """A database from before the latest lists and epochs, as the old fault left it: both are named, with what to do."""
    pito, met, group = _key_manager(homes, tmp_path / "pito"), Command(homes.met), f"{TYPE_NAME}/location"
    with serving("key-manager", pito):
        pass  # opens the groups of the type
    run_maia("keys", "refresh", group, home=pito)
    _join(met, tmp_path / "guest")
    copies = {home: _database(home) for home in (pito, homes.met)}
    assert _named(homes.met, pito) == set()
    run_maia("keys", "refresh", group, home=pito)
    met.do("revoke", "--principal", "smith", "--yes")
    for home, copy in copies.items():
        for path in home.glob("store.db*"):
            path.unlink()
        (home / "store.db").write_bytes(copy)
    assert _named(homes.met, pito) == {"access control", "key manager"}


def _join(met: Command, home: Path) -> None:
    """Let somebody join the Met, who gets certificates by it."""
    guest = Command(home)
    guest.do("domain", "init", str(home))
    guest.keys("smith")
    code = home / "code"
    code.write_text(met.do("domain", "invite", "smith")["invitation"], "utf-8")
    guest.do("domain", "join", str(met.home), "--invitation-file", str(code), "--as", "smith")


def _database(home: Path) -> bytes:
    """Copy a database that nobody has open, whole."""
    with sqlite3.connect(home / "store.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return (home / "store.db").read_bytes()


def _named(*homes: Path) -> set[str]:
    """Name what the doctor finds lost, each with a hint."""
    found = [item for home in homes for item in Command(home)("doctor", "--json").data["findings"]]
    lost = [item for item in found if "lost" in item["detail"] and item["status"] == "problem"]
    assert all(item["hint"] for item in lost)
    return {item["name"] for item in lost}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not tell who has which file open")
def test_a_service_whose_journal_was_taken_away_acknowledges_nothing_that_is_lost(
    homes: NumberplateHomes,
) -> None:
    """Whatever took it away: what is answered with yes from then on is there after kill -9, the rest is an error."""
    kept: set[str] = set()
    with serving("acs", homes.met) as service, _chief(homes, service) as chief:
        assert chief.appoint("detective(smith)")
        service.running.send_signal(signal.SIGSTOP)
        (homes.met / "store.db-wal").unlink()
        ran = Command(homes.met)("doctor", "--json")
        assert any(f"process {service.running.pid} " in item["detail"] for item in ran.data["findings"])
        service.running.send_signal(signal.SIGCONT)
        for number in range(30):
            with suppress(UnavailableError), _chief(homes, service) as again:
                again.appoint(f"detective(jones{number})")
                kept.add(f"detective(jones{number})")
        service.kill()
    assert kept
    with serving("acs", homes.met) as service, _chief(homes, service) as chief:
        assert kept <= {str(line["what"]) for line in chief.journal()}


def _key_manager(homes: NumberplateHomes, home: Path) -> Path:
    """Make the home of the type's owner, which manages its keys for the others."""
    Command(home).do("domain", "init", str(home))
    text = (home / "maia.toml").read_text("utf-8").replace('domain = "domain"', 'domain = "PITO"')
    (home / "maia.toml").write_text(text.replace('log = "log"', 'log = "../log"'), "utf-8")
    pito = homes.add_key(home, "PITO")
    people = homes.network.people
    named = (naming(people["Met"], "brokers", people["MB"]), naming(people["PITO"], "domains", people["Met"]))
    for place in (home, homes.met):
        homes.add(place, *homes.network.certificates.values(), *named)
    homes.define(home, homes.event_type, pito)
    Command(homes.met).do("key", "import", "key-manager", str(home / "keys" / "PITO.pub"))
    return home


def _set(home: Path, **services: str) -> None:
    """Name services in a home's settings, in place of those that stand there."""
    text = (home / "maia.toml").read_text("utf-8").partition("\n[services]")[0].rstrip("\n")
    lines = "".join(f'{name} = "{value}"\n' for name, value in services.items())
    (home / "maia.toml").write_text(f"{text}\n\n[services]\n{lines}", "utf-8")


def _chief(homes: NumberplateHomes, service: Service) -> AccessControlClient:
    """Give the client of whoever speaks for the Met."""
    return service.client(homes.network.people["Met"], homes.network.key("Met"))
