"""Topics: patterns, lineage, and what a definition must be to call itself one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encoding import encode, parse_canonical
from maia.errors import EncodingError, MalformedError
from maia.events import (
    FIRST,
    ClosedAttributes,
    EventType,
    Options,
    TopicPattern,
    TypeName,
    attribute,
    lineage,
    parse_event_type,
    parse_version,
    sign_event_type,
    verify_type_signature,
)
from maia.principals import KeySigner

EXCHANGE = KeySigner(bytes([1]) * 32)
OWNER = EXCHANGE.public_key
NAME, PRICE = attribute("topic", 0, "string"), attribute("price", 1, "decimal")
STOCKS = EventType(name=TypeName(OWNER, "Stocks", FIRST), attributes=(NAME, PRICE), options=Options(topic=True))

INCLUDES = {
    "a wildcard stands for one component": ("MarketQuotes.*.Nokia", "MarketQuotes.Stocks.Nokia", True),
    "whichever it is": ("MarketQuotes.*.Nokia", "MarketQuotes.Derivative.Nokia", True),
    "but not for none": ("MarketQuotes.*.Nokia", "MarketQuotes.Nokia", False),
    "nor for two": ("MarketQuotes.*.Nokia", "MarketQuotes.A.B.Nokia", False),
    "sub-topics come along": ("MarketQuotes.*.Nokia", "MarketQuotes.A.Nokia.Today", True),
    "a topic includes its sub-topics": ("Stocks", "Stocks.Nokia", True),
    "and itself": ("Stocks", "Stocks", True),
    "not its super-topics": ("Stocks.Nokia", "Stocks", False),
    "nor what merely starts alike": ("Stocks", "StocksAndBonds", False),
    "names are case-sensitive": ("stocks", "Stocks", False),
}


@pytest.mark.parametrize("pattern, topic, expected", INCLUDES.values(), ids=INCLUDES)
def test_pattern_matches_by_component(pattern: str, topic: str, expected: bool) -> None:
    """`*` is one component; subscribing includes sub-topics."""
    assert TopicPattern(pattern).includes(topic) is expected


@given(st.lists(st.sampled_from(["Stocks", "Nokia", "a"]), min_size=1, max_size=5).map(".".join))
def test_every_topic_of_the_lineage_includes_the_topic(topic: str) -> None:
    """Whoever subscribes above receives it, so whoever publishes needs rights there."""
    assert lineage(topic)[-1] == topic
    assert all(TopicPattern(above).includes(topic) for above in lineage(topic))


@pytest.mark.parametrize("text", ["", "a..b", "a.b*", "**", ".".join("*" * 17), "a\nb"])
def test_malformed_pattern_is_refused(text: str) -> None:
    """`*` stands for a whole component."""
    with pytest.raises(MalformedError, match="NAME_FORM"):
        TopicPattern(text)


def test_the_mark_of_a_topic_is_signed() -> None:
    """Reading gives back what was signed; a mark that is added or taken away breaks the signature."""
    for one in (STOCKS, replace(STOCKS, options=Options())):
        signed = sign_event_type(one, EXCHANGE)
        assert verify_type_signature(parse_event_type(signed.raw)).definition == one
    assert STOCKS.meaning != replace(STOCKS, options=Options()).meaning
    parts = parse_canonical(sign_event_type(STOCKS, EXCHANGE).raw)
    assert isinstance(parts, tuple)
    body = parts[2]
    assert isinstance(body, tuple)
    for mark in ((b"topic", b"yes"), (b"other",)):
        options = (*body[3][:-1], mark)  # type: ignore[index]
        with pytest.raises(EncodingError, match="TYPE_OPTION"):
            parse_event_type(encode((*parts[:2], (*body[:3], options), parts[3])))
    with pytest.raises(MalformedError, match="TYPE_OPTION"):
        Options(topic=1)  # type: ignore[arg-type]


def test_what_is_no_topic_cannot_call_itself_one() -> None:
    """It has the first version for ever, extends nothing, and says its name in every event."""
    deep = TypeName(OWNER, ".".join("a" * 17), FIRST)
    later = TypeName(OWNER, "Stocks", parse_version("1"))
    wrong = {
        "NAME_FORM": ({"name": deep},),
        "TOPIC_SHAPE": (
            {"name": later},
            {"extends": TypeName(OWNER, "Quote", FIRST)},
            {"previous": STOCKS.definition_id},
            {"attributes": (PRICE,)},
            {"attributes": (replace(NAME, type=PRICE.type), attribute("price", 1, "decimal"))},
            {"options": Options(topic=True, closed=ClosedAttributes.OMIT)},
        ),
    }
    for code, cases in wrong.items():
        for case in cases:
            with pytest.raises(MalformedError, match=code):
                replace(STOCKS, **case)  # type: ignore[arg-type]
