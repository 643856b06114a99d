"""Cut links, clocks and revocations at random instants: nothing is handed over after the instant that was printed.

An owner gives rights and takes them back with the `maia` command, a camera publishes, and the delivery job of another
domain serves those who subscribe. The other domain's log is a copy that a link keeps up to date. Time is told to each.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import maia
from maia.errors import UnavailableError
from maia.testing import (
    TYPE_NAME,
    TYPE_VERSION,
    Command,
    NumberplateHomes,
    deliver_here,
    numberplate_homes,
    publish_here,
)

TORTURE = bool(os.environ.get("MAIA_TORTURE"))
READ = f"PITO/{TYPE_NAME}@{TYPE_VERSION}"
PERIOD = 60
SECOND = timedelta(seconds=1)
Clock = Callable[[float], float]
"""What the reader's clock shows at a second, as a second."""


class World:
    """PITO, which gives rights by hand; the camera's domain; and the Met, whose job delivers."""

    def __init__(self, root: Path, *, clock: Clock = lambda second: second) -> None:
        """Make the homes; the Met follows a log of its own."""
        self.homes: NumberplateHomes = numberplate_homes(root)
        self.root, self.clock = root, clock
        self.pito, self.met = Command(root / "pito"), Command(self.homes.met)
        self.pito.do("domain", "init", str(self.pito.home))
        for home, log in ((self.pito.home, "../log"), (self.met.home, "../near")):
            settings = home / "maia.toml"
            lines = [f'log = "{log}"' if line.startswith("log") else line for line in settings.read_text().splitlines()]
            settings.write_text("\n".join(lines) + "\n", "utf-8")
        self.homes.add_key(self.pito.home, "PITO")
        self.homes.define(self.pito.home, self.homes.event_type, self.homes.network.people["PITO"])
        self.start = datetime.now(UTC).replace(microsecond=0)
        self.steps: list[float] = []
        self.counts: list[dict[str, int]] = []
        self.pito.do("statement", "crl", "--from", "PITO", "--until", f"+{PERIOD}s")
        self.met.do("key", "new", "first", "--no-passphrase")

    def at(self, second: float) -> datetime:
        """Give the instant of a second."""
        return self.start + second * SECOND

    def give(self, who: str, *more: str) -> str:
        """Give somebody of the Met a right by hand, and a subscription that the Met keeps."""
        self.met.keys(who)
        self.pito.do("key", "import", who, str(self.met.home / "keys" / f"{who}.pub"))
        asked = ("--from", "PITO", "--to", who, "--type", READ, "--action", "subscribe")
        made = self.pito.do("grant", *asked, *more)
        shutil.copy(made["file"], self.met.home / "certificates")
        self.link(cut=False)
        self.met.do("deliver", "add", who, "--as", who, "--type", READ)
        return str(made["id"])

    def revoke(self, identity: str, second: float) -> float:
        """Take a right back at a second; tell by which one it ends at the latest, as it is printed."""
        done = self.pito.do("revoke", identity, "--yes", "--at", self.at(second).isoformat())
        return (datetime.fromisoformat(done["by"]) - self.start).total_seconds()

    def link(self, *, cut: bool) -> None:
        """Carry the log to the Met; when it is cut, all but what issuers say."""
        left_out = shutil.ignore_patterns("statement") if cut else None
        shutil.copytree(self.root / "log", self.root / "near", dirs_exist_ok=True, ignore=left_out)

    def step(self, second: float, *, cut: bool = False) -> dict[str, int]:
        """Publish, let the owner renew its lists, carry it over, and deliver a little later; count what all got."""
        moment = self.at(second)
        row = {"numberplate": f"P{second}", "timestamp": moment, "location": "Victoria"}
        publish_here(maia.open(self.homes.ccs).home, TYPE_NAME, [row], as_="CCTV", at=moment)
        with maia.open(self.pito.home) as pito:
            pito.follow(at=moment)
        self.link(cut=cut)
        return self.deliver(second)

    def deliver(self, second: float) -> dict[str, int]:
        """Run the Met's job by the Met's clock; count what all got so far."""
        shown = self.at(self.clock(second)) + SECOND / 2
        deliver_here(maia.open(self.met.home).home, clock=lambda: shown)
        found = self.met.do("deliver", "list")["subscriptions"]
        self.steps.append(second)
        self.counts.append({item["name"]: int(item["events"]) for item in found})
        return self.counts[-1]

    def last(self, who: str) -> float:
        """Tell at which second somebody got something for the last time; -1 when that never happened."""
        got = [counts[who] for counts in self.counts]
        return max(
            (second for second, one, two in zip(self.steps, [0, *got], got, strict=False) if two > one), default=-1
        )

    def listed_until(self) -> float:
        """Tell at which second the last list ends that the Met knows."""
        shown = self.met.do("statement", "show")["statements"]
        ends = max(datetime.fromisoformat(item["ends"]) for item in shown if item["ends"])
        return (ends - self.start).total_seconds()


