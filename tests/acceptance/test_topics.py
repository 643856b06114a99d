"""Topics: who may define one, publish under it and subscribe to it; refused at the command, and by every broker."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from topic_world import DENIED, NOT_FOUND, NOT_PROVEN, Exchange, copied, make_exchange

import maia
from maia.errors import ChainError, MaiaError, UsageError
from maia.events import sign_event_type
from maia.principals import KeySigner
from maia.testing import Command, publish_here


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an exchange once."""
    return make_exchange(tmp_path_factory.mktemp("topics"))


@pytest.fixture
def exchange(made: Path, tmp_path: Path) -> Exchange:
    """Give an exchange in which nobody but the broker has a right."""
    return copied(made, tmp_path)


@pytest.mark.requirement("9.01")
def test_a_topic_without_a_chain_from_the_key_in_its_name_is_unusable(exchange: Exchange) -> None:
    """No right opens nothing, and so does whatever somebody else gives; the owner's chain does."""
    assert exchange.no_publish("owner/MarketQuotes") == "NO_EVIDENCE"
    assert exchange.no_read("owner/MarketQuotes") == "NO_EVIDENCE"
    args = ("--topic", "owner/MarketQuotes", "--action", "publish", "--action", "subscribe")
    refusal = exchange.command.refused("topic", "grant", "--from", "evil", "--to", "ticker", *args)
    assert refusal == (DENIED, "ISSUER_LACKS_RIGHT")
    for who in ("ticker", "trader"):
        exchange.command.grant("--from", "evil", "--to", who, "--type", "owner/MarketQuotes", "--blanket")
    assert exchange.no_publish("owner/MarketQuotes") == "BROKEN_CHAIN"
    assert exchange.no_read("owner/MarketQuotes") == "BROKEN_CHAIN"
    exchange.command.do("topic", "grant", "--from", "owner", "--to", "evil", *args, "--delegate")
    assert exchange.plans("owner/MarketQuotes")
    assert exchange.plans("owner/MarketQuotes", read="trader")


@pytest.mark.requirement("9.02")
@pytest.mark.requirement("22.18")
def test_a_topic_that_its_owner_did_not_sign_is_refused_by_every_broker(exchange: Exchange) -> None:
    """A malicious broker stores a topic under the owner's name: no broker publishes under it, reads it or shows it."""
    home, domain = exchange.command.home, maia.open(exchange.command.home)
    genuine = domain.event_type("MarketQuotes.Stocks")
    forged = replace(genuine, name=replace(genuine.name, name="MarketQuotes.Bonds"))
    evil = KeySigner(bytes([7]) * 32)
    for signed in (
        sign_event_type(forged, evil),
        replace(sign_event_type(forged, evil), signer=genuine.name.owner),  # type: ignore[arg-type]
    ):
        raw = signed.raw if signed.signer == evil.public_key else _claiming(signed)
        file = exchange.command.home / "bonds.type"
        file.write_bytes(raw)
        assert exchange.command("type", "add", str(file)).code == NOT_PROVEN
        folder = home / "types" / forged.type_id.hex()
        folder.mkdir(exist_ok=True)
        (folder / f"{'0' * 63}{len(raw) % 10}.type").write_bytes(raw)
    for who in ("ticker", "trader"):
        exchange.give(who, "MarketQuotes", "publish", "--sub-topics")
        exchange.give(who, "MarketQuotes", "subscribe")
    assert exchange.no_publish("owner/MarketQuotes.Bonds") == "TOPIC_NOT_FOUND"
    assert exchange.no_read("owner/MarketQuotes.Bonds") == "TOPIC_NOT_FOUND"
    assert exchange.no_read("owner/MarketQuotes.Bonds.*") == "TOPIC_NOT_FOUND"
    with pytest.raises(MaiaError, match="the definition does not count here"):
        exchange.plans("owner/MarketQuotes.Bonds")
    shown = {item["name"]: item["verified"] for item in exchange.command.do("topic", "show")["topics"]}
    assert shown["MarketQuotes.Stocks"]
    assert not shown["MarketQuotes.Bonds"]
    assert exchange.plans("owner/MarketQuotes.Stocks")


