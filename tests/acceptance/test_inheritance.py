"""A type that extends another one: what it inherits follows the rights and the keys of the type that it comes from."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inheritance_world import CHILD, PARENT, ROW, SEEN, UNIT, give, in_order, make_world

import maia
from maia.authority import Action, Constraint, parse_tag, type_right
from maia.encoding import format_advanced
from maia.errors import MaiaError
from maia.principals import PublicKey
from maia.testing import Command, publish_here, read_here

CLOSED = {"plate": None, "place": None}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with sealed types, in which nothing happened yet."""
    return make_world(tmp_path_factory.mktemp("inheritance") / "home")


@pytest.fixture
def home(first: Command, tmp_path: Path) -> Iterator[Command]:
    """Give a copy of it."""
    shutil.copytree(first.home, tmp_path / "home")
    return Command(tmp_path / "home")


def publish(home: Command, kind: str, who: str, row: dict[str, str], **how: Any) -> int:
    """Publish one event now."""
    return publish_here(maia.open(home.home).home, kind, [row], as_=who, at=datetime.now(UTC), **how)


def read(home: Command, kind: str, who: str, where: str = "") -> list[dict[str, Any]]:
    """Read all events of a type as a client."""
    return in_order(read_here(maia.open(home.home).home, kind, as_=who, where=where))


def refusal(home: Command, kind: str, who: str, where: str = "") -> str:
    """Tell why a client may not read."""
    with pytest.raises(MaiaError) as caught:
        read(home, kind, who, where)
    return caught.value.code


@pytest.mark.requirement("2.13")
@pytest.mark.requirement("5.16")
@pytest.mark.parametrize("mode", ["attribute", "plain"])
def test_a_childs_event_is_the_parents_with_the_parents_attributes(tmp_path: Path, mode: str) -> None:
    """A holder of extend `Test*` makes a child of TestType1, whose subscribers get its events; not of Other."""
    home = make_world(tmp_path / "home", mode=mode)
    publish(home, CHILD, "camera", ROW)
    publish(home, PARENT, "camera", {"plate": "BX51 ABC", "place": "Kent"})
    assert read(home, PARENT, "parents") == [SEEN, {"plate": "BX51 ABC", "place": "Kent"}]
    assert read(home, PARENT, "parents", "place = 'Euston'") == [SEEN]
    assert read(home, CHILD, "reader") == [ROW]
    home.do("type", "define", "pito/Other@1", "--attribute", "plate:string:1")
    stray = ("type", "define", "met/Stray", "--extends", "pito/Other@1", "--attribute", "b:string")
    assert home.refused(*stray) == (4, "NO_EVIDENCE")
    stranger = ("type", "define", "patrol/Stray", "--extends", f"pito/{PARENT}@1", "--attribute", "b:string")
    assert home.refused(*stranger) == (4, "NO_EVIDENCE")


@pytest.mark.requirement("2.13")
def test_a_right_on_a_type_opens_the_attributes_that_the_type_defines(home: Command) -> None:
    """Rights on the child show what it adds, rights on the parent what it inherits, and neither the other type."""
    publish(home, CHILD, "camera", ROW)
    assert read(home, CHILD, "children") == [{**CLOSED, "unit": "Sierra 1"}]
    assert refusal(home, CHILD, "parents") == "BROKEN_CHAIN"
    assert refusal(home, PARENT, "children") == "BROKEN_CHAIN"
    assert refusal(home, CHILD, "children", "place = 'Euston'") == "FILTER_NOT_AUTHORISED"
    home.keys("narrow")
    give(home, "narrow", CHILD, "subscribe")
    give(home, "narrow", PARENT, "subscribe", "--attribute", "plate", "--attribute", "place=Kent")
    assert read(home, CHILD, "narrow") == [{**CLOSED, "unit": "Sierra 1"}], (
        "the demand of the parent's right is not met"
    )
    publish(home, CHILD, "camera", {**ROW, "place": "Kent"})
    assert {**ROW, "place": "Kent"} in read(home, CHILD, "narrow")


def test_a_right_on_the_parent_admits_no_row_of_the_child(home: Command) -> None:
    """Who may read one unit's pursuits and all of the parent sees other pursuits as the parent's, and nowhere else."""
    home.keys("narrow")
    give(home, "narrow", CHILD, "subscribe", "--attribute", "unit=Sierra 2")
    give(home, "narrow", PARENT, "subscribe")
    publish(home, CHILD, "camera", ROW)
    assert (read(home, CHILD, "narrow"), read(home, PARENT, "narrow")) == ([], [SEEN])


