"""Rights travel over the log itself: one message of the issuer, and every broker of the domain holds the new right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import maia
from maia.errors import MaiaError
from maia.testing import Command

TYPE = "pito/Numberplate"
MET_BROKERS = ("mb1", "mb2")


class Force:
    """PITO, the Met with an administration and two brokers, and Kent's broker, over one log; no service runs."""

    def __init__(self, root: Path) -> None:
        """Make the homes; the Met's brokers have whatever comes below the right that the Met does not have yet."""
        self.root = root
        self.pito, self.met, self.kent = (self.home(name, "--key") for name in ("pito", "met", "kent"))
        self.brokers = {name: self.home(name) for name in MET_BROKERS} | {"kb": self.home("kb")}
        self.pito.keys("owner", "smith")
        self.pito.do("type", "define", "owner/Numberplate@1", "--attribute", "numberplate:string")
        self.know(self.met, smith=self.pito, pito=(self.pito, "owner"))
        for name, home in self.brokers.items():
            force = self.kent if name == "kb" else self.met
            self.know(home, domain=(force, "domain"), pito=(self.pito, "owner"))
            self.know(force, **{name: (home, "broker")})
            for file in ("smith.key", "smith.pub"):
                shutil.copy(self.pito.home / "keys" / file, home.home / "keys" / file)
        self.know(self.kent, pito=(self.pito, "owner"))
        for home in (self.met, self.kent, *self.brokers.values()):
            shutil.copytree(self.pito.home / "types", home.home / "types", dirs_exist_ok=True)
        for to in ("smith", *MET_BROKERS):
            self._below(to)

    def home(self, name: str, *more: str) -> Command:
        """Make a home over the log."""
        home = Command(self.root / name)
        home.do("domain", "init", str(home.home), *more)
        file = home.home / "maia.toml"
        file.write_text(file.read_text("utf-8").replace('log = "log"', 'log = "../log"'), "utf-8")
        return home

    @staticmethod
    def know(home: Command, **keys: Command | tuple[Command, str]) -> None:
        """Let a home know public keys of others."""
        for name, where in keys.items():
            other, called = (where, name) if isinstance(where, Command) else where
            home.do("key", "import", name, str(other.home / "keys" / f"{called}.pub"))

    def _below(self, to: str) -> None:
        """Let the Met give somebody what it will have, and the brokers hold that."""
        made = self.met.do(
            *("grant", "--from", "domain", "--to", to, "--type", TYPE, "--action", "subscribe"),
            *("--irrevocable", "--blanket", "--yes"),
        )
        for name in MET_BROKERS:
            self.brokers[name].do("cert", "add", made["file"])

    def new_right(self, force: str) -> Path:
        """Let the owner give a domain a right by way of PITO's own domain; give the last certificate."""
        owner, target = self.pito, getattr(self, force)
        self.know(owner, **{force: (target, "domain")})
        asked = ("--type", "owner/Numberplate", "--action", "subscribe", "--delegate", "--irrevocable", "--yes")
        above = owner.do("grant", "--from", "owner", "--to", "domain", *asked)
        target.do("cert", "add", above["file"])
        return Path(owner.do("grant", "--from", "domain", "--to", force, *asked)["file"])

    def records(self) -> list[Path]:
        """List the messages in the log that carry certificates."""
        return sorted((self.root / "log").glob("_lanes/certificate/**/*.record"))

    def holds(self, broker: str) -> set[str]:
        """List what a broker holds, after it looked at the log once."""
        with maia.open(self.brokers[broker].home) as opened:
            opened.follow()
        return {item["id"] for item in self.brokers[broker].do("cert", "show")["certificates"]}

    def reads(self, broker: str) -> str:
        """Say whether a broker delivers to Smith."""
        with maia.open(self.brokers[broker].home) as opened:
            try:
                opened.deliver_plan("Numberplate", client=opened.prove("smith"), commits=())
            except MaiaError as error:
                return str(error.code)
        return "yes"


@pytest.fixture
def force(tmp_path: Path) -> Force:
    """Give the homes."""
    return Force(tmp_path)


@pytest.mark.requirement("13.18")
@pytest.mark.requirement("23.08")
def test_one_broadcast_gives_every_broker_of_the_domain_its_new_right(force: Force) -> None:
    """The Met gains a right: one message, with its chain; both brokers hold and use it and asked nobody. Kent's not."""
    assert {force.reads(name) for name in MET_BROKERS} == {"WRONG_ROOT"}
    before = {name: force.holds(name) for name in force.brokers}
    gained = force.met.do("cert", "add", str(force.new_right("met")))
    assert gained["told"] is True
    assert len(force.records()) == 1
    for name in MET_BROKERS:
        fresh = force.holds(name) - before[name]
        assert gained["id"] in fresh
        assert len(fresh) == 2, "the right, and the link above it"
        assert force.reads(name) == "yes"
    assert force.holds("kb") == before["kb"]
    assert len(force.records()) == 1, "no broker said or asked anything"


@pytest.mark.requirement("13.18")
def test_what_another_domain_gains_is_not_for_these_brokers(force: Force) -> None:
    """Kent's right reaches Kent's broker alone; a certificate that is nobody's own is told to nobody."""
    gained = force.kent.do("cert", "add", str(force.new_right("kent")))
    assert gained["id"] in force.holds("kb")
    assert all(gained["id"] not in force.holds(name) for name in MET_BROKERS)
    assert {force.reads(name) for name in MET_BROKERS} == {"WRONG_ROOT"}
    foreign = force.met.do("cert", "add", str(force.new_right("kent")))
    assert foreign["told"] is False
    assert len(force.records()) == 1


@pytest.mark.requirement("23.08")
@pytest.mark.threat("T51")
def test_a_message_that_was_changed_on_its_way_gives_nothing(force: Force) -> None:
    """Whoever can write to the log alters it: no broker takes it up. As its sender said it, each does."""
    force.met.do("cert", "add", str(force.new_right("met")))
    (record,) = force.records()
    good = record.read_bytes()
    for place in (len(good) // 3, len(good) // 2, len(good) - 20):
        bad = bytearray(good)
        bad[place] ^= 1
        record.write_bytes(bad)
        assert force.reads("mb1") == "WRONG_ROOT"
    record.write_bytes(good)
    assert (force.reads("mb1"), force.reads("mb2")) == ("yes", "yes")


@pytest.mark.requirement("23.08")
def test_a_stranger_fills_no_home_and_a_chain_that_begins_nowhere_is_not_kept(force: Force) -> None:
    """A broker listens to keys that it knows: Evil's own message for the Met's domain is as if it were not there."""
    evil = force.home("evil", "--key")
    force.know(evil, pito=(force.pito, "owner"), met=(force.met, "domain"))
    shutil.copytree(force.pito.home / "types", evil.home / "types", dirs_exist_ok=True)
    before = force.holds("mb1")
    made = evil.do(
        *("grant", "--from", "domain", "--to", "met", "--type", TYPE, "--action", "subscribe"),
        *("--irrevocable", "--blanket", "--yes"),
    )
    assert evil.do("cert", "add", made["file"])["told"] is False
    assert force.met.do("cert", "add", made["file"])["told"] is True  # its administration was talked into it
    assert force.holds("mb1") == before
    assert force.reads("mb1") == "WRONG_ROOT"
