"""A hostile member can write anywhere in a shared log, and cause no loss, repetition, hang or wrong delivery."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.authority import Action, type_right
from maia.errors import MaiaError, UnavailableError, UncheckedError
from maia.principals import Authorisation, KeySigner, issue
from maia.testing import (
    TYPE_NAME,
    TYPE_VERSION,
    Command,
    LaneOf,
    NumberplateHomes,
    grant,
    numberplate_homes,
    offered,
    publish_here,
)

pytestmark = pytest.mark.threat("T27")


@pytest.fixture
def world(tmp_path: Path) -> NumberplateHomes:
    """Build the homes over an empty log."""
    return numberplate_homes(tmp_path)


class Clock:
    """Gives instants that grow by a millisecond at least."""

    def __init__(self) -> None:
        self._last = datetime.now(UTC)

    def __call__(self) -> datetime:
        """Give the next one."""
        self._last = max(datetime.now(UTC), self._last + timedelta(milliseconds=1))
        return self._last


CLOCK = Clock()


def publish(world: NumberplateHomes, *plates: str, publication: str | None = None, at: datetime | None = None) -> None:
    """Let the camera publish sightings."""
    rows = [{"numberplate": plate, "timestamp": datetime.now(UTC), "location": "Victoria"} for plate in plates]
    home = maia.open(world.ccs).home
    publish_here(home, TYPE_NAME, rows, as_="CCTV", at=CLOCK() if at is None else at, publication=publication)


def read(world: NumberplateHomes, home: Path | None = None) -> list[str]:
    """Read what the billing office may see now, at its own home or at another one that has its key."""
    frame = maia.open(home or world.ccs).client("BO").read(TYPE_NAME, attributes=["numberplate"])
    return sorted(row[0] for row in frame.collect())


def follow(world: NumberplateHomes, checkpoint: Path, home: Path | None = None) -> list[str]:
    """Follow the log from a checkpoint to its end, as the billing office."""
    found: list[str] = []
    frame = maia.open(home or world.ccs).client("BO").subscribe(TYPE_NAME, attributes=["numberplate"])
    writer = frame.writeStream.foreachBatch(lambda rows, _: found.extend(row[0] for row in rows.collect()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return sorted(found)


def lane_folder(world: NumberplateHomes) -> Path:
    """Give the folder of the congestion charge service's lane."""
    broker = maia.open(world.ccs).home.broker.public_key.key_id.hex()
    [found] = (world.ccs.parent / "log").glob(f"type=*/origin={broker}")
    return found


def parked(world: NumberplateHomes, home: Path | None = None) -> set[str]:
    """Give the codes for which readers wait, as `maia status` tells them."""
    found = Command(home or world.ccs).do("status")
    return {item["code"] for item in found["log"]["parked"]}


def refusals(world: NumberplateHomes) -> set[str]:
    """Give the codes of what was refused, as `maia audit` tells them."""
    return {row["reason"] for row in Command(world.ccs).do("audit", "--kind", "refuse")["rows"]}


def stranger_lane(
    world: NumberplateHomes, signer: KeySigner, folder: Path, *, evidence: tuple[bytes, ...] = ()
) -> LaneOf:
    """Let somebody have a lane of the type in the shared log."""
    type_id = world.event_type.type_id.hex()
    lane = LaneOf(world.ccs.parent / "log", type_id, signer, folder, evidence=evidence)
    lane.commit("first", at=CLOCK())
    return lane


