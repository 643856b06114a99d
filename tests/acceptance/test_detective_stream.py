"""The detective's court order on a kept subscription: what is delivered while it stands, and three ways to lose it.

The police's policy gives Smith the capability, the camera of the congestion charge service reports two cars a round,
and the delivery job of the police fills his outbox; it is the job of `maia deliver --once`, run in this process.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import maia
from maia.errors import MaiaError
from maia.testing import (
    DETECTIVE_POLICY,
    TYPE_NAME,
    Command,
    Loss,
    NumberplateHomes,
    deliver_here,
    detective_world,
    numberplate_homes,
    publish_here,
    read_here,
)

CAR, OTHER = "AE05 XYZ", "BX51 ABC"
ROLE = f"npTracker('{CAR}')"
FACTS = [loss.value for loss in Loss]


@dataclass
class Police:
    """Both homes; Smith has joined the police, and has no role yet."""

    homes: NumberplateHomes
    rounds: int = 0

    @property
    def met(self) -> Command:
        """The command in the police's home."""
        return Command(self.homes.met)

    def record(self, *facts: str) -> None:
        """Let facts hold: an assignment is observed, the others are appointments."""
        for fact in facts:
            self.met.do("role", "observe" if fact.startswith("case") else "appoint", fact)

    def activate(self) -> set[str]:
        """Activate the role; return the certificates that came with it."""
        return set(self.met.do("role", "activate", ROLE, "--as", "Smith")["certificates"])

    def round(self) -> tuple[int, list[tuple[str, str]] | str]:
        """Let two cars be seen and deliver; tell how much the subscription ever got, and what Smith reads."""
        self.rounds += 1
        now = datetime.now(UTC)
        rows = [{"numberplate": plate, "timestamp": now, "location": "Victoria"} for plate in (CAR, OTHER)]
        with maia.open(self.homes.ccs) as ccs:
            assert publish_here(ccs.home, TYPE_NAME, rows, as_="CCTV", publication=f"r{self.rounds}", at=now) == 2
        with maia.open(self.homes.met) as met:
            deliver_here(met.home)
        [kept] = self.met.do("deliver", "list")["subscriptions"]
        shown = self.met("deliver", "show", "car", "--as", "Smith", "--json")
        if shown.code != 0:
            return kept["events"], str(shown.data["error"])
        return kept["events"], [(row["numberplate"], row["location"]) for row in shown.lines]

    def refusals(self) -> set[str]:
        """Tell for what reasons the audit says that the subscription got nothing."""
        rows = self.met.do("audit", "--kind", "refuse")["rows"]
        return {row["reason"] for row in rows if row["subject"] == "car"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes once: what Smith may do is for the policy of the police to say."""
    homes = numberplate_homes(tmp_path_factory.mktemp("police"), without=["Cap10"])
    prepare(homes.met, DETECTIVE_POLICY)
    return homes


def prepare(home: Path, rules: str) -> None:
    """Put a policy in force, and let Smith join."""
    met = Command(home)
    (home / "policy").mkdir(exist_ok=True)
    (home / "policy" / "met.rules").write_text(rules, "utf-8")
    met.do("policy", "apply")
    code = home.with_name("smith.code")
    code.write_text(met.do("domain", "invite", "smith")["invitation"] + "\n", "utf-8")
    met.do("domain", "join", str(home), "--as", "Smith", "--invitation-file", str(code))


@pytest.fixture
def police(template: NumberplateHomes, tmp_path: Path) -> Police:
    """Give a copy of both homes and of the log between them."""
    shutil.copytree(template.ccs.parent, tmp_path / "net")
    return Police(replace(template, ccs=tmp_path / "net" / "ccs", met=tmp_path / "net" / "met"))


@pytest.mark.requirement("12.05")
@pytest.mark.requirement("13.17")
@pytest.mark.requirement("24.05")
@pytest.mark.parametrize("loss", FACTS)
def test_each_of_three_losses_ends_delivery_and_a_new_start_delivers_again(police: Police, loss: str) -> None:
    """Role, capability and subscription end long before the certificate does; only a new activation opens it again."""
    police.record(*FACTS)
    old = police.activate()
    police.met.do("deliver", "add", "car", "--as", "Smith", "--type", TYPE_NAME)
    seen = [(CAR, "Victoria")]
    assert police.round() == (1, seen)
    assert police.refusals() == set()
    ended = police.met.do("role", "revoke", loss)
    assert ended["roles"] == [f"smith: {ROLE}"]
    assert {row["certificate"] for row in ended["certificates"]} <= old
    assert police.round() == (1, "REVOKED"), "nothing comes, and what came is closed"
    assert police.refusals() == {"REVOKED"}
    again = ("deliver", "add", "again", "--as", "Smith", "--type", TYPE_NAME)
    assert police.met.refused(*again) == (3, "REVOKED")
    police.record(loss)
    assert police.round() == (1, "REVOKED"), "what fell does not come back by itself"
    assert police.activate().isdisjoint(row["certificate"] for row in ended["certificates"])
    assert police.round() == (2, seen * 2), "what passed meanwhile is gone"


@pytest.mark.requirement("12.05")
def test_a_predicate_that_is_not_monitored_leaves_the_delivery_alone(tmp_path: Path) -> None:
    """Without the star the assignment is asked at activation only; with it, the order still ends everything."""
    homes = numberplate_homes(tmp_path, without=["Cap10"])
    prepare(homes.met, DETECTIVE_POLICY.replace("case)*\n", "case)\n"))
    police = Police(homes)
    police.record(*FACTS)
    police.activate()
    police.met.do("deliver", "add", "car", "--as", "Smith", "--type", TYPE_NAME)
    assert police.round()[0] == 1
    assert police.met.do("role", "revoke", Loss.CASE.value)["roles"] == []
    assert police.round()[0] == 2
    assert police.met.do("role", "revoke", Loss.ORDER.value)["roles"] == [f"smith: {ROLE}"]
    assert police.round()[0] == 2


@pytest.mark.requirement("24.05")
def test_the_order_of_2008_gives_cap10_until_its_last_second(tmp_path: Path) -> None:
    """Case c1 in May 2008: the role is the thesis' Cap10; on June 30 it reads, a second after it does not."""
    may, ends = datetime(2008, 5, 1, 9, tzinfo=UTC), datetime(2008, 6, 30, 23, 59, 59, tzinfo=UTC)
    world = detective_world(tmp_path, now=may)

    def read(at: datetime) -> list[object] | str:
        world.service.beat(at=at)
        try:
            return [row["numberplate"] for row in read_here(world.met, TYPE_NAME, as_="Smith", clock=lambda: at)]
        except MaiaError as error:
            return error.code

    assert world.sight([CAR, OTHER], at=may + timedelta(seconds=1)) == 2
    assert isinstance(read(may + timedelta(seconds=2)), str), "no order, no access"
    world.appoint(Loss, at=may + timedelta(seconds=3), order_until=ends)
    made, cap10 = world.activate(at=may + timedelta(seconds=3)), world.network.certificates["Cap10"]
    for part in ("issuer", "subject", "delegate", "tag"):
        assert getattr(made.body, part) == getattr(cap10.body, part), part
    assert made.body.period.not_after == ends
    assert [read(ends), read(ends + timedelta(seconds=1))] == [[CAR], "EXPIRED"]
