"""The numberplate stream of the thesis, as its users run it: publish, read and subscribe through `maia.open`."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.authority import Action, Constraint, type_right
from maia.errors import MaiaError, RevokedError
from maia.events import parse_version
from maia.principals import KeySigner, TestKind
from maia.testing import ATTRIBUTES, TYPE_NAME, Command, NumberplateHomes, grant, numberplate_homes, online

T1, T2 = datetime(2026, 6, 1, 9, tzinfo=UTC), datetime(2026, 6, 1, 10, tzinfo=UTC)
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)
E1, E2 = ("AE05 XYZ", T1, "Paddington"), ("BX51 ABC", T2, None)
ONE, TWO = int(T1.timestamp()), int(T2.timestamp())


def table(*rows: tuple[Any, ...]) -> pa.Table:
    """Make sightings."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def seen(frame: Any) -> set[tuple[Any, ...]]:
    """Collect what a frame shows, times as seconds."""
    rows = frame.selectExpr("numberplate", "unix_timestamp(timestamp)", "location").collect()
    found = {tuple(row) for row in rows}
    assert len(found) == len(rows), "nothing comes twice"
    return found


def right(world: NumberplateHomes, *names: str, action: Action = Action.SUBSCRIBE, **equal: str) -> Any:
    """Make a right on some attributes, perhaps with values that are demanded."""
    return type_right(
        world.network.key("PITO"), TYPE_NAME, actions=[action], attributes=[ATTRIBUTES[name] for name in names],
        constraints=[Constraint(ATTRIBUTES[name], "=", value) for name, value in equal.items()],
    )  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the two homes of the network once; more clients of the congestion charge service, each with its right.

    Dual has two chains, Blind chooses by a plate that stays closed to it, Watch may only say when.
    """
    made = numberplate_homes(tmp_path_factory.mktemp("numberplate"), network=True)
    ccs = made.network.people["CCS"]
    rights = {
        "Dual": (right(made, "location", "numberplate", numberplate="AE05 XYZ"), right(made, "timestamp")),
        "Blind": (right(made, "location", numberplate="AE05 XYZ"),),
        "Watch": (right(made, "timestamp", action=Action.PUBLISH),),
    }
    for name, tags in rights.items():
        client = made.add_key(made.ccs, name, KeySigner.generate())
        made.add(made.ccs, grant(ccs, client, made.network.certificates["Cap2b"].body.tag))
        made.add(made.ccs, *(grant(ccs, client, tag) for tag in tags))
    return made


@pytest.fixture
def published(spark: Any, world: NumberplateHomes) -> Any:
    """Let the camera publish e1 and e2, once for all tests of this file."""
    camera = maia.open(world.ccs).client("CCTV")
    return camera.publish(table(E1, E2), TYPE_NAME, publication="e1 and e2")


@pytest.mark.requirement("24.01")
@pytest.mark.requirement("24.02")
@pytest.mark.requirement("5.10")
@pytest.mark.requirement("5.12")
def test_each_reader_sees_its_own_part_and_the_place_is_forced(published: Any, world: NumberplateHomes) -> None:
    """BO no place, SO no plate, Smith one car; whatever the camera said, it stands at Victoria. Nobody asks beyond."""
    ccs, met = maia.open(world.ccs), maia.open(world.met)
    views = {who: seen(home.client(who).read(TYPE_NAME)) for home, who in ((ccs, "BO"), (ccs, "SO"), (met, "Smith"))}
    assert (published.events, published.forced) == (2, 2), "the place is set before the events travel"
    assert views == {
        "BO": {("AE05 XYZ", ONE, None), ("BX51 ABC", TWO, None)},
        "SO": {(None, ONE, "Victoria"), (None, TWO, "Victoria")},
        "Smith": {("AE05 XYZ", ONE, "Victoria")},
    }
    for who, closed in (("BO", "location = 'Victoria'"), ("SO", "numberplate = 'AE05 XYZ'")):
        with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
            ccs.client(who).read(TYPE_NAME, where=closed)
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        ccs.client("CCTV").read(TYPE_NAME)


def test_a_publication_counts_once_under_its_name(published: Any, world: NumberplateHomes) -> None:
    """Published again under its name it is known: nothing is written, not even into the audit, and none comes twice."""

    def written() -> tuple[set[Path], list[Any]]:
        audit = Command(world.ccs).do("audit", "--as", "CCTV", "--kind", "publish")["rows"]
        return set((world.ccs.parent / "log").rglob("*.parquet")), audit

    before = written()
    again = maia.open(world.ccs).client("CCTV").publish(table(E1, E2), TYPE_NAME, publication="e1 and e2")
    assert (again.repeated, again.commit) == (True, published.commit)
    assert written() == before
    assert len(seen(maia.open(world.ccs).client("BO").read(TYPE_NAME))) == 2


@pytest.mark.requirement("5.09")
@pytest.mark.requirement("7.06")
def test_chains_add_up_unmixed_and_choose_by_the_true_value(published: Any, world: NumberplateHomes) -> None:
    """Dual: the time of all, the place of one car. Blind: the place of one car whose plate it does not see."""
    ccs, met = maia.open(world.ccs), maia.open(world.met)
    assert seen(ccs.client("Dual").read(TYPE_NAME)) == {("AE05 XYZ", ONE, "Victoria"), (None, TWO, None)}
    assert seen(ccs.client("Blind").read(TYPE_NAME)) == {(None, None, "Victoria")}
    smith = met.client("Smith")
    assert seen(smith.read(TYPE_NAME)) == {("AE05 XYZ", ONE, "Victoria")}
    assert seen(smith.read(TYPE_NAME, where="numberplate = 'BX51 ABC'")) == set()


@pytest.mark.threat("T67")
def test_a_filter_sees_the_cells_that_are_open_in_the_row(published: Any, world: NumberplateHomes) -> None:
    """Dual sees one car's plate (C35): asked for another, whose time it does see, it is not told that it passed."""
    dual = maia.open(world.ccs).client("Dual")
    assert seen(dual.read(TYPE_NAME)) >= {(None, TWO, None)}
    assert seen(dual.read(TYPE_NAME, where="numberplate = 'BX51 ABC'")) == set()
    assert ("AE05 XYZ", ONE, "Victoria") in seen(dual.read(TYPE_NAME, where="numberplate = 'AE05 XYZ'"))


