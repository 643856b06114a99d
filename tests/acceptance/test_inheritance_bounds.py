"""Bounds and topics in a lineage: each type bounds its own attributes, and a topic's rule holds in what extends it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inheritance_world import CHILD, PARENT, ROW, SEEN, give, in_order, make_world

import maia
from maia.authority import Action, type_right
from maia.encoding import format_advanced
from maia.errors import MaiaError
from maia.filters import Bound, BoundKind, compile_filter
from maia.principals import PublicKey
from maia.testing import Command, publish_here, read_here

BOTH = "plate any and place any and unit any"
CLOSED = {"plate": None, "place": None}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with a client whose rights to publish parent and child are bounded, and one for subscribing."""
    home = make_world(tmp_path_factory.mktemp("bounded") / "home")
    home.keys("bounded", "asker")
    give(home, "bounded", PARENT, "publish", "--bound", "strict-lower (plate any, place in ('Euston', 'Kent'))")
    give(home, "bounded", CHILD, "publish", "--bound", "strict-lower (unit prefix 'Sierra')")
    give(home, "asker", PARENT, "subscribe", "--bound", "lower (place any)")
    give(home, "asker", CHILD, "subscribe", "--bound", "lower (unit any, unit = 'Sierra 1')")
    return home


@pytest.fixture
def home(first: Command, tmp_path: Path) -> Command:
    """Give a copy of it."""
    shutil.copytree(first.home, tmp_path / "home")
    return Command(tmp_path / "home")


def publish(home: Command, kind: str, who: str, row: dict[str, Any], *, advertise: str | None = None) -> int:
    """Publish one event now, announced or not; tell how many were admitted."""
    domain, at = maia.open(home.home), datetime.now(UTC)
    plan = domain.publish_plan(kind, client=domain.prove(who), publication=str(at), advertise=advertise)
    return publish_here(domain.home, kind, [row], as_=who, at=datetime.now(UTC), plan=plan, publication=str(at))


def read(home: Command, kind: str, who: str, where: str = "") -> list[dict[str, Any]]:
    """Read all events of a type as a client."""
    return in_order(read_here(maia.open(home.home).home, kind, as_=who, where=where))


def refusal(home: Command, kind: str, who: str, where: str = "") -> str:
    """Tell why a client may not read."""
    with pytest.raises(MaiaError) as caught:
        read(home, kind, who, where)
    return caught.value.code


def test_a_row_is_held_to_the_bounds_of_each_type_on_its_own_attributes(home: Command) -> None:
    """A strict bound forbids other attributes of its own type, and says nothing of those of the other one."""
    assert publish(home, CHILD, "bounded", ROW) == 1
    assert publish(home, CHILD, "bounded", {**ROW, "place": "Oslo"}) == 0, "out of the parent's bounds"
    assert publish(home, CHILD, "bounded", {**ROW, "unit": "Tango 1"}) == 0, "out of the child's bounds"
    assert (read(home, CHILD, "reader"), read(home, PARENT, "parents")) == ([ROW], [SEEN])


def test_an_advertisement_is_held_to_the_bounds_of_each_type_on_its_own_attributes(home: Command) -> None:
    """What is announced of the child stands on the child's right, what of the parent on the parent's."""
    sierra = "place = 'Kent' and unit = 'Sierra 1' and plate any"
    assert publish(home, CHILD, "bounded", {**ROW, "place": "Kent"}, advertise=sierra) == 1
    assert publish(home, CHILD, "bounded", ROW, advertise=sierra) == 0, "its own word binds it"
    with pytest.raises(MaiaError) as caught:
        publish(home, CHILD, "bounded", ROW, advertise=BOTH)
    assert caught.value.code == "FILTER_OUT_OF_BOUNDS", "any unit is more than the child's bound allows"
    asked = ("policy", "bounds", "--as", "bounded", "--type", f"met/{CHILD}@1", "--advertise")
    rights = home.do(*asked, sierra)["rights"]
    assert [(row["allowed"], row["code"]) for row in rights] == [(True, ""), (True, "")]
    codes = {row["code"] for row in home(*asked, BOTH, "--json").data["rights"]}
    assert codes == {"FILTER_OUT_OF_BOUNDS"}


