"""Time: a reader's right is that of the moment of reading, an origin's that of the stamp of its events (C43)."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import maia
from maia.authority import Action, type_right
from maia.errors import MaiaError
from maia.principals import Certificate, TestKind
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    Command,
    NumberplateHomes,
    deliver_here,
    grant,
    numberplate_homes,
    online,
    publish_here,
    publish_plan,
)

BOTH = [Action.PUBLISH, Action.SUBSCRIBE]
CRL = ("statement", "crl", "--from", "CCS")
PATIENCE = (8, 30, 150)
"""For how many seconds a right or a plan lasts; the next longer one where a machine is too slow to use it."""


def settle(home: Path, **settings: int) -> None:
    """Write settings into ``maia.toml``."""
    file = home / "maia.toml"
    kept = [line for line in file.read_text().splitlines() if line.partition(" ")[0] not in settings]
    file.write_text("\n".join([kept[0], *(f"{key} = {value}" for key, value in settings.items()), *kept[1:]]) + "\n")


def now() -> datetime:
    """Tell the time."""
    return datetime.now(UTC)


def wait_until(instant: datetime) -> None:
    """Wait until the clock is past an instant."""
    while now() <= instant:
        time.sleep(0.05)


def world_of(root: Path, *without: str) -> NumberplateHomes:
    """Build homes without certain certificates, whose clocks are believed to the second."""
    world = numberplate_homes(root, without=without)
    for home in (world.ccs, world.met):
        settle(home, skew=0)
    return world


def reading(world: NumberplateHomes, **words: Any) -> Certificate:
    """Let the billing office read plates."""
    right = type_right(
        world.network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=[ATTRIBUTES["numberplate"]]
    )
    made = grant(world.network.people["CCS"], world.network.people["BO"], right, **words)
    world.add(world.ccs, made)
    return made


def brokering(world: NumberplateHomes, **words: Any) -> Certificate:
    """Let the broker of the congestion charge service publish."""
    made = grant(world.network.people["CCS"], world.network.people["CB"], type_right(None, actions=BOTH), **words)
    world.add(world.ccs, made)
    world.add(world.met, made)
    return made


def showing(world: NumberplateHomes) -> None:
    """Let the broker of the congestion charge service show events, whatever becomes of its right to publish them."""
    right = type_right(None, actions=[Action.SUBSCRIBE])
    world.add(world.ccs, grant(world.network.people["CCS"], world.network.people["CB"], right))


def publish(world: NumberplateHomes, *plates: str, **words: Any) -> int:
    """Let the camera publish sightings now."""
    rows = [{"numberplate": plate, "timestamp": now(), "location": "Victoria"} for plate in plates]
    return publish_here(maia.open(world.ccs).home, TYPE_NAME, rows, as_="CCTV", at=now(), **words)


def plates(rows: Iterable[Any]) -> list[str]:
    """List what rows show."""
    return sorted(row["numberplate"] for row in rows)


def read(world: NumberplateHomes, who: str = "BO") -> list[str]:
    """Read the log as a client may now."""
    home = world.met if who == "Smith" else world.ccs
    return plates(maia.open(home).client(who).read(TYPE_NAME).collect())


def refusals(world: NumberplateHomes) -> list[tuple[str, int]]:
    """Tell what `maia audit` says of refused events."""
    rows = Command(world.ccs).do("audit", "--kind", "refuse")["rows"]
    return [(row["reason"], row["events"]) for row in rows]


def in_time(make: Callable[[], Any]) -> Any:
    """Give a frame that showed its row in time; nothing where its right or plan was over, on a machine that is busy."""
    try:
        frame = make()
        assert plates(frame.collect()) == ["P1"]
    except AssertionError:
        raise
    except Exception as error:
        if not {"PLAN_OVER", "EXPIRED"} & set(re.findall(r"\w+", str(error))):
            raise
        return None
    return frame


@pytest.mark.threat("T7")
def test_a_frame_delivers_nothing_after_the_right_behind_it_ended(spark: Any, tmp_path: Path) -> None:
    """A5: planned while the right held, evaluated again after its end: an error with a code, and no row."""
    world = world_of(tmp_path, "Cap7")
    publish(world, "P1")
    for seconds in PATIENCE:
        ends = now().replace(microsecond=0) + timedelta(seconds=seconds)
        reading(world, valid=(ends - timedelta(hours=1), ends))
        frame = in_time(lambda: maia.open(world.ccs).client("BO").read(TYPE_NAME).persist())
        if frame is not None:
            break
    else:
        pytest.fail("the right ended before it was used")
    wait_until(ends)
    frame.unpersist(blocking=True)
    for again in (frame.collect, lambda: next(frame.toLocalIterator()), frame.rdd.count):
        with pytest.raises(Exception, match="PLAN_OVER"):
            again()
    with pytest.raises(MaiaError) as raised:
        maia.open(world.ccs).client("BO").read(TYPE_NAME)
    assert raised.value.code == "EXPIRED"


@pytest.mark.threat("T7")
def test_a_plan_has_a_greatest_age(spark: Any, tmp_path: Path) -> None:
    """A5: with `plan_age` of some seconds a frame is over after them, whatever its rights; a new one is not."""
    world = world_of(tmp_path)
    publish(world, "P1")
    for seconds in PATIENCE:
        settle(world.ccs, plan_age=seconds)
        frame = in_time(lambda: maia.open(world.ccs).client("BO").read(TYPE_NAME, attributes=["numberplate"]))
        if frame is not None:
            break
    else:
        pytest.fail("the plan was over before it was used")
    wait_until(now() + timedelta(seconds=seconds))
    with pytest.raises(Exception, match="PLAN_OVER") as raised:
        frame.collect()
    assert "read or publish again" in str(raised.value)
    settle(world.ccs, plan_age=3600)
    assert read(world) == ["P1"]


@pytest.mark.threat("T7")
def test_a_revocation_ends_plans_that_were_made_before(spark: Any, tmp_path: Path) -> None:
    """A5: what this home knows to be revoked is delivered by no frame, however it was planned."""
    world = world_of(tmp_path, "Cap7")
    Command(world.ccs).do(*CRL)
    publish(world, "P1")
    made = reading(world, tests=[online(TestKind.CRL, world.network.people["CCS"])])
    domain = maia.open(world.ccs)
    frame = domain.client("BO").read(TYPE_NAME)
    assert plates(frame.collect()) == ["P1"]
    domain.revoke(made.certificate_id.hex())
    with pytest.raises(Exception, match="PLAN_OVER"):
        frame.collect()
    with pytest.raises(MaiaError) as raised:
        domain.client("BO").read(TYPE_NAME)
    assert raised.value.code == "REVOKED"


def test_what_a_broker_published_stays_readable_when_its_certificate_expires(spark: Any, tmp_path: Path) -> None:
    """B3: the origin's right is that of the stamp; renewed or not, what it published before is there."""
    world = world_of(tmp_path, "Cap13b")
    period = now().replace(microsecond=0) - timedelta(hours=1), now().replace(microsecond=0) + timedelta(seconds=3)
    brokering(world, valid=period)
    showing(world)
    assert publish(world, "P1") == 1
    wait_until(period[1])
    with pytest.raises(MaiaError) as raised:
        publish(world, "P2")
    assert raised.value.code == "EXPIRED"
    assert read(world) == ["P1"]
    brokering(world, valid=(period[1], None))
    publish(world, "P3")
    assert read(world) == ["P1", "P3"]
    assert refusals(world) == [("EXPIRED", 0)]  # of the broker that published P2, and of no event


