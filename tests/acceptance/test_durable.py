"""Acknowledged is durable: whoever looks at a home, and whatever is killed, what was answered with yes is there.

The service of a home and commands on the same home are processes of their own, as they are for a user.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import Service, run_maia, serving

from maia.clients import AccessControlClient
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


def _key_manager(homes: NumberplateHomes, home: Path) -> Path:
    """Make the home of the type's owner, which manages its keys for the others."""
    Command(home).do("domain", "init", str(home))
    text = (home / "maia.toml").read_text("utf-8").replace('domain = "domain"', 'domain = "PITO"')
    (home / "maia.toml").write_text(text.replace('log = "log"', 'log = "../log"'), "utf-8")
    pito = homes.add_key(home, "PITO")
    people = homes.network.people
    named = naming(people["Met"], "brokers", people["MB"])
    for place in (home, homes.met):
        homes.add(place, *homes.network.certificates.values(), named)
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
