"""The brokers that a key manager knows: what they last asked for, and the certificates they stand on.

Rules kept here:

- a broker's requests have growing stamps; the last one again is a retry, an older one is refused;
- of a broker's evidence only the certificates that carry an admission are kept, and never one that was revoked;
- nothing kept here is believed: certificates are verified whenever they count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from maia.authority import CertificatePool
from maia.database import key_brokers, key_places, key_revoked
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption import KeyGroupId
from maia.errors import EncodingError, MalformedError, UncheckedError
from maia.events import TypeId
from maia.kernel import GroupAdmission
from maia.key_manager.groups import is_group
from maia.principals import CertificateId, KeyId, PublicKey, parse_certificate, public_key

MAX_EVIDENCE = 1_000
MAX_EVIDENCE_OCTETS = 4 << 20
MAX_BROKERS = 100_000
MAX_REVOKED = 1_000_000
_LIMITS = SexpLimits(max_bytes=MAX_EVIDENCE_OCTETS + (1 << 16), max_depth=2, max_atom=1 << 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRecord:
    """One broker and one type."""

    type_id: TypeId
    key: PublicKey
    stamp: int
    join_key: bytes
    evidence: tuple[bytes, ...]

    @property
    def member(self) -> KeyId:
        """What the broker is called in messages."""
        return self.key.key_id


def find_broker(connection: Connection, type_id: TypeId, member: KeyId) -> BrokerRecord | None:
    """Return what is known of a broker, if anything."""
    same = and_(key_brokers.c.type_id == type_id, key_brokers.c.member == member)
    row = connection.execute(select(key_brokers).where(same)).one_or_none()
    return None if row is None else _record(row)


def list_brokers(connection: Connection, type_id: TypeId | None = None) -> list[BrokerRecord]:
    """List the brokers of a type, or of all, in an order of their own."""
    wanted = select(key_brokers).order_by(key_brokers.c.member)
    if type_id is not None:
        wanted = wanted.where(key_brokers.c.type_id == type_id)
    return [_record(row) for row in connection.execute(wanted)]


def save_broker(connection: Connection, record: BrokerRecord, *, at: datetime) -> None:
    """Write what is known of a broker.

    Raises:
        UncheckedError: There are more brokers, or more evidence, than are kept.
    """
    if len(record.evidence) > MAX_EVIDENCE or sum(map(len, record.evidence)) > MAX_EVIDENCE_OCTETS:
        raise UncheckedError("more certificates than a key manager keeps", code="LIMIT_EXCEEDED")
    values = {
        "stamp": record.stamp,
        "join_key": record.join_key,
        "evidence": encode((b"evidence", *record.evidence)),
    }
    same = and_(key_brokers.c.type_id == record.type_id, key_brokers.c.member == record.member)
    if connection.execute(update(key_brokers).where(same).values(**values)).rowcount:
        return
    if (connection.scalar(select(func.count()).select_from(key_brokers)) or 0) >= MAX_BROKERS:
        raise UncheckedError("more brokers than a key manager knows", code="LIMIT_EXCEEDED")
    connection.execute(
        insert(key_brokers).values(
            type_id=record.type_id, member=record.member, key=record.key.raw, joined=at, **values
        )
    )


def used_evidence(pool: CertificatePool, admissions: Iterable[GroupAdmission]) -> tuple[bytes, ...]:
    """List the certificates that carry admissions, in every signed form in which they came."""
    identities = dict.fromkeys(identity for admission in admissions for identity in admission.certificates)
    return tuple(spelling.raw for identity in identities for spelling in pool.spellings(identity))


def usable_evidence(connection: Connection, evidence: Iterable[bytes]) -> CertificatePool:
    """Put evidence into a pool, without what was revoked and what cannot be read."""
    read = {}
    for raw in dict.fromkeys(evidence):
        try:
            read[raw] = parse_certificate(raw).certificate_id
        except MalformedError:
            continue
        if len(read) > MAX_EVIDENCE:
            raise UncheckedError("more certificates than a key manager looks at", code="LIMIT_EXCEEDED")
    revoked = revoked_among(connection, read.values())
    return CertificatePool(raw for raw, identity in read.items() if identity not in revoked)


def revoked_among(connection: Connection, identities: Iterable[CertificateId]) -> frozenset[CertificateId]:
    """Tell which certificates were revoked here."""
    wanted = key_revoked.c.certificate_id.in_(set(identities))
    rows = connection.execute(select(key_revoked.c.certificate_id).where(wanted))
    return frozenset(CertificateId(row.certificate_id) for row in rows)


def revoked_count(connection: Connection) -> int:
    """Count the certificates that were revoked here."""
    return connection.scalar(select(func.count()).select_from(key_revoked)) or 0


def revoke_certificates(connection: Connection, identities: Collection[CertificateId], *, at: datetime) -> None:
    """Remember certificates that admit nobody any more.

    Raises:
        UncheckedError: There are more than are remembered; nothing is changed.
    """
    known = {row.certificate_id for row in connection.execute(select(key_revoked.c.certificate_id))}
    new = set(identities) - known
    if len(known) + len(new) > MAX_REVOKED:
        raise UncheckedError("more revoked certificates than a key manager remembers", code="LIMIT_EXCEEDED")
    if new:
        connection.execute(insert(key_revoked), [{"certificate_id": item, "at": at} for item in sorted(new)])


def certificate_ids(record: BrokerRecord) -> frozenset[CertificateId]:
    """List the certificates that a broker stands on."""
    return frozenset(parse_certificate(raw).certificate_id for raw in record.evidence)


def save_place(connection: Connection, group: KeyGroupId, member: KeyId, *, number: int, welcome: bytes) -> None:
    """Write down the place that a broker got."""
    drop_place(connection, group, member)
    connection.execute(
        insert(key_places).values(
            type_id=group.type_id, label=group.label, member=member, number=number, welcome=welcome,
            uses=0, uses_number=0,
        )
    )  # fmt: skip


def find_place(connection: Connection, group: KeyGroupId, member: KeyId) -> tuple[int, bytes] | None:
    """Return the number and the welcome of a broker's place, if it has one."""
    same = and_(is_group(key_places, group), key_places.c.member == member)
    row = connection.execute(select(key_places.c.number, key_places.c.welcome).where(same)).one_or_none()
    return None if row is None else (row.number, row.welcome)


