"""Notices are lanes: who can write to the log neither stops a key manager, nor hides an eviction, nor fills a home."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import maia
from maia.errors import UnavailableError, VerificationError
from maia.testing import Command, ManagedHomes, grant, managed_homes, publish_plan

TYPE = "org.example.Reading"
GROUP = f"{TYPE}/value"


class Manager:
    """`maia serve key-manager` in the owner's home."""

    def __init__(self, home: Path) -> None:
        """Start it; it listens when `wait` returns."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [Path(sys.executable).with_name("maia"), "serve", "key-manager", "--port", str(self.port)]
        self.process = subprocess.Popen([*command, "--home", str(home)], stderr=subprocess.DEVNULL)
        wait(lambda: self.ready)

    @property
    def ready(self) -> bool:
        """Whether it says that it can work."""
        assert self.process.poll() is None, "the service ended"
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/readyz") as answer:
                return answer.status == 200
        except URLError:
            return False

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        self.process.send_signal(how)
        self.process.wait()


@contextmanager
def serving(world: ManagedHomes) -> Iterator[Manager]:
    """Run the owner's key manager until the block ends."""
    manager = Manager(world.owner)
    world.point_to(f"http://127.0.0.1:{manager.port}")
    try:
        yield manager
    finally:
        if manager.process.poll() is None:
            manager.end(signal.SIGKILL)


def wait(condition: Callable[[], object]) -> None:
    """Wait until something is so; the test's own limit of time ends an endless wait."""
    while not condition():
        time.sleep(0.05)


def group(world: ManagedHomes, name: str = GROUP) -> dict[str, Any]:
    """Tell where a group stands, by the owner's command."""
    groups = Command(world.owner).do("keys", "groups")["groups"]
    return next(item for item in groups if item["group"].endswith(name.rpartition("/")[2]))


def join(world: ManagedHomes) -> None:
    """Let both homes join, and wait until their keys have begun."""
    for home in (world.sender, world.member):
        Command(home).do("keys", "join", TYPE)
    wait_for_epoch(world)


def wait_for_epoch(world: ManagedHomes) -> None:
    """Wait until the newest epoch has begun, which is announced five seconds before."""
    newest = max(path.stat().st_mtime for path in world.log.glob("_lanes/rekey/*/*/0*.record"))
    wait(lambda: time.time() > newest + 6)


def evict(world: ManagedHomes) -> None:
    """Withdraw the member's right, as its owner does; the key manager puts its broker out."""
    Command(world.owner).do("revoke", world.revocable.certificate_id.hex()[:16], "--yes")


def plan(home: Path, *, at: datetime | None = None) -> object:
    """Plan a publication of the camera; what cannot be sealed is refused here."""
    moment = datetime.now(UTC) if at is None else at
    return publish_plan(maia.open(home).home, TYPE, as_="camera", version=None, publication="p", at=moment)


def lanes(world: ManagedHomes) -> list[Path]:
    """List the folders of the manager's lanes in the log."""
    return sorted(world.log.glob("_lanes/rekey/*/origin=*"))


def told(world: ManagedHomes, number: int) -> bool:
    """Whether the log has a record of each group under a number, and a head about it."""
    names = [{path.name for path in folder.iterdir()} for folder in lanes(world)]
    return all({f"{number:012}.record", "head"} <= found for found in names)


@pytest.fixture
def world(tmp_path: Path) -> ManagedHomes:
    """Three homes over one log."""
    return managed_homes(tmp_path)


@pytest.mark.requirement("16.09")
@pytest.mark.threat("T50")
def test_an_evicted_member_opens_nothing_of_what_is_published_later(world: ManagedHomes, spark: Any) -> None:
    """A20: it removes the newest rekey record that everybody has read, and goes on to hide and replay what follows."""
    frame = spark.createDataFrame([("Victoria", "AE05 XYZ")], "place string, value string")
    sender, before = maia.open(world.sender).client("camera"), world.log.parent / "before"
    with serving(world):
        join(world)
        assert sender.publish(frame, TYPE, publication="while inside").events == 1
        assert maia.open(world.member).client("reader").read(TYPE).count() == 1
        shutil.copytree(world.log / "_lanes", before)
        for folder in lanes(world):
            max(folder.glob("*.record")).unlink()
        evict(world)
        wait(lambda: told(world, 1))
        wait_for_epoch(world)
        for turn in range(3):
            assert sender.publish(frame, TYPE, publication=f"after {turn}").events == 1
            for folder in lanes(world):
                old = before / folder.relative_to(world.log / "_lanes")
                shutil.copy(old / "head", folder / "head")  # replayed
    # The evicted member does not listen to what withdrew its right; it has the rekey messages, and its old keys.
    stolen = world.log.parent / "stolen"
    shutil.copytree(world.log, stolen, ignore=shutil.ignore_patterns("statement"))
    world.settle(world.member, log="../stolen", key_manager=None)
    seen = maia.open(world.member).client("reader").read(TYPE)
    assert [row.value for row in seen.collect() if row.value is not None] == ["AE05 XYZ"]


