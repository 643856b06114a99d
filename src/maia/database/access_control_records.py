"""Reading and writing the tables of the access control service, inside a transaction that somebody else began."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, Table, delete, func, insert, or_, select, update

from maia.database.access_control import (
    acs_certificates,
    acs_facts,
    acs_invitations,
    acs_journal,
    acs_members,
    acs_outbox,
    acs_policies,
    acs_roles,
    acs_state,
    acs_statements,
)
from maia.errors import UsageError
from maia.principals import CertificateId, KeyId, TestKind

_BATCH = 500
MAX_OUTBOX = 1_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """A member, present or gone."""

    name: str
    key: bytes
    kind: str
    joined: datetime
    gone: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRecord:
    """A line of the register."""

    certificate_id: CertificateId
    raw: bytes
    issued: datetime
    holder: str | None = None
    privilege: str | None = None
    right: bytes | None = None
    parent: CertificateId | None = None
    until: datetime | None = None
    withdrawn: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationRecord:
    """An invitation that was found by the hash of its code."""

    name: str
    kind: str
    until: datetime
    appointments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord:
    """Something decided and not yet told."""

    number: int
    kind: str
    topic: bytes
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """Something the service did; ``who`` is empty where the role is used anonymously."""

    number: int
    at: datetime
    action: str
    who: str | None
    what: str


class AccessControlRecords:
    """The records of one domain, as one transaction sees them."""

    def __init__(self, connection: Connection, domain: KeyId) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection
        self._domain = domain

    # -- the domain

    def state(self) -> tuple[int, int]:
        """Give the revision and the number of the policy in force; zeros for a domain that was never written to.

        Raises:
            UsageError: The database belongs to another domain.
        """
        rows = self._connection.execute(select(acs_state)).all()
        if not rows:
            return 0, 0
        if len(rows) > 1 or rows[0].domain != self._domain:
            raise UsageError("the database belongs to another domain", code="OTHER_DOMAIN")
        return rows[0].revision, rows[0].policy

    def touch(self, *, policy: int | None = None) -> int:
        """Raise the revision, and put another policy in force."""
        revision, current = self.state()
        values = {"revision": revision + 1, "policy": current if policy is None else policy}
        if revision == 0:
            self._connection.execute(insert(acs_state).values(domain=self._domain, **values))
        else:
            self._connection.execute(update(acs_state).values(**values))
        return revision + 1

    def policy(self, number: int) -> str:
        """Give the text of a policy; the empty one has number 0."""
        text = self._connection.scalar(select(acs_policies.c.text).where(acs_policies.c.number == number))
        return "" if text is None else str(text)

    def add_policy(self, text: str, *, at: datetime) -> int:
        """Keep a further policy and give its number."""
        number = int(self._connection.scalar(select(func.coalesce(func.max(acs_policies.c.number), 0))) or 0) + 1
        self._connection.execute(insert(acs_policies).values(number=number, text=text, applied=at))
        return number

    # -- members and invitations

    def members(self) -> tuple[MemberRecord, ...]:
        """List all members, also those that are gone."""
        rows = self._connection.execute(select(acs_members).order_by(acs_members.c.name))
        return tuple(MemberRecord(**row._mapping) for row in rows)  # noqa: SLF001 - SQLAlchemy's public name

    def add_members(self, members: Iterable[MemberRecord]) -> None:
        """Add members."""
        self._insert(
            acs_members,
            [{"name": item.name, "key": item.key, "kind": item.kind, "joined": item.joined} for item in members],
        )

    def end_members(self, names: Iterable[str], *, at: datetime) -> None:
        """Note that members are gone."""
        for some in _batches(list(names)):
            self._connection.execute(update(acs_members).where(acs_members.c.name.in_(some)).values(gone=at))

    def add_invitations(self, invitations: Mapping[bytes, InvitationRecord]) -> None:
        """Keep invitations by the hashes of their codes."""
        self._insert(
            acs_invitations,
            [
                {
                    "digest": digest,
                    "name": item.name,
                    "kind": item.kind,
                    "until": item.until,
                    "appointments": item.appointments,
                }
                for digest, item in invitations.items()
            ],
        )

    def take_invitations(self, digests: Iterable[bytes]) -> dict[bytes, InvitationRecord]:
        """Take invitations out, so that nobody takes them again; those that are not there are left out."""
        found: dict[bytes, InvitationRecord] = {}
        for some in _batches(list(digests)):
            chosen = acs_invitations.c.digest.in_(some)
            for row in self._connection.execute(select(acs_invitations).where(chosen)):
                found[row.digest] = InvitationRecord(
                    name=row.name, kind=row.kind, until=row.until, appointments=row.appointments
                )
            self._connection.execute(delete(acs_invitations).where(chosen))
        return found

    def invited(self, names: Iterable[str], *, at: datetime) -> frozenset[str]:
        """Give those of some names under which somebody is invited."""
        found: set[str] = set()
        for some in _batches(list(names)):
            chosen = acs_invitations.c.name.in_(some), acs_invitations.c.until >= at
            found.update(self._connection.scalars(select(acs_invitations.c.name).where(*chosen)))
        return frozenset(found)

    def forget_invitations(self, *, before: datetime) -> None:
        """Drop the invitations that ended before an instant."""
        self._connection.execute(delete(acs_invitations).where(acs_invitations.c.until < before))

    # -- facts and roles

    def facts(self) -> Iterator[tuple[bytes, datetime | None]]:
        """Walk the recorded facts with their ends."""
        for row in self._connection.execute(select(acs_facts.c.fact, acs_facts.c.until)):
            yield row.fact, row.until

    def put_facts(self, facts: Iterable[tuple[str, bytes, datetime | None]]) -> None:
        """Record facts with their kinds and ends, or give recorded ones another end; the last one counts."""
        rows = {
            hashlib.sha256(fact).digest(): {"kind": kind, "fact": fact, "until": until} for kind, fact, until in facts
        }
        known: set[bytes] = set()
        for some in _batches(list(rows)):
            known.update(self._connection.scalars(select(acs_facts.c.digest).where(acs_facts.c.digest.in_(some))))
        for digest in sorted(known):
            chosen = acs_facts.c.digest == digest
            self._connection.execute(update(acs_facts).where(chosen).values(until=rows[digest]["until"]))
        self._insert(acs_facts, [{"digest": digest} | row for digest, row in rows.items() if digest not in known])

    def has_fact(self, fact: bytes) -> bool:
        """Tell whether a fact is recorded."""
        chosen = select(acs_facts.c.digest).where(acs_facts.c.digest == hashlib.sha256(fact).digest())
        return self._connection.execute(chosen).first() is not None

    def drop_fact(self, fact: bytes) -> None:
        """Forget a fact."""
        self._connection.execute(delete(acs_facts).where(acs_facts.c.digest == hashlib.sha256(fact).digest()))

    def roles(self) -> Iterator[tuple[bytes, bool]]:
        """Walk the states of the active roles in the order of their activation, and whether each is anonymous."""
        rows = select(acs_roles.c.state, acs_roles.c.anonymous).order_by(acs_roles.c.number)
        for row in self._connection.execute(rows):
            yield row.state, row.anonymous

    def put_roles(self, roles: Iterable[tuple[bytes, bytes, bool | None]]) -> None:
        """Keep the states of active roles, new or changed; an active one stays anonymous as it was unless told."""
        rows = {hashlib.sha256(role).digest(): (state, anonymous) for role, state, anonymous in roles}
        known: set[bytes] = set()
        for some in _batches(list(rows)):
            known.update(self._connection.scalars(select(acs_roles.c.digest).where(acs_roles.c.digest.in_(some))))
        fresh: list[dict[str, object]] = []
        for digest, (state, anonymous) in rows.items():
            if digest in known:
                values: dict[str, object] = {"state": state} | ({} if anonymous is None else {"anonymous": anonymous})
                self._connection.execute(update(acs_roles).where(acs_roles.c.digest == digest).values(**values))
            else:
                fresh.append({"digest": digest, "state": state, "anonymous": bool(anonymous)})
        if fresh:
            last = int(self._connection.scalar(select(func.coalesce(func.max(acs_roles.c.number), 0))) or 0)
            self._insert(acs_roles, [row | {"number": last + place} for place, row in enumerate(fresh, start=1)])

    def drop_roles(self, roles: Iterable[bytes]) -> None:
        """Forget active roles."""
        for some in _batches([hashlib.sha256(role).digest() for role in roles]):
            self._connection.execute(delete(acs_roles).where(acs_roles.c.digest.in_(some)))

    # -- the register

    def add_certificates(self, certificates: Iterable[CertificateRecord]) -> None:
        """Put certificates into the register; those that are there already are left alone."""
        records = {record.certificate_id: record for record in certificates}
        known = self.withdrawals(records)
        self._insert(
            acs_certificates,
            [
                {
                    "certificate_id": record.certificate_id,
                    "raw": record.raw,
                    "holder": record.holder,
                    "privilege": record.privilege,
                    "right": record.right,
                    "parent": record.parent,
                    "issued": record.issued,
                    "until": record.until,
                }
                for record in records.values()
                if record.certificate_id not in known
            ],
        )

    def withdrawals(self, identities: Iterable[bytes]) -> dict[bytes, datetime | None]:
        """Give those of some certificates that the register knows, each with the instant of its withdrawal."""
        found: dict[bytes, datetime | None] = {}
        known = select(acs_certificates.c.certificate_id, acs_certificates.c.withdrawn)
        for some in _batches(list(identities)):
            for row in self._connection.execute(known.where(acs_certificates.c.certificate_id.in_(some))):
                found[row.certificate_id] = row.withdrawn
        return found

    def certificate(self, identity: bytes) -> CertificateRecord | None:
        """Find a certificate by its identity."""
        chosen = select(acs_certificates).where(acs_certificates.c.certificate_id == identity)
        row = self._connection.execute(chosen).one_or_none()
        return None if row is None else _certificate(row)

    def certificates(self, *, at: datetime) -> tuple[CertificateRecord, ...]:
        """List the certificates that are neither expired nor withdrawn, oldest first."""
        return tuple(map(_certificate, self._connection.execute(_live(at))))

    def held_by(self, names: Iterable[str], *, at: datetime) -> dict[str, tuple[CertificateRecord, ...]]:
        """List the certificates of some holders that are neither expired nor withdrawn, oldest first."""
        found: dict[str, list[CertificateRecord]] = {name: [] for name in names}
        for some in _batches(list(found)):
            for row in self._connection.execute(_live(at).where(acs_certificates.c.holder.in_(some))):
                found[row.holder].append(_certificate(row))
        return {name: tuple(records) for name, records in found.items()}

    def reported_under(self, identities: Iterable[bytes], *, at: datetime) -> tuple[CertificateRecord, ...]:
        """List the live certificates that were reported as delegated from some others, directly or not."""
        found: dict[bytes, CertificateRecord] = {}
        level = list(identities)
        while level:  # bounded: each certificate enters once
            following: list[bytes] = []
            for some in _batches(level):
                chosen = select(acs_certificates).where(acs_certificates.c.parent.in_(some), _unexpired(at))
                for row in self._connection.execute(chosen):
                    if row.certificate_id not in found:
                        found[row.certificate_id] = _certificate(row)
                        following.append(row.certificate_id)
            level = following
        return tuple(found.values())

    def withdraw(self, identities: Iterable[bytes], *, at: datetime) -> None:
        """Note that certificates are withdrawn; the first withdrawal counts."""
        for some in _batches(list(identities)):
            chosen = acs_certificates.c.certificate_id.in_(some), acs_certificates.c.withdrawn.is_(None)
            self._connection.execute(update(acs_certificates).where(*chosen).values(withdrawn=at))

    def withdrawn(self, *, at: datetime) -> frozenset[CertificateId]:
        """List what the domain issued, withdrew, and what would otherwise still be valid."""
        chosen = select(acs_certificates.c.certificate_id).where(
            acs_certificates.c.withdrawn.is_not(None), acs_certificates.c.parent.is_(None), _unexpired(at)
        )
        return frozenset(CertificateId(row.certificate_id) for row in self._connection.execute(chosen))

    def good(self, *, at: datetime) -> frozenset[CertificateId]:
        """List what the domain issued and what is neither withdrawn nor expired."""
        chosen = select(acs_certificates.c.certificate_id).where(
            acs_certificates.c.withdrawn.is_(None), acs_certificates.c.parent.is_(None), _unexpired(at)
        )
        return frozenset(CertificateId(row.certificate_id) for row in self._connection.execute(chosen))

    def forget_certificates(self, *, before: datetime) -> int:
        """Remove what ended before an instant, with what was delegated from it."""
        ended = delete(acs_certificates).where(acs_certificates.c.until < before)
        return self._connection.execute(ended).rowcount

    # -- statements

    def add_statement(
        self, kind: TestKind, sequence: int, raw: bytes, *, starts: datetime | None, ends: datetime | None
    ) -> None:
        """Keep a list that was signed."""
        row = {"kind": kind.value, "sequence": sequence, "raw": raw, "starts": starts, "ends": ends}
        self._connection.execute(insert(acs_statements).values(**row))

    def last_sequence(self, kind: TestKind) -> int:
        """Give the highest number of a list; 0 when there is none."""
        highest = select(func.max(acs_statements.c.sequence)).where(acs_statements.c.kind == kind.value)
        return int(self._connection.scalar(highest) or 0)

    def last_timed(self, kind: TestKind) -> datetime | None:
        """Give the latest end of a timed list."""
        latest = select(acs_statements.c.raw, acs_statements.c.ends).where(
            acs_statements.c.kind == kind.value, acs_statements.c.ends.is_not(None)
        )
        row = self._connection.execute(latest.order_by(acs_statements.c.ends.desc()).limit(1)).one_or_none()
        return None if row is None else row.ends

    def statements(self, *, at: datetime) -> tuple[bytes, ...]:
        """List what counts at an instant or later: timed lists that have not ended, and the newest plain one."""
        rows = self._connection.execute(
            select(acs_statements)
            .where(or_(acs_statements.c.ends.is_(None), acs_statements.c.ends > at))
            .order_by(acs_statements.c.kind, acs_statements.c.sequence)
        ).all()
        timed = [row.raw for row in rows if row.ends is not None]
        plain = {row.kind: row.raw for row in rows if row.ends is None}
        return (*timed, *plain.values())

    def forget_statements(self, kind: TestKind, *, before: datetime) -> None:
        """Drop lists that nobody needs any more: timed ones that ended, plain ones that were replaced."""
        mine = acs_statements.c.kind == kind.value
        plain = acs_statements.c.ends.is_(None)
        newest = self._connection.scalar(select(func.max(acs_statements.c.sequence)).where(mine, plain)) or 0
        over = or_(acs_statements.c.ends < before, plain & (acs_statements.c.sequence < newest))
        self._connection.execute(
            delete(acs_statements).where(mine, over, acs_statements.c.sequence < self.last_sequence(kind))
        )

    def _insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._connection.execute(insert(table), rows)

    # -- what others must hear of, and the journal

    def post(self, kind: str, topic: bytes, body: bytes) -> None:
        """Put something into the outbox."""
        self._connection.execute(insert(acs_outbox).values(kind=kind, topic=topic, body=body))

    def outbox(self, *, last: str = "") -> tuple[OutboxRecord, ...]:
        """List what was not told yet, oldest first, one kind after all others; at most `MAX_OUTBOX` at a time."""
        order = (acs_outbox.c.kind == last, acs_outbox.c.number)
        rows = self._connection.execute(select(acs_outbox).order_by(*order).limit(MAX_OUTBOX))
        return tuple(OutboxRecord(number=row.number, kind=row.kind, topic=row.topic, body=row.body) for row in rows)

    def told(self, numbers: Iterable[int]) -> None:
        """Take out of the outbox what was told."""
        for some in _batches(list(numbers)):
            self._connection.execute(delete(acs_outbox).where(acs_outbox.c.number.in_(some)))

    def note(self, action: str, what: str, *, who: str | None, at: datetime) -> None:
        """Write a line of the journal."""
        self.note_all([(action, what, who)], at=at)

    def note_all(self, lines: Iterable[tuple[str, str, str | None]], *, at: datetime) -> None:
        """Write lines of the journal, in order: what was done, to what, and who is named for it."""
        self._insert(
            acs_journal, [{"at": at, "action": action, "who": who, "what": what} for action, what, who in lines]
        )

    def journal(self, *, after: int = 0, limit: int = 1_000) -> tuple[JournalRecord, ...]:
        """Read the journal in order."""
        chosen = select(acs_journal).where(acs_journal.c.number > after).order_by(acs_journal.c.number).limit(limit)
        return tuple(
            JournalRecord(number=row.number, at=row.at, action=row.action, who=row.who, what=row.what)
            for row in self._connection.execute(chosen)
        )


def _live(at: datetime) -> Select[Any]:
    chosen = select(acs_certificates).where(_unexpired(at), acs_certificates.c.withdrawn.is_(None))
    return chosen.order_by(acs_certificates.c.issued, acs_certificates.c.certificate_id)


def _unexpired(at: datetime):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a clause of SQLAlchemy's own type
    return or_(acs_certificates.c.until.is_(None), acs_certificates.c.until >= at)


def _certificate(row: Row[tuple[object, ...]]) -> CertificateRecord:
    return CertificateRecord(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name


def _batches(items: list[_T]) -> Iterator[list[_T]]:
    """Cut a list into pieces that every database takes as parameters."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
