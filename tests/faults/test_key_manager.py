"""A key manager killed at any durable step: one key for each epoch, no number twice, and everybody goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import key_killing
import pytest
from key_killing import KeyWorker
from key_manager_world import GROUPS, OWNER, PLATE, TYPE, Broker, World, moment
from sqlalchemy import insert, select

from maia import database
from maia.authority import CertificatePool
from maia.database import key_brokers, key_groups, key_messages, key_places, key_revoked
from maia.encryption import LeaveGroups, parse_rekey, verify_rekey
from maia.errors import UnavailableError

pytestmark = pytest.mark.slow
TORTURE = bool(os.environ.get("MAIA_TORTURE"))
SYSCALLS = "write,pwrite64,fsync,fdatasync,link,linkat,rename,unlink,ftruncate"


@pytest.fixture(scope="module")
def worker() -> Iterator[KeyWorker]:
    """Give a process that works and dies on command."""
    started = KeyWorker.start()
    yield started
    started.stop()


class Story:
    """What happens to a group, from the brokers' side: each piece of work is asked for until it is answered."""

    def __init__(self, root: Path, url: str | None = None) -> None:
        root.mkdir(exist_ok=True)
        self.keys: dict[tuple[str, float], bytes] = {}
        self.world = World(root, url)
        self.world.open()
        self.brokers = {name: Broker(name) for name in ("ann", "bob", "cat")}
        self.plan: list[tuple[str, float, str]] = [
            ("join", 1, "ann"), ("join", 2, "bob"), ("refresh", 3, ""), ("join", 4, "cat"), ("leave", 5, "cat"),
            ("revoke", 6, "bob"), ("tick", 7, ""), ("join", 8, "cat"), ("tick", 3700, ""),
        ]  # fmt: skip
        self.todo = [self._written(*item) for item in self.plan]

    def _written(self, what: str, seconds: float, who: str) -> list[Any]:
        manager, broker = self.world.manager, self.brokers.get(who)
        if broker is None:
            return [what, seconds, "", []]
        if what == "revoke":
            return [what, seconds, broker.chain[1].certificate_id.hex(), []]
        if what == "join":
            request = broker.ask(manager, moment(seconds))
            self.keys[who, seconds] = broker.private
            return [what, seconds, request.hex(), [item.hex() for item in broker.evidence]]
        return [what, seconds, broker.sign(manager, LeaveGroups(), moment(seconds)).hex(), []]

    def run(self, worker: KeyWorker, *, kill: int | None = None, after: bool = False) -> dict[str, Any]:
        """Do what is left of the work; take the answers that came."""
        ended: dict[str, Any] = worker.run(self.world.root, self.world.url, self.todo, kill=kill, after=after)
        self.take(ended["answers"])
        return ended

    def take(self, answers: list[str]) -> None:
        """Take the answers in."""
        for answer in answers:
            what, seconds, who = self.plan.pop(0)
            self.todo.pop(0)
            if what == "join":
                broker = self.brokers[who]
                broker.private = self.keys[who, seconds]
                broker.take(bytes.fromhex(answer), self.world.manager)

    def check(self) -> None:
        """Compare log, database and brokers."""
        assert self.todo == []
        world = self.world
        ann, bob, cat = (self.brokers[name] for name in ("ann", "bob", "cat"))
        world.follow(ann, bob, cat)
        for status in world.manager.status():
            messages = [
                verify_rekey(parse_rekey(record.body), OWNER.public_key).rekey
                for record in world.lane(status.group).since().records
            ]
            assert [message.number for message in messages] == list(range(1, len(messages) + 1))
            assert [message.start for message in messages] == sorted({message.start for message in messages})
            assert (status.number, status.unpublished, status.behind) == (len(messages), 0, False)
            stored = world.manager._register.vault
            with world.engine.connect() as connection:
                key = stored.load(connection, status.group).tree.key
            assert ann.keys[status.group][status.number].key == cat.keys[status.group][status.number].key == key
            for number in bob.keys[status.group]:
                assert bob.keys[status.group][number].key == ann.keys[status.group][number].key
            assert max(bob.keys[status.group]) < status.number


