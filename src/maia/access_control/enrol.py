"""How principals become members: invitations, and enrolment with the first roles and certificates, one or many at once.

Rules kept here:

- an invitation works once, is kept as the hash of its code, and one that is wrong, used or too old is refused alike;
- a name and a key are given once, also after their member has left; names that mean something in a domain's namespace
  are given to nobody, nor is the domain's own key a member's;
- a domain has sub-domains, or brokers and clients, never both (4.01): whoever would make it both is neither invited nor
  admitted, whether the others are in the register or named by hand;
- many that join together join in one transaction: all of them or nobody, and the answer comes when it is durable.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeAlias, TypeVar

from maia import database
from maia.access_control.appointments import read_appointment
from maia.access_control.facts import deny_now
from maia.access_control.issue import hand_out
from maia.access_control.lists import book_of, sign_due
from maia.access_control.register import Records, Register
from maia.access_control.role_book import as_atom
from maia.access_control.roles import note_roles
from maia.access_control.values import (
    MAX_APPOINTMENTS,
    MAX_ROLES,
    MAX_TOGETHER,
    Application,
    Enrolment,
    Invitation,
    Member,
    MemberKind,
)
from maia.authority import Verifier
from maia.errors import ChainError, DeniedError, UsageError
from maia.kernel import BROKERS, CLIENTS, DOMAINS, MemberNames
from maia.policy import Fact, FactKind, parse_fact
from maia.principals import is_reserved_name

_MEMBER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CODE = 32
_NAMED_AS = {MemberKind.BROKER: BROKERS, MemberKind.CLIENT: CLIENTS, MemberKind.DOMAIN: DOMAINS}
_Newcomer: TypeAlias = tuple[Member, list[tuple[Fact, datetime | None]]]
"""A member to be, with the facts that come along."""
_T = TypeVar("_T")


def invite_all(register: Register, invitations: Iterable[Invitation], *, at: datetime) -> tuple[str, ...]:
    """Invite several to become members; give the codes in order, which are not kept.

    Raises:
        UsageError: One of the names is taken, comes twice or is no name, or there are too many; nobody is invited.
        PolicySyntaxError: An appointment is no fact.
    """
    wanted = _some(invitations)
    codes = [secrets.token_urlsafe(_CODE) for _ in wanted]
    invited = [_record(item, code, at=at) for item, code in zip(wanted, codes, strict=True)]
    with register.writing(at) as records:
        _require_new(register, records, [item.name for item in wanted], at=at)
        _require_kind(register, {item.kind for item in wanted}, at=at)
        records.invitations.forget(before=at)
        records.invitations.add(invited)
        records.journal.note_all((("invite", f"{item.kind.value} {item.name}", None) for item in wanted), at=at)
    return tuple(codes)


def enrol_all(register: Register, applications: Iterable[Application], *, at: datetime) -> tuple[Enrolment, ...]:
    """Make several principals members and hand each its first certificates, in one transaction.

    Raises:
        DeniedError: ``INVITATION_REFUSED`` for a code that is wrong, used or too old; all look alike. Or no rule gives
            one of the roles.
        VerificationError: An appointment does not prove anything for its key.
        UsageError: One shows neither, or both; a key or a name is a member already or comes twice; or they are too
            many.
    """
    applying = _some(applications)
    for item in applying:
        if (item.invitation is None) == (item.appointment is None):
            raise UsageError("show an invitation or an appointment", code="ENROLMENT")
        if len(item.roles) > MAX_ROLES:
            raise UsageError(f"an enrolment activates at most {MAX_ROLES} roles", code="ENROLMENT")
    wanted = [[as_atom(role) for role in item.roles] for item in applying]
    with register.writing(at) as records:
        newcomers = _admit(register, records, applying, at=at)
        members = [member for member, _ in newcomers]
        register.add_members(records, members)
        known = [fact for _, facts in newcomers for fact in facts]
        register.roles.record(records.roles, known)
        deny_now(register, records, [fact for fact, _ in known], at=at)
        roles = [
            Fact(FactKind.ROLE, atom, member.name)
            for member, atoms in zip(members, wanted, strict=True)
            for atom in atoms
        ]
        active = [(role, register.settings.hides(role)) for role in roles]
        register.roles.activate(records.roles, active)
        handed = hand_out(register, records, members, at=at)
        records.journal.note_all((("enrol", f"{item.kind.value} {item.name}", item.name) for item in members), at=at)
        note_roles(register, records, "activate", active, at=at)
    return tuple(Enrolment(member=member, handed=own) for member, own in zip(members, handed, strict=True))


def _admit(register: Register, records: Records, applying: Sequence[Application], *, at: datetime) -> list[_Newcomer]:
    """Check what applicants show, and give the members that they become with the facts that come along."""
    keys = [item.who.key for item in applying]
    if len({key.raw for key in keys}) < len(keys) or any(map(register.has_key, keys)):
        raise UsageError("this key is or was a member already", code="MEMBER_KEY")
    if any(key == register.key for key in keys):
        raise UsageError("the domain's own key is no member's", code="MEMBER_KEY")
    shown = [_digest(item.invitation) for item in applying if item.invitation is not None]
    invitations = records.invitations.take(shown)
    book = None
    if len(shown) < len(applying):  # an appointment counts by the domain's own list of now
        sign_due(register, records, at=at)
        book = book_of(records, at=at)
    newcomers: list[_Newcomer] = []
    for item in applying:
        kind, facts = MemberKind.CLIENT, []
        if book is not None and item.appointment is not None:
            found = read_appointment(item.appointment, who=item.who.key, domain=register.key, book=book, at=at)
            name, facts = found.name, [(Fact(FactKind.APPOINTMENT, found.fact), found.until)]
        else:
            # Taken out of the table and of this mapping: a code that comes twice finds nothing the second time.
            record = invitations.pop(_digest(item.invitation or ""), None)
            if record is None or record.until < at:
                raise DeniedError("the invitation is not open", code="INVITATION_REFUSED")
            name, kind = record.name, MemberKind(record.kind)
            facts = [(Fact(FactKind.APPOINTMENT, parse_fact(it)), None) for it in json.loads(record.appointments)]
        newcomers.append((Member(name=name, key=item.who.key, kind=kind, joined=at), facts))
    _require_new(register, records, [member.name for member, _ in newcomers], at=at)
    _require_kind(register, {member.kind for member, _ in newcomers}, at=at)
    return newcomers


def _require_new(register: Register, records: Records, names: Sequence[str], *, at: datetime) -> None:
    for name in names:
        if not _MEMBER_NAME.fullmatch(name) or is_reserved_name(name):
            raise UsageError(f"`{name}` cannot name a member", code="MEMBER_NAME")
    taken = {name for name in names if name in register.members} | records.invitations.invited(names, at=at)
    for name in names:
        if name in taken:
            raise UsageError(f"the name `{name}` is taken", code="MEMBER_NAME_TAKEN")
        taken.add(name)


def _require_kind(register: Register, kinds: set[MemberKind], *, at: datetime) -> None:
    """Refuse members that would make the domain a group of domains and of brokers or clients at once."""
    evidence, book = register.holdings.evidence(), register.holdings.statements()
    names = MemberNames(evidence, verifier=Verifier(statements=book), at=at)
    here = kinds | {member.kind for member in register.members.values() if member.gone is None}
    here |= {kind for kind, word in _NAMED_AS.items() if names.has(register.key.key_id, word)}
    if MemberKind.DOMAIN in here and len(here) > 1:
        raise ChainError(
            "a domain has sub-domains, or brokers and clients, not both; make a sub-domain for them", code="DOMAIN_KIND"
        )


def _some(items: Iterable[_T]) -> tuple[_T, ...]:
    found = tuple(islice(items, MAX_TOGETHER + 1))
    if len(found) > MAX_TOGETHER:
        raise UsageError(f"at most {MAX_TOGETHER} come at a time", code="TOO_MANY_NAMED")
    return found


def _record(invitation: Invitation, code: str, *, at: datetime) -> database.InvitationRecord:
    """Check an invitation and write it down."""
    if len(invitation.appointments) > MAX_APPOINTMENTS:
        raise UsageError(f"an invitation brings at most {MAX_APPOINTMENTS} appointments", code="INVITATION")
    if not timedelta(0) < invitation.life <= timedelta(days=366):
        raise UsageError("an invitation is open for at most a year", code="INVITATION")
    facts = [str(parse_fact(text)) for text in invitation.appointments]
    return database.InvitationRecord(
        digest=_digest(code),
        name=invitation.name,
        kind=invitation.kind.value,
        until=at + invitation.life,
        appointments=json.dumps(facts),
    )


def _digest(code: str) -> bytes:
    return hashlib.sha256(b"maia/1 invitation\x00" + code.encode("utf-8", "replace")).digest()
