"""What a worker needs, and what it can do with it: its key file, an order that is for it, and no home."""

from __future__ import annotations

import os
import pickle
import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from maia.domain import (
    Domain,
    Published,
    Workplace,
    Written,
    audit_of,
    begin_read,
    check_home_audit,
    commit_publication,
    order_to_publish,
    order_to_read,
    parts_of,
    publication_operation,
    scan,
    take_results,
    take_up,
    type_stretch,
    write_partition,
)
from maia.domain.plan_octets import read_plan, write_plan
from maia.domain.restamping import stamp_anew
from maia.domain.returns import put_result
from maia.domain.workplaces import WorkerPlace
from maia.errors import (
    DeniedError,
    EncodingError,
    KeyFormatError,
    MaiaError,
    NotFoundError,
    PlanOverError,
    SignatureError,
    UsageError,
)
from maia.home import Home, now, read_worker_key
from maia.kernel import DeliverPlan, PublishPlan
from maia.log import AuditRow, read_audit
from maia.principals import PublicKey
from maia.testing import Command, read_here

DAY = timedelta(days=1)
MARK = "a-value-that-nobody-else-has"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with a worker in the group, one that was revoked, and a log beside it."""
    folder = tmp_path_factory.mktemp("made")
    command = Command(folder / "home")
    command.do("domain", "init", str(command.home), "--log", str(folder / "log"))
    command.keys("owner", "lab", "ward")
    command.do("type", "define", "owner/Result@1", "--attribute", "patient:string", "--attribute", "value:integer")
    for name in ("broker", "lab"):
        command.do("grant", "--from", "owner", "--to", name, "--type", "owner/Result", "--action", "publish")
    command.do("grant", "--from", "owner", "--to", "ward", "--type", "owner/Result", "--action", "subscribe")
    for name in ("w1", "gone"):
        command.do("worker", "new", name, "--out", str(folder / f"{name}.worker"))
    command.do("worker", "revoke", "gone", "--yes")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Give a copy of it to a test; the log stays where it is."""
    shutil.copytree(made / "home", tmp_path / "home", copy_function=shutil.copy2)
    text = (tmp_path / "home" / "maia.toml").read_text("utf-8").replace(str(made / "log"), str(tmp_path / "log"))
    (tmp_path / "home" / "maia.toml").write_text(text, "utf-8")
    if (made / "log").exists():
        shutil.copytree(made / "log", tmp_path / "log")
    for name in ("w1", "gone"):
        shutil.copy2(made / f"{name}.worker", tmp_path / f"{name}.worker")
    return tmp_path


class World:
    """A domain, and what it orders."""

    def __init__(self, folder: Path) -> None:
        """Open it."""
        self.folder, self.domain = folder, Domain.open(folder / "home")
        self.home: Home = self.domain.home

    def at(self, worker: str | None, order: bytes, *, local: bool = False) -> tuple[Workplace, Any]:
        """Take an order up as a worker that cannot see the home."""
        environment = {} if worker is None else {"MAIA_WORKER_KEY": str(self.folder / f"{worker}.worker")}
        return take_up(str(self.folder / "nowhere"), order, None, local=local, environment=environment)

    def order_to_publish(self, publication: str) -> tuple[PublishPlan, int, bytes]:
        """Plan a publication."""
        plan = self.domain.publish_plan(
            self.domain.find_type("Result"), client=self.domain.prove("lab"), publication=publication
        )
        operation = publication_operation(self.home, plan, client="lab", at=now()).number
        order = order_to_publish(self.domain, plan, "lab", operation=operation, at=now())
        assert order is not None
        return plan, operation, order

    def publish(self, publication: str, *, rows: int = 2) -> Published:
        """Publish on a worker, committed here."""
        plan, operation, order = self.order_to_publish(publication)
        place, told = self.at("w1", order)
        written = write_partition(place, told, 0, iter([batch(rows)]), at=now())
        return self.commit(plan, operation, written)

    def commit(self, plan: PublishPlan, operation: int, written: Written) -> Published:
        """Make what a worker wrote count."""
        return commit_publication(
            self.home, self.domain.lanes, plan, [written], client="lab", operation=operation, at=now(), ordered=True
        )

    def order_to_read(self) -> tuple[Any, int, bytes]:
        """Plan a read of all that there is."""
        at, client = self.domain.follow(), self.domain.prove("ward")
        found = type_stretch(self.domain, self.domain.find_type("Result"), after={}, at=at)
        plan = self.domain.deliver_plan("Result", client=client, commits=found.commits, at=at, followed=True)
        operation = begin_read(self.home, plan, found.commits, client, attributes=None, parts=1, at=at)
        order = order_to_read(self.domain, plan, "ward", operation=operation, at=at)
        assert order is not None
        return parts_of(found.commits, plan), operation, order

    def read(self, worker: str, *, at: timedelta = timedelta(0)) -> list[dict[str, object]]:
        """Read on a worker whose clock is off by so much."""
        parts, operation, order = self.order_to_read()
        place, plan = self.at(worker, order)
        assert isinstance(plan, DeliverPlan)
        batches = scan(
            place, plan, parts, client="ward", columns=None, with_event_id=False, clock=lambda: now() + at,
            operation=operation,
        )  # fmt: skip
        return [row for one in batches for row in one.to_pylist()]