@pytest.mark.requirement("24.20")
def test_billing_charges_once_a_day_and_statistics_count_without_plates(
    published: Any, world: NumberplateHomes
) -> None:
    """Seen three times on day 1 and once on day 2: two charges; statistics count per place and hour without a plate."""
    day, hour = timedelta(days=1), 3600
    sightings = [("AE05 XYZ", T1 + timedelta(hours=later), None) for later in (2, 3)] + [("AE05 XYZ", T1 + day, None)]
    ccs = maia.open(world.ccs)
    ccs.client("CCTV").publish(table(*sightings), TYPE_NAME, publication="more sightings")
    charges = ccs.client("BO").read(TYPE_NAME, where="numberplate = 'AE05 XYZ'")
    assert charges.count() == 4
    assert charges.selectExpr("numberplate", "cast(timestamp as date) as day").distinct().count() == 2
    statistics = ccs.client("SO").read(TYPE_NAME)
    counted = statistics.selectExpr("location", f"unix_timestamp(timestamp) div {hour} as hour")
    found = {tuple(row) for row in counted.groupBy("location", "hour").count().collect()}
    first = ONE // hour
    assert found == {("Victoria", first + later, 1) for later in (0, 1, 2, 3, 24)}
    assert statistics.where("numberplate is not null").count() == 0
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        ccs.client("SO").read(TYPE_NAME, where="numberplate = 'AE05 XYZ'")


