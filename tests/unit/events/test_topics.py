"""Topics: names, hierarchy, patterns, definitions, and the way onto the content engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encoding import encode, parse_canonical
from maia.errors import EncodingError, MaiaError, MalformedError, SignatureError, UsageError
from maia.events import (
    SignedTopic,
    Topic,
    TopicName,
    TopicPattern,
    attribute,
    parse_topic,
    sign_topic,
    topic_event_type,
    topic_values,
    verify_topic_signature,
)
from maia.principals import Authorisation, KeyHash, KeySigner, Kind, issue, parse_certificate

EXCHANGE, OTHER = (KeySigner(bytes([n]) * 32) for n in (1, 2))
OWNER = EXCHANGE.public_key
STOCKS = Topic(name=TopicName(OWNER, "Stocks"))
CREDENTIAL = parse_certificate(
    issue(Authorisation(issuer=OWNER, subject=OTHER.public_key, delegate=False, tag=(b"maia-type",)), EXCHANGE).raw
)

MATCHES = {
    "a wildcard stands for one component": ("MarketQuotes.*.Nokia", "MarketQuotes.Stocks.Nokia", True, True),
    "whichever it is": ("MarketQuotes.*.Nokia", "MarketQuotes.Derivative.Nokia", True, True),
    "but not for none": ("MarketQuotes.*.Nokia", "MarketQuotes.Nokia", False, False),
    "nor for two": ("MarketQuotes.*.Nokia", "MarketQuotes.A.B.Nokia", False, False),
    "sub-topics come along": ("MarketQuotes.*.Nokia", "MarketQuotes.A.Nokia.Today", False, True),
    "a topic includes its sub-topics": ("Stocks", "Stocks.Nokia", False, True),
    "and itself": ("Stocks", "Stocks", True, True),
    "not its super-topics": ("Stocks.Nokia", "Stocks", False, False),
    "nor what merely starts alike": ("Stocks", "StocksAndBonds", False, False),
    "names are case-sensitive": ("stocks", "Stocks", False, False),
}


@pytest.mark.parametrize("pattern, topic, matches, includes", MATCHES.values(), ids=MATCHES)
def test_pattern_matches_by_component(pattern: str, topic: str, matches: bool, includes: bool) -> None:
    """`*` is one component; subscribing includes sub-topics."""
    asked, name = TopicPattern(OWNER, pattern), TopicName(OWNER, topic)
    assert asked.matches(name) is matches
    assert asked.includes(name) is includes
    assert not TopicPattern(OTHER.public_key, pattern).includes(name)


def test_lineage_of_a_topic_is_what_a_publisher_needs() -> None:
    """All super-topics, from the top, and the topic itself."""
    lineage = TopicName(OWNER, "Market.Stocks.Nokia").lineage
    assert [item.name for item in lineage] == ["Market", "Market.Stocks", "Market.Stocks.Nokia"]
    assert lineage[0] == TopicName(KeyHash(OWNER.key_id), "Market")
    assert lineage[0].topic_id != lineage[1].topic_id
    assert len({*lineage, TopicName(KeyHash(OWNER.key_id), "Market")}) == 3
    assert str(lineage[0]).startswith("Market [")


def test_one_right_above_suffices_for_subscribing() -> None:
    """The topic itself, or a topic above everything the pattern can match; never one below a wildcard."""
    assert TopicPattern(OWNER, "Market.Stocks.Nokia").sufficient == ("Market.Stocks.Nokia", "Market.Stocks", "Market")
    assert TopicPattern(OWNER, "Market.*.Nokia").sufficient == ("Market.*.Nokia", "Market")
    assert TopicPattern(OWNER, "*.Nokia").sufficient == ("*.Nokia",)


@pytest.mark.parametrize("name", ["", "a..b", "a.*", "a*", ".".join("a" * 17)])
def test_malformed_topic_is_refused(name: str) -> None:
    """A topic is 1 to 16 components without pattern signs."""
    with pytest.raises(MalformedError, match="NAME_FORM"):
        TopicName(OWNER, name)


@pytest.mark.parametrize("text", ["", "a..b", "a.b*", "**", ".".join("*" * 17), "a\nb"])
def test_malformed_pattern_is_refused(text: str) -> None:
    """`*` stands for a whole component."""
    with pytest.raises(MalformedError, match="NAME_FORM"):
        TopicPattern(OWNER, text)


def test_topic_definition_survives_its_bytes() -> None:
    """Reading gives back what was signed, with and without credentials."""
    for topic in (STOCKS, replace(STOCKS, credentials=(CREDENTIAL,))):
        signed = sign_topic(topic, EXCHANGE)
        assert parse_topic(signed.raw) == signed
        assert verify_topic_signature(parse_topic(signed.raw)).topic == topic
    assert STOCKS.definition_id != replace(STOCKS, credentials=(CREDENTIAL,)).definition_id
    with pytest.raises(MalformedError, match="TOO_MANY_CREDENTIALS"):
        Topic(name=STOCKS.name, credentials=(CREDENTIAL,) * 513)


def test_altered_topic_definition_is_refused() -> None:
    """Another name, another kind of signature, an unknown field, no signature at all."""
    signed = sign_topic(STOCKS, EXCHANGE)
    with pytest.raises(SignatureError):
        verify_topic_signature(parse_topic(signed.raw.replace(b"6:Stocks", b"6:Bonds!")))
    body = encode(STOCKS.to_sexp())
    with pytest.raises(SignatureError):
        verify_topic_signature(replace(signed, signature=EXCHANGE.sign(Kind.EVENT_TYPE, body)))
    parts = parse_canonical(signed.raw)
    assert isinstance(parts, tuple)
    assert isinstance(parts[2], tuple)
    for extra in ((b"comment", b"x"), (b"credentials",)):
        with pytest.raises(EncodingError, match="UNKNOWN_FIELD"):
            parse_topic(encode((*parts[:2], (*parts[2], extra), parts[3])))
    for expression in (parts[:3], parts[2], (b"signed", b"2", *parts[2:]), (b"signed", *parts[2:])):
        with pytest.raises(EncodingError, match="TOPIC_SHAPE"):
            parse_topic(encode(expression))
    with pytest.raises(UsageError):
        SignedTopic(STOCKS, OWNER, b"", object())  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)):
        replace(verify_topic_signature(sign_topic(STOCKS, EXCHANGE)), signer=OTHER.public_key)


@given(st.binary(max_size=120))
def test_only_maia_errors_come_from_reading_topics(data: bytes) -> None:
    """Any octets are refused or read."""
    with pytest.raises(MaiaError):
        parse_topic(data)


def test_topic_events_keep_topic_and_payload_apart() -> None:
    """The event type of topics has room for a payload, which cannot set the topic."""
    price = attribute("price", 100, "decimal")
    carrier = topic_event_type(OWNER, "x.Topics", (price,))
    values = topic_values(TopicName(OWNER, "Stocks.Nokia"), {"price": None})
    assert values["topic"] == "Stocks.Nokia."
    assert values["topic-depth"] == 2
    assert (values["topic-0"], values["topic-1"]) == ("Stocks", "Nokia")
    assert {item.name for item in carrier.attributes} >= set(values)
    with pytest.raises(UsageError):
        topic_values(TopicName(OWNER, "Stocks"), {"topic": "Bonds."})
    with pytest.raises(MalformedError, match="ATTRIBUTE_UID_TWICE"):
        topic_event_type(OWNER, "x.Topics", (attribute("price", 3, "decimal"),))
