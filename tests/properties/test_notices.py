"""A random adversary on the notices of a log: nothing stops, no wrong key, nothing old sealed once an end was heard."""

from __future__ import annotations

import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.domain import SealingKeys
from maia.domain.memberships import GroupKeys
from maia.encryption import KeyGroupId, KeyTree, rekey_topic
from maia.errors import SealError, UnavailableError
from maia.events import TypeId
from maia.home import Home, HomeConfig
from maia.kernel import milliseconds
from maia.log import LaneWriter, NoticeKind, NoticeLog
from maia.principals import KeySigner

GROUP = KeyGroupId(TypeId(bytes([7]) * 32), b"1")
MANAGER = KeySigner(b"m" * 32)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
RHYTHM = timedelta(seconds=60)


class Story:
    """A manager that changes keys, a broker that follows, and somebody who writes to the log as he likes."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random, self.log, self.now = random.Random(seed), root / "log", NOON
        self.home = Home.create(root / "home", HomeConfig(name="home", log="../log"))
        self.tree, self.keys, self.epochs = KeyTree(GROUP), {}, []
        self.notices = NoticeLog(self.log, own=root / "own")
        self.lane: LaneWriter = self.notices.writer(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP))
        self.folder, self.seen = self.log / self.lane.lane.folder, {}
        GroupKeys(self.home).join(GROUP, b"i" * 32, manager=MANAGER.public_key, at=NOON)
        self.rekey(joins={self.home.broker.public_key.key_id: b"i" * 32})
        self.heard = 0

    def rekey(self, **change: object) -> None:
        """Begin an epoch; the log is told whatever lies there."""
        message = self.tree.rekey(MANAGER, start=milliseconds(self.now), **change)
        self.keys[message.rekey.start] = self.tree.key
        self.epochs.append(message.rekey.start)
        self.lane.append(message.to_bytes(), at=self.now)
        self.lane.reassert(at=self.now, rhythm=RHYTHM)
        for path in self.folder.iterdir():
            if path.is_file() and not path.is_symlink():
                self.seen.setdefault(path.name, set()).add(path.read_bytes())

    def attack(self) -> None:
        """Do one thing to the lane's folder."""
        names = sorted(self.seen)
        name = self.random.choice([*names, f"{len(self.epochs):012}.record", "999999999999.record"])
        path, what = self.folder / name, self.random.choice(["remove", "replay", "junk", "swap", "cut", "pipe", "link"])
        old = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        others = sorted(data for kept in self.seen.values() for data in kept)
        if what == "replay" and name in self.seen:
            path.write_bytes(self.random.choice(sorted(self.seen[name])))
        elif what == "junk":
            path.write_bytes(self.random.randbytes(self.random.choice([0, 1, 300])))
        elif what == "swap":
            path.write_bytes(self.random.choice(others))
        elif what == "cut":
            path.write_bytes(old[: len(old) // 2])
        elif what == "pipe":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to("/dev/zero")

    def follow_and_seal(self) -> None:
        """Follow, check every key, and seal if that is allowed: never behind what was heard, never when blind."""
        GroupKeys(self.home).follow(self.notices, at=self.now)
        ring, heard = self.home.keyring(), GroupKeys(self.home).heard()[GROUP]
        for epoch in ring.epochs(GROUP):
            assert ring.key(GROUP, epoch) in (None, self.keys[epoch]), "a wrong key"
        assert heard.place.number + 1 >= self.heard, "a place never goes back"
        self.heard = heard.place.number + 1
        try:
            used = SealingKeys(self.home, clock=lambda: self.now).sealing_epoch(GROUP, milliseconds(self.now))
        except (UnavailableError, SealError):
            return
        assert not heard.alarm
        assert milliseconds(self.now) <= heard.due + 600_000
        if self.heard:
            assert used >= self.epochs[self.heard - 1]


@pytest.mark.parametrize("seed", range(40))
def test_no_adversary_in_the_notices_stops_anybody_or_has_old_keys_used(tmp_path: Path, seed: int) -> None:
    """Delete, replay, junk, swap, cut, pipes and links, against a manager and a broker that go on; then peace heals."""
    story = Story(tmp_path, seed)
    for _ in range(25):
        story.now += timedelta(seconds=story.random.choice([1, 30, 700]))
        for _ in range(story.random.randrange(4)):
            story.attack()
        if story.random.random() < 0.3:
            story.rekey()
        elif story.random.random() < 0.3:
            story.lane.reassert(at=story.now, depth=None, rhythm=RHYTHM)
        story.follow_and_seal()
    story.now += timedelta(seconds=1)
    story.lane.reassert(at=story.now, depth=None, rhythm=RHYTHM)
    GroupKeys(story.home).follow(story.notices, at=story.now)
    heard = GroupKeys(story.home).heard()[GROUP]
    assert (heard.alarm, heard.place.number + 1) == ("", len(story.epochs))
    keys = SealingKeys(story.home, clock=lambda: story.now)
    assert keys.sealing_epoch(GROUP, milliseconds(story.now)) == story.epochs[-1]
