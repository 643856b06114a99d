"""Handing out certificates: in the register first, with the domain's chain and its lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from maia import database
from maia.access_control.certificates import BLANKET, Wanted, blanket_body, chain_of, serves, sign_new, wanted_by
from maia.access_control.keeping import Keeping
from maia.access_control.lists import sign_due
from maia.access_control.values import Handed, Member, MemberKind
from maia.principals import (
    Authenticated,
    Authorisation,
    Certificate,
    CertificateId,
    issue,
    parse_certificate,
    verify_certificate,
)

_Records = database.AccessControlRecords


@dataclass(slots=True)
class Parcel:
    """What one member is about to be handed: a certificate in the place of each thing that it may have."""

    member: Member
    wanted: tuple[Wanted, ...]
    refused: tuple[tuple[str, str], ...]
    certificates: list[Certificate | None]


class Handing(Keeping):
    """Signs what members may have."""

    def _wanted(
        self, members: Iterable[Member], *, at: datetime
    ) -> list[tuple[tuple[Wanted, ...], tuple[tuple[str, str], ...]]]:
        """List for each member what it may have, and what it is refused; nothing for those that are gone."""
        named = frozenset(self._named_roles(at=at))
        catalogue = self._home.types(at=at)
        return [
            ((), ())
            if member.gone is not None
            else wanted_by(
                member,
                self._roles.privileges(member.name),
                {role: until for role, until in self._roles.role_ends(member.name).items() if role in named},
                catalogue=catalogue,
                settings=self.settings,
            )
            for member in members
        ]

    def _hand(self, records: _Records, members: Sequence[Member], *, at: datetime) -> tuple[Handed, ...]:
        """Give members, in order, everything that they may have now; what is fresh is signed and registered."""
        live = records.held_by((member.name for member in members), at=at)
        parcels: list[Parcel] = []
        fresh: list[tuple[Parcel, int]] = []
        for member, (wanted, refused) in zip(members, self._wanted(members, at=at), strict=True):
            parcel = Parcel(member, wanted, refused, [None] * len(wanted))
            parcels.append(parcel)
            for place, item in enumerate(wanted):
                held = next((it for it in live[member.name] if serves(it, item, settings=self.settings, at=at)), None)
                if held is None:
                    fresh.append((parcel, place))
                else:
                    parcel.certificates[place] = verify_certificate(parse_certificate(held.raw))
        signed = sign_new(
            records,
            [(parcel.wanted[place], parcel.member) for parcel, place in fresh],
            signer=self._signer,
            settings=self.settings,
            at=at,
        )
        for (parcel, place), certificate in zip(fresh, signed, strict=True):
            parcel.certificates[place] = certificate
        records.note_all(
            (("issue", item.certificate_id.hex()[:16], None) for item in signed if item is not None), at=at
        )
        return self._package(records, parcels, at=at)

    def _package(self, records: _Records, parcels: Sequence[Parcel], *, at: datetime) -> tuple[Handed, ...]:
        """Put chains and lists to certificates that are in the register; the lists cover all of them."""
        chains: dict[frozenset[Wanted], tuple[bytes, ...]] = {}
        pool, book = self._home.evidence(), self._home.statements()
        found: list[tuple[bytes, ...]] = []
        for parcel in parcels:
            rights = frozenset(item for item in parcel.wanted if item.tag is not None)
            if rights not in chains:  # members with the same rights have them through the same certificates
                chains[rights] = chain_of(parcel.wanted, domain=self.key, pool=pool, book=book, at=at)
            chain = chains[rights]
            if parcel.member.kind is MemberKind.BROKER:
                blanket = (self._blanket(records, at=at).raw,) if self.settings.blanket else ()
                chain = (*blanket, *(item.raw for item in self._gained(at=at)), *chain)
            found.append(tuple(dict.fromkeys(chain)))
        sign_due(records, signer=self._signer, settings=self.settings, at=at)
        statements = records.statements(at=at)
        return tuple(
            Handed(
                certificates=tuple(item for item in parcel.certificates if item is not None),
                chain=chain,
                statements=statements,
                refused=parcel.refused,
            )
            for parcel, chain in zip(parcels, found, strict=True)
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
        record = database.CertificateRecord(
            certificate_id=certificate.certificate_id,
            raw=certificate.raw,
            holder=holder,
            privilege=privilege,
            parent=parent,
            issued=at,
            until=certificate.body.period.not_after,
        )
        records.add_certificates([record])

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
