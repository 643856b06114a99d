"""Privileges that members lost: what the flow tags of a sequence, t1, t2, …, are told apart by.

Rules kept here:

- a role that was taken away counts from the instant of the withdrawal, which is exact. One that lapsed, because its
  time was over or what it stood on outside was no more, is found out later: since when is not known, so it counts for
  nothing;
- what a role gave is written when it is taken away, by the policy of that moment and the circumstances that held then.
  No later policy gives it more: who never held a tag does not come by what was labelled with it;
- of that, a lost role gives what the policy in force would give for it now, conditions included: a stricter policy and
  a circumstance that does not hold close what was open before as well;
- who used a role anonymously is named nowhere, and keeps nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control.register import Records, Register
from maia.access_control.role_book import as_atom
from maia.errors import MaiaError, UncheckedError
from maia.policy import Atom, Fact, FactKind, PolicyEngine, Privilege, would_give

MAX_LOSSES = 1_000
"""How many withdrawals count, and losses by them, the latest; what was lost earlier is closed as a whole."""
Lost = tuple[str, Privilege, datetime]
"""Who lost which privilege, and when."""


def lost_privileges(register: Register, principal: str | None, *, at: datetime) -> tuple[Lost, ...]:
    """List who lost which privilege when, latest first; somebody may have it again.

    Args:
        register: Of the domain.
        principal: Whose losses; all when not given.
        at: Now.
    """
    with register.reading(at):
        with register.reading_rows() as records:
            falls = records.journal.latest("fall", who=principal, limit=MAX_LOSSES)
            lapsed = records.journal.latest("lapse", who=principal, limit=MAX_LOSSES)
            losses = records.journal.latest("lose", who=principal, limit=MAX_LOSSES)
        # SECURITY: of a lapse only the finding out has an instant, and what came in between was not allowed.
        unknown = {(line.who, line.what, line.at) for line in lapsed}
        gave = {(line.who, line.what, line.at) for line in losses}
        engine, found = register.roles.engine, []
        for line in falls:
            if line.who is None or (line.who, line.what, line.at) in unknown or line.at > at:
                continue
            try:
                role = Fact(FactKind.ROLE, as_atom(line.what), line.who)
            except MaiaError:
                continue  # of a policy that was written otherwise
            # SECURITY: only what it gave when it fell; by the policy of now alone, a rule of today would open the past.
            found += [
                (line.who, privilege, line.at)
                for privilege in would_give(engine, role)
                if (line.who, _loss(line.what, privilege), line.at) in gave
            ]
    return tuple(found)


def note_losses(records: Records, engine: PolicyEngine, fallen: Iterable[Fact], *, at: datetime) -> None:
    """Write into the journal which privileges roles gave that are taken away now, those that may be flow tags.

    Args:
        records: The transaction that takes the roles away.
        engine: With the policy under which they were held.
        fallen: The roles, of those that the journal may name.
        at: Now.
    """
    lines: list[tuple[str, str, str | None]] = []
    for role in fallen:
        try:
            given = would_give(engine, role)
        except UncheckedError:
            continue  # a withdrawal waits for nothing, and who cannot be shown to have held something keeps nothing
        lines += [("lose", _loss(str(role.atom), item), role.holder) for item in given if isinstance(item, Atom)]
    records.journal.note_all(lines, at=at)


def _loss(role: str, privilege: Privilege) -> str:
    return f"{role} |- {privilege}"
