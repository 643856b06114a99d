"""Topics on the content engine: one event type with a `topic` attribute, and subscriptions as filters on it.

A topic travels with a dot at its end, ``Stocks.Nokia.``, and its components stand beside it, so that every kind of
topic subscription is one conjunction of the filter language:

- a topic and its sub-topics: a prefix, ``topic prefix 'Stocks.'``;
- a topic alone: an equality, ``topic = 'Stocks.'``;
- a pattern: an equality for each literal component and a presence for each ``*``.
"""

from __future__ import annotations

from collections.abc import Mapping

from maia.errors import UsageError
from maia.events.attributes import Attribute, AttributeType, attribute
from maia.events.definition import EventType
from maia.events.names import Owner, TypeName
from maia.events.topics import MAX_TOPIC_PARTS, WILDCARD, TopicName, TopicPattern
from maia.events.values import Value
from maia.events.versions import FIRST, Version

TOPIC = "topic"
DEPTH = "topic-depth"
_PART = "topic-{}"


def topic_event_type(
    owner: Owner, name: str, payload: tuple[Attribute, ...] = (), version: Version = FIRST
) -> EventType:
    """Define the event type that carries all topics of an owner.

    Args:
        owner: Of the topics.
        name: Of the event type.
        payload: What events hold beside the topic; uids below 18 are taken by the topic itself.
        version: Of the event type.
    """
    own = [attribute(TOPIC, 0, AttributeType.STRING), attribute(DEPTH, 1, AttributeType.INTEGER)]
    own.extend(attribute(_PART.format(n), n + 2, AttributeType.STRING) for n in range(MAX_TOPIC_PARTS))
    return EventType(name=TypeName(owner, name, version), attributes=(*own, *payload))


def topic_values(topic: TopicName, payload: Mapping[str, Value]) -> dict[str, Value]:
    """Write an event published under a topic as values of `topic_event_type`."""
    reserved = {TOPIC, DEPTH, *(_PART.format(n) for n in range(MAX_TOPIC_PARTS))}
    if reserved & payload.keys():
        raise UsageError("the payload of a topic event cannot set the topic")
    parts = {_PART.format(n): part for n, part in enumerate(topic.parts)}
    return {TOPIC: f"{topic.name}.", DEPTH: len(topic.parts), **parts, **payload}


def topic_filter(pattern: TopicPattern, *, subtopics: bool = True) -> str:
    """Write a subscription to topics in the filter language.

    Args:
        pattern: What to receive.
        subtopics: Also receive what is published under sub-topics.

    >>> from maia.principals import KeySigner
    >>> owner = KeySigner(bytes(32)).public_key
    >>> topic_filter(TopicPattern(owner, "Stocks"))
    "topic prefix 'Stocks.'"
    >>> topic_filter(TopicPattern(owner, "MarketQuotes.*.Nokia"), subtopics=False)
    "topic-0 = 'MarketQuotes' and topic-1 any and topic-2 = 'Nokia' and topic-depth = 3"
    """
    if not pattern.has_wildcard:
        return f"{TOPIC} {'prefix' if subtopics else '='} {_quote(pattern.text + '.')}"
    constraints = [
        f"{_PART.format(n)} any" if part == WILDCARD else f"{_PART.format(n)} = {_quote(part)}"
        for n, part in enumerate(pattern.parts)
    ]
    if not subtopics:
        constraints.append(f"{DEPTH} = {len(pattern.parts)}")
    return " and ".join(constraints)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
