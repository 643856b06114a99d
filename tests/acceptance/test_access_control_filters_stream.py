"""Access-control filters and screening on the way of events: published, delivered and read through Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shop_world import CHEAP, NAME, PRODUCT, TYPE, admit, copy, shop

import maia
from maia.errors import MaiaError
from maia.testing import Command, publish_here

LOWER = "(message = 'new_product', price < 100)"
COLUMNS = {"message": pa.string(), "price": pa.int64(), "color": pa.string(), "weather": pa.string(),
           "temperature": pa.int64()}  # fmt: skip
OFFER = {"message": "new_product", "price": 23, "color": "red"}
PUBLISHERS = {
    "upper": "upper (message = 'new_product')",
    "strict": "strict-upper (message = 'new_product')",
    "lower": f"lower {LOWER}",
    "strictly": f"strict-lower {LOWER}",
}
RIGHTS = {"narrow": ("message any", "price any"), "wide": ("message any", "price any", "color")}


def table(*rows: Mapping[str, object]) -> pa.Table:
    """Give rows with every column; what a row lacks is null."""
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in COLUMNS.items()})


def build(home: Path, closed: str) -> Command:
    """Build a shop of publishers and readers, each with a right given by hand."""
    found = shop(home, {"shopper": "subscribe Product(message any, price any) exact (message, price)"}, closed=closed)
    found.keys("plain", *PUBLISHERS, *RIGHTS)
    give = ("--from", "domain", "--type", TYPE, "--action")
    found.grant(*give, "publish", "--to", "plain")
    for who, bound in PUBLISHERS.items():
        found.grant(*give, "publish", "--to", who, "--bound", bound)
    for who, attributes in RIGHTS.items():
        found.grant(*give, "subscribe", "--to", who, *(flag for text in attributes for flag in ("--attribute", text)))
    admit(found, "ann", ["shopper"])
    return found


@pytest.fixture(scope="module")
def omitting(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Build a shop that leaves no trace of what is closed."""
    return build(tmp_path_factory.mktemp("streams") / "omit", "omit")


@pytest.fixture
def market(omitting: Command, tmp_path: Path) -> Command:
    """Give a copy of that shop."""
    return copy(omitting, tmp_path / "shop")


PUBLISHED = {
    "upper": ("upper", {"message": "new_product", "price": 10}, True),
    "upper, foreign": ("upper", {"weather": "sunny", "temperature": 27}, False),
    "strict upper, more": ("strict", {"message": "new_product", "price": 10}, False),
    "strict upper": ("strict", {"message": "new_product"}, True),
    "lower, others are free": ("lower", {"message": "new_product", "price": 10, "color": "blue"}, True),
    "lower, foreign": ("lower", {"weather": "sunny", "temperature": 27}, False),
    "lower, too dear": ("lower", {"message": "new_product", "price": 523}, False),
    "strict lower, more": ("strictly", {"message": "new_product", "price": 10, "color": "blue"}, False),
    "strict lower": ("strictly", {"message": "new_product", "price": 10}, True),
    "strict lower, fewer": ("strictly", {"message": "new_product"}, True),
}


@pytest.mark.requirement("10.08")
@pytest.mark.requirement("10.09")
@pytest.mark.requirement("10.10")
def test_publications_are_held_to_the_bounds_of_the_right(spark: Any, market: Command) -> None:
    """Each example of the paper: what a bound allows is in the log, what it does not is refused with a code."""
    domain = maia.open(market.home)
    passed = []
    for who in PUBLISHERS:
        mine = [(row, allowed) for owner, row, allowed in PUBLISHED.values() if owner == who]
        done = domain.client(who).publish(table(*(row for row, _ in mine)), NAME)
        wrong = sum(not allowed for _, allowed in mine)
        told = {code: count for (code, _), count in done.refused.items()}
        assert (who, done.events, told) == (who, len(mine) - wrong, {"ROW_OUT_OF_BOUNDS": wrong})
        passed += [tuple(row.get(name) for name in COLUMNS) for row, allowed in mine if allowed]
    market.keys("auditor")
    market.grant("--from", "domain", "--to", "auditor", "--type", TYPE, "--action", "subscribe")
    assert sorted(map(str, map(tuple, domain.client("auditor").read(NAME).collect()))) == sorted(map(str, passed))


