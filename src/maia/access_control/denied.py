"""What denials of the policy in force stand on, and what they take of what members have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from maia.access_control.register import Register
from maia.access_control.values import HeldPrivilege
from maia.errors import MaiaError
from maia.policy import AllowedRight, Atom, DenialInForce, Privilege, TypeCatalogue, compile_allowed


def denies(register: Register, fact: Atom) -> bool:
    """Tell whether some denial of the policy in force stands on facts of this kind."""
    denials = register.roles.engine.policy.denials
    return any(premise.atom.signature == fact.signature for rule in denials for premise in rule.premises)


def held_privileges(register: Register, principal: str, *, at: datetime) -> tuple[HeldPrivilege, ...]:
    """List what the roles of a member give, each with what denials take of it; sorted by its words.

    Raises:
        UncheckedError: The rules need more steps than allowed.
    """
    engine, catalogue = register.roles.engine, register.holdings.types(at=at)
    denials = engine.denials(principal)
    found = []
    for _, privilege in engine.privileges(principal):
        allowed = _allowed(privilege, denials, catalogue)
        found.append(
            HeldPrivilege(
                privilege=str(privilege),
                words=allowed.words(privilege),
                whole=allowed.whole,
                denied_by=allowed.denied_by,
            )
        )
    return tuple(sorted(found, key=lambda item: item.words))


def _allowed(privilege: Privilege, denials: Sequence[DenialInForce], catalogue: TypeCatalogue) -> AllowedRight:
    """Say what is left of a privilege; one that cannot be a right is not issued anyway, whoever denies it."""
    if not denials:
        return AllowedRight(right=None)
    try:
        return compile_allowed(privilege, denials, catalogue)
    except MaiaError:
        return AllowedRight(right=None)
