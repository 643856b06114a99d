"""Withdrawal, in order: roles, capabilities, the signed list, and those who hold something open on their strength."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from maia import database
from maia.access_control.handing import Handing
from maia.access_control.lists import book_of, sign_withdrawals
from maia.access_control.outbox import WITHDRAWN, tell, withdrawn_to_bytes
from maia.access_control.role_book import as_atom
from maia.access_control.values import Ended, Revocation, Withdrawn
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

MAX_TOGETHER = 1_000
"""How many principals one call invites, enrols or lets go."""

_Records = database.AccessControlRecords


class Withdrawing(Handing):
    """Ends what members may have no longer."""

    def _record(self, fact: Fact, *, at: datetime, until: datetime | None) -> bool:
        if until is not None and check_aware(until) < at:
            raise UsageError("a fact that has ended already", code="FACT_ENDED")
        with self._writing(at) as records:
            self._changes()
            (new,) = self._roles.record(records, [(fact, until)])
            records.note("appoint" if fact.kind is FactKind.APPOINTMENT else "observe", str(fact), who=None, at=at)
            return new

    def _note_roles(self, records: _Records, action: str, roles: Iterable[tuple[Fact, bool]], *, at: datetime) -> None:
        """Write what became of roles into the journal; of those that are hidden it names nobody."""
        records.note_all(
            (
                (action, self.settings.shown(role, anonymous=hidden), None if hidden else role.holder)
                for role, hidden in roles
            ),
            at=at,
        )

    def _revoking(
        self, certificates: tuple[bytes, ...], role: Atom | str | None, principals: tuple[str, ...], *, at: datetime
    ) -> Callable[[_Records], Revocation]:
        if not certificates and role is None and not principals:
            raise UsageError("name certificates, a role or a principal", code="NOTHING_NAMED")
        if len(principals) > MAX_TOGETHER or (role is not None and len(principals) > 1):
            raise UsageError(f"name one holder of a role, or {MAX_TOGETHER} principals", code="TOO_MANY_NAMED")

        def work(records: _Records) -> Revocation:
            self._changes()
            fallen: tuple[Fact, ...] = ()
            gone: tuple[str, ...] = ()
            if role is not None:
                fallen = self._end_role(records, as_atom(role), *principals)
            elif principals:
                gone = tuple(dict.fromkeys(principals))
                fallen = self._end_members(records, gone, at=at)
            for identity in certificates:
                if (known := records.certificate(identity)) is None or known.parent is not None:
                    raise NotFoundError(
                        f"this domain has no certificate `{identity.hex()[:16]}`", code="NO_CERTIFICATE"
                    )
            named = _named(certificates, role, gone)
            records.note_all((("revoke", line, None) for line in named), at=at)
            return self._cascade(records, fallen, (), at=at, certificates=certificates, members=gone)

        return work

    def _end_members(self, records: _Records, names: tuple[str, ...], *, at: datetime) -> tuple[Fact, ...]:
        """Let members go with all their roles; give the roles that fell."""
        leaving = [self._present(name) for name in names]
        fallen = self._roles.close(records, names)
        records.end_members(names, at=at)
        self._members |= {member.name: replace(member, gone=at) for member in leaving}
        return fallen

    def _end_role(self, records: _Records, atom: Atom, principal: str | None = None) -> tuple[Fact, ...]:
        held = [role for role in self._roles.engine.roles(principal) if role.atom == atom]
        if not held:
            raise NotFoundError(f"nobody has `{atom}` active", code="NO_ROLE")
        return self._roles.deactivate(records, held)

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
        hidden = ((role, role in self._roles.anonymous or self.settings.hides(role)) for role in roles)
        self._note_roles(records, "fall", hidden, at=at)
        self._roles.forget(roles)
        concerned = {role.holder for role in roles} | self._roles.concerned(gone) | set(members)
        ending = self._unsupported(records, concerned, at=at)
        ending += [record for item in certificates if (record := records.certificate(item)) is not None]
        if not ending:
            return Revocation(roles=tuple(map(str, roles)), members=members)
        return self._end(records, ending, roles, members, at=at)

    def _unsupported(
        self, records: _Records, names: Iterable[str], *, at: datetime
    ) -> list[database.CertificateRecord]:
        """List the live certificates of members that their policy does not give them any more."""
        found: list[database.CertificateRecord] = []
        held = records.held_by(sorted(self._members.keys() & set(names)), at=at)
        members = [self._members[name] for name in held]
        for member, (wanted, _) in zip(members, self._wanted(members, at=at), strict=True):
            rights = {item.right for item in wanted}
            found += [
                record
                for record in held[member.name]
                if member.gone is not None or (record.privilege is not None and record.right not in rights)
            ]
        return found

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
        read = {record.certificate_id: parse_certificate(record.raw) for record in (*own.values(), *below)}
        ended = tuple(
            Ended(
                certificate_id=record.certificate_id,
                holder=record.holder,
                privilege=record.privilege,
                exposure=exposure_window(read[record.certificate_id], at=at, statements=book),
                reported=record.parent is not None,
            )
            for record in (*own.values(), *below)
        )
        records.withdraw((*own, *(record.certificate_id for record in below)), at=at)
        statement = sign_withdrawals(records, signer=self._signer, settings=self.settings, at=at)
        keys = (getattr(read[identity].body.subject, "key_id", None) for identity in own)
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


def _named(certificates: tuple[bytes, ...], role: Atom | str | None, gone: tuple[str, ...]) -> list[str]:
    """Write the lines of the journal for a withdrawal: what was named, and each further member by itself."""
    parts = [f"certificate {identity.hex()[:16]}" for identity in certificates[:8]]
    # Without its parameters, which may name somebody that uses the role anonymously; what falls is noted by itself.
    parts += [f"role {as_atom(role).name}"] if role is not None else []
    parts += [f"principal {name}" for name in gone[:1]]
    return [", ".join(parts), *(f"principal {name}" for name in gone[1:])]
