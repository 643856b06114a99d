"""Certificates of what the policy gives members: in the register first, then handed out with chain and lists.

Rules kept here:

- a certificate is in the register before it is handed out;
- one that still serves is handed out again; otherwise a fresh one is signed;
- one that was revoked never comes back: issued anew it is another certificate, also within the same second;
- a right that was revoked by itself is not issued anew, nor renewed, before somebody lifts that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from maia.access_control.certificates import (
    BLANKET,
    Entitlement,
    Refused,
    blanket_body,
    chain_of,
    entitlements_of,
    line_of,
    right_of,
    serves,
    subject_key,
    write_body,
)
from maia.access_control.lists import sign_due
from maia.access_control.register import Records, Register
from maia.access_control.speech import DomainSpeech
from maia.access_control.values import Handed, Member, MemberKind
from maia.database import right_digest
from maia.errors import DeniedError, SignatureError, UncheckedError
from maia.principals import Authenticated, Certificate, issue, parse_certificate, verify_certificate

_TRIES = 600


@dataclass(slots=True)
class _Handover:
    """What one member is about to be handed: a certificate in the place of each thing that it may have."""

    member: Member
    entitlements: tuple[Entitlement, ...]
    refused: Refused
    certificates: list[Certificate | None]


def entitled(
    register: Register, members: Iterable[Member], *, at: datetime
) -> list[tuple[tuple[Entitlement, ...], Refused]]:
    """List for each member what it may have, and what it is refused; nothing for those that are gone."""
    named = frozenset(register.named_roles(at=at))
    catalogue = register.holdings.types(at=at)
    speech = DomainSpeech(register, at=at)
    return [
        ((), ())
        if member.gone is not None
        else entitlements_of(
            member,
            register.roles.privileges(member.name),
            {role: until for role, until in register.roles.role_ends(member.name).items() if role in named},
            catalogue=catalogue,
            settings=register.settings,
            closed_to_domain=speech.offends,
            denials=register.roles.engine.denials(member.name),
        )
        for member in members
    ]


def capabilities(register: Register, who: Authenticated, *, at: datetime) -> Handed:
    """Hand a member everything it may have now."""
    with register.writing(at) as records:
        (handed,) = hand_out(register, records, [register.require(who)], at=at)
    return handed


def renew(register: Register, who: Authenticated, certificate: bytes, *, at: datetime) -> Handed:
    """Issue a certificate anew, when its holder would be given it today; a refusal is noted.

    Args:
        register: Of the domain.
        who: Must be the certificate's subject.
        certificate: The signed octets of one that this domain issued; it may have expired.
        at: Now.

    Raises:
        DeniedError: ``RENEWAL_REFUSED``: the policy does not give it any more, or not to this principal.
        SignatureError: This domain did not issue it.
    """
    old = verify_certificate(parse_certificate(certificate))
    if old.body.issuer_id != register.key.key_id:
        raise SignatureError("this domain did not issue the certificate", code="WRONG_SIGNER")
    handed = None
    with register.writing(at) as records:
        member = register.require(who)
        # SECURITY: a chain of somebody else is worth nothing here, however good it is.
        if subject_key(old.body) != who.key.key_id:
            raise DeniedError("the certificate is somebody else's", code="RENEWAL_REFUSED")
        ((entitlements, _),) = _allowed(register, records, [member], at=at)
        right = right_of(old)
        found = next((item for item in entitlements if item.right == right), None)
        fresh = None
        if found is not None:
            (fresh,) = sign_new(register, records, [(found, member)], at=at)
        if found is None or fresh is None:
            # By its certificate alone, as what was issued: a name would say who stands behind an anonymous role.
            records.journal.note("refuse", f"renewal of {old.certificate_id.hex()[:16]}", who=None, at=at)
        else:
            (handed,) = _complete(register, records, [_Handover(member, (found,), (), [fresh])], at=at)
    if handed is None:
        raise DeniedError("its issuer does not renew the certificate", code="RENEWAL_REFUSED")
    return handed


def hand_out(register: Register, records: Records, members: Sequence[Member], *, at: datetime) -> tuple[Handed, ...]:
    """Give members, in order, everything that they may have now; what is fresh is signed and registered."""
    live = records.certificates.held_by((member.name for member in members), at=at)
    handovers: list[_Handover] = []
    fresh: list[tuple[_Handover, int]] = []
    for member, (entitlements, refused) in zip(members, _allowed(register, records, members, at=at), strict=True):
        handover = _Handover(member, entitlements, refused, [None] * len(entitlements))
        handovers.append(handover)
        for place, item in enumerate(entitlements):
            held = next((it for it in live[member.name] if serves(it, item, settings=register.settings, at=at)), None)
            if held is None:
                fresh.append((handover, place))
            else:
                handover.certificates[place] = verify_certificate(parse_certificate(held.raw))
    wanted = [(handover.entitlements[place], handover.member) for handover, place in fresh]
    signed = sign_new(register, records, wanted, at=at)
    for (handover, place), certificate in zip(fresh, signed, strict=True):
        handover.certificates[place] = certificate
    records.journal.note_all(
        (("issue", item.certificate_id.hex()[:16], None) for item in signed if item is not None), at=at
    )
    return _complete(register, records, handovers, at=at)


def _allowed(
    register: Register, records: Records, members: Sequence[Member], *, at: datetime
) -> list[tuple[tuple[Entitlement, ...], Refused]]:
    """List for each member what it may be handed: what its policy gives, but for what was revoked by itself."""
    bars = records.bars.of(member.name for member in members)
    found: list[tuple[tuple[Entitlement, ...], Refused]] = []
    for member, (entitlements, refused) in zip(members, entitled(register, members, at=at), strict=True):
        barred = bars.get(member.name, frozenset())
        ended = tuple(item for item in entitlements if right_digest(item.right) in barred)
        allowed = tuple(item for item in entitlements if item not in ended)
        found.append((allowed, (*refused, *((item.privilege, "RIGHT_REVOKED") for item in ended))))
    return found


def sign_new(
    register: Register, records: Records, wanted: Sequence[tuple[Entitlement, Member]], *, at: datetime
) -> tuple[Certificate | None, ...]:
    """Sign certificates and put them into the register; it is the caller's to commit before handing them out.

    Returns:
        One for each that is wanted, in order; nothing for one whose time is over.

    Raises:
        UncheckedError: Every certificate that could be told from withdrawn ones is withdrawn.
    """
    found: dict[int, Certificate] = {}
    open_places = list(range(len(wanted)))
    for back in range(_TRIES):
        tried: dict[int, Certificate] = {}
        for place in open_places:
            item, member = wanted[place]
            body = write_body(item, member, domain=register.key, settings=register.settings, at=at, back=back)
            if body is not None:
                tried[place] = issue(body, register.signer)
        known = records.certificates.withdrawals({item.certificate_id for item in tried.values()})
        # SECURITY: an identity on a list stays dead, so the new certificate needs another one
        open_places = [place for place, item in tried.items() if known.get(item.certificate_id) is not None]
        found |= {place: item for place, item in tried.items() if known.get(item.certificate_id) is None}
        if not open_places:
            break
    else:
        raise UncheckedError("this right was revoked and issued too often to be told apart", code="LIMIT_EXCEEDED")
    lines = ((certificate, *wanted[place]) for place, certificate in found.items())
    records.certificates.add(
        line_of(certificate, at=at, holder=member.name, privilege=item.privilege, right=item.right)
        for certificate, item, member in lines
    )
    return tuple(found.get(place) for place in range(len(wanted)))


def _complete(
    register: Register, records: Records, handovers: Sequence[_Handover], *, at: datetime
) -> tuple[Handed, ...]:
    """Put chains and lists to certificates that are in the register; the lists cover all of them."""
    chains: dict[frozenset[Entitlement], tuple[bytes, ...]] = {}
    pool, book = register.holdings.evidence(), register.holdings.statements()
    found: list[tuple[bytes, ...]] = []
    for handover in handovers:
        rights = frozenset(item for item in handover.entitlements if item.tag is not None)
        if rights not in chains:  # members with the same rights have them through the same certificates
            chains[rights] = chain_of(handover.entitlements, domain=register.key, pool=pool, book=book, at=at)
        chain = chains[rights]
        if handover.member.kind is MemberKind.BROKER:
            blanket = (_blanket(register, records, at=at).raw,) if register.settings.blanket else ()
            chain = (*blanket, *(item.raw for item in _gained(register, at=at)), *chain)
        found.append(tuple(dict.fromkeys(chain)))
    sign_due(register, records, at=at)
    statements = records.lists.current(at=at)
    return tuple(
        Handed(
            certificates=tuple(item for item in handover.certificates if item is not None),
            chain=chain,
            statements=statements,
            refused=handover.refused,
        )
        for handover, chain in zip(handovers, found, strict=True)
    )


def _blanket(register: Register, records: Records, *, at: datetime) -> Certificate:
    """Give the grant to all brokers, signed once."""
    certificate = issue(blanket_body(register.key, register.settings), register.signer)
    if records.certificates.find(certificate.certificate_id) is None:
        records.certificates.add([line_of(certificate, at=at, privilege=BLANKET)])
    return certificate


def _gained(register: Register, *, at: datetime) -> tuple[Certificate, ...]:
    """Give the domain's own rights, which a broker's blanket reaches."""
    mine = (item for item in register.holdings.evidence() if subject_key(item.body) == register.key.key_id)
    return tuple(verify_certificate(item) for item in mine if item.body.period.contains(at))
