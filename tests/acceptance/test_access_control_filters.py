"""Access-control filters as a policy: written in rules, checked, previewed, and held to at the broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from shop_world import CHEAP, NAME, PRODUCT, TYPE, admit, copy, kept, shop

from maia.testing import Command

UPPER = "upper (message = 'new_product')"
LOWER = "(message = 'new_product', price < 100)"
RULES = {
    "supplier": f"publish Product {UPPER}",
    "strict": f"publish Product strict-{UPPER}",
    "lower": f"publish Product lower {LOWER}",
    "strictly": f"publish Product strict-lower {LOWER}",
    "forecaster": "publish Product upper (weather any, temperature any)",
    "reader": f"subscribe Product {UPPER}",
    "coarse": "subscribe Product lower (message any)",
    "minimum": "subscribe Product min (message, price)",
    "exactly": "subscribe Product exact (message, price)",
    "maximum": "subscribe Product max (message, price)",
    "between": f"subscribe Product {UPPER} lower (message any, price < 100)",
    "colours": "subscribe Product(color) upper (color prefix 'r')",
}


GIVEN = ("strict", "lower", "strictly", "coarse", "minimum", "exactly", "maximum", "between")
"""Roles that nobody has; their rights are given by hand, with the same bounds."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Build the shop once: members with a role, with several and with none, and clients with rights given by hand."""
    found = shop(tmp_path_factory.mktemp("shops") / "shop", RULES)
    found.keys(*(f"{role}-member" for role in GIVEN))
    for role in GIVEN:
        action, _, first, *more = re.split(r" (?=Product|(?:strict-)?(?:upper|lower)|min|exact|max)", RULES[role])
        bounds = [flag for text in (first, *more) for flag in ("--bound", text)]
        found.grant("--from", "domain", "--to", f"{role}-member", "--type", TYPE, "--action", action, *bounds)
    for role in ("supplier", "reader"):
        admit(found, f"{role}-member", [role])
    admit(found, "nobody")
    admit(found, "both", ["supplier", "forecaster", "reader", "colours"])
    return found


@pytest.fixture
def market(template: Command, tmp_path: Path) -> Command:
    """Give a copy of the shop."""
    return copy(template, tmp_path / "shop")


def asks(market: Command, who: str, *question: str) -> tuple[bool, list[str]]:
    """Ask the preview of somebody's rights: whether it is allowed, and why not."""
    ran = market("policy", "bounds", "--as", who, "--type", NAME, *question, "--json")
    assert ran.code in (0, 3), ran.err
    return ran.code == 0, [row["code"] for row in ran.data["rights"] if row["code"]]


def subscribes(market: Command, who: str, where: str) -> bool:
    """Subscribe, and tell whether the broker remembers it; refused, it remembers nothing."""
    before = market.do("deliver", "list")["subscriptions"]
    ran = market("deliver", "add", f"{who} {where}", "--as", who, "--type", NAME, "--where", where, "--json")
    after = market.do("deliver", "list")["subscriptions"]
    if ran.code == 0:
        assert len(after) == len(before) + 1
        return True
    assert (ran.code, ran.data["error"]) == (3, "FILTER_OUT_OF_BOUNDS"), ran.out
    assert after == before
    return False


ADVERTISED = {
    "upper": ("supplier-member", CHEAP, True),
    "upper, foreign": ("supplier-member", "weather any and temperature any", False),
    "strict upper": ("strict-member", PRODUCT, True),
    "strict upper, more": ("strict-member", CHEAP, False),
    "lower": ("lower-member", f"{PRODUCT} and price < 53", True),
    "lower, a new attribute": ("lower-member", f"{PRODUCT} and color any", False),
    "strict lower": ("strictly-member", f"{PRODUCT} and price < 53", True),
    "strict lower, a new attribute": ("strictly-member", f"{PRODUCT} and color any", False),
    "strict lower, one of them": ("strictly-member", PRODUCT, True),
}


@pytest.mark.requirement("10.06")
@pytest.mark.requirement("10.08")
@pytest.mark.requirement("10.09")
@pytest.mark.requirement("10.10")
@pytest.mark.parametrize("who, announced, allowed", ADVERTISED.values(), ids=ADVERTISED)
def test_advertisements_are_held_to_the_bounds_of_the_right_before_anything_is_kept(
    market: Command, tmp_path: Path, who: str, announced: str, allowed: bool
) -> None:
    """What the paper's bounds allow is announced; anything else is refused, and the home is as it was before."""
    assert asks(market, who, "--advertise", announced)[0] is allowed
    if allowed:
        return
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"message": "new_product", "price": 10}\n', "utf-8")
    before = kept(market.home)
    refused = market.refused("publish", str(rows), "--type", NAME, "--as", who, "--advertise", announced)
    assert refused == (3, "FILTER_OUT_OF_BOUNDS")
    assert kept(market.home) == before
    assert [row["reason"] for row in market.do("audit", "--kind", "refuse")["rows"]] == ["FILTER_OUT_OF_BOUNDS"]


