"""Compiles and evaluates conditions with the expression library. No other module knows the library.

Rules:
    1. The library checks names and types; then the tree is compared with a list of what is allowed, so that a new
       feature of the library is refused until it is listed.
    2. The library reports failures of evaluation as values of a type of their own: only a boolean that is true counts.
    3. A question about a fact that fails marks the whole evaluation as failed, whatever ``||`` makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cel_expr_python import cel  # type: ignore[import-untyped]

from maia.errors import MalformedError
from maia.policy.conditions_inputs import Ask, ConditionLimits, EventValue, Occasion
from maia.policy.conditions_problems import ConditionSyntaxError
from maia.policy.conditions_tree import Node, read_tree
from maia.policy.environment import Predicate
from maia.policy.terms import Atom, Constant

_INPUTS = ("action", "principal", "now", "event_type", "event")
_OPERATORS = frozenset((
    "_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_",
    "-_", "_[_]", "@in", "startsWith", "endsWith", "contains", "matches", "size", "timestamp", "duration", "int",
    "double", "string",
))  # fmt: skip
_CLOCK: dict[str, tuple[Any, Callable[[datetime], int | str]]] = {
    "hour": (cel.Type.INT, lambda local: local.hour),
    "minute": (cel.Type.INT, lambda local: local.minute),
    "weekday": (cel.Type.INT, lambda local: local.isoweekday()),
    "clock": (cel.Type.STRING, lambda local: f"{local.hour:02}:{local.minute:02}"),
    "date": (cel.Type.STRING, lambda local: local.date().isoformat()),
}
_REFUSED = {
    "field": 'fields are not reached with a point; an attribute is `event["uid"]`',
    "message": "maps and messages have no place in a condition",
    "loop": "a condition has no loops",
}
_PLACE = re.compile(r"<input>:([0-9]+):([0-9]+): (.*)")
_CALLABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset((
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while", "all", "exists", "exists_one", "map",
    "filter", "has", "dyn", "type", "bool", "bytes", "list", "uint", "int", "double", "string", "size", "matches",
    "contains", "startsWith", "endsWith", "timestamp", "duration", "rate", "shared_rate", "action", "principal",
    "now", "event", "event_type",
    *_CLOCK,
))  # fmt: skip


@dataclass(slots=True)
class _Asking:
    """One evaluation's way to facts."""

    ask: Ask
    at: datetime
    failed: bool = False