def batch(rows: int) -> pa.RecordBatch:
    """Make rows."""
    return pa.RecordBatch.from_pydict({"patient": [f"{MARK}-{row}" for row in range(rows)], "value": list(range(rows))})


def octets(folder: Path) -> bytes:
    """Read every file of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_worker_publishes_and_reads_with_its_key_file_alone(folder: Path) -> None:
    """What it wrote counts once, under the broker's name; what it read it tells the audit."""
    world = World(folder)
    done = world.publish("first")
    assert (done.events, done.refused) == (2, {})
    assert world.publish("first").repeated, "the name is known"
    rows = world.read("w1")
    assert [row["patient"] for row in rows] == [f"{MARK}-0", f"{MARK}-1"]
    assert rows == read_here(world.home, "Result", as_="ward"), "as beside the home"
    assert MARK.encode() not in octets(folder / "log")


def test_events_have_the_same_names_when_a_worker_tries_again(folder: Path) -> None:
    """A publication that was planned anew names its events as before, whichever keys its tasks had."""
    world = World(folder)
    bases = []
    for _ in range(2):
        _, _, order = world.order_to_publish("first")
        place, plan = world.at("w1", order)
        written = write_partition(place, plan, 0, iter([batch(2)]), at=now())
        assert written.file is not None
        bases.append(written.file.bases)
    assert bases[0] == bases[1]


def test_an_order_shows_neither_a_key_nor_the_plan(folder: Path) -> None:
    """Nor does what a worker leaves for the audit."""
    world = World(folder)
    world.publish("first")
    _, _, order = world.order_to_read()
    ring = world.home.keyring()
    keys = [ring.key(group, epoch) for group in ring.groups() for epoch in ring.epochs(group)]
    assert keys
    assert not any(key in order for key in keys if key)
    assert b"clauses" not in order
    opened, _ = world.at("w1", order)
    assert any(key in opened.keys().to_bytes() for key in keys if key)  # type: ignore[attr-defined]
    _, _, publishing = world.order_to_publish("second")
    assert opened.keys() is not None
    assert not any(key in pickle.dumps(publishing) for key in keys if key)
    place, _ = world.at("w1", publishing)
    group = ring.groups()[0]
    assert place.keys().key(group, ring.epochs(group)[0]) not in keys, "who publishes gets no key of the domain"


def test_who_is_not_in_the_group_opens_nothing(folder: Path) -> None:
    """A worker that was revoked, one that never was named, one whose time is over; and a machine without a key."""
    world = World(folder)
    world.publish("first")
    with pytest.raises(DeniedError, match="NOT_A_WORKER"):
        world.read("gone")
    with pytest.raises(NotFoundError, match="NO_WORKER_KEY"):
        world.at(None, world.order_to_read()[2])
    with pytest.raises(NotFoundError, match="NO_WORKER_KEY"):
        world.at("none", world.order_to_read()[2])
    command = Command(folder / "home")
    command.do("worker", "new", "short", "--out", str(folder / "short.worker"), "--until", "+1h")
    known = {worker["name"]: worker["in_force"] for worker in command.do("worker", "list")["workers"]}
    assert known == {"w1": True, "gone": False, "short": True}
    later = (now() + timedelta(hours=2)).isoformat()
    known = {worker["name"]: worker["in_force"] for worker in command.do("worker", "list", "--at", later)["workers"]}
    assert not known["short"]


