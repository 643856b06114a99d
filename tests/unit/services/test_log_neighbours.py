"""Who may copy a log: what a neighbour shows is judged again and again, and leaves nothing in the home."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import maia
from maia.authority import Action, network_right, parse_tag
from maia.domain import Domain
from maia.domain.handed import keep_handed
from maia.errors import MaiaError, RevokedError, UnavailableError, UsageError
from maia.principals import Certificate, KeySigner, TestKind
from maia.services.log import neighbours
from maia.services.log.neighbours import KEEP, Neighbours
from maia.testing import NETWORK_NAME, grant, listing, numberplate_homes, online


class World:
    """A domain that serves its log, and Kent, which may pass `connect` on."""

    def __init__(self, root: Path) -> None:
        homes = numberplate_homes(root, network=True, since=timedelta(minutes=30))
        self.pito, self.kent = homes.network.people["PITO"], KeySigner.generate()
        self.connect = network_right(self.pito.public_key, NETWORK_NAME, [Action.CONNECT])
        self.kents = grant(self.pito, self.kent, self.connect, delegate=True)
        self.domain: Domain = maia.open(homes.ccs)
        self.now = 0.0
        self.neighbours = Neighbours(self.domain, monotonic=lambda: self.now)

    def passed_on(self, key: KeySigner) -> Certificate:
        """Let Kent pass its right on, by a list of Kent's."""
        return grant(self.kent, key, self.connect, tests=(online(TestKind.CRL, self.kent),))

    def admit(self, key: KeySigner, shown: Certificate) -> None:
        """Show it with Kent's right and list."""
        listed = listing(TestKind.CRL, self.kent, sequence=1)
        self.neighbours.admit(key.public_key, [self.kents.raw, shown.raw], [listed.raw])

    def files(self) -> dict[str, bytes]:
        """Read what the home holds of credentials."""
        path = self.domain.path
        found = (file for file in path.rglob("*") if file.is_file())
        names = {str(file.relative_to(path)): file for file in found}
        return {name: names[name].read_bytes() for name in names if name.startswith(("certificates", "statements"))}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a network."""
    return World(tmp_path_factory.mktemp("network"))


def test_what_neighbours_show_leaves_nothing_in_the_home(world: World) -> None:
    """Fresh keys cost nothing, so whoever may pass `connect` on could fill the home until nothing is decided."""
    world.domain.known(at=world.domain.clock())
    before, keys = world.files(), [KeySigner.generate() for _ in range(3)]
    assert before
    for key in keys:
        world.admit(key, world.passed_on(key))
    world.now += 2 * KEEP
    for key in keys:
        world.neighbours.check(key.public_key)  # by what it showed
    assert world.files() == before


def test_what_a_neighbour_showed_is_judged_with_the_lists_of_the_moment(world: World) -> None:
    """A list that this home hears later ends what was shown with an earlier one."""
    key = KeySigner.generate()
    shown = world.passed_on(key)
    world.admit(key, shown)
    keep_handed(world.domain.home, [], [listing(TestKind.CRL, world.kent, [shown], sequence=2).raw])
    world.now += 2 * KEEP
    with pytest.raises(RevokedError):
        world.neighbours.check(key.public_key)
    with pytest.raises(RevokedError):
        world.admit(key, shown)


def test_so_many_are_held_and_who_asked_least_lately_shows_it_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded, and nobody is let in for longer than a moment by what is not there any more."""
    monkeypatch.setattr(neighbours, "_MOST_HELD", 2)
    keys = [KeySigner.generate() for _ in range(3)]
    for key in keys:
        world.neighbours.admit(key.public_key, [world.kents.raw, grant(world.kent, key, world.connect).raw], [])
    world.now += 2 * KEEP
    with pytest.raises(MaiaError):
        world.neighbours.check(keys[0].public_key)
    for key in keys[1:]:
        world.neighbours.check(key.public_key)


def test_a_neighbour_that_shows_too_much_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate can be made large: a right may be one of a set of anything."""
    monkeypatch.setattr(neighbours, "_MAX_HELD", 8 << 10)
    key, padding = KeySigner.generate(), [(b"maia-x", b"%d" % number + b"y" * 4000) for number in range(3)]
    large = parse_tag((b"*", b"set", world.connect.to_sexp(), *padding))
    with pytest.raises(UsageError, match="TOO_MANY_CREDENTIALS"):
        world.neighbours.admit(key.public_key, [world.kents.raw, grant(world.kent, key, large).raw], [])
    with pytest.raises(MaiaError):
        world.neighbours.check(key.public_key)


def test_a_question_that_takes_long_holds_nobody_else_and_a_key_asks_one_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member asks for something expensive: others are let in meanwhile, and it cannot take further places."""
    begun, enough = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> tuple[Sequence[str], int]:
        begun.set()
        enough.wait()
        return [], 7

    monkeypatch.setattr(neighbours, "unwanted_segments", slow)
    monkeypatch.setattr(neighbours, "_TURN", 0.0)
    one, two = KeySigner.generate(), KeySigner.generate()
    name = f"type={'ab' * 32}/origin={'cd' * 32}/{0:012d}.record"
    found: list[tuple[list[str], int]] = []
    asker = threading.Thread(target=lambda: found.append(world.neighbours.unwanted(one.public_key, name, [])))
    asker.start()
    begun.wait()
    try:
        assert not world.neighbours._lock.locked()  # what every request needs
        world.admit(two, world.passed_on(two))
        world.neighbours.check(two.public_key)
        for key in (one, two):
            with pytest.raises(UnavailableError, match="LOG_ASKED"):
                world.neighbours.unwanted(key.public_key, name, [])
    finally:
        enough.set()
        asker.join()
    assert found == [([], 7)]
    assert world.neighbours.unwanted(one.public_key, name, [])[1] == 7