@pytest.mark.requirement("9.02")
def test_what_a_malicious_broker_stores_is_refused_by_the_brokers_of_others(exchange: Exchange, tmp_path: Path) -> None:
    """Its registry offers a topic nobody signed and one a client of its own signed: no other broker takes up either."""
    evil, topic = exchange.command, "MarketQuotes.Bonds"
    for who in ("ticker", "trader"):
        exchange.give(who, "MarketQuotes", "publish", "--sub-topics")
        exchange.give(who, "MarketQuotes", "subscribe")
    genuine = maia.open(evil.home).event_type("MarketQuotes.Stocks")
    forged = replace(genuine, name=replace(genuine.name, name=topic))
    signed = sign_event_type(forged, KeySigner(bytes([7]) * 32))
    unsigned = _claiming(replace(signed, signer=genuine.name.owner, signature=bytes(64)))  # type: ignore[arg-type]
    folder = evil.home / "types" / forged.type_id.hex()
    folder.mkdir()
    others = []
    for number, raw in enumerate((unsigned, signed.raw)):
        other = Command(tmp_path / f"other-{number}")
        other.do("domain", "init", str(other.home))
        evil.do("key", "import", f"broker-{number}", str(other.home / "keys" / "broker.pub"))
        exchange.give(f"broker-{number}", "MarketQuotes", "publish", "--sub-topics")
        exchange.give(f"broker-{number}", "MarketQuotes", "subscribe")
        for path in (*(evil.home / "keys").glob("t*.*"), evil.home / "keys" / "owner.pub"):
            shutil.copy(path, other.home / "keys")
        shutil.copytree(evil.home / "certificates", other.home / "certificates", dirs_exist_ok=True)
        shutil.copy(evil.home / "statements", other.home / "statements")
        for name in ("MarketQuotes", "MarketQuotes.Stocks"):
            assert other.do("type", "fetch", f"owner/{name}@0", "--from", str(evil.home / "types"))["verified"]
        for path in folder.iterdir():
            path.unlink()
        (folder / f"{'0' * 64}.type").write_bytes(raw)
        fetch = ("type", "fetch", f"owner/{topic}@0", "--from", str(evil.home / "types"))
        assert other.refused(*fetch)[0] in (NOT_PROVEN, NOT_FOUND)
        shutil.copytree(folder, other.home / "types" / folder.name)  # and if it got there all the same
        others.append(Exchange(other))
    for other in others:
        assert other.plans("owner/MarketQuotes.Stocks", read="trader"), "what the owner signed is served"
        assert other.no_publish(f"owner/{topic}") == "TOPIC_NOT_FOUND"
        assert other.no_read(f"owner/{topic}") == "TOPIC_NOT_FOUND"
        shown = {item["name"]: item["verified"] for item in other.command.do("topic", "show")["topics"]}
        assert (shown["MarketQuotes.Stocks"], shown[topic]) == (True, False)


def _claiming(signed: Any) -> bytes:
    """Write a definition that names its owner as the signer, with a signature by somebody else."""
    from maia.encoding import encode

    return encode(signed.to_sexp())


@pytest.mark.requirement("9.02")
def test_whoever_takes_the_name_of_a_topic_gets_one_of_its_own(exchange: Exchange) -> None:
    """Another key may define `MarketQuotes` too: it is another topic, and no right on one counts on the other."""
    exchange.define("MarketQuotes", owner="evil")
    for who in ("ticker", "trader", "broker"):
        exchange.give(who, "MarketQuotes", "publish", "--sub-topics", giver="evil", owner="evil")
        exchange.give(who, "MarketQuotes", "subscribe", giver="evil", owner="evil")
    assert exchange.plans("evil/MarketQuotes")
    assert exchange.plans("evil/MarketQuotes", read="trader")
    assert exchange.no_publish("owner/MarketQuotes") == "BROKEN_CHAIN"
    assert exchange.no_read("owner/MarketQuotes.*.Nokia") == "BROKEN_CHAIN"
    code, reason = exchange.command.refused("subscribe", "--topic", "MarketQuotes", "--as", "trader")
    assert (code, reason) == (2, "TYPE_AMBIGUOUS")


@pytest.mark.requirement("9.03")
def test_creating_a_topic_needs_the_coordinating_principals_grant(maia_command: Command) -> None:
    """On a network, a topic without an install chain is rejected by its brokers; with one it is used."""
    run, network = maia_command, "coordinator/Market"
    run.keys("coordinator", "owner", "ticker")
    run.do("domain", "init", str(run.home), "--network", network)
    for who in ("broker", "ticker"):
        run.grant("--from", "coordinator", "--to", who, "--network", network, "--action", "connect")
    on = ("--attribute", "price:integer", "--network", network)
    assert run.refused("topic", "define", "owner/Stocks", *on) == (NOT_PROVEN, "NOT_INSTALLED")
    run.do("topic", "define", "owner/Bonds", *on[:2])  # in the registry, and installed on no network
    exchange = Exchange(run)
    for who in ("broker", "ticker"):
        exchange.give(who, "Bonds", "publish")
    assert exchange.no_publish("owner/Bonds") == "TOPIC_NOT_FOUND"
    assert run.do("topic", "show", "owner/Bonds")["verified"] is False
    run.grant("--from", "coordinator", "--to", "owner", "--network", network, "--action", "install")
    run.do("topic", "define", "owner/Stocks", *on)
    for who in ("broker", "ticker"):
        exchange.give(who, "Stocks", "publish")
    assert exchange.plans("owner/Stocks")
    assert run.do("topic", "show", "owner/Stocks")["verified"] is True