def test_a_group_that_is_empty_again_hands_out_no_home(folder: Path) -> None:
    """Where the broker once named a worker, plans stay sealed; a local session goes on without any set-up."""
    world = World(folder)
    world.publish("first")
    Command(folder / "home").do("worker", "revoke", "w1", "--yes")
    world = World(folder)
    _, _, order = world.order_to_read()
    with pytest.raises(DeniedError, match="NOT_A_WORKER"):
        world.at("w1", order)
    with pytest.raises(NotFoundError, match="NO_WORKER_KEY"):
        take_up(str(folder / "home"), order, None, local=False, environment={})
    place, plan = take_up(str(folder / "home"), order, None, local=True, environment={})
    assert isinstance(plan, DeliverPlan)
    assert not place.by_task


def test_a_worker_does_the_work_of_its_own_broker_alone(folder: Path) -> None:
    """An order of another broker is refused before it is opened, and so is one in which a bit was changed."""
    other = Command(folder / "other")
    other.do("domain", "init", str(other.home))
    other.do("worker", "new", "theirs", "--out", str(folder / "theirs.worker"))
    world = World(folder)
    world.publish("first")
    _, _, order = world.order_to_read()
    with pytest.raises(SignatureError, match="WORK_SIGNER"):
        world.at("theirs", order)
    for place in range(40, len(order), len(order) // 12):
        altered = bytearray(order)
        altered[place] ^= 1
        with pytest.raises(MaiaError):
            world.at("w1", bytes(altered))


def test_an_order_ends_as_its_plan_does(folder: Path) -> None:
    """A worker whose clock is past the end opens nothing by it."""
    world = World(folder)
    world.publish("first")
    with pytest.raises(PlanOverError, match="PLAN_OVER"):
        world.read("w1", at=world.home.plan_age + timedelta(hours=1))


def test_an_order_to_publish_ends_as_its_plan_does(folder: Path) -> None:
    """A worker whose clock is past the end seals nothing by it."""
    world = World(folder)
    place, plan = world.at("w1", world.order_to_publish("late")[2])
    late = now() + world.home.plan_age + timedelta(hours=1)
    with pytest.raises(PlanOverError, match="PLAN_OVER"):
        write_partition(place, plan, 0, iter([batch(1)]), at=late)


def test_what_no_task_of_the_publication_wrote_does_not_count(folder: Path) -> None:
    """A worker that names a segment of another publication, or outside the lane, is refused; nothing is removed."""
    world = World(folder)
    _, _, foreign = world.order_to_publish("other")
    place, told = world.at("w1", foreign)
    plan, operation, _ = world.order_to_publish("mine")
    for named in (told, replace(told, publication="mine")):
        written = write_partition(place, named, 0, iter([batch(1)]), at=now())
        with pytest.raises(SignatureError, match="TASK_SIGNER"):
            world.commit(plan, operation, written)
        assert written.file is not None
        assert (folder / "log" / written.file.path).exists()
    assert read_here(world.home, "Result", as_="ward") == []


def test_a_worker_does_not_say_who_wrote_what(folder: Path) -> None:
    """One that says that it wrote beside the home, of another's segment or of its own, is refused; nothing is lost."""
    world = World(folder)
    world.publish("first")
    known = world.domain.lanes.find("first")
    assert known is not None
    (taken,) = known.files
    plan, operation, order = world.order_to_publish("second")
    place, told = world.at("w1", order)
    honest = write_partition(place, told, 0, iter([batch(1)]), at=now())
    assert honest.file is not None
    later = replace(honest.file, first_stamp=honest.file.first_stamp + 10**6, last_stamp=honest.file.last_stamp + 10**6)
    lies = [replace(honest, by_task=False, file=file) for file in (honest.file, taken, later)]
    for lie in lies:
        with pytest.raises(SignatureError, match="TASK_SIGNER"):
            world.commit(plan, operation, lie)
        with pytest.raises(SignatureError, match="TASK_SIGNER"):  # as `format("maia")` does, which has only their word
            commit_publication(
                world.home, world.domain.lanes, plan, [lie], client="lab", operation=operation, at=now(), doubted=True
            )
    with pytest.raises(SignatureError, match="TASK_SIGNER"):
        world.commit(plan, operation, replace(honest, file=taken))
    assert (folder / "log" / taken.path).exists()
    assert world.commit(plan, operation, honest).events == 1
    assert len(read_here(world.home, "Result", as_="ward")) == 3


def test_what_a_commit_names_is_not_sealed_again(folder: Path) -> None:
    """Also where a segment is named as one of the publication, and the broker signed it."""
    world = World(folder)
    done = world.publish("first")
    known = world.domain.lanes.find("first")
    assert known is not None
    plan = world.order_to_publish("first")[0]
    with pytest.raises(SignatureError, match="TASK_SIGNER"):
        stamp_anew(world.home, world.domain.lanes, known.files, plan.sealing, "first", at=now())
    assert len(read_here(world.home, "Result", as_="ward")) == done.events


def test_a_worker_says_neither_the_type_nor_the_right(folder: Path) -> None:
    """It commits into the lane of the plan, by the evidence of the plan; a task beside the home goes on as before."""
    world = World(folder)
    plan, operation, order = world.order_to_publish("mine")
    place, told = world.at("w1", order)
    honest = write_partition(place, told, 0, iter([batch(1)]), at=now())
    kind, evidence = told.sealing.type_id.hex(), told.sealing.evidence.hex()
    for lie in (("ab" * 32, evidence), (kind, "ab" * 32)):
        with pytest.raises(SignatureError, match="TASK_SIGNER"):
            world.commit(plan, operation, replace(honest, sealed_as=lie))
    assert read_here(world.home, "Result", as_="ward") == []
    here, own = take_up(str(folder / "home"), order, None, local=True, environment={})
    assert isinstance(own, PublishPlan)
    beside = write_partition(here, own, 0, iter([batch(1)]), at=now())
    done = commit_publication(
        world.home, world.domain.lanes, plan, [beside], client="lab", operation=operation, at=now(), doubted=True
    )
    assert done.events == 1


def test_what_workers_tell_reaches_the_audit_once(folder: Path) -> None:
    """The result of a read on a worker is in the audit as that of any read; what others put there is not."""
    world = World(folder)
    world.publish("first")
    world.read("w1")
    assert len(audit_of(world.home).waiting()) == 1, "beside the home nobody has heard yet"
    place = folder / "log" / "_returned" / world.home.broker.public_key.key_id.hex()
    (left,) = place.iterdir()
    assert b"ward" not in left.read_bytes()
    (place / left.name.replace("-0-", "-1-", 1)).write_bytes(left.read_bytes())
    (place / "7-0-0123456789abcdef").write_bytes(b"told by nobody")
    (place / "junk").write_bytes(b"")
    assert take_results(world.home) == 1
    assert list(place.iterdir()) == []
    assert audit_of(world.home).waiting() == {}
    told = [row for row in read_audit(world.home.audit_path) if row.subject == "ward"]
    assert [row.events for row in told if row.kind == "deliver"] == [2]
    assert take_results(world.home) == 0


def test_what_was_told_once_is_not_told_again(folder: Path) -> None:
    """Whoever can write to the store puts a result there again; the audit hears of an operation that waits for it."""
    world = World(folder)
    world.publish("first")
    world.read("w1")
    place = folder / "log" / "_returned" / world.home.broker.public_key.key_id.hex()
    (left,) = place.iterdir()
    kept = left.read_bytes()
    assert take_results(world.home) == 1
    told = list(read_audit(world.home.audit_path))
    left.write_bytes(kept)
    assert take_results(world.home) == 0
    assert list(place.iterdir()) == []
    assert list(read_audit(world.home.audit_path)) == told
    place_, _ = world.at("w1", world.order_to_publish("second")[2])
    assert isinstance(place_, WorkerPlace)
    assert place_.order.returns == b"", "who publishes tells the audit nothing"


def test_a_worker_tells_of_its_own_read_alone(folder: Path) -> None:
    """Who, of what and when is known at home; what a read does not tell, or the audit could not hold, is not told."""
    world = World(folder)
    world.publish("first")
    _, operation, order = world.order_to_read()
    worker, _ = world.at("w1", order)
    assert isinstance(worker, WorkerPlace)
    key = worker.order.returns
    intent = audit_of(world.home).waiting()[operation]
    good = AuditRow(
        at=now(), kind="deliver", principal="x", type_id="y", source="a file", subject="owner", code="OK", events=2
    )
    end = replace(good, kind="result", source="part 1")

    def put(*rows: AuditRow) -> None:
        put_result(worker.store, worker.broker.key_id, key, operation, 0, rows)

    wrong: list[dict[str, Any]] = [
        {"kind": "release"}, {"kind": "result"}, {"events": 1.5}, {"events": float("nan")}, {"events": "many"},
        {"events": -1}, {"events": 10**400}, {"events": True}, {"source": {"a": [1]}}, {"source": "x" * 5000},
        {"source": "\ud800"}, {"clauses": (1, 2)}, {"clauses": "text"}, {"closed": ("x",) * 5000},
        {"at": datetime(2026, 1, 1)},  # noqa: DTZ001 - as a hostile one says it
    ]  # fmt: skip
    for lie in wrong:
        put(replace(good, **lie), end)
    put(good, replace(end, kind="deliver"))
    put()
    before = list(read_audit(world.home.audit_path))
    assert take_results(world.home) == 0
    assert list(read_audit(world.home.audit_path)) == before
    put(replace(good, at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))), replace(end, at=now() + DAY))
    assert take_results(world.home) == 1
    told = list(read_audit(world.home.audit_path))[len(before) :]
    assert [row.kind for row in told] == ["deliver", "result"]
    assert {(row.principal, row.type_id, row.subject) for row in told} == {
        (intent.principal, intent.type_id, intent.subject)
    }
    assert all(intent.at <= row.at <= now() for row in told)
    assert check_home_audit(world.home, at=now()).sound


