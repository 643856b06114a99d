"""Events under topics, by Spark: batch and stream, by equality, prefix and pattern; and brokers that lie."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from topic_world import TOPICS, Exchange, copied, make_exchange

import maia
from maia.errors import MaiaError, NotFoundError
from maia.events import Options, sign_event_type
from maia.principals import KeySigner
from maia.testing import publish_here

EVENTS = [(name, number) for number, name in enumerate(TOPICS)]
NOKIA = [("MarketQuotes.Derivative.Nokia", 5), ("MarketQuotes.Stocks.Nokia", 3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an exchange once, with an event under each topic and a trader who may read them all."""
    home = make_exchange(tmp_path_factory.mktemp("topics"))
    exchange = copied(home, tmp_path_factory.mktemp("quotes"))
    exchange.give("ticker", "MarketQuotes", "publish", "--sub-topics")
    exchange.give("trader", "MarketQuotes", "subscribe")
    for name, price in EVENTS:
        assert exchange.publish(name, price) == 1
    return exchange.command.home


@pytest.fixture
def exchange(spark: Any, made: Path, tmp_path: Path) -> Exchange:
    """Give a copy of it."""
    return copied(made, tmp_path)


@pytest.mark.requirement("9.05")
def test_a_star_stands_for_one_component(exchange: Exchange) -> None:
    """`MarketQuotes.*.Nokia` brings two of three Nokias, at every door; a pattern that fits nothing is refused."""
    assert exchange.read("MarketQuotes.*.Nokia") == NOKIA
    ran = exchange.command("subscribe", "--topic", "owner/MarketQuotes.*.Nokia", "--as", "trader", "--json")
    assert sorted((row["topic"], row["price"]) for row in ran.lines) == NOKIA
    assert "2 rows" in ran.err
    for text, code in (("MarketQuotes.*.Ericsson", "TOPIC_NOT_FOUND"), ("MarketQuotes.Sto*", "NAME_FORM")):
        with pytest.raises(MaiaError, match=code):
            exchange.read(text)


@pytest.mark.requirement("9.04")
def test_a_subscription_brings_the_sub_topics(exchange: Exchange) -> None:
    """Of Stocks: itself and Nokia; of everything: all. What is not open stays away, and the audit says so."""
    assert exchange.read("MarketQuotes.Stocks") == [("MarketQuotes.Stocks", 2), ("MarketQuotes.Stocks.Nokia", 3)]
    assert exchange.read("MarketQuotes") == sorted(EVENTS)
    exchange.give("evil", "MarketQuotes.Stocks.Nokia", "subscribe", "--attribute", "price")
    ran = exchange.command("subscribe", "--topic", "MarketQuotes.*.Nokia", "--as", "evil", "--json")
    assert [(row["topic"], row["price"], row["volume"]) for row in ran.lines] == [
        ("MarketQuotes.Stocks.Nokia", 3, None)
    ]
    assert "1 event refused: NOT_PERMITTED" in ran.err
    assert exchange.refused("evil") == {"NOT_PERMITTED": 1}
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        exchange.read("MarketQuotes.Stocks", client="evil")


@pytest.mark.requirement("9.06")
def test_a_subscription_to_topics_is_a_filter_on_the_attribute_topic(exchange: Exchange) -> None:
    """By equality, by prefix and by pattern the content engine gives what the topics give; batch and stream."""
    everything = exchange.read("MarketQuotes")
    for topic in ("MarketQuotes", "MarketQuotes.Stocks"):
        [own] = [row for row in everything if row[0] == topic]
        assert exchange.read("MarketQuotes", where=f"topic = '{topic}'") == [own]
        below = exchange.read("MarketQuotes", where=f"topic prefix '{topic}.'")
        assert exchange.read(topic) == sorted([own, *below])
    frame = maia.open(exchange.command.home).client("trader").read("owner/MarketQuotes.Stocks.Nokia@0")
    assert [(row["topic"], row["price"]) for row in frame.collect()] == [("MarketQuotes.Stocks.Nokia", 3)]
    exchange.give("evil", "MarketQuotes", "subscribe", "--attribute", "price")
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        exchange.read("MarketQuotes", client="evil", where="volume = 1")


@pytest.mark.requirement("24.11")
def test_filters_and_topics_of_a_stock_ticker(exchange: Exchange) -> None:
    """A penny above 24.00 matches, 24.00 does not, wherever Nokia is quoted; who is no exchange is denied."""
    run = exchange.command
    run.do("topic", "define", "owner/Quotes", "--attribute", "name:string", "--attribute", "price:decimal")
    for name in ("Stocks", "Stocks.Nokia", "Derivative", "Derivative.Nokia", "Nokia"):
        run.do("topic", "define", f"owner/Quotes.{name}")
    for who in ("broker", "ticker"):
        exchange.give(who, "Quotes", "publish", "--sub-topics")
    exchange.give("trader", "Quotes", "subscribe")
    home = maia.open(run.home).home
    for name in ("Stocks.Nokia", "Derivative.Nokia", "Nokia"):
        rows = [{"name": "Nokia", "price": Decimal(price)} for price in ("24.00", "24.01")]
        assert publish_here(home, f"Quotes.{name}", rows, as_="ticker", at=exchange.now()) == 2
    frame = maia.open(run.home).client("trader").read(topic="Quotes.*.Nokia", where="name = 'Nokia' and price > 24.00")
    found = sorted((row["topic"], row["price"]) for row in frame.collect())
    assert found == [(f"Quotes.{name}.Nokia", Decimal("24.01")) for name in ("Derivative", "Stocks")]
    assert exchange.no_publish("Quotes.Stocks.Nokia", client="evil") == "NO_EVIDENCE"


