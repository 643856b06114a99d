"""Sessions on delivered frames: the steps that events go through, replaying, and publishing under an advertisement."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.authority import Action, type_right
from maia.errors import DeniedError, MaiaError, RowsRefusedError
from maia.events import EventType, TypeName, attribute, parse_version
from maia.principals import KeySigner
from maia.testing import (
    TYPE_NAME,
    Command,
    NumberplateHomes,
    counted_checks,
    grant,
    numberplate_homes,
)

T1 = datetime(2026, 6, 1, 9, tzinfo=UTC)
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)
GOLDEN = ["type check", "translate", "null", "force or drop", "stamp", "encrypt", "route"]


def table(*plates: str, place: str | None = "Paddington") -> pa.Table:
    """Make sightings of cars."""
    rows = [{"numberplate": plate, "timestamp": T1, "location": place} for plate in plates]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the two homes once, with their traces on; Clerk may publish and set no place."""
    made = numberplate_homes(tmp_path_factory.mktemp("sessions"), network=True)
    for home in (made.ccs, made.met):
        file = home / "maia.toml"
        file.write_text(f'trace = "on"\n{file.read_text("utf-8")}', "utf-8")
    return made


def client(world: NumberplateHomes, name: str, tag: Any, *, home: Path | None = None) -> Any:
    """Give a new client of the congestion charge service a right."""
    ccs = world.network.people["CCS"]
    key = world.add_key(world.ccs, name, KeySigner.generate())
    world.add(home or world.ccs, grant(ccs, key, world.network.certificates["Cap2b"].body.tag), grant(ccs, key, tag))
    return maia.open(world.ccs).client(name)


def traced(home: Path, operation: str) -> list[tuple[str, int]]:
    """Take what a home's trace says of an operation, and forget it."""
    command = Command(home)
    steps = [item for item in command.do("trace")["steps"] if item["operation"] == operation]
    command.do("trace", "--clear")
    return [(item["step"], item["count"]) for item in steps]


@pytest.mark.requirement("7.05")
def test_the_steps_of_the_camera_s_event(spark: Any, world: NumberplateHomes) -> None:
    """Seven steps in their order, by the product's own trace: one row, three columns, Victoria forced, three blocks."""
    ccs = maia.open(world.ccs)
    traced(world.ccs, "publish")
    assert ccs.client("CCTV").publish(table("AE05 XYZ"), TYPE_NAME).events == 1
    text = (world.ccs / "trace").read_text("utf-8")
    steps = traced(world.ccs, "publish")
    assert [step for step, _ in steps] == GOLDEN
    assert dict(steps) == {
        "type check": 1, "translate": 3, "null": 0, "force or drop": 1, "stamp": 1, "encrypt": 3, "route": 1
    }  # fmt: skip
    assert not [word for word in ("AE05", "XYZ", "Victoria", "Paddington") if word in text], "no value is told"
    assert traced(world.ccs, "publish") == []


@pytest.mark.requirement("7.05")
def test_what_is_closed_is_nulled_and_what_is_refused_goes_no_further(spark: Any, world: NumberplateHomes) -> None:
    """A clerk that may not set the place loses it; a row of another type is checked, and neither stamped nor sealed."""
    owner = world.network.key("PITO")
    tag = type_right(owner, TYPE_NAME, actions=[Action.PUBLISH], attributes=["3265", "9058"])
    clerk = client(world, "Clerk", tag)
    traced(world.ccs, "publish")
    assert clerk.publish(table("CL 1"), TYPE_NAME).nulled == 1
    assert dict(traced(world.ccs, "publish"))["null"] == 1
    number = pa.table({"numberplate": pa.array([42]), "timestamp": [T1], "location": ["Kent"]})
    with pytest.raises(MaiaError):
        clerk.publish(number, TYPE_NAME, strict=True)
    assert [step for step, _ in traced(world.ccs, "publish")] in ([], ["type check"])


