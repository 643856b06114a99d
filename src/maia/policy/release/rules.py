"""Release rules as they are written: for one destination and one type, what leaves, how precisely, under which name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

_NAME = re.compile(r"[^\W\d][\w.-]*")


class DestinationKind(StrEnum):
    """Whom a release is for: another domain, or a study, whoever takes part in it."""

    DOMAIN = "domain"
    STUDY = "study"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """Whom a release is for.

    >>> print(Destination(DestinationKind.STUDY, "bladder-7"), Destination(DestinationKind.DOMAIN, "registry"))
    study("bladder-7") registry
    """

    kind: DestinationKind
    name: str

    def __str__(self) -> str:
        """Write it as a rule does."""
        if self.kind is DestinationKind.DOMAIN:
            return show_name(self.name)
        return f"{self.kind.value}({quoted(self.name)})"


class Precision(StrEnum):
    """What a value is coarsened to; all but the first two have a size."""

    MONTH = "month"
    YEAR = "year"
    BUCKET = "bucket"
    DECIMALS = "decimals"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Coarsening:
    """How much of a value is left.

    >>> print(Coarsening(Precision.BUCKET, 5), Coarsening(Precision.MONTH))
    bucket(5) month
    """

    precision: Precision
    size: int | None = None

    def __str__(self) -> str:
        """Write it as a rule does."""
        return self.precision.value if self.size is None else f"{self.precision.value}({self.size})"


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where something stands in a text; lines and columns count from 1."""

    line: int = 1
    column: int = 1
    end_line: int = 1

    def moved(self, lines: int) -> TextPlace:
        """Give the place so many lines further down."""
        return TextPlace(self.line + lines, self.column, self.end_line + lines)


@dataclass(frozen=True, slots=True)
class Keep:
    """Attributes that leave as they are."""

    names: tuple[str, ...]
    place: TextPlace = TextPlace()

    def __str__(self) -> str:
        """Write the clause."""
        return f"keep    {_listed(self.names)}"


@dataclass(frozen=True, slots=True)
class Drop:
    """Attributes that stay, said aloud: no other clause may let them go."""

    names: tuple[str, ...]
    place: TextPlace = TextPlace()

    def __str__(self) -> str:
        """Write the clause."""
        return f"drop    {_listed(self.names)}"


@dataclass(frozen=True, slots=True)
class Coarsen:
    """An attribute that leaves with less precision."""

    name: str
    coarsening: Coarsening
    place: TextPlace = TextPlace()

    def __str__(self) -> str:
        """Write the clause."""
        return f"coarsen {show_name(self.name)} to {self.coarsening}"


@dataclass(frozen=True, slots=True)
class AddPseudonym:
    """A new attribute: a pseudonym of another, linkable within a scope, which is the destination unless named."""

    name: str
    attribute: str
    scope: Destination | None = None
    place: TextPlace = TextPlace()

    def __str__(self) -> str:
        """Write the clause."""
        scope = "" if self.scope is None else f", scope = {_scope(self.scope)}"
        return f"add     {show_name(self.name)} = pseudonym({show_name(self.attribute)}{scope})"


@dataclass(frozen=True, slots=True)
class Minimum:
    """How many different people, by an attribute, a group has at least that leaves."""

    people: int
    attribute: str
    place: TextPlace = TextPlace()

    def __str__(self) -> str:
        """Write the clause."""
        return f"at least {self.people} {show_name(self.attribute)}"


Clause: TypeAlias = Keep | Drop | Coarsen | AddPseudonym | Minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRule:
    """One rule.

    Attributes:
        event_type: The type, as the rule names it.
        to: For whom.
        clauses: What leaves.
        by: Of a release of counts, the attributes that make the groups; none when rows leave.
        place: Where it stands in the text.
    """

    event_type: str
    to: Destination
    clauses: tuple[Clause, ...] = ()
    by: tuple[str, ...] = ()
    place: TextPlace = TextPlace()

    @property
    def head(self) -> str:
        """The first line of the rule."""
        if self.by:
            return f"release counts of {self.event_type} by {_listed(self.by)} to {self.to}"
        return f"release {self.event_type} to {self.to}"

    @property
    def kept(self) -> tuple[str, ...]:
        """The attributes that leave as they are."""
        return tuple(name for clause in self.clauses if isinstance(clause, Keep) for name in clause.names)

    def moved(self, lines: int) -> ReleaseRule:
        """Give the rule as it stands in a longer text, so many lines further down."""
        clauses = tuple(replace(clause, place=clause.place.moved(lines)) for clause in self.clauses)
        return replace(self, clauses=clauses, place=self.place.moved(lines))

    def __str__(self) -> str:
        """Write the rule in its one spelling."""
        return "\n".join((self.head, *(f"  {clause}" for clause in self.clauses)))


def show_name(name: str) -> str:
    """Write a name, in quotes where it is no plain word.

    >>> show_name("hospital-ID"), show_name("date of birth")
    ('hospital-ID', '"date of birth"')
    """
    return name if _NAME.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """Write a text in quotes."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(show_name, names))


def _scope(scope: Destination) -> str:
    """Write a scope: `study` or `domain` for the destination itself, or somebody by name."""
    return scope.kind.value if not scope.name else f"{scope.kind.value}({quoted(scope.name)})"