def test_conditions_that_only_the_home_can_ask_go_to_no_worker(folder: Path) -> None:
    """A rate is counted at home: the publication is refused as a whole, rather than row by row in silence."""
    command = Command(folder / "home")
    command.keys("probe")
    command.do(
        "grant", "--from", "owner", "--to", "probe", "--type", "owner/Result", "--action", "publish",
        "--condition", 'rate(5, "1h")',
    )  # fmt: skip
    world = World(folder)
    plan = world.domain.publish_plan(
        world.domain.find_type("Result"), client=world.domain.prove("probe"), publication="rated"
    )
    with pytest.raises(UsageError, match="WORKER_CONDITION"):
        order_to_publish(world.domain, plan, "probe", operation=1, at=now())


def test_a_worker_key_file_is_closed_to_others(folder: Path) -> None:
    """It is written so, never over another file, and not read otherwise; nor is something else taken for one."""
    path = folder / "w1.worker"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(TypeError):
        pickle.dumps(read_worker_key(path))
    path.chmod(0o640)
    with pytest.raises(KeyFormatError, match="KEY_FILE_MODE"):
        read_worker_key(path)
    other = folder / "other.worker"
    other.write_bytes(b"(6:worker)")
    os.chmod(other, 0o600)  # noqa: PTH101 - as a person would
    with pytest.raises(KeyFormatError, match="WORKER_KEY_SHAPE"):
        read_worker_key(other)
    assert "KEY_EXISTS" in Command(folder / "home").refused("worker", "new", "w9", "--out", str(other))[1]


