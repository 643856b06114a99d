"""Acknowledged is durable: whoever looks at a home, and whatever is killed, what was answered with yes is there.

The service of a home and commands on the same home are processes of their own, as they are for a user.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from maia.clients import AccessControlClient
from maia.testing import NumberplateHomes, numberplate_homes
from processes import Service, environment, run_maia, serving

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
    database = None if kind == "sqlite" else str(request.getfixturevalue("postgres"))
    env = environment() if database is None else environment(MAIA_DATABASE_URL=database)
    expected: set[str] = set()
    for number in range(ROUNDS):
        with serving("acs", homes.met, database=database) as service, _chief(homes, service) as chief:
            recorded = {str(line["what"]) for line in chief.journal()}
            assert expected <= recorded
            for step, words in enumerate((*LOOKING, ("role", "appoint", f"detective(other{number})"))):
                run_maia(*words, home=homes.met, env=env)
                fact = f"detective(smith{number}x{step})"
                assert chief.appoint(fact)
                expected.add(fact)
            expected.add(f"detective(other{number})")
            service.kill()
    with serving("acs", homes.met, database=database) as service, _chief(homes, service) as chief:
        assert expected <= {str(line["what"]) for line in chief.journal()}


def _chief(homes: NumberplateHomes, service: Service) -> AccessControlClient:
    """Give the client of whoever speaks for the Met."""
    return service.client(homes.network.people["Met"], homes.network.key("Met"))