@pytest.mark.requirement("9.04")
def test_publishing_needs_a_right_on_every_super_topic(exchange: Exchange) -> None:
    """A right on Stocks.Nokia but not on Stocks, nor on MarketQuotes: denied, and explained; with all three allowed."""
    nokia = "owner/MarketQuotes.Stocks.Nokia"
    exchange.give("ticker", "MarketQuotes.Stocks.Nokia", "publish")
    assert exchange.no_publish(nokia) == "NOT_PERMITTED"
    exchange.give("ticker", "MarketQuotes.Stocks", "publish")
    assert exchange.no_publish(nokia) == "NOT_PERMITTED"
    why = exchange.command("explain", "--as", "ticker", "--type", nokia, "--action", "publish")
    assert why.code == DENIED
    assert "denied: ticker" in why.out
    assert "publish on event type MarketQuotes of owner" in why.out
    needed = exchange.command.do("topic", "show", nokia)["publish_needs"]
    assert needed == ["MarketQuotes", "MarketQuotes.Stocks", "MarketQuotes.Stocks.Nokia"]
    top = exchange.give("ticker", "MarketQuotes", "publish")
    assert exchange.plans(nokia)
    assert exchange.command("explain", "--as", "ticker", "--type", nokia, "--action", "publish").code == 0
    # A right to publish is on one topic, unless it says otherwise.
    assert exchange.no_publish("owner/MarketQuotes.Derivative") == "NOT_PERMITTED"
    exchange.command.do("revoke", top, "--yes")
    assert exchange.no_publish(nokia) == "REVOKED"


@pytest.mark.requirement("9.04")
def test_subscribing_needs_the_right_on_that_topic_only(exchange: Exchange) -> None:
    """A right on Stocks.Nokia alone lets read it, and neither Stocks nor its neighbours."""
    exchange.give("trader", "MarketQuotes.Stocks.Nokia", "subscribe")
    assert exchange.plans("owner/MarketQuotes.Stocks.Nokia", read="trader")
    for other in ("MarketQuotes", "MarketQuotes.Stocks", "MarketQuotes.Derivative.Nokia"):
        assert exchange.no_read(f"owner/{other}") == "NOT_PERMITTED"
    exchange.give("trader", "MarketQuotes.Derivative", "subscribe")
    assert exchange.plans("owner/MarketQuotes.Derivative.Nokia", read="trader")
    exchange.define("MarketQuotes.DerivativeOfMine")  # starts alike, and is no sub-topic
    with pytest.raises(ChainError):
        exchange.plans("owner/MarketQuotes.DerivativeOfMine", read="trader")


@pytest.mark.requirement("9.04")
def test_what_a_super_topic_demands_counts_below_it(exchange: Exchange) -> None:
    """Each of the lineage admits the row and opens the attribute, or it stays; rights that contradict give nothing."""
    exchange.give("ticker", "MarketQuotes", "publish", "--attribute", "price<500", "--attribute", "volume")
    exchange.give("ticker", "MarketQuotes.Stocks", "publish")
    exchange.give("ticker", "MarketQuotes.Stocks.Nokia", "publish", "--attribute", "price>=100")
    assert exchange.publish("MarketQuotes.Stocks", 50, 499, 500) == 2
    assert exchange.publish("MarketQuotes.Stocks.Nokia", 50, 100, 499, 500) == 2
    exchange.give("ticker", "MarketQuotes.Derivative", "publish", "--attribute", "price>=500")
    assert exchange.no_publish("owner/MarketQuotes.Derivative") == "CONDITION_FALSE"


@pytest.mark.requirement("9.04")
@pytest.mark.parametrize("bounded", ["MarketQuotes", "MarketQuotes.Stocks"])
def test_a_bound_on_a_topic_or_its_super_topic_holds(exchange: Exchange, bounded: str) -> None:
    """An access-control filter in the right on one topic is not lost beside the plain right on one above it."""
    for topic in ("MarketQuotes", "MarketQuotes.Stocks"):
        bound = ("--bound", "lower (price < 100)") if topic == bounded else ()
        args = ("--from", "owner", "--to", "ticker", "--type", f"owner/{topic}", "--action", "publish")
        exchange.command.grant(*args, *bound)
    assert exchange.publish("MarketQuotes.Stocks", 50, 99, 100, 500) == 2