@pytest.mark.threat("T7")
def test_a_revoked_broker_is_refused_from_that_moment_on_and_not_backwards(spark: Any, tmp_path: Path) -> None:
    """C43: what it stamped before its revocation is delivered; what it stamps after, by an old plan, is refused."""
    world = world_of(tmp_path, "Cap13b")
    Command(world.ccs).do(*CRL)
    made = brokering(world, tests=[online(TestKind.CRL, world.network.people["CCS"])])
    showing(world)
    publish(world, "P1")
    home = maia.open(world.ccs).home
    plan = publish_plan(home, TYPE_NAME, as_="CCTV", publication="late", at=now())
    wait_until(now() + timedelta(milliseconds=5))
    maia.open(world.ccs).revoke(made.certificate_id.hex())
    wait_until(now() + timedelta(milliseconds=5))
    publish(world, "P2", plan=plan, publication="late")
    assert read(world) == ["P1"]
    assert refusals(world) == [("ORIGIN_NOT_PROVEN", 1)]


def test_a_reader_that_never_held_the_list_judges_by_the_one_that_came_along(spark: Any, tmp_path: Path) -> None:
    """B3: the evidence of a commit has the lists of its time; a reader of another domain needs no others."""
    world = world_of(tmp_path, "Cap13b")
    Command(world.ccs).do(*CRL, "--until", "+1h")
    brokering(world, tests=[online(TestKind.CRL, world.network.people["CCS"])])
    publish(world, "AE05 XYZ", "BX51 ABC")
    shutil.rmtree(world.ccs.parent / "log" / "_lanes" / "statement")  # the reader cannot hear of it in any other way
    assert read(world, "Smith") == ["AE05 XYZ"]