@pytest.mark.requirement("5.12")
def test_what_a_publisher_may_not_set_becomes_null_and_ill_typed_rows_are_refused(
    spark: Any, world: NumberplateHomes
) -> None:
    """Watch may say when and sets a plate: null is what travels. A number for a plate is no sighting."""
    ccs = maia.open(world.ccs)
    late = datetime(2026, 7, 1, tzinfo=UTC)
    done = ccs.client("Watch").publish(table(("AE05 XYZ", late, "Kent")), TYPE_NAME, publication="watch")
    assert (done.events, done.nulled) == (1, 1)
    found = ccs.client("BO").read(TYPE_NAME).where("timestamp = timestamp'2026-07-01 00:00:00 UTC'").collect()
    assert [(row["numberplate"], row["location"]) for row in found] == [(None, None)]
    number = pa.table({"numberplate": pa.array([42]), "timestamp": [late], "location": ["Kent"]})
    with pytest.raises(MaiaError):
        ccs.client("CCTV").publish(number, TYPE_NAME, publication="number", strict=True)


@pytest.mark.requirement("7.15")
@pytest.mark.requirement("13.16")
def test_a_subscriber_that_was_away_gets_what_it_missed_once_and_nothing_after_its_end(
    spark: Any, world: NumberplateHomes, tmp_path: Path
) -> None:
    """A stream that comes back gets each event once; revoked while it runs it gets no more, then it is refused."""
    people = world.network.people
    guest = world.add_key(world.ccs, "Guest", KeySigner.generate())
    connect = world.network.certificates["Cap2b"].body.tag
    tests = [online(TestKind.CRL, people["CCS"])]
    given = grant(people["CCS"], guest, right(world, "numberplate", "timestamp"), tests=tests)
    world.add(world.ccs, grant(people["CCS"], guest, connect), given)
    command = Command(world.ccs)
    command.do("statement", "crl", "--from", "CCS")
    ccs = maia.open(world.ccs)
    got: list[Any] = []

    def follow() -> Any:
        stream = ccs.client("Guest").subscribe(TYPE_NAME, where="numberplate prefix 'Q'")
        return stream.writeStream.foreachBatch(lambda batch, _: got.extend(batch.collect()))

    def catch_up() -> list[str]:
        got.clear()
        query = follow().option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()
        return sorted(row["numberplate"] for row in got)

    def publish(*plates: str) -> None:
        ccs.client("CCTV").publish(table(*((plate, T1, None) for plate in plates)), TYPE_NAME)

    publish("Q1", "Q2")
    publish("Q3", "Q4")
    assert catch_up() == ["Q1", "Q2", "Q3", "Q4"]
    publish("Q5", "Q6", "Q7")
    assert catch_up() == ["Q5", "Q6", "Q7"]
    assert catch_up() == []
    got.clear()
    running = follow().option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        publish("Q8")
        running.processAllAvailable()
        publish("Q9")
        running.processAllAvailable()  # a micro-batch that is worked on while its right ends fails: PLAN_OVER
        command.do("revoke", given.certificate_id.hex()[:16], "--yes")
        publish("QX")
        running.processAllAvailable()
    finally:
        running.stop()
    plates = [row["numberplate"] for row in got]
    assert plates == ["Q8", "Q9"], "what was stored is delivered by the right of now, not of then"
    refused = [row for row in command.do("audit", "--as", "Guest")["rows"] if row["kind"] == "refuse"]
    assert {row["reason"] for row in refused} == {"REVOKED"}
    with pytest.raises(RevokedError):
        catch_up()
    assert command.refused("subscribe", "--type", TYPE_NAME, "--as", "Guest") == (3, "REVOKED")


