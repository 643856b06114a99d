"""Becoming a member: invitations, and enrolment with the first roles and certificates; one principal or many at a time.

Rules kept here:

- an invitation works once, is kept as the hash of its code, and one that is wrong, used or too old is refused alike;
- a name and a key are given once, also after their member has left;
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
from typing import TypeVar

from maia import database
from maia.access_control.applying import Applying
from maia.access_control.appointments import read_appointment
from maia.access_control.lists import book_of
from maia.access_control.role_book import as_atom
from maia.access_control.values import Application, Enrolment, Invitation, Member, MemberKind
from maia.access_control.withdrawing import MAX_TOGETHER
from maia.errors import DeniedError, UsageError
from maia.policy import BROKERS, Atom, Fact, FactKind, parse_fact
from maia.principals import Authenticated

_MEMBER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = frozenset((BROKERS, "self"))
_CODE = 32
_MAX_APPOINTMENTS = 100
_MAX_ROLES = 100
_INVITATION_LIFE = timedelta(days=1)
_Records = database.AccessControlRecords
_Joining = tuple[Member, list[tuple[Fact, datetime | None]]]
_T = TypeVar("_T")


class Joining(Applying):
    """Lets principals in."""

    def invite(
        self,
        name: str,
        *,
        at: datetime,
        kind: MemberKind = MemberKind.CLIENT,
        life: timedelta = _INVITATION_LIFE,
        appointments: Iterable[str] = (),
    ) -> str:
        """Invite somebody to become a member; give the code, which is not kept and works once.

        Args:
            name: What the policy will call the member.
            at: Now.
            kind: What it will be.
            life: How long the invitation is open.
            appointments: Facts that are recorded when it is used, such as ``detective(smith)``.

        Raises:
            UsageError: The name is taken or no name, or the appointments are too many.
            PolicySyntaxError: An appointment is no fact.
        """
        facts = tuple(islice(appointments, _MAX_APPOINTMENTS + 1))
        (code,) = self.invite_all([Invitation(name=name, kind=kind, life=life, appointments=facts)], at=at)
        return code

    def invite_all(self, invitations: Iterable[Invitation], *, at: datetime) -> tuple[str, ...]:
        """Invite several to become members, at most a thousand; give the codes in order, when all are durable.

        Raises:
            UsageError: One of the names is taken, comes twice or is no name, or there are too many; nobody is invited.
            PolicySyntaxError: An appointment is no fact.
        """
        wanted = _some(invitations)
        records = {secrets.token_urlsafe(_CODE): _record(item, at=at) for item in wanted}
        with self._writing(at) as kept:
            self._require_new(kept, [item.name for item in wanted], at=at)
            kept.forget_invitations(before=at)
            kept.add_invitations({_digest(code): record for code, record in records.items()})
            kept.note_all((("invite", f"{item.kind.value} {item.name}", None) for item in wanted), at=at)
        return tuple(records)

    def enrol(
        self,
        who: Authenticated,
        *,
        at: datetime,
        invitation: str | None = None,
        appointment: bytes | None = None,
        roles: Iterable[Atom | str] = (),
    ) -> Enrolment:
        """Make a principal a member and hand it its first certificates.

        Args:
            who: Has just proven its key.
            at: Now.
            invitation: The code of an invitation; used up, even if it is shown twice at once.
            appointment: An appointment certificate of this domain for that key.
            roles: Roles that it activates at once; what they give is among the certificates.

        Raises:
            DeniedError: ``INVITATION_REFUSED`` for a code that is wrong, used or too old; all look alike. Or no rule
                gives one of the roles.
            VerificationError: The appointment does not prove anything for this key.
            UsageError: Neither is shown, or both; or the key or the name is a member already.
        """
        wanted = tuple(islice(roles, _MAX_ROLES + 1))
        applying = Application(who=who, invitation=invitation, appointment=appointment, roles=wanted)
        (enrolment,) = self.enrol_all([applying], at=at)
        return enrolment

    def enrol_all(self, applications: Iterable[Application], *, at: datetime) -> tuple[Enrolment, ...]:
        """Make several principals members, at most a thousand, and hand each its first certificates.

        It is one transaction: all of them are members when this returns, each with its certificates in the register,
        or nobody is and no invitation is used up. Their roles are activated in the order in which they come.

        Raises:
            DeniedError: ``INVITATION_REFUSED`` for a code that is wrong, used or too old; all look alike. Or no rule
                gives one of the roles.
            VerificationError: An appointment does not prove anything for its key.
            UsageError: One shows neither, or both; a key or a name is a member already or comes twice; or they are too
                many.
        """
        applying = _some(applications)
        for item in applying:
            if (item.invitation is None) == (item.appointment is None):
                raise UsageError("show an invitation or an appointment", code="ENROLMENT")
            if len(item.roles) > _MAX_ROLES:
                raise UsageError(f"an enrolment activates at most {_MAX_ROLES} roles", code="ENROLMENT")
        wanted = [[as_atom(role) for role in item.roles] for item in applying]
        with self._writing(at) as records:
            joining = self._admit(records, applying, at=at)
            members = [member for member, _ in joining]
            self._changes()
            records.add_members(
                database.MemberRecord(name=item.name, key=item.key.raw, kind=item.kind.value, joined=at)
                for item in members
            )
            self._members |= {member.name: member for member in members}
            self._names |= {member.key.raw: member.name for member in members}
            self._roles.record(records, [fact for _, facts in joining for fact in facts])
            roles = [
                Fact(FactKind.ROLE, atom, member.name)
                for member, atoms in zip(members, wanted, strict=True)
                for atom in atoms
            ]
            active = [(role, self.settings.hides(role)) for role in roles]
            self._roles.activate(records, active)
            handed = self._hand(records, members, at=at)
            records.note_all((("enrol", f"{item.kind.value} {item.name}", item.name) for item in members), at=at)
            self._note_roles(records, "activate", active, at=at)
        self.tell(at=at)
        return tuple(Enrolment(member=member, handed=own) for member, own in zip(members, handed, strict=True))

    def _admit(self, records: _Records, applying: Sequence[Application], *, at: datetime) -> list[_Joining]:
        """Check what applicants show, and give the members that they become with the facts that come along."""
        keys = {item.who.key.raw for item in applying}
        if len(keys) < len(applying) or keys & self._names.keys():
            raise UsageError("this key is or was a member already", code="MEMBER_KEY")
        shown = [_digest(item.invitation) for item in applying if item.invitation is not None]
        invitations = records.take_invitations(shown)
        book = book_of(records, at=at) if len(shown) < len(applying) else None
        joining: list[_Joining] = []
        for item in applying:
            kind, facts = MemberKind.CLIENT, []
            if book is not None and item.appointment is not None:
                found = read_appointment(item.appointment, who=item.who.key, domain=self.key, book=book, at=at)
                name, facts = found.name, [(Fact(FactKind.APPOINTMENT, found.fact), found.until)]
            else:
                # Taken out of the table and of this mapping: a code that comes twice finds nothing the second time.
                record = invitations.pop(_digest(item.invitation or ""), None)
                if record is None or record.until < at:
                    raise DeniedError("the invitation is not open", code="INVITATION_REFUSED")
                name, kind = record.name, MemberKind(record.kind)
                facts = [(Fact(FactKind.APPOINTMENT, parse_fact(it)), None) for it in json.loads(record.appointments)]
            joining.append((Member(name=name, key=item.who.key, kind=kind, joined=at), facts))
        self._require_new(records, [member.name for member, _ in joining], at=at)
        return joining

    def _require_new(self, records: _Records, names: Sequence[str], *, at: datetime) -> None:
        for name in names:
            if not _MEMBER_NAME.fullmatch(name) or name in _RESERVED:
                raise UsageError(f"`{name}` cannot name a member", code="MEMBER_NAME")
        taken = {name for name in names if name in self._members} | records.invited(names, at=at)
        for name in names:
            if name in taken:
                raise UsageError(f"the name `{name}` is taken", code="MEMBER_NAME_TAKEN")
            taken.add(name)


def _some(items: Iterable[_T]) -> tuple[_T, ...]:
    found = tuple(islice(items, MAX_TOGETHER + 1))
    if len(found) > MAX_TOGETHER:
        raise UsageError(f"at most {MAX_TOGETHER} come at a time", code="TOO_MANY_NAMED")
    return found


def _record(invitation: Invitation, *, at: datetime) -> database.InvitationRecord:
    """Check an invitation and write it down."""
    if len(invitation.appointments) > _MAX_APPOINTMENTS:
        raise UsageError(f"an invitation brings at most {_MAX_APPOINTMENTS} appointments", code="INVITATION")
    if not timedelta(0) < invitation.life <= timedelta(days=366):
        raise UsageError("an invitation is open for at most a year", code="INVITATION")
    facts = [str(parse_fact(text)) for text in invitation.appointments]
    return database.InvitationRecord(
        name=invitation.name, kind=invitation.kind.value, until=at + invitation.life, appointments=json.dumps(facts)
    )


def _digest(code: str) -> bytes:
    return hashlib.sha256(b"maia/1 invitation\x00" + code.encode("utf-8", "replace")).digest()