def test_conditions_of_a_broker_are_asked_where_it_publishes(spark: Any, tmp_path: Path) -> None:
    """B4: a condition above the broker hides nothing that was published; one that is false publishes nothing."""
    world = world_of(tmp_path, "Cap13b")
    brokering(world, conditions=["now < timestamp('2100-01-01T00:00:00Z')"])
    publish(world, "AE05 XYZ")
    assert (read(world), read(world, "Smith")) == (["AE05 XYZ"], ["AE05 XYZ"])
    other = world_of(tmp_path / "other", "Cap13b")
    brokering(other, conditions=["now > timestamp('2100-01-01T00:00:00Z')"])
    with pytest.raises(MaiaError) as raised:
        publish(other, "AE05 XYZ")
    assert raised.value.code == "CONDITION_FALSE"


def test_a_rate_of_a_broker_is_drawn_where_it_publishes(spark: Any, tmp_path: Path) -> None:
    """B4: of three events two are within the rate of the broker's right; those two are read."""
    world = world_of(tmp_path, "Cap13b")
    brokering(world, conditions=["rate(2, '1h')"])
    assert publish(world, "P1", "P2", "P3") == 2
    assert read(world) == ["P1", "P2"]


def test_ids_of_events_tell_nothing_about_rows_that_are_hidden(spark: Any, tmp_path: Path) -> None:
    """A19: Smith sees one of four events; its id shows no position, and is the one that others see as well."""
    world = world_of(tmp_path)
    publish(world, "A", "B", "AE05 XYZ", "C", publication="guessable")
    seen = {}
    for home, who in ((world.ccs, "BO"), (world.met, "Smith")):
        frame = maia.open(home).client(who).read(TYPE_NAME, with_event_id=True)
        seen[who] = {row["numberplate"]: row["_event"] for row in frame.collect()}
    [mine] = seen["Smith"].values()
    assert mine == seen["BO"]["AE05 XYZ"]
    names = set(seen["BO"].values())
    assert len(names) == 4
    assert len({name[:8] for name in names}) == 4, "no part that a reader could count in"
    assert all(len(name) == 32 and "-" not in name for name in names)


@pytest.mark.threat("T7")
@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_a_delivery_job_hands_over_nothing_after_the_right_behind_it_ended(tmp_path: Path, late: bool) -> None:
    """B3: the worker wrote in time, and the right ends before that counts: what it opened is never in the outbox.

    The other right of the same client is not touched: it is planned anew, and the event comes without the place.
    """
    world, hour = world_of(tmp_path), timedelta(hours=1)
    begun, people = now().replace(microsecond=0), world.network.people
    place = type_right(
        people["PITO"].public_key, TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=[ATTRIBUTES["location"]]
    )
    world.add(world.ccs, grant(people["CCS"], people["BO"], place, valid=(begun, begun + hour / 2)))
    publish(world, "P1")
    Command(world.ccs).do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)

    def clock() -> datetime:
        """Tell the time, and a later one as soon as something was written: a disk on which that takes long."""
        written = any((world.ccs / "outbox").glob("*/*.parquet"))
        return now() + (hour if written and late else timedelta())

    assert deliver_here(maia.open(world.ccs).home, clock=clock) == 1
    (world.ccs / "clock").unlink()  # where the home remembers how late it was
    [row] = Command(world.ccs)("deliver", "show", "billing", "--as", "BO", "--json").lines
    assert row["numberplate"] == "P1"
    assert row["location"] == (None if late else "Victoria")
