"""Bounds over decimals of a size of their own: held to like every other, and asked about with events of any form."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop_world import copy

from maia.testing import Command

TYPE = "domain/shop.Offer"
RULES = {
    "strict": "publish Offer strict-lower (msg = 'a', price < 100)",
    "any": "publish Offer upper (price any)",
    "five": "publish Offer upper (price = 5.00)",
    "below": "publish Offer lower (price < 100.00)",
    "reader": "subscribe Offer upper (price < 100)",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A home with a type of every kind of value, and a policy in force."""
    home = tmp_path_factory.mktemp("shops") / "shop"
    found = Command(home)
    found.do("domain", "init", str(home), "--key")
    fields = ("msg:string", "price:decimal(10,2)", "whole:decimal", "weight:float", "count:integer", "seen:timestamp",
              "day:date", "sold:boolean", "code:binary", "tags:array<string>")  # fmt: skip
    found.do("type", "define", f"{TYPE}@1", *(flag for text in fields for flag in ("--attribute", text)))
    lines = [line for role, right in RULES.items()
             for line in (f"{role}(self) <- {role}-credential(self)*", f"{role}(self) |- {right}")]  # fmt: skip
    (home / "policy" / "shop.rules").write_text("\n".join(lines) + "\n", "utf-8")
    found.do("policy", "apply")
    return found


def asks(shop: Command, event: str, *more: str) -> dict[str, str]:
    """Ask what each role's rule makes of an event: allowed is empty, else the code."""
    ran = shop("policy", "bounds", "--type", "shop.Offer", "--event", event, *more, "--json")
    assert ran.code in (0, 3), ran.out + ran.err
    return {row["holder"].partition("(")[0]: row["code"] for row in ran.data["rights"]}


OUT = "ROW_OUT_OF_BOUNDS"
EVENTS = {
    '{"msg": "a", "price": 5.00}': {"strict": "", "any": "", "five": "", "below": ""},
    '{"msg": "a", "price": "5.00"}': {"strict": "", "any": "", "five": "", "below": ""},
    '{"msg": "a", "price": 5}': {"strict": "", "any": "", "five": "", "below": ""},
    '{"msg": "a", "price": 5.5}': {"strict": "", "any": "", "five": OUT, "below": ""},
    '{"msg": "a", "price": "99.990"}': {"strict": "", "any": "", "five": OUT, "below": ""},
    '{"msg": "a", "price": 100.00}': {"strict": OUT, "any": "", "five": OUT, "below": OUT},
    '{"msg": "a", "price": 500.00}': {"strict": OUT, "any": "", "five": OUT, "below": OUT},
    '{"msg": "b", "price": 5.00}': {"strict": OUT, "any": "", "five": "", "below": ""},
    '{"msg": "a", "price": 5.00, "count": 1}': {"strict": OUT, "any": "", "five": "", "below": ""},
    '{"msg": "a"}': {"strict": "", "any": OUT, "five": OUT, "below": OUT},
}


@pytest.mark.requirement("10.09")
@pytest.mark.parametrize("event", EVENTS)
def test_bounds_hold_over_decimals_of_a_size_of_their_own(template: Command, event: str) -> None:
    """What lies within is allowed, however the number is written, and what does not is refused."""
    assert asks(template, event) == EVENTS[event]


def test_a_subscription_is_bounded_by_a_decimal_and_sees_the_event(template: Command) -> None:
    """A filter below the limit is allowed and shows the event; one above is refused."""
    assert asks(template, '{"msg": "a", "price": 5.00}', "--subscribe", "price < 50.0") == {"reader": ""}
    assert asks(template, '{"msg": "a", "price": 5.00}', "--subscribe", "price < 500.0") == {
        "reader": "FILTER_OUT_OF_BOUNDS"
    }


def test_the_right_of_a_client_over_a_decimal_is_judged_alike(template: Command, tmp_path: Path) -> None:
    """A certificate with such a bound allows and refuses what the rule does."""
    shop = copy(template, tmp_path / "shop")
    shop.keys("supplier")
    shop.grant("--from", "domain", "--to", "supplier", "--type", TYPE, "--action", "publish",
               "--bound", "strict-lower (msg = 'a', price < 100)")  # fmt: skip
    assert asks(shop, '{"msg": "a", "price": 5.00}', "--as", "supplier") == {"supplier": ""}
    assert asks(shop, '{"msg": "a", "price": 500.00}', "--as", "supplier") == {"supplier": OUT}


ILL = {
    '{"msg": 5}': "the value of `msg` is no string",
    '{"price": 5.555}': "the value of `price` is no decimal(10,2)",
    '{"price": "5,00"}': "the value of `price` is no decimal(10,2)",
    '{"price": 123456789.0}': "the value of `price` is no decimal(10,2)",
    '{"price": true}': "the value of `price` is no decimal(10,2)",
    '{"price": NaN}': "the value of `price` is no decimal(10,2)",
    '{"whole": "x"}': "the value of `whole` is no decimal",
    '{"weight": "1"}': "the value of `weight` is no float",
    '{"weight": 9007199254740993}': "the value of `weight` is no float",
    '{"count": 1.0}': "the value of `count` is no integer",
    '{"count": 9223372036854775808}': "the value of `count` is no integer",
    '{"seen": "2026-06-01T08:00:00"}': "the value of `seen` is no timestamp",
    '{"day": "2026-02-30"}': "the value of `day` is no date",
    '{"sold": 1}': "the value of `sold` is no boolean",
    '{"code": "?"}': "the value of `code` is no binary",
    '{"tags": "a"}': "the value of `tags` is no array<string>",
    '{"nope": 1}': "version 1 has no attribute `nope`",
    '{"prise": 1}': "version 1 has no attribute `prise`; did you mean `price`?",
    '{"count": ' + "1" * 5000 + "}": "the event is no JSON",
    "[" * 100000: "the event is no JSON",
    "[]": "an event must be an object",
}


@pytest.mark.parametrize("event", ILL, ids=range(len(ILL)))
@pytest.mark.parametrize("more", [(), ("--subscribe", "price any")], ids=["publish", "subscribe"])
def test_an_event_that_is_none_of_the_type_is_a_wrong_question(
    template: Command, event: str, more: tuple[str, ...]
) -> None:
    """The attribute is named with its type, and nothing is called allowed or refused."""
    ran = template("policy", "bounds", "--type", "shop.Offer", "--event", event, *more, "--json")
    assert ran.code == 2, ran.out + ran.err
    assert ran.data["message"].startswith(ILL[event]), ran.data


def test_every_kind_of_value_can_be_asked_about(template: Command) -> None:
    """Whole numbers are floats as well; nulls are nothing."""
    event = (
        '{"price": 5, "whole": "1.5", "weight": 2, "count": 3, "seen": "2026-06-01T08:00:00Z", "day": "2026-06-01", '
        '"sold": true, "code": "bWFpYQ==", "tags": ["x"], "msg": null}'
    )
    assert asks(template, event)["below"] == ""
