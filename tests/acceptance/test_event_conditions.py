"""Conditions on the event itself: each row is asked about where it is published, and where it is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.testing import Command

TYPE = "stock.Quote"
QUOTES = pa.table({"symbol": ["A", "B", "C"], "price": pa.array([10, 20, 30], pa.int64())})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home: the firm publishes what costs less than 25, the desk reads all but B, everybody else is free."""
    made = Command(tmp_path_factory.mktemp("conditions") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("exchange", "firm", "free", "desk", "all")
    attributes = ("--attribute", "symbol:string:1", "--attribute", "price:integer:2")
    made.do("type", "define", f"exchange/{TYPE}@1", "--encryption", "plain", *attributes)
    for who, action, *more in (
        ("broker", "publish"), ("broker", "subscribe"), ("free", "publish"), ("all", "subscribe"),
        ("firm", "publish", "--condition", "event['2'] < 25"),
        ("desk", "subscribe", "--condition", "event['1'] != 'B'"),
    ):  # fmt: skip
        made.grant("--from", "exchange", "--to", who, "--type", f"exchange/{TYPE}", "--action", action, *more)
    return made


def symbols(home: Command, who: str) -> list[str]:
    """Read the symbols that a client is shown."""
    return sorted(row["symbol"] for row in maia.open(home.home).client(who).read(TYPE).collect())


@pytest.mark.requirement("14.02")
@pytest.mark.requirement("14.06")
def test_each_row_is_asked_about(spark: Any, home: Command) -> None:
    """What the firm may not say does not leave, and is said; what the desk may not see is not shown to it."""
    domain = maia.open(home.home)
    done = domain.client("firm").publish(QUOTES, TYPE)
    assert (done.events, done.refused) == (2, {("CONDITION_FALSE", ""): 1})
    assert (symbols(home, "all"), symbols(home, "desk")) == (["A", "B"], ["A"])
    told = [(row["reason"], row["events"]) for row in home.do("audit", "--as", "firm", "--kind", "refuse")["rows"]]
    assert told == [("CONDITION_FALSE", 1)]
    assert domain.client("free").publish(QUOTES, TYPE).events == 3
    assert symbols(home, "desk") == ["A", "A", "C"]
