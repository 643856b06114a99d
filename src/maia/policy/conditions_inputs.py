"""What a condition is evaluated with: the occasion, the event's values, who answers for facts, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from maia.errors import UsageError
from maia.policy.conditions_tree import Node
from maia.policy.environment import Predicate
from maia.policy.terms import Atom

EventValue: TypeAlias = "int | float | str | bool | bytes"
Ask: TypeAlias = Callable[[Atom, datetime], bool]
"""Tells whether a ground fact holds at an instant, or raises a `MaiaError` when it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionLimits:
    """How large a condition may be, and how much of an event it looks at.

    Attributes:
        characters: Of the text.
        parts: Names, literals and operations together.
        depth: Of operations inside operations.
        pattern_characters: Of a regular expression.
        value_octets: Of one attribute's value; a longer one is no value to a condition.
        evaluations: Different inputs tried for one batch; rows beyond them are denied.
    """

    characters: int = 2_048
    parts: int = 256
    depth: int = 24
    pattern_characters: int = 256
    value_octets: int = 65_536
    evaluations: int = 131_072


DEFAULT_CONDITION_LIMITS = ConditionLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """The moment in which a right is used.

    Attributes:
        action: What is asked for: ``publish``, ``subscribe``, ``connect`` and so on.
        at: The instant, timezone-aware.
        principal: The identity of the asking key, in hex.
        event_type: The readable name of the event type; empty for a network.
    """

    action: str
    at: datetime
    principal: str
    event_type: str = ""

    def __post_init__(self) -> None:
        """Refuse an instant without a zone."""
        if self.at.tzinfo is None:
            raise UsageError("the instant of an occasion has a time zone")


class Program(Protocol):
    """A compiled expression, as the engine behind this module gives it."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The uids that it looks at."""
        ...

    @property
    def facts(self) -> frozenset[Predicate]:
        """The facts that it asks for."""
        ...

    @property
    def inputs(self) -> frozenset[str]:
        """The names that it uses."""
        ...

    @property
    def tree(self) -> Node:
        """What the text says."""
        ...

    def run(self, occasion: Occasion, event: Mapping[str, EventValue], ask: Ask) -> bool:
        """Evaluate; anything but true is false."""
        ...