@pytest.mark.threat("T67")
def test_a_right_on_the_child_speaks_of_no_inherited_attribute(home: Command) -> None:
    """Met does not hold what its type inherits: a right that chooses rows by it is refused, and gives nothing."""
    publish(home, CHILD, "camera", ROW)
    by_name = ("--from", "met", "--to", "children", "--type", f"met/{CHILD}", "--attribute", "place=Euston")
    assert home.refused("grant", *by_name) == (2, "NO_SUCH_ATTRIBUTE")
    home.keys("told", "asked")
    owner = PublicKey.import_(bytes.fromhex(home.do("key", "show", "met")["keys"][0]["key"]))
    right = type_right(owner, CHILD, actions=[Action.SUBSCRIBE], constraints=[Constraint("2", "=", "Euston")])
    home.grant("--from", "met", "--to", "told", "--tag", format_advanced(right.to_sexp()))
    give(home, "asked", CHILD, "subscribe", "--condition", "event['2'] == 'Euston'")
    assert {who: refusal(home, CHILD, who) for who in ("told", "asked")} == dict.fromkeys(
        ("told", "asked"), "SPEAKS_OF_CLOSED"
    )


@pytest.mark.requirement("2.13")
def test_who_may_not_publish_the_parent_publishes_the_child_alone(home: Command) -> None:
    """What the patrol says of the parent goes nowhere, and its pursuits are no events of the parent."""
    assert publish(home, CHILD, "patrol", ROW) == 1
    assert read(home, CHILD, "reader") == [{**CLOSED, "unit": "Sierra 1"}]
    assert read(home, PARENT, "parents") == []
    home.keys("local")
    give(home, "local", CHILD, "publish")
    give(home, "local", PARENT, "publish", "--attribute", "plate", "--attribute", "place=Kent")
    publish(home, CHILD, "local", ROW)
    assert read(home, PARENT, "parents") == [{**SEEN, "place": "Kent"}], "the parent's right forces its value"


@pytest.mark.threat("T66")
def test_readers_hold_a_broker_to_its_right_on_the_parent(home: Command) -> None:
    """A broker that lost its right on the parent seals the parent's attributes all the same: nobody sees them."""
    domain = maia.open(home.home)
    publish(home, PARENT, "camera", SEEN)
    for certificate in domain.home.certificates.path.iterdir():
        said = home("cert", "show", str(certificate)).out
        if "broker" in said and f"publish on event type {PARENT}" in said:
            certificate.unlink()

    def forge(plan: Any) -> Any:
        everything = parse_tag((b"*",))
        whole = tuple(replace(clause, cells=replace(clause.cells, uids=everything)) for clause in plan.clauses)
        held = tuple(replace(clause, holder=domain.event_type(PARENT).type_id) for clause in whole)
        return replace(plan, clauses=(*whole, *held))

    publish(home, CHILD, "camera", ROW, honest=False, change=forge)
    assert read(home, CHILD, "reader") == [{**CLOSED, "unit": "Sierra 1"}]
    assert read(home, PARENT, "parents") == [SEEN], "what was published before, on the right of then"


@pytest.mark.requirement("23.09")
def test_versions_of_parent_and_child_are_read_in_each_others_shape(home: Command) -> None:
    """A rename and an addition in the parent, and a child that follows later; the child's number is never confused."""
    parent, child = f"pito/{PARENT}", f"met/{CHILD}"
    publish(home, f"{CHILD}@1", "camera", ROW)
    home.do("type", "evolve", f"{parent}@1", "--rename", "plate=license", "--add", "lane:string:20", "--number", "2")
    old = {"license": "AE05 XYZ", "place": "Euston", "lane": None}
    assert read(home, f"{PARENT}@2", "parents") == [old]
    home.do("type", "evolve", f"{child}@1", "--extends", f"{parent}@2", "--number", "2")
    new = {"license": "CD1", "place": "Kent", "lane": "left"}
    publish(home, f"{CHILD}@2", "camera", {**new, "unit": "Sierra 3"})
    assert read(home, f"{PARENT}@2", "parents") == in_order([old, new])
    assert read(home, f"{PARENT}@1", "parents") == in_order([SEEN, {"plate": "CD1", "place": "Kent"}])
    assert read(home, f"{CHILD}@1", "reader") == in_order([ROW, {"plate": "CD1", "place": "Kent", "unit": "Sierra 3"}])
    home.do("type", "evolve", f"{parent}@2", "--add", f"speed:string:{UNIT}", "--number", "3")
    assert {row["speed"] for row in read(home, f"{PARENT}@3", "parents")} == {None}, "never the child's unit"
    follow = ("type", "evolve", f"{child}@2", "--extends", f"{parent}@3", "--number", "3")
    assert home.refused(*follow) == (4, "ATTRIBUTE_UID_TWICE")
    assert home.refused(*follow, "--remove", "unit") == (1, "UID_REUSED")