def test_what_is_announced_beyond_the_parents_bounds_is_no_event_of_the_parent(home: Command) -> None:
    """The child's part is within its bounds, the parent's is not: the event carries nothing of the parent."""
    word = "plate any and place any and unit = 'Sierra 1'"
    assert publish(home, CHILD, "bounded", ROW, advertise=word) == 1
    assert read(home, CHILD, "reader") == [{**CLOSED, "unit": "Sierra 1"}]
    assert read(home, PARENT, "parents") == []


def test_a_subscription_is_held_as_a_whole_to_the_bounds_of_each_type(home: Command) -> None:
    """One filter chooses the rows: what is inherited makes it no finer than the child's bound lets it be."""
    publish(home, CHILD, "camera", ROW)
    assert refusal(home, CHILD, "asker", "unit = 'Sierra 1' and place = 'Euston'") == "FILTER_OUT_OF_BOUNDS"
    assert refusal(home, CHILD, "asker", "place = 'Euston'") == "FILTER_OUT_OF_BOUNDS", "a right on the parent alone"
    assert read(home, CHILD, "asker", "unit = 'Sierra 1'") == [{**CLOSED, "unit": "Sierra 1"}], (
        "finer than the parent's"
    )
    assert read(home, PARENT, "asker", "place = 'Euston'") == [SEEN]


@pytest.mark.threat("T67")
def test_a_bound_on_the_child_speaks_of_no_inherited_attribute(home: Command) -> None:
    """Met may not say by what others own how wide a subscription is: such a right gives nothing."""
    home.keys("told")
    owner = PublicKey.import_(bytes.fromhex(home.do("key", "show", "met")["keys"][0]["key"]))
    bound = Bound(filter=compile_filter('"2" any', {"2": "string"}), kind=BoundKind.UPPER)
    right = type_right(owner, CHILD, actions=[Action.SUBSCRIBE], bounds=[bound])
    home.grant("--from", "met", "--to", "told", "--tag", format_advanced(right.to_sexp()))
    give(home, "told", PARENT, "subscribe")
    assert refusal(home, CHILD, "told", "place any") == "SPEAKS_OF_CLOSED"


def test_what_extends_a_topic_needs_the_rights_on_its_super_topics(tmp_path: Path) -> None:
    """A child's event is the topic's only on rights on the topic and all above it, and it says the topic's name."""
    home = Command(tmp_path / "home")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("ticker", "reader")
    home.do("topic", "define", "domain/Quotes", "--attribute", "price:integer:5")
    home.do("topic", "define", "domain/Quotes.Nokia")
    home.do("type", "define", "domain/Trade@1", "--extends", "domain/Quotes.Nokia@0", "--attribute", "buyer:string:9")
    for who, actions in (("broker", ("publish", "subscribe")), ("ticker", ("publish",)), ("reader", ("subscribe",))):
        for action in actions:
            home.grant("--from", "domain", "--to", who, "--type", "domain/Trade", "--action", action)

    def on_topic(who: str, topic: str, action: str) -> None:
        home.do("topic", "grant", "--from", "domain", "--to", who, "--topic", f"domain/{topic}", "--action", action)

    for who, topic, action in (
        ("broker", "Quotes", "publish"), ("broker", "Quotes.Nokia", "publish"), ("broker", "Quotes", "subscribe"),
        ("reader", "Quotes", "subscribe"), ("ticker", "Quotes.Nokia", "publish"),
    ):  # fmt: skip
        on_topic(who, topic, action)
    row = {"price": 5, "topic": "Quotes.Nokia", "buyer": "ann"}
    publish(home, "Trade", "ticker", row)
    assert read(home, "Trade", "reader") == [{"price": None, "topic": None, "buyer": "ann"}], "no right on Quotes"
    on_topic("ticker", "Quotes", "publish")
    publish(home, "Trade", "ticker", {**row, "topic": "Quotes"})
    publish(home, "Trade", "ticker", row)
    assert [item["topic"] for item in read(home, "Quotes.Nokia", "reader")] == ["Quotes.Nokia"] * 2
    assert {item["price"] for item in read(home, "Trade", "reader")} == {None, 5}
