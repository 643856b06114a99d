"""Filters meet attribute types: no casts, no rounding, no surprises."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

import maia
from maia.errors import MaiaError
from maia.filters import (
    compile_filter,
    matches,
)
from maia.testing import Command, publish_here, read_here

MATCHING = {
    "null matches nothing": ("price > 24 and name = 'Nokia'", {"name": "Nokia", "price": None}, False),
    "missing matches nothing": ("price > 24", {"name": "Nokia"}, False),
    "null is not different": ("price != 24", {"price": None}, False),
    "null is not any": ("price any", {"price": None}, False),
    "different": ("price != 24", {"price": 25}, True),
    "exact beyond the doubles": ("price > 9007199254740992", {"price": 9007199254740993}, True),
    "largest": ("price = 9223372036854775807", {"price": 9223372036854775807}, True),
    "true is no integer": ("price = 1", {"price": True}, False),
    "one is not true": ("flag = true", {"flag": 1}, False),
    "float is no integer": ("price = 1", {"price": 1.0}, False),
    "integer is no float": ("real = 1.0", {"real": 1}, False),
    "NaN matches nothing": ("real != 1.0", {"real": float("nan")}, False),
    "infinity matches nothing": ("real > 1.0", {"real": float("inf")}, False),
    "negative zero is zero": ("real = 0.0", {"real": -0.0}, True),
    "case matters": ("name = 'nokia'", {"name": "Nokia"}, False),
    "z before umlaut": ("name > 'z'", {"name": "ä"}, True),
    "code points, not UTF-16": ("name > '\uffff'", {"name": "\U00010000"}, True),
    "half a character matches nothing": ("name any", {"name": "\ud800"}, False),
    "a penny above": ("money > 24.00", {"money": Decimal("24.01")}, True),
    "exactly": ("money > 24.00", {"money": Decimal(24)}, False),
    "not a number of money": ("money any", {"money": Decimal("NaN")}, False),
    "a day": ("day >= '2010-02-01'", {"day": date(2010, 2, 1)}, True),
    "a moment is no day": ("day any", {"day": datetime(2010, 2, 1, tzinfo=UTC)}, False),
    "a moment": ("moment < '2026-06-01T00:00:00.000001Z'", {"moment": datetime(2026, 6, 1, tzinfo=UTC)}, True),
    "the same moment elsewhere": (
        "moment = '2026-06-01T00:00:00Z'",
        {"moment": datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))},
        True,
    ),
    "a moment without zone matches nothing": ("moment any", {"moment": datetime(2026, 6, 1)}, False),  # noqa: DTZ001
    "in": ("price in (1, 2, 3)", {"price": 2}, True),
    "not in": ("price in (1, 3)", {"price": 2}, False),
    "suffix": ("name suffix 'ia'", {"name": "Nokia"}, True),
    "contains nothing": ("name contains ''", {"name": ""}, True),
    "two constraints on one attribute": ("price = 1 and price = 2", {"price": 1}, False),
    "no constraints": ("", {}, True),
}


TYPES = {
    "price": "integer",
    "real": "float",
    "money": "decimal",
    "name": "string",
    "flag": "boolean",
    "day": "date",
    "moment": "timestamp",
}


@pytest.mark.requirement("7.08")
@pytest.mark.parametrize("case", MATCHING.values(), ids=MATCHING.keys())
def test_matching_has_two_answers_and_no_casts(case):
    """Null, missing and ill-typed values match no constraint, not even `!=`; everything else is compared exactly."""
    text, event, expected = case
    assert matches(compile_filter(text, TYPES), event) is expected


QUOTE = "exchange/Quote"
QUOTES = (("Nokia", None), ("Nokia", 24), ("Nokia", 25), ("Siemens", 30), (None, 40))
PRICES = {
    "price > 24 AND name = 'Nokia'": [25],
    "price >= 24 and name = 'Nokia'": [24, 25],
    "price < 25": [24],
    "price <= 25": [24, 25],
    "price = 24": [24],
    "price != 24": [25, 30, 40],
    "name != 'Nokia'": [30],
    "name = 'Nokia'": [None, 24, 25],
}
REFUSED = {
    "price > 24 or name = 'Nokia'": "FILTER_SYNTAX",
    "price ~ 24": "FILTER_SYNTAX",
    "price > 'x'": "FILTER_LITERAL_TYPE",
    "price = 24.0": "FILTER_LITERAL_TYPE",
    "volume > 1": "FILTER_UNKNOWN_ATTRIBUTE",
}


@pytest.mark.requirement("7.08")
def test_a_reader_filters_by_a_conjunction_and_a_null_or_missing_value_matches_nothing(maia_command: Command) -> None:
    """{Nokia, null} is no `price > 24 AND name = 'Nokia'`; nor is a value that the publisher's version did not have."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    home.keys("exchange", "ticker", "trader")
    attributes = ("--attribute", "name:string", "--attribute", "price:integer", "--encryption", "plain")
    home.do("type", "define", f"{QUOTE}@1", *attributes)
    for who in ("broker", "ticker", "trader"):
        home.grant("--from", "exchange", "--to", who, "--type", QUOTE, "--action", "publish,subscribe")
    opened = maia.open(home.home).home
    rows = [{"name": name, "price": price} for name, price in QUOTES]
    assert publish_here(opened, f"{QUOTE}@1", rows, as_="ticker", at=datetime.now(UTC)) == len(rows)

    def prices(where: str, version: str = "1") -> list[object]:
        return [row["price"] for row in read_here(opened, f"{QUOTE}@{version}", as_="trader", where=where)]

    assert {text: prices(text) for text in PRICES} == PRICES
    for text, code in REFUSED.items():
        with pytest.raises(MaiaError) as raised:
            prices(text)
        assert raised.value.code == code, text
        assert home.refused("deliver", "add", "s", "--as", "trader", "--type", f"{QUOTE}@1", "--where", text)[1] == code
    home.do("type", "evolve", f"{QUOTE}@1", "--add", "volume:integer", "--number", "2")
    assert prices("", "2") == [price for _, price in QUOTES]
    for text in ("volume != 1", "volume any", "volume >= 0 and name = 'Nokia'"):
        assert prices(text, "2") == [], text