SUBSCRIBED = {
    "upper": ("reader-member", f"{PRODUCT} and price = 10", True),
    "upper, foreign": ("reader-member", "weather = 'sunny' and temperature > 25", False),
    "upper, everything": ("reader-member", "", False),
    "lower": ("coarse-member", PRODUCT, True),
    "lower, too specific": ("coarse-member", CHEAP, False),
    "min, fewer": ("minimum-member", "message any", False),
    "min, more": ("minimum-member", "message any and price any and color any", True),
    "exact, fewer": ("exactly-member", "message any", False),
    "exact, more": ("exactly-member", "message any and price any and color any", False),
    "exact": ("exactly-member", "message any and price any", True),
    "exact, narrower values": ("exactly-member", CHEAP, True),
    "max, others": ("maximum-member", "message any and color any", False),
    "max, fewer": ("maximum-member", "message any", True),
    "both, between": ("between-member", f"{PRODUCT} and price < 53", True),
    "both, too wide": ("between-member", "price < 53", False),
    "both, too fine": ("between-member", f"{PRODUCT} and color any", False),
}


@pytest.mark.requirement("10.11")
@pytest.mark.requirement("10.12")
@pytest.mark.requirement("11.04")
@pytest.mark.requirement("22.02")
@pytest.mark.parametrize("who, where, allowed", SUBSCRIBED.values(), ids=SUBSCRIBED)
def test_subscriptions_are_held_to_the_bounds_of_the_right_at_the_first_broker(
    market: Command, who: str, where: str, allowed: bool
) -> None:
    """What the bounds allow is remembered; what is too wide or too fine is refused, with no entry left of it."""
    assert subscribes(market, who, where) is allowed
    assert asks(market, who, "--subscribe", where) == (allowed, [] if allowed else ["FILTER_OUT_OF_BOUNDS"])


@pytest.mark.requirement("22.03")
def test_many_fake_advertisements_and_subscriptions_leave_no_state(market: Command, tmp_path: Path) -> None:
    """Ever new attributes and values are announced and asked for; the home stays the same, but for its audit."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"color": "red"}\n', "utf-8")
    before = kept(market.home)
    fakes = [f"color = 'c{number}' and temperature = {number}" for number in range(6)]
    for fake in fakes:
        told = market.refused("publish", str(rows), "--type", NAME, "--as", "strictly-member", "--advertise", fake)
        assert told == (3, "FILTER_OUT_OF_BOUNDS")
        told = market.refused("deliver", "add", fake, "--as", "coarse-member", "--type", NAME, "--where", fake)
        assert told == (3, "FILTER_OUT_OF_BOUNDS")
    assert kept(market.home) == before


@pytest.mark.requirement("10.13")
def test_no_rule_means_no_access_and_several_credentials_add_up(market: Command) -> None:
    """With the receipt there is a bound, without it nothing; each of two credentials allows what it allows."""
    product, weather = '{"message": "new_product"}', '{"weather": "sunny", "temperature": 27}'
    assert asks(market, "supplier-member", "--event", product)[0]
    assert asks(market, "supplier-member", "--event", weather) == (False, ["ROW_OUT_OF_BOUNDS"])
    assert asks(market, "nobody", "--event", product) == (False, [])
    assert market("deliver", "add", "x", "--as", "nobody", "--type", NAME, "--where", PRODUCT).code == 3
    assert asks(market, "both", "--event", product)[0]
    assert asks(market, "both", "--event", weather)[0]
    assert not asks(market, "both", "--event", '{"color": "red"}')[0]
    market.do("role", "retract", "supplier-credential(both)")
    assert not asks(market, "both", "--event", product)[0]
    assert asks(market, "both", "--event", weather)[0]


@pytest.mark.requirement("10.13")
def test_what_one_right_bounds_another_does_not_loosen(market: Command) -> None:
    """A filter over the message is the reader's, one over the colour needs the other right; never a mixture."""
    assert subscribes(market, "both", f"{PRODUCT} and price < 5")
    assert subscribes(market, "both", "color = 'red'")
    assert not subscribes(market, "both", "color = 'blue'")
    ran = market("deliver", "add", "mixed", "--as", "both", "--type", NAME, "--where", "color = 'red' and price = 1",
                 "--json")  # fmt: skip
    assert (ran.code, ran.data["error"]) == (3, "FILTER_NOT_AUTHORISED")
    assert "mixed" not in {item["name"] for item in market.do("deliver", "list")["subscriptions"]}


@pytest.mark.requirement("10.13")
def test_the_policy_list_is_local_and_a_bound_ends_with_its_rule(market: Command, tmp_path: Path) -> None:
    """Another host's rules say nothing here; a rule that goes takes the right with it, a subscription included."""
    rules = market.home / "policy" / "shop.rules"
    other = tmp_path / "other.rules"
    other.write_text("reader(self) |- subscribe Product\n", "utf-8")
    shown = market.do("policy", "bounds", str(other))["rights"]
    assert [row["bounds"] for row in shown] == [""]
    assert not subscribes(market, "reader-member", "")
    text = rules.read_text("utf-8")
    rules.write_text(text.replace(f"reader(self) |- subscribe Product {UPPER}\n", ""), "utf-8")
    assert "reader-member  - subscribe Product" in market("policy", "preview").out
    market.do("policy", "apply")
    assert market("deliver", "add", "x", "--as", "reader-member", "--type", NAME, "--where", PRODUCT).code == 3


