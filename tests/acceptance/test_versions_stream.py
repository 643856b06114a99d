"""Versions of a type live side by side: what is published under one is read under another, by uid."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.errors import MaiaError
from maia.testing import Command

TYPE = "pito/uk.gov.pito.Plate"
NAME = "uk.gov.pito.Plate"
NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with four versions of a type that is not sealed, and clients with rights by uid.

    4799 has license-plate and location; 8516 renames the first; 9000 has a new license-plate; 9001 adds a speed.
    """
    made = Command(tmp_path_factory.mktemp("versions") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("pito", "camera", "reader", "billing")
    define = ("type", "define", f"{TYPE}@4799", "--encryption", "plain")
    made.do(*define, "--attribute", "license-plate:string:9525", "--attribute", "location:string:3467")
    evolve = ("type", "evolve")
    made.do(*evolve, f"{TYPE}@4799", "--rename", "license-plate=numberplate", "--number", "8516")
    made.do(*evolve, f"{TYPE}@8516", "--add", "speed:integer:77", "--number", "9001")
    made.do(
        *evolve, f"{TYPE}@8516", "--remove", "numberplate", "--add", "license-plate:string:3879", "--number", "9000"
    )
    give(made, TYPE)
    plate_and_gone = ("--attribute", "uid:9525", "--attribute", "uid:424242")
    given = made.do(
        "grant", "--from", "pito", "--to", "billing", "--type", TYPE, "--action", "subscribe", *plate_and_gone
    )
    assert given["warnings"] == ["UNKNOWN_UID"], "a uid that no version has is given, and said"
    return made


def give(home: Command, kind: str) -> None:
    """Let the broker serve a type, the camera publish it, and the reader read it."""
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("camera", "publish"), ("reader", "subscribe")):
        home.grant("--from", "pito", "--to", who, "--type", kind, "--action", action)


@pytest.fixture
def published(spark: Any, home: Command) -> None:
    """Publish one event under the first version and one under the last, once for all tests of this file."""
    camera = maia.open(home.home).client("camera")
    old = pa.table({"license-plate": ["AE05 XYZ"], "location": ["Victoria"]})
    camera.publish(old, f"{NAME}@4799", publication="old")
    new = pa.table({"numberplate": ["BX51 ABC"], "location": ["Kent"], "speed": pa.array([30], pa.int64())})
    camera.publish(new, f"{NAME}@9001", publication="new")


def seen(home: Path, who: str, version: str) -> list[dict[str, Any]]:
    """Read everything under a version, ordered by place."""
    rows = maia.open(home).client(who).read(f"{NAME}@{version}").collect()
    return sorted((row.asDict() for row in rows), key=lambda row: str(row["location"]))


@pytest.mark.requirement("3.02")
@pytest.mark.requirement("3.07")
@pytest.mark.requirement("3.08")
@pytest.mark.requirement("24.06")
def test_each_version_sees_every_event_in_its_own_shape(published: None, home: Command) -> None:
    """The rename keeps the value, unknown uids are dropped, missing ones null, and a re-used name gets nothing."""
    views = {version: seen(home.home, "reader", version) for version in ("4799", "8516", "9000", "9001")}
    assert views == {
        "4799": [
            {"license-plate": "BX51 ABC", "location": "Kent"}, {"license-plate": "AE05 XYZ", "location": "Victoria"},
        ],
        "8516": [
            {"numberplate": "BX51 ABC", "location": "Kent"}, {"numberplate": "AE05 XYZ", "location": "Victoria"},
        ],
        "9000": [{"license-plate": None, "location": "Kent"}, {"license-plate": None, "location": "Victoria"}],
        "9001": [
            {"numberplate": "BX51 ABC", "location": "Kent", "speed": 30},
            {"numberplate": "AE05 XYZ", "location": "Victoria", "speed": None},
        ],
    }  # fmt: skip
    with pytest.raises(Exception, match="TYPE_NOT_FOUND"):
        maia.open(home.home).client("reader").read(f"{NAME}@1")


