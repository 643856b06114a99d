"""Topics under access control, and the topic suite on the content engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.authority import Action, CertificatePool, Verifier, network_right, type_right
from maia.authority.topics import VerifiedTopic, prove_topic_publish, prove_topic_subscribe, verify_topic
from maia.errors import ChainError, SignatureError, UsageError, VerificationError
from maia.events import (
    Publication,
    Topic,
    TopicName,
    TopicPattern,
    attribute,
    check_batch,
    parse_topic,
    sign_topic,
    topic_event_type,
    topic_filter,
    topic_values,
)
from maia.filters import compile_filter, matches, select
from maia.principals import Authorisation, KeySigner, UnverifiedCertificate, issue, parse_certificate

EXCHANGE, NET, BROKER, FIRM, EVIL = (KeySigner(bytes([n]) * 32) for n in range(1, 6))
OWNER = EXCHANGE.public_key
NETWORK = (NET.public_key, "Market")
NOW = datetime(2026, 6, 1, tzinfo=UTC)
STOCKS = Topic(name=TopicName(OWNER, "Stocks"))


def _may(
    name: str, *actions: Action, issuer: KeySigner = EXCHANGE, subject: KeySigner = FIRM, delegate: bool = False
) -> UnverifiedCertificate:
    tag = type_right(OWNER, name, actions=actions)
    body = Authorisation(issuer=issuer.public_key, subject=subject.public_key, delegate=delegate, tag=tag.to_sexp())
    return parse_certificate(issue(body, issuer).raw)


def _install(subject: KeySigner, issuer: KeySigner = NET) -> UnverifiedCertificate:
    tag = network_right(*NETWORK, [Action.INSTALL])
    body = Authorisation(issuer=issuer.public_key, subject=subject.public_key, delegate=False, tag=tag.to_sexp())
    return parse_certificate(issue(body, issuer).raw)


def _publish(topic: str, *evidence: UnverifiedCertificate, principal: KeySigner = FIRM) -> int:
    name = TopicName(OWNER, topic)
    return len(
        prove_topic_publish(name, verifier=Verifier(), principal=principal.public_key, evidence=iter(evidence), at=NOW)
    )


def _subscribe(pattern: str, *evidence: UnverifiedCertificate, principal: KeySigner = FIRM) -> str:
    asked = TopicPattern(OWNER, pattern)
    pool = CertificatePool(evidence)
    grant = prove_topic_subscribe(asked, verifier=Verifier(), principal=principal.public_key, evidence=pool, at=NOW)
    return str(grant.request)


def test_topic_without_a_chain_from_its_owner_is_unusable() -> None:
    """A right from anybody else opens nothing, and no right opens nothing; the owner's chain does."""
    foreign = _may("Stocks", Action.PUBLISH, Action.SUBSCRIBE, issuer=EVIL)
    for evidence in ((), (foreign,)):
        with pytest.raises(ChainError):
            _publish("Stocks", *evidence)
        with pytest.raises(ChainError):
            _subscribe("Stocks", *evidence)
    chain = (
        _may("Stocks", Action.PUBLISH, subject=BROKER, delegate=True),
        _may("Stocks", Action.PUBLISH, issuer=BROKER),
    )
    assert _publish("Stocks", *chain) == 1


def test_creating_a_topic_needs_the_coordinating_principals_grant() -> None:
    """Without an install chain the definition is rejected on the network; with one it is accepted."""

    def verify(topic: Topic, signer: KeySigner) -> VerifiedTopic:
        signed = parse_topic(sign_topic(topic, signer).raw)
        return verify_topic(signed, verifier=Verifier(), at=NOW, network=NETWORK)

    with pytest.raises(ChainError):
        verify(STOCKS, EXCHANGE)
    with pytest.raises(ChainError):
        verify(replace(STOCKS, credentials=(_install(EXCHANGE, issuer=EVIL),)), EXCHANGE)
    made = verify(replace(STOCKS, credentials=(_install(EXCHANGE),)), EXCHANGE)
    assert made.network == NETWORK
    assert made.holds_at(NOW)
    managed = replace(STOCKS, credentials=(_install(FIRM), _may("Stocks", Action.MANAGE)))
    assert verify(managed, FIRM).signer == FIRM.public_key
    with pytest.raises(VerificationError):
        verify(replace(STOCKS, credentials=(_install(FIRM),)), FIRM)
    with pytest.raises(UsageError):
        VerifiedTopic(STOCKS, OWNER, (), None, object())  # type: ignore[arg-type]


