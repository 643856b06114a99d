"""Conditions of a right, asked now: which hold, which do not, and which only an event can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from maia.errors import MaiaError
from maia.home import Folder, providers
from maia.policy import Atom, ConditionSyntaxError, Environment, Occasion, compile_condition


@dataclass(frozen=True, slots=True)
class ConditionState:
    """What became of one condition.

    Attributes:
        source: The condition, as it is signed.
        holds: Whether it holds at the moment asked about; ``None`` when only events can tell.
        why: What to say about it.
    """

    source: str
    holds: bool | None
    why: str


def ask_conditions(folder: Folder, conditions: Iterable[str], occasion: Occasion) -> tuple[ConditionState, ...]:
    """Ask every condition at an occasion, with the facts that a folder declares.

    A fact that nobody can answer for is no yes: the condition counts as false, and the reason says who was asked.
    """
    try:
        environment = providers.read_providers(folder.path / "policy").environment
    except MaiaError:
        environment = Environment(())  # providers that cannot be read declare nothing
    return tuple(_ask(source, occasion, environment) for source in dict.fromkeys(conditions))


def _ask(source: str, occasion: Occasion, environment: Environment) -> ConditionState:
    failed: list[str] = []

    def ask(fact: Atom, at: datetime) -> bool:
        try:
            return environment.ask(fact, at)
        except MaiaError as error:
            failed.append(error.message)
            raise

    try:
        condition = compile_condition(source, facts=environment.predicates)
    except ConditionSyntaxError as error:
        return ConditionState(source, holds=False, why=f"cannot be asked here: {error.message}")
    if condition.rate is not None:
        return ConditionState(source, holds=None, why="is counted when events are published")
    if condition.attributes:
        return ConditionState(source, holds=None, why="is asked of each event")
    held = condition.holds(occasion, ask=ask)
    reason = f"cannot be answered: {failed[0]}" if failed else "is false now"
    return ConditionState(source, holds=held, why="holds now" if held else reason)