def test_a_topic_unlike_its_tree_disturbs_nobody(exchange: Exchange) -> None:
    """Whoever may manage one topic signs one with other attributes: it is left out, and the others are as before."""
    run = exchange.command
    args = ("--from", "owner", "--to", "evil", "--type", "owner/MarketQuotes.Odd", "--action", "manage")
    run.grant(*args)
    genuine = maia.open(run.home).event_type("MarketQuotes.Stocks")
    odd = replace(
        genuine, name=replace(genuine.name, name="MarketQuotes.Odd"), attributes=genuine.attributes[:1],
        credentials=tuple(item for item in maia.open(run.home).home.certificates.pool()),
    )  # fmt: skip
    signer = maia.open(run.home).home.signer("evil")
    (run.home / "odd.type").write_bytes(sign_event_type(odd, signer).raw)
    run.do("type", "add", str(run.home / "odd.type"))
    exchange.give("trader", "MarketQuotes", "subscribe")
    assert exchange.no_read("owner/MarketQuotes.Odd") == "TOPIC_NOT_FOUND"
    assert exchange.no_publish("owner/MarketQuotes") == "NO_EVIDENCE"


def test_a_row_that_says_another_topic_is_refused(exchange: Exchange) -> None:
    """The name of the topic is put into every row; one that says something else was meant for elsewhere."""
    exchange.give("ticker", "MarketQuotes", "publish")
    home = maia.open(exchange.command.home).home
    rows = [{"price": 1, "topic": name} for name in (None, "MarketQuotes", "MarketQuotes.Stocks")]
    assert publish_here(home, "MarketQuotes", rows, as_="ticker", at=exchange.now()) == 2


def test_rights_on_topics_are_passed_on_and_narrowed(exchange: Exchange) -> None:
    """Whoever holds a delegable right on a topic gives one on what is below it, and none on what is above."""
    exchange.give("ticker", "MarketQuotes.Stocks", "subscribe", "--delegate")
    exchange.give("trader", "MarketQuotes.Stocks.Nokia", "subscribe", "--attribute", "price", giver="ticker")
    assert exchange.plans("owner/MarketQuotes.Stocks.Nokia", read="trader")
    with pytest.raises(ChainError):
        exchange.plans("owner/MarketQuotes.Stocks", read="trader")
    args = ("--from", "ticker", "--to", "evil", "--topic", "owner/MarketQuotes", "--action", "subscribe")
    assert exchange.command.refused("topic", "grant", *args) == (DENIED, "ISSUER_LACKS_RIGHT")
    told = maia.open(exchange.command.home)
    granted = told.grant("evil", topic="owner/MarketQuotes.Nokia", by="owner", actions="publish")
    assert "publish on event type MarketQuotes.Nokia of owner" in granted.right
    nokia = "owner/MarketQuotes.Stocks.Nokia"
    assert told.explain(nokia, principal="trader", attribute="price")
    assert told.explain(nokia, principal="trader", attribute="topic")
    assert not told.explain(nokia, principal="trader", attribute="volume")


WRONG = {
    "no topic above it": (("define", "owner/Bonds.Nokia"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    "attributes of its own": (
        ("define", "owner/MarketQuotes.Own", "--attribute", "x:integer"), 2, "TOPIC_ATTRIBUTES"),
    "a version": (("define", "owner/Bonds@3", "--attribute", "x:integer"), 1, "TOPIC_SHAPE"),
    "the attribute that holds the name": (
        ("define", "owner/Bonds", "--attribute", "topic:integer"), 1, "ATTRIBUTE_NAME_TWICE"),
    "a star in the name": (("define", "owner/Bonds.*"), 1, "NAME_FORM"),
    "an unknown topic": (("show", "owner/Bonds"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    "an action on networks": (
        ("grant", "--from", "owner", "--to", "ticker", "--topic", "owner/MarketQuotes", "--action", "connect"),
        2, "RIGHT_OPTIONS"),
}  # fmt: skip


@pytest.mark.parametrize("args, code, reason", WRONG.values(), ids=WRONG)
def test_what_is_no_topic_is_refused(exchange: Exchange, args: tuple[str, ...], code: int, reason: str) -> None:
    """One code, one line, nothing kept."""
    before = exchange.command.do("topic", "show")
    assert exchange.command.refused("topic", *args) == (code, reason)
    assert exchange.command.do("topic", "show") == before


def test_a_type_or_a_topic_is_named_and_never_both(exchange: Exchange) -> None:
    """Nothing is guessed; and nothing is published under a pattern."""
    client = maia.open(exchange.command.home).client("ticker")
    for how in ({}, {"type": "MarketQuotes", "topic": "MarketQuotes"}, {"topic": "MarketQuotes", "version": "0"}):
        with pytest.raises(UsageError, match="TYPE_OR_TOPIC"):
            client.read(**how)  # type: ignore[arg-type]
    assert exchange.command.refused("subscribe", "--as", "trader") == (2, "TYPE_OR_TOPIC")
    with pytest.raises(UsageError, match="TOPIC_PATTERN"):
        client.publish(None, topic="MarketQuotes.*")
