"""What is wrong with release rules that read well: found before anything leaves, each with its line and column.

Errors: a rule under which nothing leaves; an attribute that leaves in two ways, or is dropped and leaves; two columns
of one name; a clause that does not belong there; a type or an attribute that does not exist; a coarsening that does not
fit the type or loses nothing; a second count of one type for one destination, or of one that it extends, since one can
be taken from the other: a type is read with those that extend it.
Warnings: counts without a smallest group; a pseudonym beside the value that it hides, or under its name; a scope of a
study for what is no study; rows and counts of one type for one destination.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from maia.encoding import did_you_mean
from maia.events import ArrayOf, AttributeType, StructOf, ValueType
from maia.policy.checking import Severity
from maia.policy.release.precision import coarsened_type
from maia.policy.release.rules import (
    AddPseudonym,
    Clause,
    Coarsen,
    Coarsening,
    Destination,
    DestinationKind,
    Drop,
    Keep,
    Minimum,
    Precision,
    ReleaseRule,
    TextPlace,
)

Types = Mapping[str, Mapping[str, ValueType]]
"""The attributes of types, by the names that rules use."""
Parents = Mapping[str, Collection[str]]
"""All that types extend, by the names that rules use."""
_NO_PSEUDONYM = (AttributeType.BOOLEAN, AttributeType.FLOAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFinding:
    """One thing wrong with release rules, and where."""

    severity: Severity
    code: str
    line: int
    column: int
    message: str

    @property
    def is_error(self) -> bool:
        """Whether nothing may leave by a text with this finding."""
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        """Show the finding on one line."""
        return f"line {self.line}, column {self.column}: {self.severity}: {self.message}"


def check_releases(
    rules: Sequence[ReleaseRule], types: Types | None = None, parents: Parents | None = None
) -> tuple[ReleaseFinding, ...]:
    """List what is wrong with release rules, in the order of their lines.

    >>> from maia.policy.release import parse_releases
    >>> [str(found) for found in check_releases(parse_releases("release T to registry keep age, age"))]
    ['line 1, column 23: error: `age` leaves in two ways']

    Args:
        rules: The rules of a domain.
        types: The attributes of the types that are known; without it, types are not looked at.
        parents: What types extend, as far as they extend any.
    """
    found = list(_differences(rules, parents or {}))
    for rule in rules:
        found += _shape(rule)
        if types is not None:
            found += _fits(rule, types)
    for group in _by_destination(rules):
        found += _together(group)
    return tuple(sorted(found, key=lambda item: (item.line, item.column, item.code)))


def _shape(rule: ReleaseRule) -> Iterator[ReleaseFinding]:
    """Find what no rule may say, whatever the types are."""
    for clause in rule.clauses:
        if rule.by and isinstance(clause, Keep | Drop | AddPseudonym):
            yield _error("RELEASE_CLAUSE", clause.place, "counts have `coarsen` and `at least`, nothing else")
        elif rule.by and isinstance(clause, Coarsen) and clause.name not in rule.by:
            yield _error("RELEASE_CLAUSE", clause.place, f"`{clause.name}` makes no groups, so it is not coarsened")
        elif not rule.by and isinstance(clause, Minimum):
            yield _error("RELEASE_CLAUSE", clause.place, "`at least` belongs to `release counts of`")
    if not rule.by and all(isinstance(clause, Drop | Minimum) for clause in rule.clauses):
        yield _error("RELEASE_EMPTY", rule.place, "nothing leaves by this rule")
    if rule.by:
        yield from _counts(rule)


def _counts(rule: ReleaseRule) -> Iterator[ReleaseFinding]:
    if len(set(rule.by)) < len(rule.by) or "count" in rule.by:
        yield _error("RELEASE_TWICE", rule.place, "every column of counts has a name of its own, and `count` is one")
    coarsened = [clause.name for clause in rule.clauses if isinstance(clause, Coarsen)]
    minima = [clause for clause in rule.clauses if isinstance(clause, Minimum)]
    if len(set(coarsened)) < len(coarsened) or len(minima) > 1:
        yield _error("RELEASE_TWICE", rule.place, "one attribute is coarsened once, and `at least` stands once")
    if not minima:
        message = "groups of any size leave, also of one person: write `at least 10 ATTRIBUTE`"
        yield _warning("NO_MINIMUM", rule.place, message)


def _differences(rules: Sequence[ReleaseRule], parents: Parents) -> Iterator[ReleaseFinding]:
    """Find counts for one destination that cover the same events."""
    counts = [rule for rule in rules if rule.by]
    for number, rule in enumerate(counts):
        for other in counts[:number]:
            if other.to == rule.to and _reads_same(rule.event_type, other.event_type, parents):
                message = (
                    f"line {other.place.line} counts `{other.event_type}` for {rule.to} already; one is taken from"
                )
                yield _error("RELEASE_DIFFERENCE", rule.place, f"{message} the other")
                break


def _reads_same(one: str, other: str, parents: Parents) -> bool:
    """Tell whether events of one type are read as the other."""
    return one == other or one in parents.get(other, ()) or other in parents.get(one, ())


def _together(rules: Sequence[ReleaseRule]) -> Iterator[ReleaseFinding]:
    """Find what rules for one type and one destination may not say together."""
    counts = [rule for rule in rules if rule.by]
    clauses = [clause for rule in rules if not rule.by for clause in rule.clauses]
    if counts and clauses:
        message = f"rows of this type leave to {counts[0].to} as well, which can be counted"
        yield _warning("ROWS_AND_COUNTS", counts[0].place, message)
    dropped = {name for clause in clauses if isinstance(clause, Drop) for name in clause.names}
    taken: dict[str, Clause] = {}
    for clause in clauses:
        for name in _outputs(clause):
            if name in taken:
                yield _error("RELEASE_TWICE", clause.place, f"`{name}` leaves in two ways")
            taken.setdefault(name, clause)
            if not isinstance(clause, AddPseudonym) and name in dropped:
                yield _error("RELEASE_TWICE", clause.place, f"`{name}` is dropped, and leaves all the same")
    for clause in clauses:
        if isinstance(clause, AddPseudonym):
            yield from _pseudonym(clause, taken, dropped, rules[0].to)


def _pseudonym(
    clause: AddPseudonym, taken: Mapping[str, Clause], dropped: set[str], to: Destination
) -> Iterator[ReleaseFinding]:
    if isinstance(taken.get(clause.attribute), Keep | Coarsen):
        message = f"`{clause.attribute}` leaves beside its pseudonym, which hides nothing then"
        yield _warning("PSEUDONYM_OPEN", clause.place, message)
    if clause.name == clause.attribute:
        message = f"the pseudonym is called as what it hides; call it something else than `{clause.name}`"
        yield _warning("PSEUDONYM_NAME", clause.place, message)
    if clause.name in dropped and clause.name != clause.attribute:
        yield _error("RELEASE_TWICE", clause.place, f"`{clause.name}` is dropped, and leaves all the same")
    if clause.scope is not None and not clause.scope.name and clause.scope.kind is not to.kind:
        message = f"`{to.name}` is no {clause.scope.kind}; the pseudonym is linkable within {to} alone"
        yield _warning("RELEASE_SCOPE", clause.place, message)


def _fits(rule: ReleaseRule, types: Types) -> Iterator[ReleaseFinding]:
    """Find what does not fit the type."""
    attributes = types.get(rule.event_type)
    if attributes is None:
        message = f"there is no event type `{rule.event_type}`{did_you_mean(rule.event_type, types)}"
        yield _error("UNKNOWN_TYPE", rule.place, message)
        return
    used = [(rule.place, name) for name in rule.by]
    used += [(clause.place, name) for clause in rule.clauses for name in _inputs(clause)]
    for place, name in used:
        if name not in attributes:
            message = f"`{rule.event_type}` has no attribute `{name}`{did_you_mean(name, attributes)}"
            yield _error("UNKNOWN_ATTRIBUTE", place, message)
    for clause in rule.clauses:
        yield from _clause_fits(clause, attributes)
    coarsened = {clause.name for clause in rule.clauses if isinstance(clause, Coarsen)}
    for name in rule.by:
        if isinstance(attributes.get(name), ArrayOf | StructOf) and name not in coarsened:
            yield _error("RELEASE_TYPE", rule.place, f"`{name}` is {attributes[name].value}, which makes no groups")


def _clause_fits(clause: Clause, attributes: Mapping[str, ValueType]) -> Iterator[ReleaseFinding]:
    match clause:
        case Coarsen(name=name, coarsening=coarsening) if name in attributes:
            kind = attributes[name]
            if coarsened_type(coarsening, kind) is None:
                message = f"`{name}` is {kind.value}, which is not coarsened to {coarsening}{_instead(kind)}"
                yield _error("RELEASE_TYPE", clause.place, message)
            elif coarsening == Coarsening(Precision.BUCKET, 1) and kind is AttributeType.INTEGER:
                yield _warning("RELEASE_SIZE", clause.place, "a bucket of one value hides nothing")
        case AddPseudonym(attribute=name) | Minimum(attribute=name) if name in attributes:
            kind = attributes[name]
            counted = isinstance(clause, Minimum)  # different values of any type can be counted
            if isinstance(kind, ArrayOf | StructOf) or (kind in _NO_PSEUDONYM and not counted):
                message = f"`{name}` is {kind.value}, which names nobody"
                yield _error("RELEASE_TYPE", clause.place, message)


def _instead(kind: ValueType) -> str:
    """Say what a type can be coarsened to."""
    words = {
        AttributeType.DATE: "month or year",
        AttributeType.TIMESTAMP: "month or year",
        AttributeType.INTEGER: "bucket(N)",
        AttributeType.FLOAT: "bucket(N) or decimals(N)",
        AttributeType.DECIMAL: "bucket(N) or fewer decimals(N)",
        AttributeType.STRING: "first(N), last(N) or, where it holds numbers, decimals(N)",
    }
    found = words.get(kind.base) if not isinstance(kind, ArrayOf | StructOf) else None
    return "; keep it or leave it" if found is None else f" but to {found}"


def _outputs(clause: Clause) -> tuple[str, ...]:
    match clause:
        case Keep(names=names):
            return names
        case Coarsen(name=name) | AddPseudonym(name=name):
            return (name,)
        case _:
            return ()


def _inputs(clause: Clause) -> tuple[str, ...]:
    match clause:
        case Keep(names=names) | Drop(names=names):
            return names
        case Coarsen(name=name) | AddPseudonym(attribute=name) | Minimum(attribute=name):
            return (name,)


def _by_destination(rules: Sequence[ReleaseRule]) -> list[list[ReleaseRule]]:
    found: dict[tuple[str, DestinationKind, str], list[ReleaseRule]] = {}
    for rule in rules:
        found.setdefault((rule.event_type, rule.to.kind, rule.to.name), []).append(rule)
    return list(found.values())


def _error(code: str, place: TextPlace, message: str) -> ReleaseFinding:
    return ReleaseFinding(
        severity=Severity.ERROR, code=code, line=place.line, column=place.column, message=message
    )  # fmt: skip


def _warning(code: str, place: TextPlace, message: str) -> ReleaseFinding:
    return ReleaseFinding(
        severity=Severity.WARNING, code=code, line=place.line, column=place.column, message=message
    )  # fmt: skip