_ASKING: ContextVar[_Asking] = ContextVar("maia_condition_asking")


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression of the library, with what it looks at."""

    attributes: tuple[str, ...]
    facts: frozenset[Predicate]
    inputs: frozenset[str]
    tree: Node
    expression: Any

    def run(self, occasion: Occasion, event: Mapping[str, EventValue], ask: Ask) -> bool:
        """Evaluate; anything but true is false."""
        asking = _Asking(ask, occasion.at)
        token = _ASKING.set(asking)
        try:
            found = self.expression.eval(
                data={
                    "action": occasion.action,
                    "principal": occasion.principal,
                    "now": occasion.at.astimezone(UTC),
                    "event_type": occasion.event_type,
                    "event": {uid: event[uid] for uid in self.attributes if uid in event},
                }
            )
            # SECURITY: a failure is a value here, not an exception; so is every other type.
            return not asking.failed and found.type() == cel.Type.BOOL and found.value() is True
        except (RuntimeError, ValueError, TypeError, OverflowError):  # complaints about the inputs: not true
            return False
        finally:
            _ASKING.reset(token)


def build(source: str, facts: frozenset[Predicate], limits: ConditionLimits) -> CompiledExpression:
    """Compile a condition and compare it with what is allowed.

    Raises:
        ConditionSyntaxError: It is refused.
    """
    try:
        expression = _environment(facts).compile(source)
    except RuntimeError as error:
        raise _refusal(str(error)) from None  # the library's text holds the source; keep what is said, not the trace
    try:
        tree = read_tree(expression.serialize())
    except (MalformedError, UnicodeDecodeError) as error:  # SECURITY: what cannot be looked through is not let through
        message = "an expression of a form that is not known"
        raise ConditionSyntaxError(message, code="CONDITION_REFUSED") from error
    checker = _Checker(source, facts, limits)
    checker.check(tree)
    if expression.return_type() != cel.Type.BOOL:
        raise checker.problem(tree, "a condition is true or false", "CONDITION_TYPE", start=True)
    attributes = tuple(sorted(checker.attributes))
    return CompiledExpression(attributes, frozenset(checker.facts), frozenset(checker.inputs), tree, expression)


@lru_cache(maxsize=64)
def _environment(facts: frozenset[Predicate]) -> Any:  # noqa: ANN401 - the library's own type
    text = cel.Type.STRING
    functions = [
        cel.FunctionDecl(name, [cel.Overload(
            f"maia_{name}", return_type=kind, parameters=[cel.Type.TIMESTAMP, text], is_member=True)])
        for name, (kind, _) in _CLOCK.items()
    ]  # fmt: skip
    bodies: dict[str, Callable[..., Any]] = {f"maia_{name}": _local(read) for name, (_, read) in _CLOCK.items()}
    names: dict[str, list[Any]] = {}
    for fact in sorted(facts):
        if _CALLABLE.fullmatch(fact.name) and fact.name not in _RESERVED:
            label = f"fact_{fact.name}_{fact.arity}"
            overload = cel.Overload(label, return_type=cel.Type.BOOL, parameters=[text] * fact.arity)
            names.setdefault(fact.name, []).append(overload)
            bodies[label] = _question(fact.name)
    functions += [cel.FunctionDecl(name, overloads) for name, overloads in names.items()]
    variables = {
        "action": text,
        "principal": text,
        "now": cel.Type.TIMESTAMP,
        "event_type": text,
        "event": cel.Type.Map(text, cel.Type.DYN),
    }
    return cel.NewEnv(variables=variables, functions=functions, function_impls=bodies)


def _local(read: Callable[[datetime], int | str]) -> Callable[[datetime, str], int | str]:
    return lambda instant, zone: read(instant.astimezone(_zone(zone)))


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _question(name: str) -> Callable[..., bool]:
    def question(*arguments: str) -> bool:
        asking = _ASKING.get()
        before, asking.failed = asking.failed, True  # until the answer is there
        answer = asking.ask(Atom(name, tuple(Constant(argument) for argument in arguments)), asking.at)
        asking.failed = before
        return answer is True

    return question


@dataclass(slots=True)
class _Checker:
    """Compares a tree with what is allowed, and gathers what it looks at."""

    source: str
    declared: frozenset[Predicate]
    limits: ConditionLimits
    attributes: set[str]
    facts: set[Predicate]
    inputs: set[str]

    def __init__(self, source: str, declared: frozenset[Predicate], limits: ConditionLimits) -> None:
        self.source, self.declared, self.limits = source, declared, limits
        self.attributes, self.facts, self.inputs = set(), set(), set()

    def check(self, tree: Node) -> None:
        """Refuse a tree that is too large, or that holds what is not allowed."""
        if tree.depth() > self.limits.depth:
            raise self.problem(tree, f"operations are nested at most {self.limits.depth} deep", "CONDITION_LIMIT")
        if sum(1 for _ in tree.walk()) > self.limits.parts:
            raise self.problem(tree, f"a condition has at most {self.limits.parts} parts", "CONDITION_LIMIT")
        stack = [tree]
        while stack:
            node = stack.pop()
            uid = self._attribute(node)
            if uid is not None:
                self.attributes.add(uid)
                self.inputs.add("event")
                continue
            self._check_node(node)
            stack.extend(node.parts)

    def _check_node(self, node: Node) -> None:
        if node.kind in _REFUSED:
            raise self.problem(node, _REFUSED[node.kind], "CONDITION_REFUSED")
        if node.kind == "name":
            if node.text not in _INPUTS:
                raise self.problem(node, f"`{node.text}` is no input", "CONDITION_NAME")
            if node.text == "event":
                raise self.problem(node, 'an event is only looked at as `event["uid"]`', "CONDITION_REFUSED")
            self.inputs.add(node.text)
        elif node.kind == "call":
            self._check_call(node)

    def _check_call(self, node: Node) -> None:
        fact = Predicate(node.text, len(node.parts))
        if node.text in _CLOCK and node.method:
            self._check_zone(node)
        elif fact in self.declared and not node.method and node.text not in _RESERVED:
            self.facts.add(fact)
        elif node.text not in _OPERATORS:
            raise self.problem(node, f"`{node.text}` has no place in a condition", "CONDITION_REFUSED")
        elif node.text == "matches":
            pattern = node.parts[-1]
            if not pattern.literal or len(pattern.text) > self.limits.pattern_characters:
                most = self.limits.pattern_characters
                raise self.problem(node, f"a pattern is written out, in at most {most} letters", "CONDITION_REFUSED")

    def _check_zone(self, node: Node) -> None:
        zone = node.parts[-1]
        if not zone.literal:
            raise self.problem(node, "a time zone is written out", "CONDITION_REFUSED")
        try:
            _zone(zone.text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise self.problem(zone, f"`{zone.text}` is no time zone", "CONDITION_ZONE") from None

    def _attribute(self, node: Node) -> str | None:
        """Tell which attribute ``event["uid"]`` or ``"uid" in event`` looks at."""
        if node.kind != "call" or len(node.parts) != 2:
            return None
        first, second = node.parts
        if node.text == "_[_]" and first.kind == "name" and first.text == "event" and second.literal:
            return second.text
        if node.text == "@in" and second.kind == "name" and second.text == "event" and first.literal:
            return first.text
        return None

    def problem(self, node: Node, message: str, code: str, *, start: bool = False) -> ConditionSyntaxError:
        """Say what is wrong, and where."""
        before = self.source[: 0 if start else node.offset]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        text = f"line {line}, column {column}: {message}"
        return ConditionSyntaxError(text, code=code, line=line, column=column)


def _refusal(text: str) -> ConditionSyntaxError:
    """Turn the library's complaint into Maia's."""
    found = _PLACE.search(text)
    if found is None:
        return ConditionSyntaxError("a condition that is nested too deep, or cannot be read", code="CONDITION_LIMIT")
    line, column, said = int(found[1]), int(found[2]), found[3]
    said = said[:200].replace("'", "`").removesuffix(" (in container ``)")
    if "undeclared reference" in said:
        code = "CONDITION_NAME"
    elif "Syntax error" in said:
        code = "CONDITION_SYNTAX"
    else:
        code = "CONDITION_TYPE"
    return ConditionSyntaxError(
        f"line {line}, column {column}: {said[:1].lower()}{said[1:]}", code=code, line=line, column=column
    )