def drop_place(connection: Connection, group: KeyGroupId, member: bytes) -> None:
    """Forget a broker's place."""
    connection.execute(delete(key_places).where(and_(is_group(key_places, group), key_places.c.member == member)))


def count_uses(connection: Connection, group: KeyGroupId, member: KeyId, *, number: int, uses: int) -> int:
    """Write down how many blocks a broker sealed in an epoch; return how many all of them did."""
    same = and_(is_group(key_places, group), key_places.c.member == member)
    connection.execute(update(key_places).where(same).values(uses=uses, uses_number=number))
    total = select(func.sum(key_places.c.uses)).where(is_group(key_places, group), key_places.c.uses_number == number)
    return int(connection.scalar(total) or 0)


def _record(row: object) -> BrokerRecord:
    columns = row._mapping  # type: ignore[attr-defined]  # noqa: SLF001 - SQLAlchemy's public name
    match parse_canonical(columns["evidence"], limits=_LIMITS):
        case (b"evidence", *items):
            evidence = tuple(item for item in items if isinstance(item, bytes))
        case _:
            raise EncodingError("not the evidence of a broker", code="KEY_MANAGER_STATE")
    key = public_key(columns["key"])
    if key.key_id != columns["member"]:
        raise EncodingError("a broker's key that is not its own", code="KEY_MANAGER_STATE")
    return BrokerRecord(
        type_id=TypeId(columns["type_id"]), key=key, stamp=columns["stamp"], join_key=columns["join_key"],
        evidence=evidence,
    )  # fmt: skip
