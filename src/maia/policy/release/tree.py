"""The one tree that release rules compile to; `maia.policy.release.columns` runs it on Arrow, and so does Spark.

Rules kept here:

- what leaves is listed, column by column, each made from one attribute; whatever is not listed is not there;
- a destination without a rule has no tree, so nothing leaves to it;
- several rules for one destination add up, and a tree is made only of rules without errors, see `checking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from maia.events import AttributeType, ValueType
from maia.policy.problems import PolicySyntaxError
from maia.policy.release.checking import check_releases
from maia.policy.release.precision import coarsened_type
from maia.policy.release.rules import AddPseudonym, Coarsen, Coarsening, Destination, Keep, Minimum, ReleaseRule

COUNT = "count"
"""What the number of rows of a group is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedColumn:
    """One column that leaves.

    Attributes:
        name: What it is called there.
        attribute: What it is made from.
        source: The type of what it is made from.
        kind: The type of its values.
        coarsening: How much of the value is left; all of it without one.
        scope: Of a pseudonym, within whom it is linkable.
    """

    name: str
    attribute: str
    source: ValueType
    kind: ValueType
    coarsening: Coarsening | None = None
    scope: Destination | None = None

    def __str__(self) -> str:
        """Say how it is made."""
        if self.scope is not None:
            return f"{self.name}: pseudonym of {self.attribute} within {self.scope}"
        return self.name if self.coarsening is None else f"{self.name}: {self.coarsening}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTree:
    """What leaves of one type to one destination: rows, or counts of groups.

    Attributes:
        to: For whom.
        event_type: The type, as the rules name it.
        columns: What leaves; of counts, what makes the groups.
        counts: Whether counts leave.
        people: Of counts, the attribute whose different values are counted for the smallest group.
        minimum: Of counts, how many of them a group has at least.
    """

    to: Destination
    event_type: str
    columns: tuple[ReleasedColumn, ...]
    counts: bool = False
    people: str | None = None
    minimum: int = 0

    @property
    def attributes(self) -> tuple[tuple[str, ValueType], ...]:
        """Names and types of what leaves."""
        own = tuple((column.name, column.kind) for column in self.columns)
        return (*own, (COUNT, AttributeType.INTEGER)) if self.counts else own

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes that it reads, each once."""
        names = [column.attribute for column in self.columns]
        return tuple(dict.fromkeys(names if self.people is None else [*names, self.people]))


def compile_releases(
    rules: Iterable[ReleaseRule], to: Destination, attributes: Mapping[str, ValueType]
) -> tuple[ReleaseTree, ...]:
    """Compile the rules of one type for one destination: at most one tree of rows, and one of counts.

    >>> from maia.events import AttributeType
    >>> from maia.policy.release import parse_destination, parse_releases
    >>> rules = parse_releases("release T to registry keep ward coarsen age to bucket(5)")
    >>> kinds = {"ward": AttributeType.STRING, "age": AttributeType.INTEGER, "name": AttributeType.STRING}
    >>> (tree,) = compile_releases(rules, parse_destination("registry"), kinds)
    >>> [(name, kind.value) for name, kind in tree.attributes]
    [('ward', 'string'), ('age', 'string')]

    Args:
        rules: The rules of the type; those for other destinations are passed by, once they are found to be sound.
        to: For whom.
        attributes: The attributes of the type that is read.

    Raises:
        PolicySyntaxError: A rule has an error; ``line`` and ``column`` say where.
    """
    given = tuple(rules)
    for finding in check_releases(given, dict.fromkeys((rule.event_type for rule in given), attributes)):
        if finding.is_error:
            message = f"line {finding.line}, column {finding.column}: {finding.message}"
            raise PolicySyntaxError(message, code=finding.code, line=finding.line, column=finding.column)
    mine = [rule for rule in given if rule.to == to]
    rows = [rule for rule in mine if not rule.by]
    trees = [_rows(rows, attributes)] if rows else []
    trees += [_counts(rule, attributes) for rule in mine if rule.by]
    return tuple(trees)


def _rows(rules: list[ReleaseRule], attributes: Mapping[str, ValueType]) -> ReleaseTree:
    columns: list[ReleasedColumn] = []
    for rule in rules:
        for clause in rule.clauses:
            if isinstance(clause, Keep):
                columns += [_whole(name, attributes) for name in clause.names]
            elif isinstance(clause, Coarsen):
                columns.append(_coarse(clause, attributes))
            elif isinstance(clause, AddPseudonym):
                scope = rule.to if clause.scope is None or not clause.scope.name else clause.scope
                whole = _whole(clause.attribute, attributes)
                columns.append(replace(whole, name=clause.name, kind=AttributeType.STRING, scope=scope))
    return ReleaseTree(to=rules[0].to, event_type=rules[0].event_type, columns=tuple(columns))


def _counts(rule: ReleaseRule, attributes: Mapping[str, ValueType]) -> ReleaseTree:
    coarse = {item.name: _coarse(item, attributes) for item in rule.clauses if isinstance(item, Coarsen)}
    minimum = next((item for item in rule.clauses if isinstance(item, Minimum)), None)
    return ReleaseTree(
        to=rule.to, event_type=rule.event_type, counts=True,
        columns=tuple(coarse.get(name) or _whole(name, attributes) for name in rule.by),
        people=None if minimum is None else minimum.attribute, minimum=0 if minimum is None else minimum.people,
    )  # fmt: skip


def _whole(name: str, attributes: Mapping[str, ValueType]) -> ReleasedColumn:
    return ReleasedColumn(name=name, attribute=name, source=attributes[name], kind=attributes[name])


def _coarse(clause: Coarsen, attributes: Mapping[str, ValueType]) -> ReleasedColumn:
    kind = coarsened_type(clause.coarsening, attributes[clause.name])
    assert kind is not None  # noqa: S101 - the check found that it fits
    return replace(_whole(clause.name, attributes), kind=kind, coarsening=clause.coarsening)