@pytest.mark.requirement("5.06")
@pytest.mark.requirement("5.07")
def test_a_right_means_uids_so_later_attributes_stay_closed_and_renames_do_not_matter(
    published: None, home: Command
) -> None:
    """Billing lists 9525 and a uid that is no more: the plate under both its names, no place, no speed."""
    old = maia.open(home.home).client("billing").read(f"{NAME}@4799").collect()
    new = maia.open(home.home).client("billing").read(f"{NAME}@9001").collect()
    assert sorted((row["license-plate"], row["location"]) for row in old) == [("AE05 XYZ", None), ("BX51 ABC", None)]
    assert sorted((row["numberplate"], row["speed"]) for row in new) == [("AE05 XYZ", None), ("BX51 ABC", None)]


@pytest.mark.requirement("3.14")
def test_a_broker_needs_its_subscribers_version_only(published: None, home: Command, tmp_path: Path) -> None:
    """A home that holds 8516 alone shows what was published under 4799; asked for that version it knows none."""
    shutil.copytree(home.home, tmp_path / "other", ignore=shutil.ignore_patterns("log", "audit"))
    other = Command(tmp_path / "other")
    settings = other.home / "maia.toml"
    settings.write_text(settings.read_text("utf-8") + f'\nlog = "{home.home / "log"}"\n', "utf-8")
    if settings.read_text("utf-8").count("\nlog = ") > 1:
        lines = settings.read_text("utf-8").splitlines()
        first = next(line for line in lines if line.startswith("log = "))
        settings.write_text("\n".join(line for line in lines if line is not first) + "\n", "utf-8")
    for path in (other.home / "types").glob("*/*.type"):
        if b"4:8516" not in path.read_bytes().split(b"10:attributes")[0]:
            path.unlink()
    assert [row["version"] for row in other.do("type", "show")["types"]] == ["8516"]
    assert [row["numberplate"] for row in seen(other.home, "reader", "8516")] == ["BX51 ABC", "AE05 XYZ"]
    assert other.refused("subscribe", "--type", f"{TYPE}@4799", "--as", "reader")[0] == 5


@pytest.mark.requirement("3.06")
def test_events_travel_by_uid_without_version_and_names(published: None, home: Command) -> None:
    """Neither the names of attributes nor the version stand in the parcels of an unsealed type; uids and values do."""
    files = [path.read_bytes() for path in (home.home / "log").glob("type=*/**/*.parquet")]
    assert len(files) == 2
    whole = b"".join(files)
    assert all(word in whole for word in (b"9525", b"3467", b"AE05 XYZ"))
    assert not any(word in whole for word in (b"license-plate", b"numberplate", b"location", b"4799", b"9001"))


@pytest.mark.requirement("3.13")
def test_removing_what_somebody_uses_is_warned_of_and_a_translator_helps(
    published: None, home: Command, tmp_path: Path
) -> None:
    """The lint names SO; a client that reads the old type and publishes the new one moves events with equal payload."""
    clients = tmp_path / "clients.jsonl"
    clients.write_text('{"client": "SO", "attributes": ["location"]}\n{"client": "BO", "uids": ["9525"]}\n', "utf-8")
    remove = ("type", "evolve", f"{TYPE}@4799", "--remove", "location", "--number", "4800")
    home.do(*remove)
    ran = home("type", "lint", f"{TYPE}@4799", f"{TYPE}@4800", "--clients", str(clients), "--json")
    assert (ran.code, ran.data["findings"][0]["clients"]) == (1, ["SO"])
    assert home("type", "lint", f"{TYPE}@8516", f"{TYPE}@9001", "--clients", str(clients)).code == 0
    target = ("type", "define", "pito/uk.gov.pito.Sighting@1", "--encryption", "plain")
    home.do(*target, "--attribute", "numberplate:string:1", "--attribute", "location:string:2")
    home.keys("translator")
    home.grant("--from", "pito", "--to", "translator", "--type", TYPE, "--action", "subscribe")
    for who, action in (
        ("broker", "publish"),
        ("broker", "subscribe"),
        ("translator", "publish"),
        ("reader", "subscribe"),
    ):
        home.grant("--from", "pito", "--to", who, "--type", "pito/uk.gov.pito.Sighting", "--action", action)
    domain = maia.open(home.home)
    translator = domain.client("translator")
    translator.publish(translator.read(f"{NAME}@8516"), "uk.gov.pito.Sighting", publication="moved")
    moved = domain.client("reader").read("uk.gov.pito.Sighting").collect()
    assert sorted(tuple(row) for row in moved) == [("AE05 XYZ", "Victoria"), ("BX51 ABC", "Kent")]


