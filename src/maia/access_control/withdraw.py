"""Withdrawal, in order: roles, capabilities, the signed list, and those who hold something open on their strength.

Rules kept here: all of it is one transaction, under one list, or nothing is; what stood on a role or a fact ends with
it, also for others; who must hear is put into the outbox by the same transaction. A right that was revoked by itself is
not issued anew before somebody lifts that, whatever the policy gives; an appointment ends with its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from maia import database
from maia.access_control.appointments import appointment_in
from maia.access_control.certificates import right_of, subject_key
from maia.access_control.issue import entitled
from maia.access_control.lists import book_of, sign_withdrawals
from maia.access_control.lost import note_losses
from maia.access_control.outbox import WITHDRAWN, withdrawn_to_bytes
from maia.access_control.register import Records, Register
from maia.access_control.role_book import as_atom
from maia.access_control.roles import note_roles
from maia.access_control.values import MAX_TOGETHER, Ended, Revocation, Withdrawn
from maia.authority import exposure_window
from maia.errors import NotFoundError, UsageError
from maia.policy import Atom, Fact, FactKind, PolicyEngine
from maia.principals import Authenticated, parse_certificate, verify_certificate

# ---------------------------------------------------------------------- what may be withdrawn


def revocation(
    register: Register,
    certificates: tuple[bytes, ...],
    role: Atom | str | None,
    principals: tuple[str, ...],
    *,
    at: datetime,
) -> Callable[[Records], Revocation]:
    """Prepare the withdrawal of certificates, a role or members, to be written or previewed."""
    if not certificates and role is None and not principals:
        raise UsageError("name certificates, a role or a principal", code="NOTHING_NAMED")
    if len(principals) > MAX_TOGETHER or (role is not None and len(principals) > 1):
        raise UsageError(f"name one holder of a role, or {MAX_TOGETHER} principals", code="TOO_MANY_NAMED")

    def work(records: Records) -> Revocation:
        register.changes()
        fallen: tuple[Fact, ...] = ()
        gone: tuple[str, ...] = ()
        if role is not None:
            fallen = _end_role(register, records, as_atom(role), *principals)
        elif principals:
            gone = tuple(dict.fromkeys(principals))
            register.end_members(records, gone, at=at)
            fallen = register.roles.close(records.roles, gone)
        facts: list[Fact] = []
        for identity in certificates:
            if (known := records.certificates.find(identity)) is None or known.parent is not None:
                raise NotFoundError(f"this domain has no certificate `{identity.hex()[:16]}`", code="NO_CERTIFICATE")
            if known.holder is not None and known.right is not None:
                # SECURITY: the policy may still give it, and would at the next renewal
                records.bars.add(known.holder, known.right, privilege=known.privilege, since=at)
            if (appointment := appointment_in(known.raw)) is not None:
                facts.append(Fact(FactKind.APPOINTMENT, appointment.fact))
        fallen += register.roles.retract(records.roles, facts) if facts else ()
        named = _named(certificates, role, gone)
        records.journal.note_all((("revoke", line, None) for line in named), at=at)
        return cascade(register, records, fallen, facts, at=at, certificates=certificates, members=gone)

    return work


def lift(register: Register, certificate: bytes | None, principal: str | None, *, at: datetime) -> int:
    """Let a right be issued anew that was revoked by itself; the revoked certificate stays dead.

    Args:
        register: Of the domain.
        certificate: One that gave the right; its subject's right is lifted.
        principal: A member, all of whose rights are lifted when no certificate is named.
        at: Now.

    Returns:
        How many rights may be issued again.

    Raises:
        NotFoundError: Nothing of it was revoked: ``NOT_REVOKED``.
    """
    right = None if certificate is None else verify_certificate(parse_certificate(certificate))
    with register.writing(at) as records:
        holder = principal
        if right is not None:
            subject = subject_key(right.body)
            holder = next((item.name for item in register.members.values() if item.key.key_id == subject), principal)
        found = 0 if holder is None else records.bars.lift(holder, None if right is None else right_of(right))
        if not found:
            raise NotFoundError("no right of this member was revoked by itself", code="NOT_REVOKED")
        records.journal.note("lift", f"{found} of {holder}", who=None, at=at)
    return found


def deactivate(register: Register, who: Authenticated, role: Atom | str, *, at: datetime) -> Revocation:
    """Give up a role of a member, with everything that stands on it."""
    atom = as_atom(role)
    with register.writing(at) as records:
        principal = register.require(who).name
        register.changes()
        return cascade(register, records, _end_role(register, records, atom, principal), (), at=at)


def retract(register: Register, fact: Atom | str, *, at: datetime, kind: FactKind | None) -> Revocation:
    """Take a fact back, with everything that stands on it."""
    if kind is FactKind.ROLE:
        raise UsageError("a role is revoked as a role, not as a fact", code="POLICY_KIND")
    atom = as_atom(fact)
    kinds = (FactKind.APPOINTMENT, FactKind.ENVIRONMENT) if kind is None else (kind,)
    gone = tuple(Fact(each, atom) for each in kinds)
    with register.writing(at) as records:
        register.changes()
        fallen = register.roles.retract(records.roles, gone)
        records.journal.note("retract", str(atom), who=None, at=at)
        return cascade(register, records, fallen, gone, at=at)


def refresh(register: Register, *, at: datetime) -> Revocation:
    """Ask anew what is true outside, and withdraw what stood on what is not; say what ended by itself as well."""
    with register.writing(at) as records:
        register.changes()
        gone, fallen = register.roles.refresh(records.roles, register.outside, at=at)
        found = (*register.caught, lapse(register, records, fallen, gone, at=at))
    return Revocation(
        roles=tuple(role for item in found for role in item.roles),
        certificates=tuple(ended for item in found for ended in item.certificates),
        statement=next((item.statement for item in reversed(found) if item.statement is not None), None),
    )


# ---------------------------------------------------------------------- what follows


def cascade(
    register: Register,
    records: Records,
    fallen: Iterable[Fact],
    gone: Iterable[Fact],
    *,
    at: datetime,
    certificates: tuple[bytes, ...] = (),
    members: tuple[str, ...] = (),
    changed: Iterable[str] = (),
    held_under: PolicyEngine | None = None,
) -> Revocation:
    """From roles that fell to capabilities, to the list, to those who must hear; all in one transaction.

    Args:
        register: Whose.
        records: The transaction.
        fallen: Roles that fell, each after what it stood on.
        gone: Facts that hold no longer.
        at: Now.
        certificates: Certificates that end whatever the policy says.
        members: Members that are gone.
        changed: Further members whose privileges changed.
        held_under: With the policy under which the roles were held, when it is not the one in force.
    """
    roles = tuple(fallen)
    note_losses(records, held_under or register.roles.engine, _named_roles(register, roles), at=at)
    return _fall(register, records, roles, gone, at=at, certificates=certificates, members=members, changed=changed)


def lapse(
    register: Register, records: Records, fallen: Iterable[Fact], gone: Iterable[Fact], *, at: datetime
) -> Revocation:
    """As `cascade`, for what ended by itself and is found out now; the journal says that since when is not known."""
    roles = tuple(fallen)
    named = _named_roles(register, roles)
    records.journal.note_all((("lapse", str(role.atom), role.holder) for role in named), at=at)
    return _fall(register, records, roles, gone, at=at)


def _named_roles(register: Register, roles: Iterable[Fact]) -> list[Fact]:
    """Give the roles whose holders the journal may name."""
    return [role for role in roles if role not in register.roles.anonymous and not register.settings.hides(role)]


def _fall(
    register: Register,
    records: Records,
    roles: tuple[Fact, ...],
    gone: Iterable[Fact],
    *,
    at: datetime,
    certificates: tuple[bytes, ...] = (),
    members: tuple[str, ...] = (),
    changed: Iterable[str] = (),
) -> Revocation:
    hidden = ((role, role in register.roles.anonymous or register.settings.hides(role)) for role in roles)
    note_roles(register, records, "fall", hidden, at=at)
    register.roles.forget(roles)
    concerned = {role.holder for role in roles} | register.roles.concerned(gone) | {*members, *changed}
    ending = _unsupported(register, records, concerned, at=at)
    named = (records.certificates.find(item) for item in certificates)
    ending += [record for record in named if record is not None and record.raw]
    if not ending:
        return Revocation(roles=tuple(map(str, roles)), members=members)
    return _end(register, records, ending, roles, members, at=at)


def _end_role(register: Register, records: Records, atom: Atom, principal: str | None = None) -> tuple[Fact, ...]:
    held = [role for role in register.roles.engine.roles(principal) if role.atom == atom]
    if not held:
        raise NotFoundError(f"nobody has `{atom}` active", code="NO_ROLE")
    return register.roles.deactivate(records.roles, held)


def _unsupported(
    register: Register, records: Records, names: Iterable[str], *, at: datetime
) -> list[database.CertificateRecord]:
    """List the live certificates of members that their policy does not give them any more."""
    found: list[database.CertificateRecord] = []
    held = records.certificates.held_by(sorted(register.members.keys() & set(names)), at=at)
    members = [register.members[name] for name in held]
    for member, (entitlements, _) in zip(members, entitled(register, members, at=at), strict=True):
        rights = {item.right for item in entitlements}
        found += [
            record
            for record in held[member.name]
            if member.gone is not None or (record.privilege is not None and record.right not in rights)
        ]
    return found


def _end(
    register: Register,
    records: Records,
    ending: list[database.CertificateRecord],
    roles: tuple[Fact, ...],
    members: tuple[str, ...],
    *,
    at: datetime,
) -> Revocation:
    """End certificates with what was delegated from them, sign the list, and put the notice into the outbox."""
    book = book_of(records, at=at)
    own = {record.certificate_id: record for record in ending}
    below = records.certificates.reported_under(own, at=at)
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
    records.certificates.withdraw((*own, *(record.certificate_id for record in below)), at=at)
    statement = sign_withdrawals(register, records, at=at)
    keys = (subject_key(read[identity].body) for identity in own)
    notice = Withdrawn(certificates=frozenset(own), keys=frozenset(key for key in keys if key is not None), at=at)
    records.outbox.post(WITHDRAWN, register.key.key_id, withdrawn_to_bytes(notice))
    return Revocation(
        roles=tuple(map(str, roles)),
        certificates=ended,
        statement=None if statement is None else statement.raw,
        members=members,
    )


def _named(certificates: tuple[bytes, ...], role: Atom | str | None, gone: tuple[str, ...]) -> list[str]:
    """Write the lines of the journal for a withdrawal: what was named, and each further member by itself."""
    parts = [f"certificate {identity.hex()[:16]}" for identity in certificates[:8]]
    # Without its parameters, which may name somebody that uses the role anonymously; what falls is noted by itself.
    parts += [f"role {as_atom(role).name}"] if role is not None else []
    parts += [f"principal {name}" for name in gone[:1]]
    return [", ".join(parts), *(f"principal {name}" for name in gone[1:])]
