"""Conditions: any text is refused with a place in it, or evaluates to true or false and never raises."""

from __future__ import annotations

from harness import run

from maia.policy import ConditionSyntaxError, Occasion, Predicate, compile_condition
from maia.testing import at

OCCASION = Occasion(action="publish", at=at("2026-06-03T12:30"), principal="ab", event_type="t")
FACTS = (Predicate("on_duty", 1),)


def target(data: bytes) -> None:
    """Read a text, and evaluate it when it is a condition."""
    source = data.decode("utf-8", "ignore")
    try:
        condition = compile_condition(source, facts=FACTS)
    except ConditionSyntaxError as error:
        if not 1 <= error.line <= source.count("\n") + 1 or error.column < 1:
            raise ValueError("a refusal that points outside of the text") from error
        raise
    event = {uid: (1, "a", True)[number % 3] for number, uid in enumerate(condition.attributes)}
    first = condition.holds(OCCASION, event=event, ask=lambda _fact, _at: True)
    assert first is condition.holds(OCCASION, event=event, ask=lambda _fact, _at: True)


if __name__ == "__main__":
    run(target, "text", "condition")