@pytest.mark.requirement("5.10")
@pytest.mark.requirement("14.05")
@pytest.mark.requirement("22.01")
def test_what_breaks_a_demand_is_dropped_and_a_flooder_is_held_to_its_rate_and_revoked(
    spark: Any, home: Command
) -> None:
    """Too slow a speed is dropped; of eleven at once the last is refused, a later one is not; revoked: all."""
    home.keys("gauge", "flooder")
    publish = ("--type", TYPE, "--action", "publish")
    home.grant("--from", "pito", "--to", "gauge", *publish, "--attribute", "9525", "--attribute", "77>=500")
    flooding = home.grant("--from", "pito", "--to", "flooder", *publish, "--condition", 'rate(10, "20s")',
                          "--test", "crl:pito")  # fmt: skip
    home.do("statement", "crl", "--from", "pito")
    domain = maia.open(home.home)

    def speeds(*values: int) -> pa.Table:
        plates = [f"Z{number}" for number in range(len(values))]
        return pa.table({"numberplate": plates, "location": plates, "speed": pa.array(values, pa.int64())})

    done = domain.client("gauge").publish(speeds(499, 500), f"{NAME}@9001")
    assert done.events == 1
    assert {code for code, _ in done.refused} == {"CONSTRAINT_VIOLATED"}
    flood = domain.client("flooder").publish(speeds(*[1] * 11), f"{NAME}@9001")
    assert (flood.events, {code: count for (code, _), count in flood.refused.items()}) == (10, {"RATE_LIMITED": 1})
    time.sleep(20)
    assert domain.client("flooder").publish(speeds(1), f"{NAME}@9001").events == 1
    home.do("revoke", flooding[:16], "--yes")
    with pytest.raises(MaiaError, match="REVOKED"):
        domain.client("flooder").publish(speeds(1), f"{NAME}@9001")


@pytest.mark.requirement("15.01")
def test_three_types_are_sealed_in_three_ways_on_one_network(spark: Any, home: Command) -> None:
    """Plain, event and attribute level live together: each is read alike, and only the plain one lies open."""
    domain = maia.open(home.home)
    for mode in ("plain", "event", "attribute"):
        kind = f"pito/mode.{mode}"
        home.do("type", "define", f"{kind}@1", "--encryption", mode, "--attribute", "word:string:1")
        for who, action in (
            ("broker", "publish"),
            ("broker", "subscribe"),
            ("camera", "publish"),
            ("reader", "subscribe"),
        ):
            home.grant("--from", "pito", "--to", who, "--type", kind, "--action", action)
        domain.client("camera").publish(pa.table({"word": [f"canary-{mode}"]}), f"mode.{mode}")
        assert [row["word"] for row in domain.client("reader").read(f"mode.{mode}").collect()] == [f"canary-{mode}"]
    stored = b"".join(path.read_bytes() for path in (home.home / "log").rglob("*") if path.is_file())
    found = {mode: f"canary-{mode}".encode() in stored for mode in ("plain", "event", "attribute")}
    assert found == {"plain": True, "event": False, "attribute": False}
