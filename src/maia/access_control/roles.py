"""Roles of members: what is activated, and what the journal says of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control.register import Records, Register
from maia.access_control.role_book import as_atom
from maia.errors import DeniedError
from maia.policy import Atom, Fact, FactKind, PolicyProof
from maia.principals import Authenticated

ADMINISTER = Atom("administer")
"""The privilege of those who may change policy, appoint, invite and withdraw."""


def require_administrator(register: Register, who: Authenticated, *, at: datetime) -> None:
    """Refuse whoever is neither the domain itself nor given `administer`.

    Raises:
        DeniedError: ``NOT_ADMINISTRATOR``.
    """
    if who.key == register.key:
        return
    with register.reading(at):
        member = register.find(who)
        if member is None or not register.roles.decide(ADMINISTER, principal=member.name):
            raise DeniedError("only administrators of the domain may do this", code="NOT_ADMINISTRATOR")


def activate(
    register: Register, who: Authenticated, role: Atom | str, *, at: datetime, anonymous: bool | None
) -> PolicyProof:
    """Activate a role for a member, and give the proof.

    Args:
        register: Of the domain.
        who: The member.
        role: The role with all its parameters.
        at: Now.
        anonymous: Whether the journal leaves out who it is; what the settings say for the role when not given.

    Raises:
        DeniedError: No rule is met, or the key is no member's.
        PolicySyntaxError: The text is no role.
    """
    atom = as_atom(role)
    with register.writing(at) as records:
        wanted = Fact(FactKind.ROLE, atom, register.require(who).name)
        hidden = register.settings.hides(wanted) if anonymous is None else anonymous
        (proof,) = register.roles.activate(records.roles, [(wanted, hidden)])
        register.changes()
        note_roles(register, records, "activate", [(wanted, hidden)], at=at)
    return proof


def note_roles(
    register: Register, records: Records, action: str, roles: Iterable[tuple[Fact, bool]], *, at: datetime
) -> None:
    """Write what became of roles into the journal; of those that are hidden it names nobody."""
    shown = register.settings.shown
    records.journal.note_all(
        ((action, shown(role, anonymous=hidden), None if hidden else role.holder) for role, hidden in roles), at=at
    )