@pytest.mark.threat("T50")
def test_what_hides_an_eviction_is_an_alarm_and_the_sender_seals_nothing(world: ManagedHomes) -> None:
    """The record of the eviction is removed: a gap. The head as well: silence, which is blindness after a while."""
    with serving(world) as manager:
        join(world)
        plan(world.sender)
        kept = {path: path.read_bytes() for path in world.log.glob("_lanes/rekey/*/*/*")}
        evict(world)
        wait(lambda: told(world, 1))
        manager.end(signal.SIGKILL)
    for folder in lanes(world):
        max(folder.glob("*.record")).unlink()
    with pytest.raises(UnavailableError, match="LANE_GAP") as refused:
        plan(world.sender)
    assert refused.value.code == "KEYS_STALE"
    alarms = Command(world.sender).do("audit", "--kind", "alarm")
    assert "LANE_GAP" in json.dumps(alarms)
    for path, data in kept.items():  # all that the manager said since is as if it had never been said
        path.write_bytes(data)
    plan(world.sender)
    later = datetime.now(UTC) + timedelta(minutes=12)
    with pytest.raises(UnavailableError) as refused:
        plan(world.sender, at=later)
    assert refused.value.code == "KEYS_STALE"


@pytest.mark.threat("T50")
def test_what_a_sender_seals_that_is_kept_deaf_is_not_lost(world: ManagedHomes, spark: Any) -> None:
    """Readers heard of a new key, the sender cannot: they open what it sealed under the old one meanwhile."""
    frame = spark.createDataFrame([("Victoria", "AE05 XYZ")], "place string, value string")
    sender, reader = maia.open(world.sender).client("camera"), maia.open(world.member).client("reader")
    with serving(world) as manager:
        join(world)
        assert sender.publish(frame, TYPE, publication="first").events == 1
        number = group(world)["epoch"]
        kept = {path: path.read_bytes() for path in world.log.glob("_lanes/rekey/*/*/*")}
        Command(world.owner).do("keys", "refresh", GROUP)
        wait(lambda: group(world)["epoch"] > number and not group(world)["unpublished"])
        wait_for_epoch(world)
        assert reader.read(TYPE).count() == 1
        manager.end(signal.SIGKILL)
    said = {path: path.read_bytes() for path in world.log.glob("_lanes/rekey/*/*/*")}
    for path in said:  # all that the manager said since is as if it had never been said
        path.write_bytes(kept[path]) if path in kept else path.unlink()
    assert sender.publish(frame, TYPE, publication="deaf").events == 1
    for path, data in said.items():
        path.write_bytes(data)
    seen = reader.read(TYPE)
    assert [row.value for row in seen.collect()] == ["AE05 XYZ"] * 2
    assert sender.publish(frame, TYPE, publication="heard").events == 1
    assert reader.read(TYPE).count() == 3


def litter(folder: Path, newest: int) -> None:
    """Put into a lane's folder whatever might stop or hang somebody."""
    for name in ("999999999999.record", "999999999999.notice", "999999999999.floor", ".part"):
        (folder / name).write_bytes(b"" if name.endswith("floor") else b"x")
    os.mkfifo(folder / f"{newest + 1:012}.record")
    (folder / f"{newest + 2:012}.record").symlink_to("/dev/zero")
    (folder / f"{newest + 3:012}.record").mkdir()
    with (folder / f"{newest + 4:012}.record").open("wb") as file:
        file.truncate(1 << 33)
    (folder / "head").unlink()
    os.mkfifo(folder / "head")