def test_a_plan_neither_calls_nor_changes_what_the_process_has(folder: Path) -> None:
    """What a broker signs is read as values: no class is changed, no instance is called, no enumeration is made."""
    world = World(folder)
    plan, _, _ = world.order_to_publish("first")
    good, raw = write_plan(plan), PublicKey.raw
    assert read_plan(good) == plan
    path = str(folder / "home").encode()
    text = b"X" + len(path).to_bytes(4, "little") + path
    shared = b"X\x03\x00\x00\x00raw" + b"C\x01x" + b"s\x86b0"
    hostile = {
        "a change of type": b"cmaia.principals.keys\nPublicKey\nN}" + shared,
        "a change of Operator": b"cmaia.filters.tree\nOperator\nX\x01\x00\x00\x00=\x85RN}" + shared,
        "maia.domain.deliveries.HomeSecret": b"cmaia.domain.deliveries\nHomeSecret\n" + text + b"\x85R0",
        "a call of ClockOnly": b"cmaia.domain.orders\nClockOnly\n)R)R0",
        "maia.kernel.state_cache.Enum": b"cmaia.kernel.state_cache\nEnum\n0",
        "a change of ClockOnly": b"cmaia.domain.orders\nClockOnly\n)RK\x01a0",
        "not a plan": b"(cmaia.domain.orders\nClockOnly\no0",
    }
    for what, more in hostile.items():
        with pytest.raises(EncodingError, match=what):
            read_plan(good[:-1] + more + b".")
    assert PublicKey.raw is raw