@pytest.mark.requirement("7.03")
def test_every_door_of_spark_wants_the_advertisement(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """Taken back, a frame is published neither by a client nor by `format("maia")`, as a batch or as a stream."""
    porter = client(world, "Porter", world.network.certificates["Cap8"].body.tag)
    assert porter.publish(table("PO 1"), TYPE_NAME).events == 1
    porter.unadvertise(TYPE_NAME)
    with pytest.raises(DeniedError) as refused:
        porter.publish(table("PO 2"), TYPE_NAME)
    assert refused.value.code == "NOT_ADVERTISED"
    options = {"home": str(world.ccs), "type": TYPE_NAME, "as": "Porter"}
    with pytest.raises(Exception, match="NOT_ADVERTISED"):
        spark.createDataFrame(table("PO 3")).write.format("maia").options(**options).mode("append").save()
    rows = spark.readStream.format("rate").load().selectExpr("'X' as numberplate", "timestamp", "'Y' as location")
    query = rows.writeStream.format("maia").options(**options, publication="stream")
    query = query.option("checkpointLocation", str(tmp_path / "write"))
    with pytest.raises(Exception, match="NOT_ADVERTISED"):
        query.start().awaitTermination()
    plates = {row[0] for row in maia.open(world.ccs).client("BO").read(TYPE_NAME).select("numberplate").collect()}
    assert {plate for plate in plates if plate.startswith("PO")} == {"PO 1"}


@pytest.mark.requirement("6.09")
def test_a_hundred_thousand_publications_rest_on_one_verification(spark: Any, world: NumberplateHomes) -> None:
    """The chain is searched once, when the client advertises, and never for what it publishes then."""
    meter = client(world, "Meter", world.network.certificates["Cap8"].body.tag)
    with counted_checks() as checks:
        meter.advertise(TYPE_NAME)
        rows = spark.range(100_000).selectExpr(
            "concat('M ', id) as numberplate", "timestamp'2026-06-01 09:00:00 UTC' as timestamp", "'Kent' as location"
        )
        assert meter.publish(rows, TYPE_NAME).events == 100_000
        assert meter.publish(table("M more"), TYPE_NAME).events == 1
    assert checks.chains(meter.key, Action.PUBLISH) == 1
    assert maia.open(world.ccs).client("BO").read(TYPE_NAME, where="numberplate prefix 'M '").count() == 100_001


@pytest.mark.requirement("7.04")
@pytest.mark.requirement("7.12")
def test_fifty_subscribers_on_two_versions_cost_two_type_checks_and_one_opening(
    spark: Any, world: NumberplateHomes
) -> None:
    """The broker checks an event once for each version, and decrypts three blocks once, for fifty subscriptions."""
    old = world.event_type
    newer = replace(
        old, name=replace(old.name, version=parse_version("9000")),
        attributes=(replace(old.attributes[0], name="plate"), *old.attributes[1:]),
    )  # fmt: skip
    world.define(world.ccs, newer, world.network.people["PITO"])
    command = Command(world.ccs)
    for number in range(50):
        version, name = (("8516", "numberplate"), ("9000", "plate"))[number % 2]
        command.do(
            "deliver", "add", f"fifty-{number}", "--as", "BO", "--type", f"PITO/{TYPE_NAME}@{version}",
            "--where", f"{name} prefix 'FIFTY'",
        )  # fmt: skip
    command.do("deliver", "add", "places", "--as", "SO", "--type", f"PITO/{TYPE_NAME}@8516")
    maia.open(world.ccs).client("CCTV").publish(table("FIFTY"), f"{TYPE_NAME}@8516")
    traced(world.ccs, "deliver")
    done = command.do("deliver", "--once")
    assert [done["events"][f"fifty-{number}"] for number in range(50)] == [1] * 50
    steps = traced(world.ccs, "deliver")
    delivered = [at for at, (step, count) in enumerate(steps) if step == "deliver" and count == 51]
    assert len(delivered) == 1
    begun = max(at for at, (step, _) in enumerate(steps[: delivered[0]]) if step == "verify")
    assert steps[begun : delivered[0] + 1] == [
        ("verify", 1), ("judge origin", 1), ("decrypt", 1), ("match", 51), ("decrypt", 2), ("type check", 1),
        ("type check", 1), ("deliver", 51),
    ]  # fmt: skip
    wrong = pa.table({"numberplate": pa.array([42]), "timestamp": [T1], "location": ["Kent"]})
    with pytest.raises(RowsRefusedError) as caught:
        maia.open(world.ccs).client("CCTV").publish(wrong, f"{TYPE_NAME}@8516")
    assert set(caught.value.published.refused) == {("VALUE_TYPE", "numberplate")}
    assert command.refused(
        "deliver", "add", "ill", "--as", "BO", "--type", f"PITO/{TYPE_NAME}@8516", "--where", "numberplate > 3"
    ) == (1, "FILTER_LITERAL_TYPE")  # fmt: skip


@pytest.mark.requirement("7.04")
def test_who_only_carries_events_knows_no_type(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """A home without a definition has the same log: it lists commits that it can neither name nor open."""
    carrier = Command(tmp_path / "carrier")
    carrier.do("domain", "init", str(carrier.home), "--key")
    carrier.keys("reader")
    file = carrier.home / "maia.toml"
    log = world.ccs.parent / "log"
    file.write_text(file.read_text("utf-8").replace('log = "log"', f'log = "{log}"'), "utf-8")
    maia.open(world.ccs).client("CCTV").publish(table("CARRIED"), f"{TYPE_NAME}@8516")
    shown = carrier.do("log", "show")["commits"]
    assert shown == Command(world.ccs).do("log", "show")["commits"] != []
    assert not [path for path in (carrier.home / "types").rglob("*") if path.is_file()]
    assert carrier.refused("deliver", "add", "s", "--as", "reader", "--type", TYPE_NAME) == (5, "TYPE_NOT_FOUND")


@pytest.mark.requirement("7.12")
def test_values_that_a_client_sealed_itself_pass_as_they_are(spark: Any, tmp_path: Path) -> None:
    """A client may publish what it encrypted: octets like others, sealed again by the broker and given back whole."""
    world = numberplate_homes(tmp_path / "net")
    pito, ccs = world.network.people["PITO"], world.network.people["CCS"]
    own = EventType(
        name=TypeName(ccs.public_key, "Letter", parse_version("1")), attributes=(attribute("body", "1", "binary"),)
    )
    world.define(world.ccs, own, ccs)
    both = type_right(ccs.public_key, "Letter", actions=[Action.PUBLISH, Action.SUBSCRIBE])
    world.add(world.ccs, *(grant(ccs, world.network.people[who], both) for who in ("CB", "CCTV", "BO")))
    sealed = bytes(range(256))
    home = maia.open(world.ccs)
    home.client("CCTV").publish(pa.table({"body": pa.array([sealed], type=pa.binary())}), "CCS/Letter@1")
    assert [bytes(row[0]) for row in home.client("BO").read("CCS/Letter@1").collect()] == [sealed]
    with pytest.raises(MaiaError):
        home.client("SO").read("CCS/Letter@1")
    assert pito.public_key != ccs.public_key


@pytest.mark.requirement("7.02")
def test_a_subscriber_brings_the_definition_and_the_name_is_known(spark: Any, tmp_path: Path) -> None:
    """A fresh broker: the name is unknown. Subscribed by definition it delivers, and by name from then on."""
    world = numberplate_homes(tmp_path / "net", network=True)
    maia.open(world.ccs).client("CCTV").publish(table("AE05 XYZ", "BX51 ABC"), TYPE_NAME)
    [path] = (world.met / "types").glob("*/*.type")
    definition = path.read_bytes()
    path.unlink()
    smith = maia.open(world.met).client("Smith")
    with pytest.raises(MaiaError) as unknown:
        smith.subscribe(TYPE_NAME)
    assert unknown.value.code == "TYPE_NOT_FOUND"
    got: list[str] = []

    def follow(frame: Any, name: str) -> list[str]:
        got.clear()
        query = frame.writeStream.foreachBatch(lambda rows, _: got.extend(row[0] for row in rows.collect()))
        query = query.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
        query.awaitTermination()
        return list(got)

    assert follow(smith.subscribe(definition, attributes=["numberplate"]), "first") == ["AE05 XYZ"]
    assert follow(smith.subscribe(TYPE_NAME, attributes=["numberplate"]), "second") == ["AE05 XYZ"]


@pytest.mark.requirement("7.15")
def test_a_returning_subscriber_gets_what_was_stored_and_its_last_events(spark: Any, tmp_path: Path) -> None:
    """Away for 5 to 7: stored meanwhile, given once on its return, the last n on demand; without its right, nothing."""
    world = numberplate_homes(tmp_path / "net", network=True)
    ccs, command = maia.open(world.ccs), Command(world.ccs)
    office, camera = ccs.client("BO"), ccs.client("CCTV")
    office.subscribe(TYPE_NAME, where="numberplate prefix 'E'", name="billing")

    def plates(**more: Any) -> list[str]:
        return [item.as_py() for item in office.delivered("billing", **more).column("numberplate")]

    camera.publish(table("E1", "E2", "X", "E3", "E4"), TYPE_NAME)
    command.do("deliver", "--once")
    assert sorted(plates()) == ["E1", "E2", "E3", "E4"]
    for plate in ("E5", "E6", "E7"):
        camera.publish(table(plate), TYPE_NAME)
    assert command.do("deliver", "--once")["events"]["billing"] == 3
    assert command.do("deliver", "--once")["events"]["billing"] == 0
    assert sorted(plates()) == [f"E{number}" for number in range(1, 8)]
    assert (plates(last=3), plates(last=2), plates(last=99)) == (["E5", "E6", "E7"], ["E6", "E7"], plates())
    shown = command("deliver", "show", "billing", "--as", "BO", "--last", "2", "--format", "json").out.splitlines()
    assert len(shown) == 2
    with pytest.raises(DeniedError):
        ccs.client("SO").delivered("billing")
    office.unsubscribe("billing")
    camera.publish(table("E8"), TYPE_NAME)
    assert command.refused("deliver", "--once") == (5, "NO_SUBSCRIPTIONS")
    assert plates(last=1) == ["E7"], "what was stored before stays its client's"
    given = world.network.certificates["Cap7"].raw
    [path] = [item for item in (world.ccs / "certificates").iterdir() if item.read_bytes() == given]
    path.unlink()
    with pytest.raises(MaiaError):
        maia.open(world.ccs).client("BO").delivered("billing", last=1)


@pytest.mark.requirement("5.11")
def test_a_filter_that_contradicts_the_right_delivers_nothing_and_is_told(
    spark: Any, world: NumberplateHomes, caplog: pytest.LogCaptureFixture
) -> None:
    """Smith without a filter gets his car; asking for another he gets nothing, and is told so by every door."""
    maia.open(world.ccs).client("CCTV").publish(table("AE05 XYZ", "BX51 ABC"), f"{TYPE_NAME}@8516")
    smith = maia.open(world.met).client("Smith")
    assert {row[0] for row in smith.read(TYPE_NAME).select("numberplate").collect()} == {"AE05 XYZ"}
    assert "never shows" not in caplog.text
    assert smith.read(TYPE_NAME, where="numberplate = 'BX51 ABC'").collect() == []
    assert "never shows" in caplog.text
    command = Command(world.met)
    notices = [row["reason"] for row in command.do("audit", "--kind", "notice", "--as", "Smith")["rows"]]
    assert notices == ["FILTER_CONTRADICTS_RIGHT"]
    ran = command("subscribe", "--type", TYPE_NAME, "--as", "Smith", "--where", "numberplate = 'BX51 ABC'", "--json")
    assert (ran.code, ran.out) == (0, "")
    assert "never shows" in ran.err


@pytest.mark.requirement("7.11")
def test_stamps_grow_whatever_the_clock_does(spark: Any, tmp_path: Path) -> None:
    """Milliseconds since 1970, t and t+1 within one; a clock set back changes nothing, unless nobody would take it."""
    world = numberplate_homes(tmp_path / "net", network=True)
    ccs = maia.open(world.ccs)
    camera, file = ccs.client("CCTV"), world.ccs / "stamps"
    begun = int(datetime.now(UTC).timestamp() * 1000)
    for plate in ("S1", "S2", "S3"):
        camera.publish(table(plate), TYPE_NAME)
    rows = ccs.client("BO").read(TYPE_NAME, with_event_id=True).select("numberplate", "_stamp").collect()
    stamps = [stamp for _, stamp in sorted(map(tuple, rows))]
    assert begun <= stamps[0] < stamps[1] < stamps[2] < 1 << 63

    def clock_was(ahead: int) -> int:
        mark = int(datetime.now(UTC).timestamp() * 1000) + ahead
        digits = b"%d" % mark
        file.write_bytes(digits + b" %08x\n" % zlib.crc32(digits))
        return mark

    for ahead in (5_000, 25_000):  # the last stamp was given by a clock that was set back by so much since
        last = clock_was(ahead)
        given = [ccs.home.next_stamp() for _ in range(3)]
        assert given == sorted({last, *given})[1:]
    assert given == [last + 1, last + 2, last + 3]
    clock_was(3_600_000)
    with pytest.raises(MaiaError) as ahead_of_all:
        camera.publish(table("S4"), TYPE_NAME)
    assert "STAMPS_AHEAD" in str(ahead_of_all.value)
    file.write_bytes(b"12 00000000\n")
    with pytest.raises(MaiaError) as damaged:
        camera.publish(table("S5"), TYPE_NAME)
    assert "STAMPS_DAMAGED" in str(damaged.value)


@pytest.mark.requirement("5.02")
def test_frames_are_delivered_to_who_may_connect_alone(spark: Any, tmp_path: Path) -> None:
    """With Cap3 Smith is shown his car. Without it his right on the type shows nothing, and makes no subscription."""
    world = numberplate_homes(tmp_path / "net", network=True)
    maia.open(world.ccs).client("CCTV").publish(table("AE05 XYZ"), TYPE_NAME)
    assert [row[0] for row in maia.open(world.met).client("Smith").read(TYPE_NAME).collect()] == ["AE05 XYZ"]
    connect = world.network.certificates["Cap3"].raw
    [path] = [item for item in (world.met / "certificates").iterdir() if item.read_bytes() == connect]
    path.unlink()
    smith = maia.open(world.met).client("Smith")
    for ask in (lambda: smith.read(TYPE_NAME), lambda: smith.subscribe(TYPE_NAME, name="mine")):
        with pytest.raises(MaiaError):
            ask()
    assert Command(world.met).do("deliver", "list")["subscriptions"] == []
