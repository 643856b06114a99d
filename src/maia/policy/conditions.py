"""Conditions inside certificates: what a right demands of the moment it is used in, as safe, terminating expressions.

A condition is one expression of CEL, cut down to what needs no trust (the reference page shows the whole of it):

    now.clock("Europe/London") >= "09:00" && now.clock("Europe/London") < "17:00"
    action == "publish" && event["3265"].startsWith("AE")
    on_duty(principal)
    rate(10, "1m")

Rules:
    1. Inputs are declared: ``action``, ``principal``, ``now``, ``event_type``, ``event["uid"]``, and the facts of
       declared providers. Nothing else has a name, so nothing else can be reached.
    2. A condition is checked before it is signed and again before it is used: names, types, a boolean result, its
       length, its depth and its number of parts. Loops, fields, messages and maps have no place in it.
    3. Whatever is not true denies: false, an error, a value that is missing, a fact that could not be asked for. A
       fact that could not be asked for denies even where the rest of the expression would not need it.
    4. Every zone of time, every pattern and every uid is written out, so that they are checked when the certificate is
       made and cannot come from a publisher.
    5. A rate stands alone: it counts, and what counts must not hide behind ``||`` or ``!``.
    6. Compiled forms stay in the process that made them; what travels is the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from maia.errors import MaiaError, UnavailableError, UsageError
from maia.policy.conditions_inputs import (
    DEFAULT_CONDITION_LIMITS,
    Ask,
    ConditionLimits,
    EventValue,
    Occasion,
    Program,
)
from maia.policy.conditions_problems import ConditionSyntaxError
from maia.policy.conditions_rates import RateLimit, parse_rate
from maia.policy.conditions_tree import Node
from maia.policy.environment import Predicate
from maia.policy.terms import Atom


def cannot_ask(atom: Atom, _at: datetime) -> bool:
    """Stand in where nobody can be asked about facts: every question fails, so every condition with a fact denies.

    >>> cannot_ask(Atom("on_duty"), None)
    Traceback (most recent call last):
    maia.errors.UnavailableError: [NO_PROVIDER] nothing here answers `on_duty`
    """
    raise UnavailableError(f"nothing here answers `{atom.name}`", code="NO_PROVIDER")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was checked: its text, and what it looks at. It does not travel; its text does.

    Attributes:
        source: The text, as it stands in the certificate.
        rate: What it limits, when it is a rate; then it has nothing to evaluate.
    """

    source: str
    rate: RateLimit | None
    _program: Program | None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The uids of the event that it looks at, sorted; none when it depends on the moment alone."""
        return () if self._program is None else self._program.attributes

    @property
    def facts(self) -> frozenset[Predicate]:
        """The declared facts that it asks for."""
        return frozenset() if self._program is None else self._program.facts

    @property
    def inputs(self) -> frozenset[str]:
        """The names that it uses, of ``action``, ``principal``, ``now``, ``event_type`` and ``event``."""
        return frozenset() if self._program is None else self._program.inputs

    @property
    def tree(self) -> Node | None:
        """What the text says, for those who evaluate whole columns; none for a rate."""
        return None if self._program is None else self._program.tree

    def holds(
        self, occasion: Occasion, *, event: Mapping[str, EventValue] | None = None, ask: Ask = cannot_ask
    ) -> bool:
        """Tell whether the condition is true. Never raises: what cannot be evaluated is not true.

        A rate holds here: it is the ledger of publications that grants or refuses.

        Args:
            occasion: The moment.
            event: The values of the event by uid, those that are there; ``None`` when there is no event.
            ask: Answers questions about facts.
        """
        if self._program is None:
            return True
        if event is None and self._program.attributes:
            return False
        try:
            return self._program.run(occasion, event or {}, ask)
        except MaiaError:
            return False

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Refuse to travel: compiled forms are bound to their process."""
        raise UsageError("a compiled condition does not travel; send its text", code="CONDITION_TRAVELS")


def compile_condition(
    source: str, *, facts: Iterable[Predicate] = (), limits: ConditionLimits = DEFAULT_CONDITION_LIMITS
) -> Condition:
    """Check a condition and make it ready to be evaluated. The same text is compiled once per process.

    >>> from maia.policy import Occasion
    >>> from datetime import UTC, datetime
    >>> office = compile_condition("now.hour('Europe/London') >= 9 && now.hour('Europe/London') < 17")
    >>> when = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)  # half past nine in London
    >>> office.holds(Occasion(action="publish", at=when, principal="ab"))
    True
    >>> compile_condition("now.hour('Europe/London')")
    Traceback (most recent call last):
    maia.policy.conditions_problems.ConditionSyntaxError: [CONDITION_TYPE] line 1, column 1: a condition is true ...

    Args:
        source: The text.
        facts: The predicates that providers answer; they are called like functions with texts.
        limits: How large the text may be.

    Returns:
        The checked condition.

    Raises:
        ConditionSyntaxError: It is no condition; ``line`` and ``column`` say where it stops making sense.
    """
    return _compiled(source, frozenset(facts), limits)


@lru_cache(maxsize=4_096)
def _compiled(source: str, facts: frozenset[Predicate], limits: ConditionLimits) -> Condition:
    if len(source) > limits.characters:
        raise ConditionSyntaxError(f"a condition has at most {limits.characters} characters", code="CONDITION_LIMIT")
    for column, letter in enumerate(source, 1):
        # What people cannot see in a text, they do not agree to by signing it.
        if not (letter.isprintable() or letter in "\n\t"):
            raise ConditionSyntaxError(f"column {column}: a letter that cannot be seen", column=column)
    rate = parse_rate(source)
    if rate is not None:
        return Condition(source, rate, None)
    from maia.policy.conditions_engine import build  # noqa: PLC0415 - most programs hold no condition

    return Condition(source, None, build(source, facts, limits))
