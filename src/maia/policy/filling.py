"""Privileges with values in the place of variables, and whether one may be about another."""

from __future__ import annotations

from dataclasses import replace

from maia.policy.issuing import as_event_right
from maia.policy.rules import AttributeUse, Privilege
from maia.policy.solving import Bound
from maia.policy.terms import Atom, Constant, Variable, substitute

_ALIASES = {"advertise": "publish", "define": "manage"}


def filled(privilege: Privilege, binding: Bound) -> Privilege:
    """Write a privilege with the values that its variables have.

    >>> print(filled(Atom("track", (Variable("plate"),)), {"plate": Constant("AE05 XYZ")}))
    track('AE05 XYZ')
    """
    if isinstance(privilege, Constant):
        return privilege
    if isinstance(privilege, Atom):
        return Atom(privilege.name, tuple(substitute(argument, binding) for argument in privilege.arguments))
    uses = privilege.attributes
    return replace(
        privilege,
        attributes=None if uses is None else tuple(_filled_use(use, binding) for use in uses),
        bounds=tuple(
            replace(
                bound,
                demands=tuple(
                    replace(demand, values=tuple(_value(value, binding) for value in demand.values))
                    for demand in bound.demands
                ),
            )
            for bound in privilege.bounds
        ),
    )


def _filled_use(use: AttributeUse, binding: Bound) -> AttributeUse:
    return use if use.value is None else replace(use, value=_value(use.value, binding))


def may_concern(denied: Privilege, wanted: Privilege) -> bool:
    """Tell whether a denial may take something of a privilege; where types are called differently, by their last part.

    SECURITY: an engine knows no types, so where it cannot tell it says yes.
    """
    one, other = as_event_right(denied), as_event_right(wanted)
    if one is None or other is None:
        return denied == wanted
    words = {right.event_type.partition("@")[0].rpartition("/")[2].rpartition(".")[2] for right in (one, other)}
    return len(words) == 1 and _ALIASES.get(one.action, one.action) == _ALIASES.get(other.action, other.action)


def _value(value: Variable | Constant, binding: Bound) -> Constant:
    found = substitute(value, binding)
    # A term with parameters becomes its text: attributes hold plain values.
    return found if isinstance(found, Constant) else Constant(str(found))