def follow(frame: Any, checkpoint: Path) -> list[tuple[str, int]]:
    """Follow a stream from a checkpoint to the end of the log."""
    found: list[tuple[str, int]] = []
    writer = frame.writeStream.foreachBatch(
        lambda rows, _: found.extend((row["topic"], row["price"]) for row in rows.collect())
    )
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    return sorted(found)


@pytest.mark.requirement("9.04")
@pytest.mark.requirement("9.05")
def test_a_stream_takes_up_topics_that_are_defined_later(exchange: Exchange, spark: Any, tmp_path: Path) -> None:
    """From one checkpoint each event once: of new topics too, as long as the right is there, and no further."""
    options = {"home": str(exchange.command.home), "topic": "MarketQuotes.*.Nokia", "as": "evil"}
    everything = exchange.give("evil", "MarketQuotes", "subscribe")

    def run() -> list[tuple[str, int]]:
        return follow(spark.readStream.format("maia").options(**options).load(), tmp_path / "checkpoint")

    assert run() == NOKIA
    exchange.define("MarketQuotes.Bonds")
    exchange.define("MarketQuotes.Bonds.Nokia")
    exchange.publish("MarketQuotes.Bonds.Nokia", 7)
    exchange.publish("MarketQuotes.Bonds", 8)
    assert run() == [("MarketQuotes.Bonds.Nokia", 7)]
    exchange.give("evil", "MarketQuotes.Stocks", "subscribe")
    exchange.command.do("revoke", everything, "--yes")
    exchange.publish("MarketQuotes.Bonds.Nokia", 9)
    exchange.publish("MarketQuotes.Stocks.Nokia", 10)
    assert run() == [("MarketQuotes.Stocks.Nokia", 10)]
    assert exchange.refused("evil") == {"REVOKED": 1}


@pytest.mark.requirement("9.04")
def test_spark_publishes_under_a_topic(exchange: Exchange, spark: Any) -> None:
    """Frames, tables and files; a row that says another topic is refused, and so is who lacks a super-topic."""
    client = maia.open(exchange.command.home).client("ticker")
    rows = pa.table({"price": [20, 21], "topic": ["MarketQuotes.Nokia", "MarketQuotes.Stocks"]})
    done: Any = client.publish(rows, topic="owner/MarketQuotes.Nokia")
    assert (done.events, done.refused) == (1, {("OTHER_TOPIC", "topic"): 1})
    options = {"home": str(exchange.command.home), "topic": "MarketQuotes.Nokia", "as": "ticker"}
    frame = spark.createDataFrame([(22, 1)], "price long, volume long")
    frame.write.format("maia").options(**options).mode("append").save()
    assert exchange.read("MarketQuotes.Nokia") == [("MarketQuotes.Nokia", price) for price in (1, 20, 22)]
    exchange.give("evil", "MarketQuotes.Nokia", "publish")
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        maia.open(exchange.command.home).client("evil").publish(rows, topic="MarketQuotes.Nokia")
    with pytest.raises(NotFoundError, match="TOPIC_NOT_FOUND"):
        client.publish(rows, topic="MarketQuotes.Ericsson")


@pytest.mark.requirement("9.04")
@pytest.mark.threat("T48")
def test_a_broker_that_lacks_a_super_topic_is_believed_by_nobody(exchange: Exchange) -> None:
    """It publishes all the same, on the evidence of its right on the topic alone: its readers refuse what it sealed."""
    only = exchange.give("broker", "MarketQuotes.Stocks", "publish")
    domain = maia.open(exchange.command.home)
    raw = next(item.raw for item in domain.home.certificates.pool() if item.certificate_id.hex() == only)

    def lean(plan: Any) -> Any:
        return replace(plan, sealing=replace(plan.sealing, evidence=domain.log.put_evidence((raw,))))

    assert exchange.publish("MarketQuotes.Stocks", 30, honest=False, change=lean) == 1
    assert exchange.read("MarketQuotes.Stocks") == [("MarketQuotes.Stocks", 2), ("MarketQuotes.Stocks.Nokia", 3)]
    assert exchange.refused() == {"ORIGIN_NOT_PROVEN": 1}


@pytest.mark.requirement("9.01")
@pytest.mark.threat("T48")
def test_a_broker_that_writes_another_topic_into_an_event_is_refused(exchange: Exchange) -> None:
    """Under Stocks it says Derivative, where it may not publish: no subscriber takes it for one of either."""

    def forge(plan: Any) -> Any:
        known = plan.event_type()
        unmarked = sign_event_type(replace(known, options=Options()), KeySigner(bytes([7]) * 32))
        free = tuple(
            replace(item, cells=replace(item.cells, constraints=(("0", _demand(item)),))) for item in plan.clauses
        )
        return replace(plan, definition=unmarked.raw, clauses=free)

    assert exchange.publish("MarketQuotes.Stocks", 40, honest=False, change=forge) == 1
    for topic in ("MarketQuotes.Stocks", "MarketQuotes.Derivative"):
        assert ("MarketQuotes.Derivative", 40) not in exchange.read(topic)
        assert all(price != 40 for _, price in exchange.read(topic))
    assert exchange.refused()["ORIGIN_BROKE_RIGHT"] >= 1


def _demand(clause: Any) -> Any:
    """Turn the demand that the attribute `topic` holds a name into one for another name."""
    [(_, tag)] = clause.constraints
    return replace(tag, value=b"MarketQuotes.Derivative")