@pytest.mark.requirement("7.09")
def test_every_publisher_reaches_every_subscriber_and_waits_for_none(
    spark: Any, world: NumberplateHomes, tmp_path: Path
) -> None:
    """Two publishers and three subscribers make six deliveries; one that is stuck in a batch keeps nobody."""
    ccs = maia.open(world.ccs)
    stuck, go_on, released = threading.Event(), threading.Event(), threading.Event()

    def wait(_batch: Any, _number: int) -> None:
        stuck.set()
        go_on.wait(120)
        released.set()

    late = datetime(2026, 8, 1, tzinfo=UTC)
    stream = ccs.client("SO").subscribe(TYPE_NAME).writeStream.foreachBatch(wait)
    query = stream.option("checkpointLocation", str(tmp_path / "slow")).trigger(availableNow=True).start()
    try:
        assert stuck.wait(120)
        for who in ("CCTV", "Watch"):
            assert ccs.client(who).publish(table(("R1", late, None)), TYPE_NAME).events == 1
        assert not released.is_set(), "both are published while the subscriber stands still"
    finally:
        go_on.set()
        query.awaitTermination()
    when = "timestamp = timestamp'2026-08-01 00:00:00 UTC'"
    counts = {who: ccs.client(who).read(TYPE_NAME).where(when).count() for who in ("BO", "SO", "Dual")}
    assert counts == {"BO": 2, "SO": 2, "Dual": 2}


@pytest.mark.requirement("15.04")
def test_a_key_belongs_to_an_attribute_and_not_to_a_version(spark: Any, tmp_path: Path) -> None:
    """What was sealed under one version opens under a later one that calls the attribute otherwise."""
    world = numberplate_homes(tmp_path / "net")
    maia.open(world.ccs).client("CCTV").publish(table(E1), TYPE_NAME)
    plate, *others = world.event_type.attributes
    later = replace(
        world.event_type,
        name=replace(world.event_type.name, version=parse_version("9000")),
        attributes=(replace(plate, name="plate"), *others),
    )
    world.define(world.ccs, later, world.network.people["PITO"])
    rows = maia.open(world.ccs).client("BO").read(f"{TYPE_NAME}@9000").collect()
    assert [(row["plate"], row["location"]) for row in rows] == [("AE05 XYZ", None)]


def test_the_audit_says_who_published_and_who_saw(published: Any, world: NumberplateHomes) -> None:
    """Each delivery, and each publication, stands in the audit with its principal and counts, never a value."""
    ccs = maia.open(world.ccs)
    before = len(Command(world.ccs).do("audit", "--kind", "deliver", "--as", "BO")["rows"])
    assert ccs.client("BO").read(TYPE_NAME, where="numberplate = 'BX51 ABC'").count() >= 1
    rows = Command(world.ccs).do("audit", "--as", "BO")["rows"]
    delivered = [row for row in rows if row["kind"] == "deliver"]
    assert len(delivered) > before
    assert "BX51" not in str(rows)
    assert any(row["kind"] == "publish" for row in Command(world.ccs).do("audit", "--as", "CCTV")["rows"])


def test_events_whose_origin_is_not_proven_are_not_delivered(spark: Any, tmp_path: Path) -> None:
    """The evidence behind an origin's right is altered, or not of the broker that signed: no cell is shown by it."""
    world = numberplate_homes(tmp_path / "net", network=True)
    ccs = maia.open(world.ccs)
    ccs.client("CCTV").publish(table(E1, E2), TYPE_NAME)

    def shown() -> int:
        return int(maia.open(world.met).client("Smith").read(TYPE_NAME).count())

    assert shown() == 1
    [evidence] = (tmp_path / "net" / "log" / "_evidence").iterdir()
    genuine = evidence.read_bytes()
    longer = genuine[:-1] + b"1:x)"
    evidence.chmod(0o600)
    evidence.write_bytes(longer)
    assert shown() == 0
    evidence.unlink()
    assert shown() == 0
    evidence.write_bytes(genuine)
    assert shown() == 1


@pytest.mark.requirement("15.03")
def test_the_log_holds_no_plaintext(published: Any, world: NumberplateHomes) -> None:
    """Whoever reads the log's files finds neither plate nor place; nor does a home without keys see a cell."""
    files = [path for path in (world.ccs.parent / "log").rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    for word in (b"AE05 XYZ", b"BX51 ABC", b"Victoria"):
        assert not [path for path in files if word in path.read_bytes()]