@pytest.mark.requirement("10.10")
@pytest.mark.requirement("22.03")
def test_a_publisher_is_held_to_what_it_announced(spark: Any, market: Command, tmp_path: Path) -> None:
    """It announces prices below 53: a dearer offer and one with a colour are refused, through each door."""
    domain = maia.open(market.home)
    rows = table({"message": "new_product", "price": 10}, {"message": "new_product", "price": 60}, OFFER)
    announced = f"{PRODUCT} and price < 53"
    done = domain.client("lower").publish(rows, NAME, advertise=announced)
    assert (done.events, {code: count for (code, _), count in done.refused.items()}) == (1, {"ROW_OUT_OF_BOUNDS": 2})
    file = tmp_path / "rows.jsonl"
    file.write_text('{"message": "new_product", "price": 11}\n{"message": "new_product", "price": 61}\n', "utf-8")
    ran = market.do("publish", str(file), "--type", NAME, "--as", "lower", "--advertise", announced)
    assert ran["events"] == 1
    with pytest.raises(MaiaError, match="FILTER_OUT_OF_BOUNDS"):
        domain.client("lower").publish(rows, NAME, advertise=f"{PRODUCT} and color any")
    options = {"home": str(market.home), "type": NAME, "as": "lower", "advertise": "weather any"}
    with pytest.raises(Exception, match="FILTER_OUT_OF_BOUNDS"):
        spark.createDataFrame(rows).write.format("maia").mode("append").options(**options).save()


@pytest.mark.requirement("11.01")
@pytest.mark.requirement("11.02")
@pytest.mark.requirement("11.03")
@pytest.mark.requirement("11.05")
@pytest.mark.requirement("22.05")
@pytest.mark.parametrize("closed", ["omit", "null"])
def test_what_is_delivered_is_the_largest_screening(spark: Any, market: Command, tmp_path: Path, closed: str) -> None:
    """One event, two views by rights; without a trace of the colour, or with a null, as the type says."""
    found = market if closed == "omit" else build(tmp_path / "nulls", closed)
    domain = maia.open(found.home)
    lacking = {"message": "new_product", "color": "red"}
    domain.client("plain").publish(table(OFFER, {**OFFER, "price": 523}, lacking), NAME)
    narrow = {"message": "new_product", "price": 23}
    rest = {} if closed == "omit" else dict.fromkeys(("color", "weather", "temperature"))
    wider = {"color": "red"} | ({} if closed == "omit" else dict.fromkeys(("weather", "temperature")))
    for who, more in (("narrow", rest), ("wide", wider)):
        frame = domain.client(who).read(NAME, where=CHEAP)
        assert [row.asDict() for row in frame.collect()] == [narrow | more]
        assert set(frame.columns) == set(narrow | more)
    shown = found("subscribe", "--type", NAME, "--as", "ann", "--where", CHEAP, "--format", "json").lines
    assert shown == [narrow | rest]
    # An event that the rights do not cover, since it has no price, shows nothing at all (C33).
    assert domain.client("narrow").read(NAME, where=PRODUCT).count() == 2
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        domain.client("narrow").read(NAME, where="color = 'red'")
    for where in ("", PRODUCT):
        with pytest.raises(MaiaError, match="FILTER_OUT_OF_BOUNDS"):
            domain.client("ann").read(NAME, where=where)