@pytest.mark.requirement("23.09")
def test_a_number_that_the_parent_takes_later_is_not_the_childs(tmp_path: Path) -> None:
    """Nothing is sealed, and a later version of the parent uses the uid of what the child adds: it sees none of it."""
    home = make_world(tmp_path / "home", mode="plain")
    home.do("type", "evolve", f"pito/{PARENT}@1", "--add", f"speed:string:{UNIT}", "--number", "2")
    publish(home, f"{CHILD}@1", "camera", ROW)
    assert read(home, f"{PARENT}@2", "parents") == [{**SEEN, "speed": None}]


def test_a_child_travels_as_its_parent(home: Command) -> None:
    """What a parent's owner seals, no child shows; a type that is sealed as a whole has no children."""
    child = ("type", "define", "met/Loud@1", "--extends", f"pito/{PARENT}@1", "--attribute", "b:string")
    assert home.refused(*child, "--encryption", "plain") == (4, "TYPE_EXTENDS_OPTIONS")
    assert home.refused(*child, "--release", "direct") == (4, "TYPE_EXTENDS_OPTIONS")
    home.do("type", "define", "pito/TestWhole@1", "--encryption", "event", "--attribute", "a:string")
    whole = ("type", "define", "met/Part@1", "--extends", "pito/TestWhole@1", "--attribute", "b:string")
    assert home.refused(*whole) == (4, "TYPE_EXTENDS_OPTIONS")


@pytest.mark.requirement("2.13")
def test_a_grandchild_is_an_event_of_all_its_ancestors(home: Command) -> None:
    """Three generations, three owners' rights: each opens its own attributes in the youngest's events."""
    home.do("type", "define", "met/Chase@1", "--extends", f"met/{CHILD}@1", "--attribute", "outcome:string:9")
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("camera", "publish"), ("reader", "subscribe")):
        home.grant("--from", "met", "--to", who, "--type", "met/Chase", "--action", action)
    publish(home, "Chase", "camera", {**ROW, "outcome": "caught"})
    assert read(home, "Chase", "reader") == [{**ROW, "outcome": "caught"}]
    assert read(home, CHILD, "reader") == [ROW]
    assert read(home, CHILD, "children") == [{**CLOSED, "unit": "Sierra 1"}]
    assert read(home, PARENT, "parents") == [SEEN]


@pytest.mark.requirement("2.13")
def test_keys_of_what_is_inherited_are_the_parents(tmp_path: Path) -> None:
    """The child's groups are those of its own attributes: who reads the parent gets keys of the parent alone."""
    home = Command(tmp_path / "home")
    home.do("domain", "init", str(home.home), "--key")
    home.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    home.do("type", "define", "domain/Vehicle@1", "--attribute", "plate:string:1", "--attribute", "place:string:2")
    home.do("type", "define", "domain/Ambulance@1", "--extends", "domain/Vehicle@1", "--attribute", "hospital:string:7")
    home.grant("--from", "domain", "--to", "broker", "--type", "domain/Vehicle", "--action", "subscribe")
    assert {row["uid"] for row in home.do("keys", "join", "Vehicle")["groups"]} == {None, "1", "2"}
    assert home.refused("keys", "join", "Ambulance")[0] in (3, 4)
    home.grant("--from", "domain", "--to", "broker", "--type", "domain/Ambulance", "--action", "subscribe")
    assert {row["uid"] for row in home.do("keys", "join", "Ambulance")["groups"]} == {None, "7"}
    assert len(home.do("keys", "groups")["groups"]) == 5


def test_it_is_explained_and_in_the_audit(home: Command) -> None:
    """`maia explain` and `Domain.explain` name the parent; what was read of the child's lane stands in the audit."""
    publish(home, CHILD, "camera", ROW)
    read(home, PARENT, "parents")
    asked = ("--type", f"met/{CHILD}@1", "--action", "subscribe")
    told = {who: home("explain", "--as", who, *asked, "--json").data["inherited"][0] for who in ("reader", "children")}
    assert {who: (item["type"], item["attributes"], item["held"]) for who, item in told.items()} == {
        "reader": (f"pito/{PARENT}@1", ["plate", "place"], True),
        "children": (f"pito/{PARENT}@1", ["plate", "place"], False),
    }
    assert f"inherited from `pito/{PARENT}@1`" in home("explain", "--as", "children", *asked).out
    domain = maia.open(home.home)
    closed = domain.explain(CHILD, principal="children", attribute="plate")
    assert not closed
    assert f"of `{PARENT}`" in str(closed)
    assert domain.explain(CHILD, principal="reader", attribute="plate")
    child, parent = (domain.event_type(kind).type_id.hex() for kind in (CHILD, PARENT))
    rows = home.do("audit")["rows"]
    delivered = [row for row in rows if row["kind"] == "deliver" and row["subject"] == "parents"]
    assert [(row["type_id"], row["events"], child in row["source"]) for row in delivered] == [(parent, 1, True)]