def test_every_broker_verifies_a_topic_for_itself() -> None:
    """A definition that a client and a broker made up between them is refused everywhere else."""
    made_up = sign_topic(STOCKS, EVIL)
    for claimed in (made_up, replace(made_up, signer=OWNER)):
        with pytest.raises((ChainError, SignatureError)):
            verify_topic(claimed, verifier=Verifier(), at=NOW)


def test_publishing_needs_all_super_topics_and_subscribing_only_the_topic() -> None:
    """Right on Stocks.Nokia but not Stocks: publishing is denied, subscribing allowed; a parent's right does too."""
    nokia = _may("Stocks.Nokia", Action.PUBLISH, Action.SUBSCRIBE)
    with pytest.raises(ChainError):
        _publish("Stocks.Nokia", nokia)
    assert _subscribe("Stocks.Nokia", nokia) == "subscribe Stocks.Nokia version 0"
    assert _publish("Stocks.Nokia", nokia, _may("Stocks", Action.PUBLISH)) == 2
    with pytest.raises(ChainError):
        _publish("Stocks.Nokia", _may("Stocks", Action.PUBLISH))
    with pytest.raises(ChainError):
        _subscribe("Stocks", nokia)
    parent = _may("Stocks", Action.SUBSCRIBE)
    assert _subscribe("Stocks.Nokia.Today", parent) == "subscribe Stocks version 0"
    with pytest.raises(ChainError):
        _subscribe("StocksAndBonds", parent)


def test_wildcard_subscription_needs_a_right_above_all_it_matches() -> None:
    """A right on one match is not enough; one above the wildcard, or one whose pattern covers it, is."""
    with pytest.raises(ChainError):
        _subscribe("MarketQuotes.*.Nokia", _may("MarketQuotes.Stocks.Nokia", Action.SUBSCRIBE))
    with pytest.raises(ChainError):
        _subscribe("*.Nokia", _may("MarketQuotes", Action.SUBSCRIBE))
    assert _subscribe("MarketQuotes.*.Nokia", _may("MarketQuotes", Action.SUBSCRIBE))
    assert _subscribe("MarketQuotes.*.Nokia", _may("MarketQuotes.*", Action.SUBSCRIBE))
    with pytest.raises(ChainError):
        _subscribe("MarketQuotes.*.Nokia", _may("MarketQuotes.S*", Action.SUBSCRIBE))


# ---------------------------------------------------------------- one engine serves both

CARRIER = topic_event_type(OWNER, "x.Topics", (attribute("price", 100, "integer"),))
TYPES = {item.name: item.type.value for item in CARRIER.attributes}
WILDCARDS = {
    "MarketQuotes.Stocks.Nokia": True,
    "MarketQuotes.Derivative.Nokia": True,
    "MarketQuotes.Nokia": False,
}


@pytest.mark.parametrize("topic, expected", WILDCARDS.items(), ids=WILDCARDS)
def test_wildcard_stands_for_one_component(topic: str, expected: bool) -> None:
    """`MarketQuotes.*.Nokia` matches two of three, by name and as a filter."""
    pattern, name = TopicPattern(OWNER, "MarketQuotes.*.Nokia"), TopicName(OWNER, topic)
    assert pattern.matches(name) is expected
    asked = compile_filter(topic_filter(pattern, subtopics=False), TYPES)
    assert matches(asked, topic_values(name, {"price": 1})) is expected


components = st.sampled_from(["Stocks", "Nokia", "Market", "a", "it's"])
topics = st.lists(components, min_size=1, max_size=5).map(".".join)
patterns = st.lists(components | st.just("*"), min_size=1, max_size=5).map(".".join)


@given(st.lists(topics, min_size=1, max_size=8), patterns)
def test_topic_subscription_equals_its_filter(published: list[str], text: str) -> None:
    """A subscription to topics selects exactly what its filter selects on the content engine, singly and in batches."""
    pattern = TopicPattern(OWNER, text)
    names = [TopicName(OWNER, topic) for topic in published]
    rows = [dict(Publication(CARRIER, topic_values(name, {"price": 1})).values) for name in names]
    batch = check_batch(CARRIER, pa.RecordBatch.from_pylist(rows))
    for subtopics, wanted in ((True, pattern.includes), (False, pattern.matches)):
        asked = compile_filter(topic_filter(pattern, subtopics=subtopics), TYPES)
        expected = [wanted(name) for name in names]
        assert [matches(asked, row) for row in rows] == expected
        assert select(asked, batch).to_pylist() == expected
