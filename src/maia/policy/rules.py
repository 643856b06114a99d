"""Rules as values: what activates a role, what an active role gives, and what is given to nobody of whom facts hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from maia.policy.terms import Atom, Constant, Term, Variable, quoted, variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """One condition of a rule.

    Attributes:
        atom: What must hold.
        environment: Whether it asks the environment (`?`); otherwise it asks for a role or an appointment.
        monitored: Whether it must stay true for the role to stay active (`*`).
    """

    atom: Atom
    environment: bool = False
    monitored: bool = False

    def __str__(self) -> str:
        """Show the premise as a rule writes it."""
        return f"{'?' if self.environment else ''}{spell(self.atom)}{'*' if self.monitored else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeUse:
    """One attribute of an event right, with the comparison its values must meet, if any; `any` asks for a value."""

    name: str
    operator: str | None = None
    value: Variable | Constant | None = None

    def __str__(self) -> str:
        """Show it as a rule writes it."""
        return " ".join(part for part in (self.name, self.operator, self.value and spell(self.value)) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDemand:
    """One constraint of an access-control filter: an attribute, an operator and its values; `any` has none."""

    name: str
    operator: str = "any"
    values: tuple[Variable | Constant, ...] = ()
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Show it as a rule writes it."""
        shown = ", ".join(map(spell, self.values))
        return " ".join(part for part in (self.name, self.operator, f"({shown})" if self.operator == "in" else shown)
                        if part)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundUse:
    """An access-control filter: a kind of bound, or `min`, `exact` or `max` over attributes, and its constraints."""

    kind: str
    demands: tuple[BoundDemand, ...]
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Show it as a rule writes it."""
        listed = self.kind in ("min", "exact", "max")  # these list attributes
        shown = (demand.name if listed and demand.operator == "any" else str(demand) for demand in self.demands)
        return f"{self.kind} ({', '.join(shown)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRight:
    """A privilege on an event type: ``subscribe Numberplate(location, numberplate = plate)``.

    Without a list of attributes ``attributes`` is None: the right names the type alone. All ``bounds`` must allow what
    is published or subscribed to.
    """

    action: str
    event_type: str
    attributes: tuple[AttributeUse, ...] | None = None
    bounds: tuple[BoundUse, ...] = ()

    def __str__(self) -> str:
        """Show the right as a rule writes it."""
        listed = "" if self.attributes is None else f"({', '.join(map(str, self.attributes))})"
        return " ".join((f"{self.action} {self.event_type}{listed}", *map(str, self.bounds)))


Privilege: TypeAlias = Atom | EventRight | Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRule:
    """``head <- premises``: who meets all premises may activate the head."""

    head: Atom
    premises: tuple[Premise, ...]
    line: int = field(default=1, compare=False)

    def __str__(self) -> str:
        """Show the rule as it is written."""
        return f"{spell(self.head)} <- {', '.join(map(str, self.premises))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorisationRule:
    """``role, ?conditions |- privilege``: who has the role active, and meets the conditions now, has the privilege."""

    role: Atom
    conditions: tuple[Premise, ...]
    privilege: Privilege
    line: int = field(default=1, compare=False)

    def __str__(self) -> str:
        """Show the rule as it is written, the role first."""
        premises = ", ".join((spell(self.role), *map(str, self.conditions)))
        return f"{premises} |- {spell_privilege(self.privilege)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DenialRule:
    """``appointments !- privilege``: to whomever the appointments concern the privilege is not given, by any rule."""

    premises: tuple[Premise, ...]
    privilege: Privilege
    line: int = field(default=1, compare=False)

    def __str__(self) -> str:
        """Show the rule as it is written."""
        return f"{', '.join(map(str, self.premises))} !- {spell_privilege(self.privilege)}"


Rule: TypeAlias = ActivationRule | AuthorisationRule | DenialRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one domain, in the order in which they were written."""

    rules: tuple[Rule, ...]

    @property
    def activations(self) -> tuple[ActivationRule, ...]:
        """The rules that activate roles."""
        return tuple(rule for rule in self.rules if isinstance(rule, ActivationRule))

    @property
    def authorisations(self) -> tuple[AuthorisationRule, ...]:
        """The rules that give privileges."""
        return tuple(rule for rule in self.rules if isinstance(rule, AuthorisationRule))

    @property
    def denials(self) -> tuple[DenialRule, ...]:
        """The rules that take privileges away."""
        return tuple(rule for rule in self.rules if isinstance(rule, DenialRule))

    @property
    def on_privileges(self) -> tuple[AuthorisationRule | DenialRule, ...]:
        """The rules that give privileges or take them away."""
        return (*self.authorisations, *self.denials)

    @property
    def roles(self) -> frozenset[tuple[str, int]]:
        """The roles: each head of an activation rule, by name and number of parameters."""
        return frozenset(rule.head.signature for rule in self.activations)


def spell(term: Term) -> str:
    """Write a term as a rule writes it: constants always in quotes, because a bare word is a variable.

    >>> spell(Atom("f", (Constant("a"), Variable("x"))))
    "f('a', x)"
    """
    if isinstance(term, Constant):
        return quoted(term.value)
    if isinstance(term, Atom) and term.arguments:
        return f"{term.name}({', '.join(map(spell, term.arguments))})"
    return str(term)


def spell_privilege(privilege: Privilege) -> str:
    """Write a privilege as a rule writes it.

    >>> spell_privilege(Constant("read notes"))
    "'read notes'"
    """
    return str(privilege) if isinstance(privilege, EventRight) else spell(privilege)


def privilege_variables(privilege: Privilege) -> Iterator[Variable]:
    """Walk the variables of a privilege; names of attributes are none.

    >>> [found.name for found in privilege_variables(Atom("track", (Variable("plate"),)))]
    ['plate']
    """
    if isinstance(privilege, EventRight):
        for use in privilege.attributes or ():
            if use.value is not None:
                yield from variables(use.value)
        for bound in privilege.bounds:
            for demand in bound.demands:
                for value in demand.values:
                    yield from variables(value)
    else:
        yield from variables(privilege)
