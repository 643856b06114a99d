"""The log is looked through seldom, with no lock held, and always before a key that was replaced is erased."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.domain.key_times import forget_look
from maia.domain.memberships import GroupKeys
from maia.encryption import KeyGroupId, KeyTree, rekey_topic
from maia.events import TypeId
from maia.home import Home, HomeConfig
from maia.kernel import milliseconds
from maia.log import LogDirectory, NoticeKind, NoticeLog, OwnLanes, expire
from maia.principals import KeySigner

GROUP = KeyGroupId(TypeId(bytes([7]) * 32), b"3265")
MANAGER = KeySigner(b"m" * 32)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
KEY = b"k" * 32
DEAF = timedelta(days=1, minutes=10)
"""What the manager promises, and the usual silence."""


class World:
    """A home in a key group whose first key was replaced at noon, and a log that others write to."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.home = Home.create(path / "met", HomeConfig(name="met", log="../log", grace=30))
        self.notices = NoticeLog(path / "log", own=path / "manager")
        self.looked: list[bool] = []
        tree, keys = KeyTree(GROUP), GroupKeys(self.home)
        keys.join(GROUP, KEY, manager=MANAGER.public_key)
        for at, joins in ((NOON - timedelta(hours=1), {self.home.broker.public_key.key_id: KEY}), (NOON, {})):
            body = tree.rekey(MANAGER, start=milliseconds(at), joins=joins, leaves=[]).to_bytes()
            self.notices.say(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP), body, at=at)
        real = LogDirectory.begins

        def looking(log: LogDirectory, known: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]] | None:
            self.looked.append(any(self._held()))
            return real(log, known)

        monkeypatch.setattr(LogDirectory, "begins", looking)

    def _held(self) -> Iterator[bool]:
        """Tell of each lock of the home whether somebody has it."""
        for path in self.home.path.glob(".*.lock"):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield False
                except BlockingIOError:
                    yield True

    def publish(self, who: str, at: datetime) -> OwnLanes:
        """Let somebody commit nothing."""
        signer = KeySigner(who.encode().ljust(32, b"."))
        lanes = OwnLanes(LogDirectory(self.path / "log"), self.path / who, signer)
        lanes.commit(f"{who} {at}", "00" * 32, (), evidence="00" * 32, at=at)
        return lanes

    def follow(self, at: datetime) -> int:
        """Let the home follow; tell how many keys are left. Time is some after the keys' grace."""
        log = LogDirectory(self.path / "log", judge=lambda: lambda commit: commit.origin)
        GroupKeys(self.home).follow(self.notices, at=at, log=log)
        ring = self.home.keyring()
        return sum(ring.key(GROUP, epoch) is not None for epoch in ring.epochs(GROUP))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give the world."""
    return World(tmp_path, monkeypatch)


LATER = NOON + DEAF + timedelta(minutes=5)


def test_the_log_is_looked_through_every_ten_minutes_and_without_a_lock(world: World) -> None:
    """However often a home follows, and in however many processes."""
    world.publish("ccs", NOON - timedelta(minutes=1))
    for second in range(0, 1200, 20):
        assert world.follow(LATER + timedelta(seconds=second)) == 2
    assert world.looked == [False, False]


def test_a_key_that_nothing_needs_goes_after_a_look(world: World) -> None:
    """The oldest commit is younger than the key's last use: it goes, and the log was looked through for that."""
    world.publish("ccs", LATER)
    assert world.follow(LATER + timedelta(minutes=1)) == 1
    assert world.looked == [False, False]
    assert world.follow(LATER + timedelta(minutes=2)) == 1
    assert len(world.looked) == 2  # nothing is left that could go


def test_what_was_seen_before_erases_nothing(world: World) -> None:
    """The log was empty when somebody looked; what came since still needs the key."""
    assert world.follow(NOON + timedelta(minutes=1)) == 2
    soon = NOON + DEAF + timedelta(seconds=25)
    assert world.follow(soon) == 2
    world.publish("ccs", NOON - timedelta(minutes=1))
    assert world.follow(soon + timedelta(minutes=1)) == 2
    assert world.follow(soon + timedelta(days=30)) == 2


def test_what_expired_here_is_noticed_at_once(world: World) -> None:
    """The home's own upkeep says so; of others' it is noticed with the next look."""
    lanes = world.publish("ccs", NOON - timedelta(minutes=1))
    world.publish("ccs", LATER)
    assert world.follow(LATER + timedelta(minutes=1)) == 2
    expire(lanes.log, lanes, before=LATER, at=LATER)
    assert world.follow(LATER + timedelta(minutes=2)) == 2
    forget_look(world.home)
    assert world.follow(LATER + timedelta(minutes=3)) == 1


@pytest.mark.parametrize("content", [b"", b"junk", b'{"v": 9}', b'{"v": 1, "looked": 0, "lanes": "x"}'])
def test_a_damaged_file_is_made_anew(world: World, content: bytes) -> None:
    """It is a remark about the log, and the log is there."""
    world.publish("ccs", NOON - timedelta(minutes=1))
    (world.home.path / "log-begins").write_bytes(content)
    assert world.follow(LATER) == 2
    assert len(world.looked) == 1
    assert world.follow(LATER) == 2
    assert len(world.looked) == 1