def kill_points(steps: int) -> list[tuple[int, bool]]:
    """All steps, before and after; or a few of them, spread."""
    points = [(step, after) for step in range(1, steps + 1) for after in (False, True)]
    return points if TORTURE else points[:: max(1, len(points) // 20)]


@pytest.mark.fault("F23")
@pytest.mark.threat("T43")
def test_killed_at_any_durable_step_the_manager_goes_on_with_one_key_an_epoch(
    worker: KeyWorker, tmp_path: Path
) -> None:
    """Die at step 1, 2, 3 … of a story, start again, ask again what was not answered, compare."""
    unhurt = Story(tmp_path / "unhurt")
    ended = unhurt.run(worker)
    assert ended["ended"] == 0
    unhurt.check()
    points = kill_points(ended["steps"])
    assert len(points) >= 20
    for step, after in points:
        story = Story(tmp_path / f"{step}-{after}")
        assert story.run(worker, kill=step, after=after)["ended"] == -9, (step, after)
        assert story.run(worker)["ended"] == 0, (step, after)
        story.check()
        shutil.rmtree(story.world.root)


@pytest.mark.fault("F23")
def test_killed_again_and_again_the_manager_goes_on(worker: KeyWorker, tmp_path: Path) -> None:
    """Every start dies a little later than the one before, until one reaches the end."""
    story = Story(tmp_path)
    for step in range(1, 200):
        if story.run(worker, kill=step, after=step % 2 == 0)["ended"] == 0:
            break
    story.check()


@pytest.mark.fault("F23")
def test_killed_inside_the_database_the_manager_goes_on(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """Not only between steps: strace kills at single system calls of SQLite and of the log."""
    strace = require_tool("strace")
    for number in range(1, 400, 5 if TORTURE else 45):
        story = Story(tmp_path / str(number))
        command = {
            "root": str(story.world.root),
            "url": story.world.url,
            "work": story.todo,
            "kill": None,
            "after": True,
        }
        done = subprocess.run(
            [strace, "-f", "-qq", "-o", os.devnull, "-e", f"trace={SYSCALLS}", "-e",
             f"inject={SYSCALLS}:signal=KILL:when={number}", sys.executable, key_killing.__file__, json.dumps(command)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        story.take([line[1:] for line in done.stdout.split("\n") if line.startswith("+") and not line.endswith("\x00")])
        finish(story)
        story.check()


def finish(story: Story) -> None:
    """Do the rest of the work in this process, as a manager that was started again."""
    manager = story.world.manager
    manager.start(at=moment(0))
    while story.todo:
        story.take([key_killing.work(story.world, *story.todo[0]).hex()])


@pytest.mark.fault("F23")
def test_restored_from_an_old_backup_and_killed_while_it_repairs(worker: KeyWorker, tmp_path: Path) -> None:
    """The log is ahead: refused until the repair, which may die at any step; numbers go on, none comes twice."""
    story = Story(tmp_path / "home")
    rest, story.todo = story.todo[4:], story.todo[:4]
    assert story.run(worker)["ended"] == 0
    story.world.engine.dispose()
    backup = tmp_path / "backup"
    shutil.copytree(story.world.root, backup, ignore=shutil.ignore_patterns("log"))
    story.todo = rest
    ended = story.run(worker)
    assert ended["ended"] == 0
    repair = ["repair", 3800, "", []]
    for step in range(1, 12):
        root = tmp_path / f"restored-{step}"
        shutil.copytree(backup, root)
        shutil.copytree(story.world.root / "log", root / "log")
        restored = World(root)
        with pytest.raises(UnavailableError):
            restored.manager.start(at=moment(3790))
        before = {group: restored.published(group) for group in GROUPS}
        with pytest.raises(UnavailableError):
            restored.manager.refresh(PLATE, at=moment(3790))
        assert worker.run(root, restored.url, [repair], kill=step)["ended"] in {-9, 1, 0}
        for status in restored.manager.status():
            if status.behind:
                restored.manager.repair(status.group, at=moment(3900))
        assert restored.manager.start(at=moment(3900)) >= 0
        for group in GROUPS:
            numbers = restored.published(group)
            assert numbers == list(range(1, len(numbers) + 1))
            assert numbers[: len(before[group])] == before[group]
            assert len(numbers) == len(before[group]) + 1
        ann = Broker("ann")
        assert ann.join(restored.manager, moment(4000)) == {b"*", b"1", b"2"}


@pytest.mark.postgres
@pytest.mark.fault("F23")
def test_killed_on_postgresql_the_manager_goes_on(worker: KeyWorker, tmp_path: Path, postgres_server) -> None:
    """The same story on a server, whose connection dies with the manager."""
    first = Story(tmp_path / "unhurt", postgres_server.new_database())
    steps = first.run(worker)["steps"]
    first.check()
    first.world.engine.dispose()
    points = kill_points(steps)
    for step, after in points if TORTURE else points[::3]:
        story = Story(tmp_path / f"{step}-{after}", postgres_server.new_database())
        assert story.run(worker, kill=step, after=after)["ended"] == -9, (step, after)
        assert story.run(worker)["ended"] == 0, (step, after)
        story.check()
        story.world.engine.dispose()


@pytest.mark.postgres
@pytest.mark.fault("F13")
def test_a_standby_on_postgresql_takes_over_when_the_leader_is_cut_off(tmp_path: Path, postgres_server) -> None:
    """The leader loses its connection: it commits nothing any more, and the standby goes on with the next number."""
    url = postgres_server.new_database()
    worlds = [World(tmp_path, url), World(tmp_path, url)]
    terms = [database.Leadership(world.engine, "key-manager") for world in worlds]
    leader, standby = (world.make(leadership=term) for world, term in zip(worlds, terms, strict=True))
    assert terms[0].try_lead()
    assert not terms[1].try_lead()
    leader.open_groups([TYPE], CertificatePool(), at=moment(0))
    ann = Broker("ann")
    ann.join(leader, moment(1))
    with pytest.raises(UnavailableError):
        standby.refresh(PLATE, at=moment(2))
    postgres_server.cut_connections(url)
    assert terms[1].try_lead()
    assert standby.refresh(PLATE, at=moment(3)) == 2
    with pytest.raises(UnavailableError):
        leader.refresh(PLATE, at=moment(4))
    ann.follow(worlds[0].notices, standby)
    assert sorted(ann.keys[PLATE]) == [1, 2]
    for world, term in zip(worlds, terms, strict=True):
        term.resign()
        world.engine.dispose()


@pytest.mark.postgres
@pytest.mark.fault("F23")
def test_a_lagging_copy_on_postgresql_notices_that_the_log_is_ahead(tmp_path: Path, postgres_server) -> None:
    """A replica that lacks the last transactions takes over: it begins no epoch that the log has, until the repair."""
    world = World(tmp_path / "first", postgres_server.new_database())
    world.open()
    ann, bob = Broker("ann"), Broker("bob")
    world.join(ann, 0)
    world.join(bob, 1)
    copy = World(tmp_path / "copy", postgres_server.new_database())
    with database.reading(world.engine) as source, database.transaction(copy.engine) as target:
        for table in (key_groups, key_brokers, key_places, key_messages, key_revoked):
            rows = [dict(row._mapping) for row in source.execute(select(table))]
            if rows:
                target.execute(insert(table), rows)
    world.manager.revoke([bob.chain[1].certificate_id], at=moment(5))
    newest = world.published()
    copy.notices = world.notices
    copy.manager = copy.make()
    with pytest.raises(UnavailableError, match="KEY_MANAGER_BEHIND"):
        copy.manager.start(at=moment(6))
    with pytest.raises(UnavailableError, match="KEY_MANAGER_BEHIND"):
        copy.manager.refresh(PLATE, at=moment(7))
    with pytest.raises(UnavailableError, match="KEY_MANAGER_BEHIND"):
        copy.manager.revoke([ann.chain[1].certificate_id], at=moment(8))
    assert world.published() == newest
    assert copy.manager.repair(PLATE, at=moment(9)) == newest[-1] + 1
    assert copy.published() == [*newest, newest[-1] + 1]
    copy.follow(bob, ann)
    assert newest[-1] + 1 not in bob.keys[PLATE]
    assert newest[-1] + 1 not in ann.keys[PLATE], "what was revoked while the group waited stays revoked"
    copy.manager.close()
    copy.engine.dispose()
    world.engine.dispose()
