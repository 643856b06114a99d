"""Topics: event types whose names form a tree, on the same engine as all others.

A topic is an event type that says so in its signed options, ``[owner, Stocks.Nokia, 0]``; it is defined, verified,
sealed and delivered like any other. Rules kept here:

- a topic has 1 to `MAX_TOPIC_PARTS` components; it has no versions, so it is the first one for ever, and it extends no
  type;
- its attribute `topic` is a text that holds its own name in every event, so that a subscription to topics is an
  equality or a prefix on that attribute;
- ``Stocks`` is the super-topic of ``Stocks.Nokia``. Whoever publishes under a topic needs the right on it and on all
  its super-topics; whoever subscribes needs it on that topic, and receives the sub-topics too;
- ``*`` as a whole component of a pattern stands for exactly one component of a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maia.errors import MalformedError
from maia.events.attributes import Attribute, check_printable
from maia.events.names import TypeName
from maia.events.options import ClosedAttributes, Options
from maia.events.value_types import AttributeType
from maia.events.versions import FIRST

TOPIC = "topic"
"""The attribute that holds an event's topic."""

MAX_TOPIC_PARTS = 16
WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Topics to subscribe to: one and its sub-topics, or several, when a component is ``*``."""

    text: str

    def __post_init__(self) -> None:
        """Refuse ``*`` inside a component, and patterns deeper than any topic."""
        check_printable(self.text, "a topic pattern")
        if len(self.parts) > MAX_TOPIC_PARTS or not all(self.parts):
            raise MalformedError(
                f"a topic pattern is 1 to {MAX_TOPIC_PARTS} components joined by dots", code="NAME_FORM"
            )
        if any(WILDCARD in part and part != WILDCARD for part in self.parts):
            raise MalformedError("`*` stands for a whole component of a topic", code="NAME_FORM")

    @property
    def parts(self) -> tuple[str, ...]:
        """The components, from the top."""
        return tuple(self.text.split("."))

    @property
    def has_wildcard(self) -> bool:
        """Tell whether the pattern stands for more than one topic and its sub-topics."""
        return WILDCARD in self.parts

    def includes(self, topic: str) -> bool:
        """Tell whether a subscription receives what is published under a topic: it is matched, or below a match.

        >>> pattern = TopicPattern("MarketQuotes.*.Nokia")
        >>> [pattern.includes(f"MarketQuotes.{rest}") for rest in ("Stocks.Nokia", "Stocks.Nokia.Today", "Nokia")]
        [True, True, False]
        """
        ours, theirs = self.parts, topic.split(".")
        return len(theirs) >= len(ours) and all(
            one in (WILDCARD, other) for one, other in zip(ours, theirs, strict=False)
        )


def lineage(topic: str) -> tuple[str, ...]:
    """List all super-topics from the top, and the topic itself at the end: what a publisher needs rights on.

    >>> lineage("MarketQuotes.Stocks.Nokia")
    ('MarketQuotes', 'MarketQuotes.Stocks', 'MarketQuotes.Stocks.Nokia')
    """
    parts = topic.split(".")
    return tuple(".".join(parts[:length]) for length in range(1, len(parts) + 1))


def check_topic(name: TypeName, attributes: Sequence[Attribute], options: Options, *, alone: bool) -> None:
    """Refuse a definition that calls itself a topic and is none.

    Args:
        name: Of the definition.
        attributes: Of the definition.
        options: Of the definition.
        alone: Whether it extends no type and follows no version.

    Raises:
        MalformedError: It is too deep (``NAME_FORM``), or not what a topic is (``TOPIC_SHAPE``).
    """
    if name.name.count(".") >= MAX_TOPIC_PARTS:
        raise MalformedError(f"a topic has at most {MAX_TOPIC_PARTS} components", code="NAME_FORM")
    if name.version != FIRST or not alone:
        raise MalformedError("a topic has no versions and extends no type", code="TOPIC_SHAPE")
    if not any(item.name == TOPIC and item.type is AttributeType.STRING for item in attributes):
        raise MalformedError("a topic has an attribute `topic` of type string", code="TOPIC_SHAPE")
    if options.closed is not ClosedAttributes.NULL:
        raise MalformedError("a closed attribute of a topic becomes null", code="TOPIC_SHAPE")
