"""Withdrawal, in order: roles, capabilities, the signed list, and those who hold something open on their strength."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from maia.authority import exposure_window
from maia.errors import NotFoundError, UsageError
from maia.policy import (
    Atom,
    Fact,
    FactKind,
)
from maia.principals import (
    check_aware,
    parse_certificate,
)
from maia.services.access_control.handing import Handing
from maia.services.access_control.lists import book_of, sign_withdrawals
from maia.services.access_control.outbox import WITHDRAWN, tell, withdrawn_to_bytes
from maia.services.access_control.role_book import as_atom
from maia.services.access_control.values import (
    Ended,
    Member,
    Revocation,
    Withdrawn,
)
from maia.stores import database

_Records = database.AccessControlRecords


class Withdrawing(Handing):
    """Ends what members may have no longer."""

    def _record(self, fact: Fact, *, at: datetime, until: datetime | None) -> bool:
        if until is not None and check_aware(until) < at:
            raise UsageError("a fact that has ended already", code="FACT_ENDED")
        with self._writing(at) as records:
            self._changes()
            new = self._roles.record(records, fact, until=until)
            records.note("appoint" if fact.kind is FactKind.APPOINTMENT else "observe", str(fact), who=None, at=at)
            return new

    def _note_role(self, records: _Records, action: str, role: Fact, *, hidden: bool, at: datetime) -> None:
        shown = self.settings.shown(role, anonymous=hidden)
        records.note(action, shown, who=None if hidden else role.holder, at=at)

    def _revoking(
        self, certificates: tuple[bytes, ...], role: Atom | str | None, principal: str | None, *, at: datetime
    ) -> Callable[[_Records], Revocation]:
        if not certificates and role is None and principal is None:
            raise UsageError("name certificates, a role or a principal", code="NOTHING_NAMED")

        def work(records: _Records) -> Revocation:
            self._changes()
            fallen: list[Fact] = []
            gone: list[str] = []
            if role is not None:
                fallen += self._end_role(records, as_atom(role), principal)
            elif principal is not None:
                member = self._present(principal)
                fallen += self._roles.close(records, principal)
                records.end_member(principal, at=at)
                self._members[principal] = Member(
                    name=member.name, key=member.key, kind=member.kind, joined=member.joined, gone=at
                )
                gone.append(principal)
            for identity in certificates:
                if (known := records.certificate(identity)) is None or known.parent is not None:
                    raise NotFoundError(
                        f"this domain has no certificate `{identity.hex()[:16]}`", code="NO_CERTIFICATE"
                    )
            records.note("revoke", _named(certificates, role, principal), who=None, at=at)
            return self._cascade(records, fallen, (), at=at, certificates=certificates, members=tuple(gone))

        return work

    def _end_role(self, records: _Records, atom: Atom, principal: str | None) -> list[Fact]:
        holders = [role.holder for role in self._roles.engine.roles(principal) if role.atom == atom]
        if not holders:
            raise NotFoundError(f"nobody has `{atom}` active", code="NO_ROLE")
        fallen: dict[Fact, None] = {}
        for holder in holders:
            fallen.update(dict.fromkeys(self._roles.deactivate(records, atom, principal=holder)))
        return list(fallen)

    def _cascade(
        self,
        records: _Records,
        fallen: Iterable[Fact],
        gone: Iterable[Fact],
        *,
        at: datetime,
        certificates: tuple[bytes, ...] = (),
        members: tuple[str, ...] = (),
    ) -> Revocation:
        """From roles that fell to capabilities, to the list, to those who must hear; all in one transaction."""
        roles = tuple(fallen)
        for role in roles:
            hidden = role in self._roles.anonymous or self.settings.hides(role)
            self._note_role(records, "fall", role, hidden=hidden, at=at)
        concerned = {role.holder for role in roles} | self._roles.concerned(gone) | set(members)
        ending = [
            record
            for name in sorted(concerned & self._members.keys())
            for record in self._unsupported(records, self._members[name], at=at)
        ]
        ending += [record for item in certificates if (record := records.certificate(item)) is not None]
        if not ending:
            return Revocation(roles=tuple(map(str, roles)), members=members)
        return self._end(records, ending, roles, members, at=at)

    def _unsupported(self, records: _Records, member: Member, *, at: datetime) -> list[database.CertificateRecord]:
        """List the live certificates of a member that its policy does not give it any more."""
        wanted = {item.right for item in self._wanted(member, at=at)[0]}
        return [
            record
            for record in records.certificates(at=at, holder=member.name)
            if member.gone is not None or (record.privilege is not None and record.right not in wanted)
        ]

    def _end(
        self,
        records: _Records,
        ending: list[database.CertificateRecord],
        roles: tuple[Fact, ...],
        members: tuple[str, ...],
        *,
        at: datetime,
    ) -> Revocation:
        book = book_of(records, at=at)
        own = {record.certificate_id: record for record in ending}
        below = records.reported_under(own, at=at)
        ended = tuple(
            Ended(
                certificate_id=record.certificate_id,
                holder=record.holder,
                privilege=record.privilege,
                exposure=exposure_window(parse_certificate(record.raw), at=at, statements=book),
                reported=record.parent is not None,
            )
            for record in (*own.values(), *below)
        )
        records.withdraw((*own, *(record.certificate_id for record in below)), at=at)
        statement = sign_withdrawals(records, signer=self._signer, settings=self.settings, at=at)
        keys = (getattr(parse_certificate(record.raw).body.subject, "key_id", None) for record in own.values())
        notice = Withdrawn(certificates=frozenset(own), keys=frozenset(key for key in keys if key is not None), at=at)
        records.post(WITHDRAWN, self.key.key_id, withdrawn_to_bytes(notice))
        return Revocation(
            roles=tuple(map(str, roles)),
            certificates=ended,
            statement=None if statement is None else statement.raw,
            members=members,
        )

    def _withdraw_role(self, role: Atom | str, whose: Callable[[], str], *, at: datetime) -> Revocation:
        atom = as_atom(role)

        def work(records: _Records) -> Revocation:
            principal = whose()
            self._changes()
            return self._cascade(records, self._end_role(records, atom, principal), (), at=at)

        return self._told(self._write(work, at=at), at=at)

    def _told(self, revocation: Revocation, *, at: datetime) -> Revocation:
        told = self.tell(at=at)
        return Revocation(
            roles=revocation.roles,
            certificates=revocation.certificates,
            statement=revocation.statement,
            members=revocation.members,
            told=told,
        )

    def tell(self, *, at: datetime) -> bool:  # noqa: ARG002 - every method takes the instant
        """Tell what was decided and not yet told; say whether nothing is left. Safe to call at any time."""
        if self._telling is None:
            return self._forget_untold()
        return tell(self._telling, lambda: database.reading(self._database), self._begin, self._records)

    def _forget_untold(self) -> bool:
        with self._begin() as connection:
            records = self._records(connection)
            records.told(item.number for item in records.outbox())
        return True


def _named(certificates: tuple[bytes, ...], role: Atom | str | None, principal: str | None) -> str:
    parts = [f"certificate {identity.hex()[:16]}" for identity in certificates[:8]]
    # Without its parameters, which may name somebody that uses the role anonymously; what falls is noted by itself.
    parts += [f"role {as_atom(role).name}"] if role is not None else []
    parts += [f"principal {principal}"] if principal is not None and role is None else []
    return ", ".join(parts)