def test_nobody_claims_a_publication_of_another(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """A6: whatever lies under the next number, and whoever used the name, what was acknowledged is delivered."""
    publish(world, "P1")
    folder = lane_folder(world)
    eve = KeySigner.generate()
    stranger_lane(world, eve, tmp_path / "eve").commit("second", at=CLOCK())
    (folder / f"{1:012d}.record").write_bytes((folder / f"{0:012d}.record").read_bytes())
    (folder / f"{999999999999}.record").write_bytes(b"junk")
    old = world.ccs.parent / "log" / "_commits"
    old.mkdir()
    (old / f"{0:012d}.json").write_text("{}")
    publish(world, "P2", publication="second")
    assert read(world) == ["P1", "P2"]
    shown = Command(world.ccs).do("log", "show")
    assert [item["publication"] for item in shown["commits"]][-1] == "second"


def test_a_record_with_a_forged_signature_is_as_if_it_were_not_there(world: NumberplateHomes) -> None:
    """A6: the owner's key, the right number and digest, and a signature of somebody else: no record."""
    publish(world, "P1")
    domain = maia.open(world.ccs)
    [first] = domain.log.commits()
    writer = domain.lanes.writer(first.type_id)
    publish(world, "P2")
    name = lane_folder(world) / f"{1:012d}.record"
    whole = name.read_bytes()
    name.write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
    shown = Command(world.ccs).do("log", "show")
    assert [item["commit"] for item in shown["commits"]] == [0]
    assert shown["lanes"][0]["ignored"] == 1
    assert writer.reassert(at=CLOCK()) == 1
    assert len(Command(world.ccs).do("log", "show")["commits"]) == 2


def test_odd_files_stop_hang_and_fill_nobody(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """A7: pipes, links, folders, junk and bombs in the log; every event is delivered, and nothing else is."""
    publish(world, "P1", "P2")
    folder, log = lane_folder(world), world.ccs.parent / "log"
    os.mkfifo(folder / f"{1:012d}.record")
    os.mkfifo(folder / "head")
    (folder / f"{2:012d}.record").symlink_to("/dev/zero")
    (folder / "date=2026-01-01").mkdir()
    os.mkfifo(folder / "date=2026-01-01" / "x.parquet")
    topic = folder.parent
    os.mkfifo(topic / f"origin={'ab' * 32}")
    (topic / f"origin={'cd' * 32}").symlink_to("/dev")
    (topic / "origin=nonsense").mkdir()
    os.mkfifo(log / "type=nonsense")
    (log / "_evidence" / ("ef" * 32)).symlink_to("/dev/zero")
    for number in range(50):
        (topic / f"origin={number:064x}").mkdir()
    # Two brokers with lanes of their own: one has no right, the other has one and commits what is no segment.
    people = world.network.people
    eve, mallory = KeySigner.generate(), KeySigner.generate()
    bomb = pa.table({"parcel": pa.array([bytes(1 << 20)] * 64)})
    odd = pa.table({"parcel": pa.array([None, "text"])})
    right = type_right(world.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    proof = (grant(people["PITO"], mallory, right).raw,)
    for signer, name, certificates in ((eve, "eve", ()), (mallory, "mallory", proof)):
        lane = stranger_lane(world, signer, tmp_path / name, evidence=certificates)
        lane.commit("bomb", at=CLOCK(), table=bomb, compression="zstd")
        lane.commit("odd", at=CLOCK(), table=odd)
    assert read(world) == ["P1", "P2"]
    assert {"SEGMENT_MALFORMED"} <= refusals(world)
    checkpoint = tmp_path / "checkpoint"
    assert follow(world, checkpoint) == ["P1", "P2"]
    publish(world, "P3")
    assert follow(world, checkpoint) == ["P3"]


def test_an_odd_certificate_of_a_publisher_refuses_its_lane_alone(
    spark: Any, world: NumberplateHomes, tmp_path: Path
) -> None:
    """A8: a self-issued tag that the verifier cannot read is its publisher's refusal; the others' events come."""
    people, eve, broker = world.network.people, KeySigner.generate(), KeySigner.generate()
    right = type_right(world.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    given = grant(people["PITO"], eve, right, delegate=True)
    many = (b"*", b"set", *(b"%d" % number for number in range(1001)))
    odd = issue(
        Authorisation(
            issuer=eve.public_key, subject=broker.public_key, delegate=False,
            tag=(b"maia-type", people["PITO"].public_key.to_sexp(), TYPE_NAME.encode(), many),
        ),
        eve,
    )  # fmt: skip
    publish(world, "P1")
    stranger_lane(world, broker, tmp_path / "eve", evidence=(given.raw, odd.raw))
    checkpoint = tmp_path / "checkpoint"
    assert follow(world, checkpoint) == ["P1"]
    publish(world, "P2")
    assert follow(world, checkpoint) == ["P2"]


def test_missing_evidence_and_missing_commits_wait_and_lose_nothing(
    spark: Any, world: NumberplateHomes, tmp_path: Path
) -> None:
    """A9, C44: what was removed from the log parks its lane, with an alarm; its origin puts it back, and all comes."""
    publish(world, "P1")
    world.add_key(world.met, "BO")
    met, log, checkpoint = world.met, world.ccs.parent / "log", tmp_path / "checkpoint"
    shutil.rmtree(log / "_evidence")
    assert follow(world, checkpoint, met) == []
    assert read(world, met) == []
    assert parked(world, met) == {"EVIDENCE_MISSING"}
    ran = Command(met)("subscribe", "--type", TYPE_NAME, "--as", "BO", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert "1 lane of the log waits, and not all of it was read: EVIDENCE_MISSING" in ran.err
    maia.open(world.ccs).follow()  # whenever its origin works, it says again what it said before
    assert follow(world, checkpoint, met) == ["P1"]
    publish(world, "P2")
    publish(world, "P3")
    assert follow(world, checkpoint, met) == ["P2", "P3"]
    assert {item["reader"] for item in Command(met).do("status")["log"]["parked"]} <= {
        f"BO: {TYPE_NAME} (batch)", f"BO: PITO/{TYPE_NAME}@{TYPE_VERSION} (batch)",
    }  # fmt: skip
    publish(world, "P4")
    publish(world, "P5")
    records = [lane_folder(world) / f"{number:012d}.record" for number in (3, 4)]
    records[0].unlink()
    assert follow(world, checkpoint, met) == []
    assert "LANE_GAP" in parked(world, met)
    records[1].unlink()
    assert follow(world, checkpoint, met) == []
    assert Command(world.ccs).do("log", "reassert")["put"] == 2
    assert follow(world, checkpoint, met) == ["P4", "P5"]
    for record in records:
        record.unlink()  # the end of the lane, which its head still names
    assert follow(world, tmp_path / "fresh", met) == ["P1", "P2", "P3"]
    assert "LANE_GAP" in parked(world, met)
    maia.open(world.ccs).follow()
    assert follow(world, tmp_path / "fresh", met) == ["P4", "P5"]


def test_an_origin_that_falls_silent_is_an_alarm(spark: Any, world: NumberplateHomes) -> None:
    """The end of a lane may be withheld with its head: what is there is read, and it is told that there may be more."""
    publish(world, "P1")
    world.add_key(world.met, "BO")
    before = datetime.now(UTC) - timedelta(days=2)
    maia.open(world.ccs).lanes.reassert(at=before, rhythm=timedelta(hours=1))
    assert read(world, world.met) == ["P1"]
    assert parked(world, world.met) == {"LANE_SILENT"}
    maia.open(world.ccs).follow()  # the origin works, and says where its lane ends
    assert read(world, world.met) == ["P1"]
    assert parked(world, world.met) == set()


def test_no_number_of_strangers_hides_a_lane(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """Folders and lanes of strangers, more than a reader looks at: a new origin's events come all the same."""
    publish(world, "P1")
    topic = lane_folder(world).parent
    for number in range(1_100):
        (topic / f"origin={number:064x}").mkdir()
        (topic / f"origin=!{number:06d}").mkdir()  # no lane by its name
    stranger_lane(world, KeySigner.generate(), tmp_path / "eve")
    assert read(world) == ["P1"]
    checkpoint = tmp_path / "checkpoint"
    assert follow(world, checkpoint) == ["P1"]
    publish(world, "P2")
    assert follow(world, checkpoint) == ["P2"]
    assert len(Command(world.ccs).do("log", "show")["commits"]) >= 2


@pytest.mark.fault("F06")
def test_evidence_that_cannot_be_read_for_a_moment_is_a_doubt(
    world: NumberplateHomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails proves nothing: what rests on the evidence waits, and comes when the disk is well again."""
    publish(world, "P1")
    [evidence] = (world.ccs.parent / "log" / "_evidence").iterdir()
    real = os.open

    def failing(path: Any, flags: int, *args: Any, **named: Any) -> int:
        if os.fspath(path) == evidence.name:
            raise OSError(errno.EIO, "input/output error")
        return real(path, flags, *args, **named)

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", failing)
        assert offered(world.ccs) == ([], ["FILE_UNAVAILABLE"])
    published, parked_for = offered(world.ccs)
    assert (len(published), parked_for) == (1, [])


def test_a_damaged_segment_parks_its_lane_and_no_other(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """A segment with a flipped bit, or none: its lane waits, another broker's goes on, and nothing is lost."""
    people, other = world.network.people, KeySigner.generate()
    right = type_right(world.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    publish(world, "P1")
    [file] = lane_folder(world).glob("date=*/*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    lane = stranger_lane(world, other, tmp_path / "other", evidence=(grant(people["PITO"], other, right).raw,))
    checkpoint = tmp_path / "checkpoint"
    assert follow(world, checkpoint) == []
    assert parked(world) == {"LOG_FILE_DAMAGED"}
    shown = {item["lane"]: item["place"] for item in Command(world.ccs).do("log", "show")["lanes"]}
    assert len(shown) == 2
    lane.commit("more", at=CLOCK())
    file.unlink()
    assert follow(world, checkpoint) == []
    assert "LOG_FILE_MISSING" in parked(world)
    file.write_bytes(whole)
    assert follow(world, checkpoint) == ["P1"]


@pytest.mark.requirement("16.08")
def test_what_is_dated_back_behind_the_lane_is_refused(spark: Any, world: NumberplateHomes) -> None:
    """B6: the broker's own writer refuses it, and readers refuse it from a writer that does not."""
    before = CLOCK()
    publish(world, "P1")
    publish(world, "P2")
    with pytest.raises(MaiaError, match="STAMP_BEHIND"):
        publish(world, "P3", at=before)
    # A broker that signs what it likes: the same segment again, under a later number.
    domain = maia.open(world.ccs)
    [first, _] = domain.log.commits()
    writer = domain.lanes.writer(first.type_id)
    newest = writer.newest()
    assert newest is not None
    body = writer.kept(0).body
    writer.append(body, at=CLOCK())
    assert read(world) == ["P1", "P2"]
    assert "STAMP_BEHIND" in refusals(world)


def test_a_clock_that_ran_ahead_acknowledges_nothing_that_is_lost(
    spark: Any, world: NumberplateHomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16: a jump is refused before it stamps; what was stamped ahead waits for its time, and then comes."""
    home = maia.open(world.ccs).home
    home.next_stamp()
    with monkeypatch.context() as patch:
        module = sys.modules[type(home).__module__]
        patch.setattr(module, "now", lambda: datetime.now(UTC) + timedelta(hours=1))
        with pytest.raises(UnavailableError, match="CLOCK_AHEAD"):
            home.next_stamp()
        (home.path / "pace").unlink()  # as one who believes the clock would do
        home.next_stamp()
    with pytest.raises(UnavailableError, match="STAMPS_AHEAD"):
        home.next_stamp()
    (home.path / "stamps").unlink()
    soon = datetime.now(UTC) + timedelta(seconds=25)
    publish(world, "P1", at=soon)
    (home.path / "clock").unlink()  # as whoever set the clock right does
    checkpoint = tmp_path / "checkpoint"
    assert follow(world, checkpoint) == []
    assert parked(world) == {"STAMP_AHEAD"}
    found: list[str] = []
    while not found and datetime.now(UTC) < soon + timedelta(minutes=2):
        found = follow(world, checkpoint)
    assert found == ["P1"]


def test_damage_at_the_readers_own_home_parks_and_loses_nothing(
    spark: Any, world: NumberplateHomes, tmp_path: Path
) -> None:
    """B17: a key or a certificate is missing or damaged for a while: one subscriber waits, and no row is skipped."""
    publish(world, "P0")
    command, checkpoint = Command(world.ccs), tmp_path / "checkpoint"
    for name, client in (("billing", "BO"), ("statistics", "SO")):
        command.do("deliver", "add", name, "--as", client, "--type", TYPE_NAME)
    assert command.do("deliver", "--once")["events"] == {"billing": 1, "statistics": 1}
    assert follow(world, checkpoint) == ["P0"]
    right = world.network.certificates["Cap7"]
    [certificate] = [path for path in (world.ccs / "certificates").glob("*.cert") if path.read_bytes() == right.raw]
    key, other = world.ccs / "keys" / "BO.pub", (world.ccs / "keys" / "SO.pub").read_bytes()
    damages = {
        "CLIENT_KEY_CHANGED": (key, other),
        "KEY_FILE_SHAPE": (key, b"damaged"),
        "NO_FILE": (key, None),
        "CERTIFICATE_MISSING": (certificate, None),
    }
    for number, (code, (path, damage)) in enumerate(damages.items(), 1):
        publish(world, f"P{number}")
        octets = path.read_bytes()
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        done = command.do("deliver", "--once")
        assert (done["events"], done["waits"]) == ({"billing": 0, "statistics": 1}, {"billing": code})
        if damage != b"damaged":  # `maia status` names a key file that is none, and stops there
            assert code in parked(world)
        if path == certificate:
            with pytest.raises(UncheckedError) as raised:
                follow(world, checkpoint)
            assert raised.value.code == code
        path.unlink(missing_ok=True)
        path.write_bytes(octets)
        done = command.do("deliver", "--once")
        assert (done["events"], done["waits"]) == ({"billing": 1, "statistics": 0}, {})
    assert follow(world, checkpoint) == ["P1", "P2", "P3", "P4"]
    shown = command("deliver", "show", "billing", "--as", "BO", "--json").lines
    assert [row["numberplate"] for row in shown] == [f"P{number}" for number in range(5)]


def test_a_certificate_that_is_lost_is_named_and_let_go_of_knowingly(spark: Any, world: NumberplateHomes) -> None:
    """Its client waits until somebody says that it will not come back; then its right is denied, and others go on."""
    command = Command(world.ccs)
    publish(world, "P0")
    command.do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)
    assert command.do("deliver", "--once")["events"] == {"billing": 1}
    assert command.do("status")["log"]["missing"] == []
    right = world.network.certificates["Cap7"]
    [file] = [path for path in (world.ccs / "certificates").glob("*.cert") if path.read_bytes() == right.raw]
    file.unlink()
    publish(world, "P1")
    assert command.do("deliver", "--once")["waits"] == {"billing": "CERTIFICATE_MISSING"}
    found, identity = command.do("status"), right.certificate_id.hex()
    assert found["log"]["missing"] == [{"certificate": identity, "clients": "BO"}]
    assert f"maia cert forget {identity[:16]}" in [step["command"] for step in found["steps"]]
    assert command.refused("cert", "forget", "00ff", "--yes") == (5, "NO_CERTIFICATE")
    assert command.refused("cert", "forget", identity[:16]) == (2, "CONFIRMATION_MISSING")
    assert command.do("deliver", "--once")["waits"] == {"billing": "CERTIFICATE_MISSING"}
    assert command.do("cert", "forget", identity[:16], "--yes")["clients"] == ["BO"]
    done = command.do("deliver", "--once")
    assert (done["events"].get("billing", 0), done["waits"]) == (0, {})
    assert command.do("status")["log"]["missing"] == []
    told = [(row["reason"], row["source"], row["subject"]) for row in command.do("audit", "--kind", "notice")["rows"]]
    assert ("CERTIFICATE_LET_GO", identity, "BO") in told


def test_a_commit_that_failed_counts_once_when_it_is_tried_again(
    spark: Any, world: NumberplateHomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B22: the disk refuses at every step of a commit in turn; trying again under the name counts once."""
    fsync = os.fsync
    for number in range(1, 9):
        left = [number]

        def refuse(descriptor: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(5, "input/output error")
            fsync(descriptor)

        at = CLOCK()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with suppress(UnavailableError):
                publish(world, f"P{number}", publication=f"name {number}", at=at)
        publish(world, f"P{number}", publication=f"name {number}", at=CLOCK())
    assert read(world) == [f"P{number}" for number in range(1, 9)]


def test_nothing_in_the_log_is_writable_for_everybody(world: NumberplateHomes) -> None:
    """A32: with umask 000 too."""
    before = os.umask(0)
    try:
        publish(world, "P1")
    finally:
        os.umask(before)
    log = world.ccs.parent / "log"
    assert [str(path) for path in log.rglob("*") if path.stat().st_mode & 0o002] == []


def test_a_home_from_a_backup_signs_nothing_until_it_took_over(spark: Any, world: NumberplateHomes) -> None:
    """The log is ahead of the home's own record: publishing is refused with a hint, which helps."""
    publish(world, "P1")
    shutil.copytree(world.ccs / "lanes", world.ccs / "backup")
    publish(world, "P2")
    shutil.rmtree(world.ccs / "lanes")
    shutil.move(world.ccs / "backup", world.ccs / "lanes")
    with pytest.raises(UnavailableError, match="maia log adopt"):
        publish(world, "P3")
    assert Command(world.ccs).do("log", "adopt", "--yes")["adopted"] == 1
    publish(world, "P3")
    assert read(world) == ["P1", "P2", "P3"]
