"""Handing out certificates: in the register first, with the domain's chain and its lists."""

from __future__ import annotations

from datetime import datetime

from maia.principals import (
    Authenticated,
    Authorisation,
    Certificate,
    CertificateId,
    issue,
    parse_certificate,
    verify_certificate,
)
from maia.services.access_control.certificates import (
    BLANKET,
    Wanted,
    blanket_body,
    chain_of,
    serves,
    sign_new,
    wanted_by,
)
from maia.services.access_control.keeping import Keeping
from maia.services.access_control.lists import sign_due
from maia.services.access_control.values import (
    Handed,
    Member,
    MemberKind,
)
from maia.stores import database

_Records = database.AccessControlRecords


class Handing(Keeping):
    """Signs what members may have."""

    def _wanted(self, member: Member, *, at: datetime) -> tuple[tuple[Wanted, ...], tuple[tuple[str, str], ...]]:
        if member.gone is not None:
            return (), ()
        named = frozenset(self._named_roles(at=at))
        return wanted_by(
            member,
            self._roles.privileges(member.name),
            {role: until for role, until in self._roles.role_ends(member.name).items() if role in named},
            catalogue=self._home.types(at=at),
            settings=self.settings,
        )

    def _hand(self, records: _Records, member: Member, *, at: datetime) -> Handed:
        wanted, refused = self._wanted(member, at=at)
        live = records.certificates(at=at, holder=member.name)
        found: list[Certificate] = []
        for item in wanted:
            held = next((record for record in live if serves(record, item, settings=self.settings, at=at)), None)
            if held is not None:
                found.append(verify_certificate(parse_certificate(held.raw)))
                continue
            fresh = sign_new(records, item, member, signer=self._signer, settings=self.settings, at=at)
            if fresh is not None:
                found.append(fresh)
                records.note("issue", fresh.certificate_id.hex()[:16], who=None, at=at)
        return self._package(records, tuple(found), wanted, member, at=at, refused=refused)

    def _package(
        self,
        records: _Records,
        certificates: tuple[Certificate, ...],
        wanted: tuple[Wanted, ...],
        member: Member,
        *,
        at: datetime,
        refused: tuple[tuple[str, str], ...] = (),
    ) -> Handed:
        chain = chain_of(wanted, domain=self.key, pool=self._home.evidence(), book=self._home.statements(), at=at)
        if member.kind is MemberKind.BROKER:
            blanket = (self._blanket(records, at=at).raw,) if self.settings.blanket else ()
            chain = (*blanket, *(item.raw for item in self._gained(at=at)), *chain)
        sign_due(records, signer=self._signer, settings=self.settings, at=at)
        return Handed(
            certificates=certificates,
            chain=tuple(dict.fromkeys(chain)),
            statements=records.statements(at=at),
            refused=refused,
        )

    def _blanket(self, records: _Records, *, at: datetime) -> Certificate:
        """Give the grant to all brokers, signed once."""
        certificate = issue(blanket_body(self.key, self.settings), self._signer)
        known = records.certificate(certificate.certificate_id)
        if known is None:
            self._register(records, certificate, privilege=BLANKET, holder=None, at=at)
        return certificate

    def _gained(self, *, at: datetime) -> tuple[Certificate, ...]:
        """Give the domain's own rights, which a broker's blanket reaches."""
        mine = (item for item in self._home.evidence() if getattr(item.body.subject, "key_id", None) == self.key.key_id)
        return tuple(verify_certificate(item) for item in mine if item.body.period.contains(at))

    @staticmethod
    def _register(
        records: _Records,
        certificate: Certificate,
        *,
        privilege: str | None,
        holder: str | None,
        at: datetime,
        parent: CertificateId | None = None,
    ) -> None:
        records.add_certificate(
            database.CertificateRecord(
                certificate_id=certificate.certificate_id,
                raw=certificate.raw,
                holder=holder,
                privilege=privilege,
                parent=parent,
                issued=at,
                until=certificate.body.period.not_after,
            )
        )

    def _delegated_to(self, records: _Records, who: Authenticated, *, at: datetime) -> CertificateId | None:
        """Find something live that a principal may pass on."""
        for record in records.certificates(at=at):
            body = parse_certificate(record.raw).body
            if (
                isinstance(body, Authorisation)
                and body.delegate
                and getattr(body.subject, "key_id", None) == who.key.key_id
            ):
                return record.certificate_id
        return None
