"""A home's keyring follows its key groups: in any order of calls, over any absence, and never further than it may."""

from __future__ import annotations

import logging
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.domain import SealingKeys
from maia.domain import memberships as group_keys
from maia.domain.memberships import Followed, GroupKeys
from maia.encryption import EpochId, KeyGroupId, Keyring, KeyTree, RekeyMessage, Welcome, rekey_topic
from maia.errors import MaiaError, SealError, SignatureError, UnavailableError, UsageError
from maia.events import TypeId
from maia.home import Home, HomeConfig
from maia.kernel import milliseconds
from maia.log import START, LaneHead, LogDirectory, NoticeKind, NoticeLog, OwnLanes, read_audit, sign_head
from maia.principals import KeySigner
from maia.testing import follow

GROUP = KeyGroupId(TypeId(bytes([7]) * 32), b"3265")
MANAGER, EVE = KeySigner(b"m" * 32), KeySigner(b"e" * 32)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def ms(seconds: float) -> int:
    """Give an instant some seconds after noon."""
    return milliseconds(NOON + timedelta(seconds=seconds))


class World:
    """A manager with a tree, homes that follow it, and their log."""

    def __init__(self, root: Path, **settings: int) -> None:
        """Make the log and two homes."""
        self.root = root
        self.tree = KeyTree(GROUP)
        self.notices = NoticeLog(root / "log", own=root / "own")
        self.keys = {EpochId(0): b""}
        self.homes = {name: self.make(name, **settings) for name in ("met", "ccs")}

    def make(self, name: str, **settings: int) -> Home:
        """Make one home."""
        return Home.create(self.root / name, HomeConfig(name=name, log="../log", **settings))

    def name(self, home: str) -> bytes:
        """Name a home's broker."""
        return self.homes[home].broker.public_key.key_id

    def rekey(self, seconds: float, *, joins: tuple[str, ...] = (), leaves: tuple[str, ...] = ()) -> RekeyMessage:
        """Begin an epoch and say so in the log."""
        message = self.tree.rekey(
            MANAGER,
            start=ms(seconds),
            joins={self.name(home): self.individual(home) for home in joins},
            leaves=[self.name(home) for home in leaves],
        )
        self.keys[EpochId(ms(seconds))] = self.tree.key
        self.say(message.to_bytes(), seconds)
        return message

    def say(self, body: bytes, seconds: float = 0) -> None:
        """Say something in the manager's lane."""
        self.notices.say(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP), body, at=NOON + timedelta(seconds=seconds))

    @staticmethod
    def individual(home: str) -> bytes:
        """Give the key that a home shares with the manager."""
        return home.encode().ljust(32, b".")

    def join(self, *homes: str, welcome: Welcome | None = None) -> None:
        """Let homes know that they are admitted."""
        for home in homes:
            GroupKeys(self.homes[home]).join(GROUP, self.individual(home), manager=MANAGER.public_key, welcome=welcome)

    def follow(self, home: str, seconds: float = 0) -> Followed:
        """Let a home follow."""
        return GroupKeys(self.homes[home]).follow(self.notices, at=NOON + timedelta(seconds=seconds))

    def ring(self, home: str) -> Keyring:
        """Open a home's keyring."""
        return self.homes[home].keyring()

    def held(self, home: str) -> list[float]:
        """List the starts of the epochs whose key a home holds, in seconds, after comparing the keys."""
        ring = self.ring(home)
        found = [epoch for epoch in ring.epochs(GROUP) if ring.key(GROUP, epoch) is not None]
        assert all(ring.key(GROUP, epoch) == self.keys[epoch] for epoch in found)
        return [(epoch - ms(0)) / 1000 for epoch in found]

    def known(self, home: str) -> list[float]:
        """List the starts of all epochs that a home knows of, in seconds."""
        return [(epoch - ms(0)) / 1000 for epoch in self.ring(home).epochs(GROUP)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two homes that are admitted and placed with the first epoch, at noon."""
    made = World(tmp_path)
    made.join("met", "ccs")
    made.rekey(0, joins=("met", "ccs"))
    return made


def test_members_take_the_key_of_each_epoch(world: World) -> None:
    """Both homes have the key of every epoch, with its start."""
    world.rekey(10)
    for home in ("met", "ccs"):
        assert world.follow(home, 11) == Followed(keys=2)
        assert world.held(home) == [0, 10]


def test_following_again_changes_nothing(world: World) -> None:
    """Nothing new, nothing written; repeated messages are passed over."""
    message = world.rekey(10)
    world.follow("met", 11)
    files = [world.homes["met"].path / name for name in ("groups", "keyring")]
    before = [path.read_bytes() for path in files]
    assert world.follow("met", 12) == Followed()
    assert [path.read_bytes() for path in files] == before
    world.say(b"something else")
    world.say(message.to_bytes())
    done = world.follow("met", 13)
    assert (done.keys, done.closed) == (0, [])
    assert world.held("met") == [0, 10]


def test_state_is_sealed_and_private(world: World) -> None:
    """No key is readable in the home's files, and nobody else may read them."""
    world.follow("met")
    for name in ("groups", "keyring"):
        path = world.homes["met"].path / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        data = path.read_bytes()
        assert world.individual("met") not in data
        assert world.tree.key not in data


def test_state_that_is_damaged_or_of_another_broker_is_refused(world: World) -> None:
    """A flipped bit and a foreign file do not open."""
    path = world.homes["met"].path / "groups"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    for wrong in (bytes(data), (world.homes["ccs"].path / "groups").read_bytes(), b"", b"short"):
        path.write_bytes(wrong)
        with pytest.raises(SealError):
            world.follow("met")


def test_who_was_put_out_gets_no_later_key_and_says_so(world: World) -> None:
    """Put out at 10: the key before stays, the epoch is known as closed, and a later one stays closed."""
    world.follow("met")
    world.rekey(10, leaves=("met",))
    done = world.follow("met", 11)
    assert (done.keys, done.closed, done.alarms) == (0, [GROUP], [])
    world.rekey(20)
    world.follow("met", 21)
    assert world.held("met") == [0]
    assert world.known("met")[:2] == [0, 10]
    assert world.follow("ccs", 21).keys == 3


@pytest.mark.fault("F23")
def test_offline_over_several_epochs_catches_up(world: World) -> None:
    """Three epochs passed: all keys come at once; a member put out in between has none of the later ones."""
    world.follow("met")
    world.follow("ccs")
    world.rekey(10)
    world.rekey(20, leaves=("ccs",))
    world.rekey(30)
    assert world.follow("met", 31).keys == 3
    assert world.held("met") == [0, 10, 20, 30]
    assert world.follow("ccs", 31).keys == 1
    assert world.held("ccs") == [0, 10]
    assert world.known("ccs")[:3] == [0, 10, 20]


@pytest.mark.fault("F23")
def test_newcomer_gets_nothing_from_before(world: World) -> None:
    """A home that joins at 20 reads the whole log and has one key."""
    world.homes["kent"] = world.make("kent")
    world.rekey(10)
    world.join("kent")
    world.rekey(20, joins=("kent",))
    assert world.follow("kent", 21) == Followed(keys=1)
    assert world.held("kent") == world.known("kent") == [20]


def test_welcome_gives_the_current_key_before_the_next_epoch(world: World) -> None:
    """Admitted without a refresh: the current key now, a place and all later keys with the next epoch."""
    world.homes["kent"] = world.make("kent")
    welcome = world.tree.admit(world.name("kent"), world.individual("kent"), MANAGER)
    world.join("kent", welcome=welcome)
    assert world.held("kent") == [0]
    assert world.follow("kent", 1) == Followed()
    world.rekey(10)
    assert world.follow("kent", 11).keys == 1
    assert world.held("kent") == [0, 10]


def test_welcome_of_another_is_refused(world: World) -> None:
    """A welcome for another broker, of another manager or another group does not open."""
    kent = world.make("kent")
    name, individual = kent.broker.public_key.key_id, b"k" * 32
    for_met = world.tree.admit(b"somebody", individual, MANAGER)
    by_eve = world.tree.admit(name, individual, EVE)
    joining = GroupKeys(kent)
    with pytest.raises(SealError):
        joining.join(GROUP, individual, manager=MANAGER.public_key, welcome=for_met)
    with pytest.raises(SignatureError):
        joining.join(GROUP, individual, manager=MANAGER.public_key, welcome=by_eve)
    with pytest.raises(MaiaError):
        joining.join(GROUP, b"x" * 32, manager=EVE.public_key, welcome=by_eve)
    assert joining.groups() == ()
    assert kent.keyring().groups() == ()


def test_only_the_manager_is_heard(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What others write into the log is an alarm in the audit, and changes no key."""
    other = KeyTree(GROUP)
    forged = other.rekey(EVE, start=ms(5), joins={world.name("met"): world.individual("met")})
    world.say(forged.to_bytes())
    world.say(b"no message at all")
    world.rekey(10)
    with caplog.at_level(logging.WARNING):
        done = world.follow("met", 11)
    assert [code for _, code in done.alarms] == ["REKEY_SIGNER", "SEXP_NOT_CANONICAL"]
    assert world.held("met") == [0, 10]
    rows = list(read_audit(world.homes["met"].audit_path))
    assert [(row.kind, row.subject) for row in rows if row.kind == "alarm"] == [("alarm", "3265")] * 2
    assert "REKEY_SIGNER" in caplog.text


def test_gap_is_an_alarm_and_closes_the_group_until_it_is_joined_again(world: World) -> None:
    """The log forgot a message that this home had not read: no key is guessed, and admission opens the group again."""
    world.follow("met")
    world.rekey(10)
    world.rekey(20)
    world.notices.writer(NoticeKind.REKEY, MANAGER, rekey_topic(GROUP)).forget(1, at=NOON)
    done = world.follow("met", 21)
    assert ([code for _, code in done.alarms], done.closed) == (["REKEY_GAP"], [GROUP])
    assert (world.held("met"), world.known("met")) == ([0], [0, 20])
    world.rekey(30, leaves=("met",))
    again = world.tree.admit(world.name("met"), b"again".ljust(32, b"."), MANAGER)
    GroupKeys(world.homes["met"]).join(GROUP, b"again".ljust(32, b"."), manager=MANAGER.public_key, welcome=again)
    assert world.held("met") == [0, 30]
    world.rekey(40)
    assert world.follow("met", 41).alarms == []
    assert world.held("met") == [0, 30, 40]


def test_two_histories_are_not_mixed(world: World) -> None:
    """A second message for the same epoch, signed by the same manager, is an alarm and gives no key."""
    world.follow("met")
    copy = KeyTree.from_bytes(world.tree.to_bytes())
    world.rekey(10)
    other = copy.rekey(MANAGER, start=ms(10))
    world.say(other.to_bytes())
    done = world.follow("met", 11)
    assert [code for _, code in done.alarms] == ["REKEY_FORK"]
    assert world.held("met") == [0, 10]


DEAF = 86_400 + 600
"""What the manager promises, and the usual silence: for so long a publisher may seal with a key that was replaced."""


def test_replaced_keys_are_erased_after_grace_from_memory_and_disk(tmp_path: Path) -> None:
    """Grace 30, no history: a key is there for so long after nobody seals with it; so is what killed writers left."""
    world = World(tmp_path, grace=30, history=0)
    world.join("met")
    world.rekey(0, joins=("met",))
    world.rekey(10)
    world.follow("met", DEAF + 40)
    assert world.held("met") == [0, 10]
    old = world.homes["met"].path / ".killed.part"
    old.write_bytes(b"sealed")
    os.utime(old, (1, 1))
    assert world.follow("met", DEAF + 40.001).erased == 1
    assert (world.held("met"), world.known("met")) == ([10], [0, 10])
    assert not old.exists()
    assert list(world.homes["met"].path.glob("keyring*")) == [world.homes["met"].path / "keyring"]
    assert world.follow("met", DEAF + 41).erased == 0


def commit(path: Path, at: datetime) -> None:
    """Let somebody commit nothing to the log."""
    OwnLanes(LogDirectory(path / "log"), path / "own", KeySigner.generate()).commit(
        "first", "00" * 32, (), evidence="00" * 32, at=at
    )


def test_without_a_bound_keys_live_as_long_as_the_log_keeps_their_time(tmp_path: Path) -> None:
    """Keys that were replaced before the oldest commit go after their grace; others stay readable."""
    world = World(tmp_path, grace=30)
    world.join("met")
    world.rekey(0, joins=("met",))
    world.rekey(100)
    written = datetime.now(UTC)
    commit(tmp_path, written)
    for later, left in ((timedelta(days=365), 1), (timedelta(0), 1)):
        world.follow("met", (written + later - NOON).total_seconds())
        assert len(world.held("met")) == left
    kept = World(tmp_path / "kept", grace=30)
    kept.join("met")
    kept.rekey(0, joins=("met",))
    commit(tmp_path / "kept", datetime.now(UTC))
    after = (datetime.now(UTC) - NOON).total_seconds() + 3600
    kept.rekey(after)
    kept.follow("met", after + 86_400)
    assert len(kept.held("met")) == 2


def test_erased_key_does_not_come_back_with_an_old_place(tmp_path: Path) -> None:
    """A crash that lost the place in the log makes the messages come again; what is erased stays erased."""
    world = World(tmp_path, grace=30, history=0)
    world.join("met")
    world.rekey(0, joins=("met",))
    path = world.homes["met"].path / "groups"
    before = path.read_bytes()
    world.rekey(10)
    world.follow("met", DEAF + 100)
    assert world.held("met") == [10]
    path.write_bytes(before)
    world.follow("met", DEAF + 101)
    assert (world.held("met"), world.known("met")) == ([10], [0, 10])


@pytest.mark.parametrize("die_at", ["save_keyring", "_save"])
def test_crash_between_keys_and_place_repeats_without_harm(
    world: World, monkeypatch: pytest.MonkeyPatch, die_at: str
) -> None:
    """Killed before or after the keys are kept, the next run has them all."""
    world.follow("met")
    world.rekey(10)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    target = Home if die_at == "save_keyring" else GroupKeys
    monkeypatch.setattr(target, die_at, killed)
    with pytest.raises(KeyboardInterrupt):
        world.follow("met", 11)
    monkeypatch.undo()
    world.follow("met", 12)
    assert world.held("met") == [0, 10]


def test_backlog_is_read_in_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More messages than one step takes: it says so, and the next step goes on where it ended."""
    monkeypatch.setattr(group_keys, "_READ", 1)
    monkeypatch.setattr(group_keys, "MAX_ROUNDS", 2)
    for second in range(1, 5):
        world.rekey(second)

    for _ in range(2):
        with pytest.raises(UnavailableError, match="REKEY_BACKLOG"):
            world.follow("met", 6)
    assert world.follow("met", 6).keys == 1
    assert world.held("met") == [0, 1, 2, 3, 4]


def test_leaving_ends_the_following(world: World) -> None:
    """A group that was left is read no more."""
    world.follow("met")
    keys = GroupKeys(world.homes["met"])
    assert (keys.groups(), world.held("met")) == ((GROUP,), [0])
    keys.leave(GROUP)
    keys.leave(GROUP)
    world.rekey(10)
    assert world.follow("met", 11) == Followed()
    assert keys.groups() == ()


def test_follow_brings_the_keys_before_each_plan(world: World) -> None:
    """`follow`, which plans begin with, takes the keys."""
    world.rekey(10)
    follow(world.homes["met"], at=NOON + timedelta(seconds=11))
    assert world.held("met") == [0, 10]


def test_home_without_groups_does_nothing(tmp_path: Path) -> None:
    """A home that follows no group has no state and needs no log."""
    home = Home.create(tmp_path / "met", HomeConfig(name="met"))
    follow(home, at=NOON)
    assert {path.name for path in home.path.iterdir()} == {"keys", "maia.toml", "clock", ".clock.lock"}


def test_closed_epoch_is_known_and_opens_only_as_the_newest() -> None:
    """A keyring knows that an epoch began without it; the key may come while that epoch is the newest."""
    ring = Keyring()
    ring.add(GROUP, EpochId(100), b"a" * 32)
    ring.close(GROUP, EpochId(200))
    assert (ring.epochs(GROUP), ring.key(GROUP, EpochId(200))) == ((100, 200), None)
    assert Keyring.from_bytes(ring.to_bytes()).epochs(GROUP) == (100, 200)
    with pytest.raises(UsageError, match="EPOCH_REUSED"):
        ring.close(GROUP, EpochId(100))
    ring.add(GROUP, EpochId(200), b"b" * 32)
    ring.close(GROUP, EpochId(300))
    ring.add(GROUP, EpochId(400), b"d" * 32)
    with pytest.raises(UsageError, match="EPOCH_REUSED"):
        ring.add(GROUP, EpochId(300), b"c" * 32)


def test_sealing_keys_learn_of_an_epoch_between_two_parcels(world: World) -> None:
    """A task that seals for longer than an epoch uses each epoch's key from its start on, and asks only when new."""
    world.follow("met")
    keys = SealingKeys(world.homes["met"], clock=lambda: NOON)
    assert keys.sealing_epoch(GROUP, ms(5)) == ms(0)
    world.rekey(10)
    assert keys.sealing_epoch(GROUP, ms(5)) == ms(0)
    assert keys.epochs(GROUP) == (ms(0),)
    assert keys.sealing_epoch(GROUP, ms(9)) == ms(0)
    assert keys.sealing_epoch(GROUP, ms(10)) == ms(10)
    assert keys.key(GROUP, EpochId(ms(10))) == world.tree.key
    assert (keys.uses(GROUP, EpochId(ms(0))), keys.uses(GROUP, EpochId(ms(10)))) == (3, 1)
    assert world.held("met") == [0, 10]


def test_sealing_ends_when_the_broker_is_put_out(world: World) -> None:
    """After the eviction there is no key to seal with; before its start the old one still serves."""
    world.follow("met")
    keys = SealingKeys(world.homes["met"])
    world.rekey(10, leaves=("met",))
    assert keys.sealing_epoch(GROUP, ms(9)) == ms(0)
    assert keys.key(GROUP, keys.sealing_epoch(GROUP, ms(11))) is None


def test_sealing_keys_of_a_home_without_groups_are_its_keyring(tmp_path: Path) -> None:
    """Local keys seal as before."""
    home = Home.create(tmp_path / "met", HomeConfig(name="met"))
    ring = Keyring()
    ring.add(GROUP, EpochId(100), b"k" * 32)
    home.save_keyring(ring)
    keys = SealingKeys(home)
    assert keys.key(GROUP, keys.sealing_epoch(GROUP, 150)) == b"k" * 32
    with pytest.raises(SealError, match="NO_KEY"):
        keys.sealing_epoch(GROUP, 99)


def test_what_another_types_manager_promises_keeps_no_key(tmp_path: Path) -> None:
    """A stranger who manages another type promises to speak in ages; keys of this one go in time."""
    world = World(tmp_path, history=1)
    world.join("met")
    world.rekey(0, joins=("met",))
    other = KeyGroupId(TypeId(bytes([8]) * 32), b"1")
    tree, home = KeyTree(other), world.homes["met"]
    GroupKeys(home).join(other, b"i" * 32, manager=EVE.public_key)
    first = tree.rekey(EVE, start=ms(0), joins={world.name("met"): b"i" * 32})
    world.notices.say(NoticeKind.REKEY, EVE, rekey_topic(other), first.to_bytes(), at=NOON)
    world.follow("met")
    lane = world.notices.reader(NoticeKind.REKEY, EVE.public_key.key_id, rekey_topic(other)).lane
    place = GroupKeys(home).heard()[other].place
    head = LaneHead(place=place, asserted=ms(1), floor=START, due=ms(1) + (1 << 51))
    world.notices.store.put(lane.head_name, sign_head(lane, head, EVE))
    world.rekey(10)
    world.follow("met", 20)
    assert GroupKeys(home).heard()[other].promised == 1 << 51
    assert world.held("met") == [0, 10]
    world.follow("met", 30 * 24 * 3600)
    assert world.held("met") == [10]


@pytest.mark.parametrize("hidden", ["type=*", "type=*/origin=*/*.record", "type=*/origin=*"])
def test_what_is_hidden_for_a_moment_keeps_its_keys(tmp_path: Path, hidden: str) -> None:
    """Whoever can write to the log takes a lane away and brings it back: no key that it needs is erased meanwhile."""
    world = World(tmp_path, grace=30)
    world.join("met")
    world.rekey(0, joins=("met",))
    commit(tmp_path, NOON + timedelta(seconds=5))
    world.rekey(10)
    judged = LogDirectory(tmp_path / "log", judge=lambda: lambda commit: commit.origin)
    GroupKeys(world.homes["met"]).follow(world.notices, at=NOON + timedelta(seconds=20), log=judged)
    [place] = (tmp_path / "log").glob(hidden)
    place.rename(tmp_path / "aside")
    world.follow("met", 30 * 24 * 3600)
    GroupKeys(world.homes["met"]).follow(world.notices, at=NOON + timedelta(days=30), log=judged)
    assert world.held("met") == [0, 10]


def test_more_types_than_are_looked_at_erase_nothing(tmp_path: Path) -> None:
    """Folders that anybody may make hide no lane from whoever decides which keys are still needed."""
    world = World(tmp_path, grace=30)
    world.join("met")
    world.rekey(0, joins=("met",))
    commit(tmp_path, NOON + timedelta(seconds=5))
    world.rekey(10)
    for number in range(4096):
        (tmp_path / "log" / f"type=!{number}").mkdir()
    world.follow("met", 30 * 24 * 3600)
    assert world.held("met") == [0, 10]
