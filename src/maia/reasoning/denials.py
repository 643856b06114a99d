"""What denials do to a policy, by its rules alone: where each takes effect, which never does, what is denied whole.

A denial stands on appointments, which somebody has or not: so it takes effect on a rule *for whomever it concerns*.
Where values are left to variables, a denial takes a part: which rows depends on who is concerned. Whether something is
taken is asked of what issues the rights, on the rule without the values that are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from maia.errors import MaiaError
from maia.policy import (
    Atom,
    AuthorisationRule,
    Constant,
    DenialInForce,
    DenialRule,
    EventRight,
    Policy,
    Privilege,
    TypeCatalogue,
    Variable,
    compile_allowed,
)


@dataclass(frozen=True, slots=True)
class DenialEffect:
    """A rule from which a denial takes something, of whoever the denial concerns.

    Attributes:
        rule: The rule that gives.
        line: Its line.
        whole: Whether nothing is left of it.
        file: The file that it stands in, where that is known.
    """

    rule: str
    line: int
    whole: bool
    file: str = ""


@dataclass(frozen=True, slots=True)
class DenialView:
    """A denial and the rules on which it takes effect; on none, it says nothing.

    Attributes:
        rule: The denial.
        line: Its line.
        effects: The rules from which it takes something.
        file: The file that it stands in, where that is known.
    """

    rule: str
    line: int
    effects: tuple[DenialEffect, ...]
    file: str = ""

    @property
    def idle(self) -> bool:
        """Whether no rule gives anything of what is denied."""
        return not self.effects


def view_denials(policy: Policy, catalogue: TypeCatalogue) -> tuple[DenialView, ...]:
    r"""Tell of each denial on which rules it takes effect, in the order of the rules.

    >>> from maia.policy import parse_policy
    >>> rules = parse_policy("clerk(self) <- employed(self)*\nclerk(c) |- read('files')\nleft(self) !- read('files')")
    >>> [(view.idle, view.effects[0].whole) for view in view_denials(rules, TypeCatalogue())]
    [(False, True)]
    """
    return tuple(
        DenialView(str(denial), denial.line, tuple(_effects(denial, policy, catalogue))) for denial in policy.denials
    )


def _effects(denial: DenialRule, policy: Policy, catalogue: TypeCatalogue) -> Iterator[DenialEffect]:
    for rule in policy.authorisations:
        taken = _taken(denial.privilege, rule, catalogue)
        if taken is not None:
            yield DenialEffect(str(rule), rule.line, taken)


def _taken(denied: Privilege, rule: AuthorisationRule, catalogue: TypeCatalogue) -> bool | None:
    """Tell whether a denial takes all of what a rule gives, or some; nothing when it takes nothing."""
    given = rule.privilege
    if _open_atom(denied) or _open_atom(given):
        return False if _unify(denied, given) else None
    ground, complete = _known(denied)
    item = DenialInForce(privilege=ground, rule="", line=1, facts=())
    try:
        left = compile_allowed(_known(given)[0], [item], catalogue)
    except MaiaError:
        return None  # named by the check of the policy
    if not left.denied_by:
        return None
    # Without the values that are not known a denial takes more than it says, and a rule gives more than it does.
    return left.whole and complete


def _known(privilege: Privilege) -> tuple[Privilege, bool]:
    """Leave out of a right what it asks of values that variables hold; say whether that was nothing."""
    if not isinstance(privilege, EventRight):
        return privilege, True
    uses = privilege.attributes
    kept = None if uses is None else tuple(
        replace(use, operator=None, value=None) if isinstance(use.value, Variable) else use for use in uses
    )  # fmt: skip
    bounds = tuple(
        bound for bound in privilege.bounds
        if not any(isinstance(value, Variable) for demand in bound.demands for value in demand.values)
    )  # fmt: skip
    return replace(privilege, attributes=kept, bounds=bounds), kept == uses


def _open_atom(privilege: Privilege) -> bool:
    return isinstance(privilege, Atom) and any(isinstance(item, Variable) for item in privilege.arguments)


def _unify(one: Privilege, other: Privilege) -> bool:
    """Tell whether two privileges may be the same once their variables have values."""
    if not isinstance(one, Atom) or not isinstance(other, Atom) or one.signature != other.signature:
        return False
    pairs = zip(one.arguments, other.arguments, strict=True)
    return all(a == b for a, b in pairs if isinstance(a, Constant) and isinstance(b, Constant))