@pytest.mark.threat("T51")
def test_junk_stops_neither_the_manager_nor_who_follows_it(world: ManagedHomes) -> None:
    """A22, A23: one octet, a pipe, an endless file, a floor: evictions happen, it stays ready, and senders go on."""
    with serving(world) as manager:
        join(world)
        number, old = group(world)["epoch"], world.log / "_notices" / "rekey"
        for folder in lanes(world):
            litter(folder, int(max(path.name for path in folder.glob("0*.record"))[:12]))
            (old / folder.parent.name).mkdir(parents=True)
            (old / folder.parent.name / "999999999999.notice").write_bytes(b"x")
        evict(world)
        wait(lambda: group(world)["epoch"] > number and not group(world)["unpublished"])
        assert manager.ready
        assert group(world)["members"] == 1
        wait_for_epoch(world)
        plan(world.sender)
        assert Command(world.owner).do("keys", "status")["behind"] == 0
        assert Command(world.owner).do("keys", "refresh", GROUP)["epoch"] == group(world)["epoch"]
        assert manager.ready


@pytest.mark.fault("F23")
def test_an_eviction_counts_before_the_log_hears_of_it(world: ManagedHomes) -> None:
    """The log is away while somebody is put out, and the manager is killed: what was decided comes out afterwards."""
    with serving(world) as manager:
        join(world)
        number, away = group(world)["epoch"], world.log.with_name("away")
        world.log.rename(away)
        world.log.write_bytes(b"")
        evict(world)
        wait(lambda: group(world)["epoch"] > number)
        assert group(world)["unpublished"] == 1
        assert manager.ready
        manager.end(signal.SIGKILL)
        world.log.unlink()
        away.rename(world.log)
    with serving(world):
        wait(lambda: not group(world)["unpublished"])
        assert group(world)["members"] == 1
        wait_for_epoch(world)
        plan(world.sender)


@pytest.mark.fault("F23")
def test_a_restored_manager_notices_it_whatever_is_replayed(world: ManagedHomes) -> None:
    """A25: the log is ahead of the database: nothing is signed until it is repaired, and no epoch begins twice."""
    owner = Command(world.owner)
    with serving(world) as manager:
        join(world)
        manager.end()
        backup = {path: path.read_bytes() for path in world.owner.glob("store.db*")}
        heads = {path: path.read_bytes() for path in world.log.glob("_lanes/rekey/*/*/head")}
        owner.do("keys", "refresh", GROUP)
    newest = group(world)["epoch"]
    for path in world.owner.glob("store.db*"):
        path.unlink()
    for path, data in backup.items():
        path.write_bytes(data)
    for path, data in heads.items():  # old words of the manager itself, said again
        path.write_bytes(data)
        records = sorted(path.parent.glob("0*.record"))
        (path.parent / f"{len(records):012}.record").write_bytes(records[0].read_bytes())
    assert owner("keys", "status", "--json").code == 1
    assert owner.refused("keys", "refresh", GROUP)[1] == "KEY_MANAGER_BEHIND"
    repaired = owner.do("keys", "repair", GROUP)["epoch"]
    assert repaired == newest + 1
    assert owner("keys", "status", "--json").code == 0
    assert owner.do("keys", "refresh", GROUP)["epoch"] == newest + 2
    epochs = owner.do("keys", "history", GROUP)["epochs"]
    assert [item["epoch"] for item in epochs] == list(range(1, newest + 3))


@pytest.mark.threat("T41")
def test_an_old_statement_file_revives_nothing(world: ManagedHomes) -> None:
    """A31: the file as it was before a withdrawal is put back under a running process, which reads the log again."""
    member, statements = maia.open(world.member), world.member / "statements"
    client = member.prove("reader")
    assert member.deliver_plan(TYPE, client=client, commits=()).subscriptions
    before = statements.read_bytes()
    world.withdraw()
    for _ in range(2):
        with pytest.raises(VerificationError) as refused:
            member.deliver_plan(TYPE, client=client, commits=())
        assert refused.value.code == "REVOKED"
        statements.write_bytes(before)


def test_a_partner_fills_its_own_share_of_a_home_and_no_other(world: ManagedHomes) -> None:
    """A15: 1,100 certificates of one partner; what finds no room is told, and the owner's next one is kept."""
    people = world.people
    many = [grant(people["member"], people["sender"], f"(read n{number})") for number in range(1_100)]
    world.push("member", "sender", many)
    wanted = grant(people["owner"], people["sender"], "(write)")
    world.push("owner", "sender", [wanted])
    command = Command(world.sender)
    with maia.open(world.sender) as domain:
        domain.follow()
    kept = {path.stem for path in (world.sender / "certificates").glob("*.cert")}
    assert wanted.certificate_id.hex()[:16] in kept
    assert sum(item.certificate_id.hex()[:16] in kept for item in many) == 1_000
    assert any("100 certificates" in line for line in command("status", "--json").data["problems"])
    assert "SHARE_FULL" in json.dumps(command.do("audit", "--kind", "alarm"))