def test_all_that_is_wrong_with_bounds_is_told_at_once_with_file_and_line(market: Command) -> None:
    """Unknown attributes, values of other types, bounds that nothing could meet, and lines that are no rules."""
    wrong = market.home / "policy" / "wrong.rules"
    wrong.write_text(
        "x(self) <-\n"
        "supplier(self) |- publish Product(message, colr) upper (messag = 'a', price < 'x')\n"
        "supplier(self) |- publish Produt upper (message any)\n"
        "reader(self) |- subscribe Product(message) upper (price any)\n"
        "reader(self) |- subscribe Product upper (price < 5, price > 50)\n"
        "reader(self) |- subscribe Product max (price < 5)\n"
        "reader(self) |- connect network upper (price < 5)\n"
        "reader(self) |- subscribe Product middle (price < 5)\n"
        "reader(self) |- subscribe Product lower (price < 5, price > 50)\n",
        "utf-8",
    )
    ran = market("policy", "check", "--json")
    assert ran.code == 1
    errors = [item for item in ran.data["findings"] if item["severity"] == "error"]
    assert {item["file"] for item in errors} == {"wrong.rules"}
    assert [(item["line"], item["column"], item["finding"]) for item in errors] == [
        (1, 11, "POLICY_SYNTAX"),
        (2, 44, "POLICY_ATTRIBUTE"),
        (2, 57, "POLICY_ATTRIBUTE"),
        (2, 71, "POLICY_VALUE"),
        (3, 27, "POLICY_TYPE"),
        (4, 44, "POLICY_BOUND"),
        (5, 35, "POLICY_BOUND"),
        (6, 40, "POLICY_BOUND"),
        (7, 17, "POLICY_ACTION"),
        (8, 35, "POLICY_SYNTAX"),
    ]
    assert market.refused("policy", "apply")[0] == 1


def test_the_preview_tells_who_gets_which_bounds_and_what_a_filter_becomes(market: Command) -> None:
    """Before anything is applied, of the rules; afterwards, of a client: the same bounds and the same answers."""
    question = ("--type", NAME, "--subscribe", f"{PRODUCT} and price < 5")
    told: dict[str, Any] = {row["holder"]: row for row in market.do("policy", "bounds", *question)["rights"]}
    assert {who for who, row in told.items() if row["allowed"]} == {
        "reader(self)", "minimum(self)", "exactly(self)", "maximum(self)", "between(self)"
    }  # fmt: skip
    assert told["reader(self)"]["by"].startswith("shop.rules:")
    assert told["colours(self)"]["code"] == "FILTER_OUT_OF_BOUNDS"
    (row,) = market.do("policy", "bounds", "--as", "between-member", *question)["rights"]
    assert row["bounds"] == "lower (message any, price < 100) upper (message = 'new_product')"
    assert row["becomes"] == f"{PRODUCT} and price < 5; shows message, price, color, weather, temperature"
    event = json.dumps({"message": "new_product", "price": 3, "color": "red"})
    (row,) = market.do("policy", "bounds", "--as", "between-member", *question, "--event", event)["rights"]
    assert json.loads(row["becomes"])["color"] == "red"
    assert market.refused("policy", "bounds", "--as", "between-member")[0] == 2
    assert market.refused("policy", "bounds", *question, "--advertise", "price any")[0] == 2


def test_rules_keep_their_bounds_when_they_are_formatted(market: Command, tmp_path: Path) -> None:
    """The one spelling of a rule says the same: formatted twice nothing changes, and the certificate is the same."""
    rules = market.home / "policy" / "shop.rules"
    rules.write_text("a( self )<-b(self)\na(self)|-subscribe Product(message any) min(message,price)"
                     "   strict-lower(price in (1,2),message prefix 'n' ,color)\n", "utf-8")  # fmt: skip
    market.do("policy", "format")
    assert rules.read_text("utf-8").splitlines()[1] == (
        "a(self) |- subscribe Product(message any) min (message, price) "
        "strict-lower (price in ('1', '2'), message prefix 'n', color any)"
    )
    assert market.do("policy", "format")["changed"] == []


@pytest.mark.requirement("22.02")
@pytest.mark.parametrize(
    "text", ["upper ()", "upper (price < 'x')", "wide (price any)", "upper (size any)", "min (price < 5)"]
)
def test_a_bound_that_is_none_is_not_signed(market: Command, text: str) -> None:
    """By hand, too: nothing is issued that says something else than its writer meant."""
    before = kept(market.home)
    right = ("--from", "domain", "--to", "nobody", "--type", TYPE, "--action", "subscribe", "--bound", text)
    ran = market("grant", *right, "--json")
    assert ran.code in (1, 2)
    assert kept(market.home) == before