@pytest.mark.requirement("22.05")
def test_a_logger_of_everything_is_refused_screened_and_pointed_out(spark: Any, market: Command) -> None:
    """The empty filter is refused; what it may ask for is screened; taking in too much is an alarm."""
    found = market
    settings = found.home / "maia.toml"
    settings.write_text(f"alarm = 3\n{settings.read_text('utf-8')}", "utf-8")
    told = found.refused("deliver", "add", "log", "--as", "ann", "--type", NAME)
    assert told == (3, "FILTER_OUT_OF_BOUNDS")
    found.do("deliver", "add", "log", "--as", "ann", "--type", NAME, "--where", "message any and price any")
    maia.open(found.home).client("plain").publish(table(*({**OFFER, "price": number} for number in range(5))), NAME)
    found.do("deliver", "--once")
    shown = found("deliver", "show", "log", "--as", "ann", "--json").lines
    assert len(shown) == 5
    assert all("color" not in row for row in shown)
    alarms = [(row["subject"], row["reason"]) for row in found.do("audit", "--kind", "alarm")["rows"]]
    assert alarms == [("log", "VOLUME_HIGH")]


@pytest.mark.requirement("22.02")
def test_a_bound_that_is_withdrawn_ends_the_stream_and_a_narrower_one_binds_it(
    spark: Any, market: Command, tmp_path: Path
) -> None:
    """A stream within its bound goes on; when only a narrower right is left its filter is out of bounds, mid-stream."""
    found = market
    domain = maia.open(found.home)
    found.keys("live")
    give = ("--from", "domain", "--to", "live", "--type", TYPE, "--action", "subscribe")
    wide = found.grant(*give, "--bound", "upper (message any)", "--test", "crl:domain")
    found.grant(*give, "--bound", "upper (message = 'sale')")
    found.do("statement", "crl", "--from", "domain")
    got: list[Any] = []
    query = (
        domain.client("live").subscribe(NAME, where="message any").writeStream
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda frame, _: got.extend(row["price"] for row in frame.collect()))
        .start()
    )  # fmt: skip
    try:
        domain.client("plain").publish(table({**OFFER, "price": 1}), NAME)
        query.processAllAvailable()
        assert got == [1]
        found.do("revoke", wide[:16], "--yes")
        domain.client("plain").publish(table({**OFFER, "price": 2}), NAME)
        query.processAllAvailable()
        assert got == [1]
    finally:
        query.stop()
    refused = [row["reason"] for row in found.do("audit", "--kind", "refuse")["rows"]]
    assert "FILTER_OUT_OF_BOUNDS" in refused


@pytest.mark.requirement("10.08")
def test_a_broker_is_held_to_the_bounds_of_its_own_right(spark: Any, tmp_path: Path) -> None:
    """It refuses what is beyond them; one that publishes it all the same is refused by its readers."""
    home = tmp_path / "shop"
    found = Command(home)
    found.do("domain", "init", str(home), "--key")
    found.do("type", "define", f"{TYPE}@1", "--attribute", "message:string:1", "--attribute", "price:integer:2")
    found.keys("plain", "auditor")
    give = ("--from", "domain", "--type", TYPE, "--action")
    found.grant(*give, "publish", "--to", "broker", "--bound", "upper (message = 'new_product')")
    found.grant(*give, "subscribe", "--to", "broker")
    found.grant(*give, "publish", "--to", "plain")
    found.grant(*give, "subscribe", "--to", "auditor")
    domain = maia.open(home)
    done = domain.client("plain").publish(table(OFFER, {"message": "spam"}).select(["message", "price"]), NAME)
    assert (done.events, {code for code, _ in done.refused}) == (1, {"BEYOND_BROKER"})
    now = datetime.now(UTC) + timedelta(seconds=1)
    assert publish_here(domain.home, NAME, [{"message": "spam"}], as_="plain", at=now, honest=False) == 1
    assert [row["price"] for row in domain.client("auditor").read(NAME).collect()] == [23]
    refused = [row["reason"] for row in found.do("audit")["rows"]]
    assert "ORIGIN_BROKE_RIGHT" in refused
