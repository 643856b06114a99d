"""Chaos finds what is wrong: one planted bug for each law, and the history that shows it plays again the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maia.routing import Account, Broker
from maia.routing import edge as edge_module
from maia.routing.forest import Forest
from maia.simulator import ChaosReport, Plan, chaos
from maia.testing import Command

SEEDS = range(1, 60)
Patch = pytest.MonkeyPatch


def forget_what_came(patch: Patch) -> None:
    """A broker that does not remember what it delivered, and asks for everything again."""
    hole = Account.hole
    patch.setattr(Account, "__contains__", lambda _self, _number: False)
    patch.setattr(Account, "hole", property(lambda self: (found := hole.fget(self)) and (0, found[1])))


def never_ask_again(patch: Patch) -> None:
    """A broker that does not look for what is missing."""
    patch.setattr(Account, "hole", property(lambda _self: None))


def match_everything(patch: Patch) -> None:
    """A broker that delivers whatever comes."""
    patch.setattr(edge_module, "matches", lambda _filter, _values: True)


def keep_the_entries_of_the_dead(patch: Patch) -> None:
    """A broker that does not clear what a lost neighbour asked for."""
    patch.setattr(Forest, "detach", lambda _self, _peer, _now: None)


def never_confirm(patch: Patch) -> None:
    """A broker that does not say when filters are in force."""
    patch.setattr(Forest, "confirmed", lambda _self, _hop, _message, _now: None)


def grow(patch: Patch) -> None:
    """A broker that keeps more with every tick."""
    patch.setattr(Broker, "size", property(lambda _self: 1 << 30))


PLANTED: dict[str, tuple[Callable[[Patch], None], set[str]]] = {
    "duplicate": (forget_what_came, {"duplicate"}),
    "loss": (never_ask_again, {"loss"}),
    "unmatched": (match_everything, {"unmatched"}),
    "state": (keep_the_entries_of_the_dead, {"state", "loss", "promise"}),
    "promise": (never_confirm, {"promise"}),
    "bounded": (grow, {"bounded"}),
}


@pytest.mark.parametrize("law", PLANTED)
def test_a_planted_bug_is_found_and_played_again(law: str, monkeypatch: Patch) -> None:
    """Each law has a bug that breaks it; the same seed breaks it at the same step."""
    plant, expected = PLANTED[law]
    plant(monkeypatch)
    found = chaos(SEEDS, Plan()).violation
    assert found is not None
    assert found.law in expected
    again = chaos(range(found.seed, found.seed + 1), Plan()).violation
    assert again is not None
    assert (again.law, again.step, again.detail) == (found.law, found.step, found.detail)


def test_a_broken_law_ends_the_command_with_the_one_that_plays_it_again(monkeypatch: Patch, tmp_path: Path) -> None:
    """Exit code 1, the law, and a command line that breaks it again."""
    match_everything(monkeypatch)
    home = Command(tmp_path)
    ran = home("simulate", "chaos", "--seeds", "60", "--json")
    assert ran.code == 1
    assert ran.data["violation"]["law"] == "unmatched"
    again = home(*ran.data["replay"].split()[1:], "--json")
    assert again.data["violation"] == ran.data["violation"]
    told = home("simulate", "chaos", "--seeds", "60")
    assert ran.data["replay"] in told.out


def test_the_same_seed_tells_the_same_story() -> None:
    """Every number of the report, for both kinds of links."""
    for plan in (Plan(), Plan(line=True, brokers=4)):
        first, second = (chaos(range(3, 6), plan) for _ in range(2))
        assert isinstance(first, ChaosReport)
        assert first == second
        assert first.violation is None
