"""The certificates in a domain's register, as a transaction sees them: its own, and those that delegates reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, or_, select, update

from maia.database.access_control.rows import batches, insert_rows, record_of, row_of
from maia.database.access_control.tables import acs_certificates
from maia.principals import CertificateId


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


class CertificateRows:
    """The certificates."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def add(self, certificates: Iterable[CertificateRecord]) -> None:
        """Put certificates into the register; those that are there already are left alone."""
        records = {record.certificate_id: record for record in certificates}
        known = self.withdrawals(records)
        fresh = (row_of(record) for identity, record in records.items() if identity not in known)
        insert_rows(self._connection, acs_certificates, fresh)

    def withdrawals(self, identities: Iterable[bytes]) -> dict[bytes, datetime | None]:
        """Give those of some certificates that the register knows, each with the instant of its withdrawal."""
        found: dict[bytes, datetime | None] = {}
        known = select(acs_certificates.c.certificate_id, acs_certificates.c.withdrawn)
        for some in batches(identities):
            for row in self._connection.execute(known.where(acs_certificates.c.certificate_id.in_(some))):
                found[row.certificate_id] = row.withdrawn
        return found

    def find(self, identity: bytes) -> CertificateRecord | None:
        """Find a certificate by its identity."""
        chosen = select(acs_certificates).where(acs_certificates.c.certificate_id == identity)
        row = self._connection.execute(chosen).one_or_none()
        return None if row is None else record_of(CertificateRecord, row)

    def live(self, *, at: datetime) -> tuple[CertificateRecord, ...]:
        """List the certificates that are neither expired nor withdrawn, oldest first."""
        return tuple(record_of(CertificateRecord, row) for row in self._connection.execute(_live(at)))

    def held_by(self, names: Iterable[str], *, at: datetime) -> dict[str, tuple[CertificateRecord, ...]]:
        """List the certificates of some holders that are neither expired nor withdrawn, oldest first."""
        found: dict[str, list[CertificateRecord]] = {name: [] for name in names}
        for some in batches(found):
            for row in self._connection.execute(_live(at).where(acs_certificates.c.holder.in_(some))):
                found[row.holder].append(record_of(CertificateRecord, row))
        return {name: tuple(records) for name, records in found.items()}

    def reported_under(self, identities: Iterable[bytes], *, at: datetime) -> tuple[CertificateRecord, ...]:
        """List the live certificates that were reported as delegated from some others, directly or not."""
        found: dict[bytes, CertificateRecord] = {}
        level = list(identities)
        while level:  # bounded: each certificate enters once
            following: list[bytes] = []
            for some in batches(level):
                chosen = select(acs_certificates).where(acs_certificates.c.parent.in_(some), _unexpired(at))
                for row in self._connection.execute(chosen):
                    if row.certificate_id not in found:
                        found[row.certificate_id] = record_of(CertificateRecord, row)
                        following.append(row.certificate_id)
            level = following
        return tuple(found.values())

    def withdraw(self, identities: Iterable[bytes], *, at: datetime) -> None:
        """Note that certificates are withdrawn; the first withdrawal counts."""
        for some in batches(identities):
            chosen = acs_certificates.c.certificate_id.in_(some), acs_certificates.c.withdrawn.is_(None)
            self._connection.execute(update(acs_certificates).where(*chosen).values(withdrawn=at))

    def withdrawn(self, *, at: datetime) -> frozenset[CertificateId]:
        """List what the domain issued, withdrew, and what would otherwise still be valid."""
        return self._issued(acs_certificates.c.withdrawn.is_not(None), at=at)

    def good(self, *, at: datetime) -> frozenset[CertificateId]:
        """List what the domain issued and what is neither withdrawn nor expired."""
        return self._issued(acs_certificates.c.withdrawn.is_(None), at=at)

    def forget(self, *, before: datetime) -> int:
        """Remove what ended before an instant, with what was delegated from it."""
        ended = delete(acs_certificates).where(acs_certificates.c.until < before)
        return self._connection.execute(ended).rowcount

    def _issued(self, which: ColumnElement[bool], *, at: datetime) -> frozenset[CertificateId]:
        chosen = select(acs_certificates.c.certificate_id).where(
            which, acs_certificates.c.parent.is_(None), _unexpired(at)
        )
        return frozenset(CertificateId(row.certificate_id) for row in self._connection.execute(chosen))


def _live(at: datetime) -> Select[Any]:
    chosen = select(acs_certificates).where(_unexpired(at), acs_certificates.c.withdrawn.is_(None))
    return chosen.order_by(acs_certificates.c.issued, acs_certificates.c.certificate_id)


def _unexpired(at: datetime) -> ColumnElement[bool]:
    return or_(acs_certificates.c.until.is_(None), acs_certificates.c.until >= at)
