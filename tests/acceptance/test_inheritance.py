"""A type that extends another one: what it inherits follows the rights and the keys of the type that it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.errors import MaiaError
from maia.testing import Command

PARENT, CHILD = "TestType1", "Pursuit"
OWN = "7"  # the uid of the unit, which the child adds
ROWS = {"plate": ["AE05 XYZ"], "place": ["Euston"], "unit": ["Sierra 1"]}
SEEN = {"plate": "AE05 XYZ", "place": "Euston"}


def make(folder: Path, *, mode: str = "attribute") -> Command:
    """Make a home: pito owns the parent, met the child; the second version of the parent uses the child's number."""
    made = Command(folder)
    made.do("domain", "init", str(made.home))
    made.keys("pito", "met", "camera", "patrol", "reader", "parents", "children")
    made.do("type", "define", f"pito/{PARENT}@1", "--encryption", mode, "--attribute", "plate:string:1",
            "--attribute", "place:string:2")  # fmt: skip
    made.grant("--from", "pito", "--to", "met", "--type", "pito/Test*", "--action", "extend")
    made.do("type", "define", f"met/{CHILD}@1", "--extends", f"pito/{PARENT}@1", "--attribute", f"unit:string:{OWN}")
    for who, kinds, action in (
        ("broker", (PARENT, CHILD), "publish"), ("broker", (PARENT, CHILD), "subscribe"),
        ("camera", (PARENT, CHILD), "publish"), ("patrol", (CHILD,), "publish"),
        ("reader", (PARENT, CHILD), "subscribe"), ("parents", (PARENT,), "subscribe"),
        ("children", (CHILD,), "subscribe"),
    ):  # fmt: skip
        for kind in kinds:
            give(made, who, kind, action)
    return made


def give(home: Command, who: str, kind: str, action: str, *more: str) -> None:
    """Let the owner of a type give a right on all its versions."""
    owner = "pito" if kind == PARENT else "met"
    home.grant("--from", owner, "--to", who, "--type", f"{owner}/{kind}", "--action", action, *more)


def read(home: Command, who: str, kind: str) -> list[dict[str, Any]]:
    """Read all events of a type as a client, in an order of their own."""
    rows = (row.asDict() for row in maia.open(home.home).client(who).read(kind).collect())
    return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Give a home with sealed types."""
    return make(tmp_path_factory.mktemp("inheritance") / "home")


@pytest.fixture
def published(spark: Any, home: Command) -> None:
    """Publish an event of each type, and one of the child by whoever has no right on the parent; once."""
    domain = maia.open(home.home)
    domain.client("camera").publish(pa.table(ROWS), CHILD, publication="pursuit")
    done = domain.client("patrol").publish(pa.table({**ROWS, "unit": ["Sierra 2"]}), CHILD, publication="patrol")
    assert done.events == 1
    domain.client("camera").publish(pa.table({"plate": ["BX51 ABC"], "place": ["Kent"]}), PARENT, publication="plain")


@pytest.mark.requirement("2.13")
@pytest.mark.requirement("5.16")
def test_a_subscriber_of_the_parent_gets_childrens_events_with_the_parents_attributes(
    spark: Any, published: None, home: Command
) -> None:
    """By Python, `format("maia")` and the command; a child without a certificate is refused, and has no events."""
    wanted = [SEEN, {"plate": "BX51 ABC", "place": "Kent"}]
    assert read(home, "parents", PARENT) == wanted
    frame = spark.read.format("maia").option("home", str(home.home)).option("as", "parents").option("type", PARENT)
    assert sorted(row["plate"] for row in frame.load().where("place = 'Euston'").collect()) == ["AE05 XYZ"]
    ran = home("subscribe", "--type", PARENT, "--as", "parents", "--format", "json")
    assert sorted(line["plate"] for line in ran.lines) == ["AE05 XYZ", "BX51 ABC"]
    home.do("type", "define", "pito/Other@1", "--attribute", "plate:string:1")
    assert home("type", "define", "met/Stray", "--extends", "pito/Other@1", "--attribute", "b:string").code == 4


@pytest.mark.requirement("2.13")
def test_rights_on_each_type_open_its_own_attributes_and_no_others(published: None, home: Command) -> None:
    """The child's reader sees what the child adds; who reads both sees all; a right on the parent reads no child."""
    ours = {**SEEN, "unit": "Sierra 1"}
    theirs = {"plate": None, "place": None, "unit": "Sierra 2"}
    assert read(home, "reader", CHILD) == [ours, theirs]
    assert read(home, "children", CHILD) == [{**theirs, "unit": "Sierra 1"}, theirs]
    for who, kind in (("parents", CHILD), ("children", PARENT)):
        with pytest.raises(MaiaError) as caught:
            read(home, who, kind)
        assert caught.value.code == "NOT_PERMITTED"
    with pytest.raises(MaiaError) as caught:
        maia.open(home.home).client("children").read(CHILD, where="place = 'Euston'")
    assert caught.value.code == "FILTER_NOT_AUTHORISED"


@pytest.mark.requirement("23.09")
def test_versions_of_parent_and_child_live_side_by_side(spark: Any, home: Command) -> None:
    """Version 2 renames the plate and takes the child's number for a speed; the child follows in a version of its own."""
    parent, child = f"pito/{PARENT}", f"met/{CHILD}"
    home.do("type", "evolve", f"{parent}@1", "--rename", "plate=license", "--add", "lane:string:20", "--number", "2")
    maia.open(home.home).client("camera").publish(pa.table(ROWS), f"{CHILD}@1", publication="pursuit")
    second = read(home, "parents", f"{PARENT}@2")
    assert {"license": "AE05 XYZ", "place": "Euston", "lane": None} in second
    home.do("type", "evolve", f"{child}@1", "--extends", f"{parent}@2", "--number", "2")
    rows = {"license": ["CD1"], "place": ["Kent"], "lane": ["left"], "unit": ["Sierra 3"]}
    maia.open(home.home).client("camera").publish(pa.table(rows), f"{CHILD}@2", publication="second")
    assert {"license": "CD1", "place": "Kent", "lane": "left"} in read(home, "parents", f"{PARENT}@2")
    assert {"plate": "CD1", "place": "Kent"} in read(home, "parents", f"{PARENT}@1")
    assert {"plate": "CD1", "place": "Kent", "unit": "Sierra 3"} in read(home, "reader", f"{CHILD}@1")
    speed = ("--add", f"speed:string:{OWN}", "--number", "3")
    home.do("type", "evolve", f"{parent}@2", *speed)  # the number is free in the parent
    assert all(row["speed"] is None for row in read(home, "parents", f"{PARENT}@3")), "never the child's unit"
    assert home.refused("type", "evolve", f"{child}@2", "--extends", f"{parent}@3", "--number", "3")[1] in (
        "ATTRIBUTE_UID_TWICE", "UID_REUSED",
    )  # fmt: skip