@pytest.mark.slow
@pytest.mark.fault("F12")
def test_a_cut_link_ends_what_depends_on_lists_and_nothing_else(tmp_path: Path) -> None:
    """Down for three periods: dependents stop at the end of the list, others go on; then all comes, in order, once.

    Who was revoked meanwhile gets nothing of what was published since, also not when the link is up again.
    """
    world = World(tmp_path)
    world.give("free", "--irrevocable")
    gone = world.give("gone")
    world.give("jones")
    assert world.step(1) == {"free": 1, "gone": 1, "jones": 1}
    ends, second = world.listed_until(), 10
    world.revoke(gone, 5)
    while second < ends + 3 * PERIOD:
        world.step(second, cut=True)
        second += 25
    published = len(world.steps)
    assert world.counts[-1]["free"] == published
    for who in ("gone", "jones"):
        assert 1 <= world.counts[-1][who] < published
        assert world.last(who) < ends
    waited = world.counts[-1]["gone"]
    found = world.step(second)
    assert found == {"free": published + 1, "gone": waited, "jones": published + 1}
    assert world.step(second + 1)["gone"] == waited


WAYS = ("end of validity", "list that is heard", "list that is kept away")


@pytest.mark.fault("F17")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12 if TORTURE else 2))
def test_nothing_is_handed_over_after_the_printed_instant(tmp_path: Path, seed: int) -> None:
    """Rights end in several ways at random instants while events go on; one who keeps his right loses nothing."""
    rng, world = random.Random(seed), World(tmp_path)
    world.give("free")
    ends: dict[str, float] = {}
    given: dict[str, tuple[str, float]] = {}
    for number in range(5 if TORTURE else 2):
        over = rng.randrange(20, 90)
        world.give(f"over{number}", "--until", world.at(over).isoformat())
        ends[f"over{number}"] = over + 1  # valid in its last second
        given[f"told{number}"] = (world.give(f"told{number}"), rng.uniform(5, 90))
    late = world.give("kept")
    second, cut, told = 1.0, rng.uniform(30, 60), {}
    while second < 220:
        for who, (identity, moment) in given.items():
            if who not in told and moment <= second:
                told[who] = second
                ends[who] = world.revoke(identity, second)
        if "kept" not in ends and second >= cut:
            ends["kept"] = world.revoke(late, second)
        world.step(second, cut="kept" in ends)
        second += rng.uniform(4, 12)
    for who, printed in ends.items():
        assert world.last(who) < printed, (who, printed)
    for who, moment in told.items():
        if moment < cut:  # heard at once
            assert world.last(who) < moment, who
    # Whoever was cut off with a list of its own waits, and gets all of it when the link is up.
    assert world.step(second)["free"] == len(world.steps)
    assert world.step(second + 1)["kept"] == world.counts[-2]["kept"] < len(world.steps)


def jumping(by: float, *, since: float = 20) -> Clock:
    """Let a clock jump at a second."""
    return lambda second: second + by if second >= since else second


CLOCKS: dict[str, Clock] = {
    "NTP steps it 4 s ahead": jumping(4),
    "NTP steps it 4 s back": jumping(-4),
    "it drifts by 500 ppm for an hour": lambda second: second * 1.0005 + 1.8,
    "a leap second is repeated": jumping(-1),
}


@pytest.mark.slow
@pytest.mark.fault("F19")
@pytest.mark.threat("T61")
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_the_printed_instant_holds_with_the_declared_skew(tmp_path: Path, clock: Clock) -> None:
    """The reader's clock is off by no more than the 5 s it declares, and the revocation is kept from it."""
    world = World(tmp_path, clock=clock)
    gone = world.give("gone")
    world.step(2)
    printed = world.revoke(gone, 15)
    second = 10.0
    while second < printed + 40:
        world.step(second, cut=True)
        second += 6
    assert 2 < world.last("gone") < printed + 5
    assert world.counts[-1]["gone"] < len(world.steps)


@pytest.mark.fault("F19")
@pytest.mark.threat("T61")
def test_a_clock_that_jumps_by_an_hour_delivers_nothing_wrong_and_loses_nothing(tmp_path: Path) -> None:
    """Back: the job stops by name. Ahead: what needs a list waits. Right again: all comes, each event once."""
    world = World(tmp_path)
    world.give("jones")
    world.give("free", "--irrevocable")
    assert world.step(1) == {"free": 1, "jones": 1}
    world.clock = lambda second: second - 3600
    with pytest.raises(UnavailableError) as stopped:
        world.step(10)
    assert stopped.value.code == "CLOCK_BACK"
    world.clock = lambda second: second
    assert world.step(20) == {"free": 3, "jones": 3}
    world.clock = lambda second: second + 3600
    assert world.step(30) == {"free": 4, "jones": 3}
    # The home remembers how late it was; whoever sets it right says so.
    world.clock = lambda second: second
    (world.met.home / "clock").unlink()
    assert world.step(40) == {"free": 5, "jones": 5}
