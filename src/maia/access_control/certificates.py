"""What a domain's certificates say: from what a member may have to the bodies that are signed.

Rules kept here:

- a capability ends with the appointment behind it, and lives no longer than the domain's settings say;
- every certificate carries the domain's on-line tests, so that it can be withdrawn;
- only a member that is a domain may pass its rights on;
- what the policy says of attributes that are closed to the domain becomes no certificate: it would give nothing;
- what the policy denies is taken out before anything is signed, of whatever a member would have (choice C17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from maia import database
from maia.access_control.settings import Settings
from maia.access_control.values import Member, MemberKind
from maia.authority import (
    SPEAKS_OF_CLOSED,
    CertificatePool,
    Request,
    StatementBook,
    Tag,
    Verifier,
    network_blanket,
    one_of,
    type_blanket,
)
from maia.encoding import encode
from maia.errors import MaiaError, MalformedError, UncheckedError
from maia.kernel import DOMAINS
from maia.policy import (
    BROKERS,
    DENIED_BY_RULE,
    CompiledRight,
    DenialInForce,
    EventRight,
    Privilege,
    TypeCatalogue,
    compile_allowed,
    role_name,
)
from maia.principals import (
    Authorisation,
    Body,
    Certificate,
    CertificateId,
    KeyHash,
    KeyId,
    Name,
    Naming,
    Period,
    Principal,
    PublicKey,
)

MEMBER = "member"
CONNECT = "connect"
BLANKET = "blanket of brokers"
_CONNECT = EventRight(action="connect", event_type="network")
_SECOND = timedelta(seconds=1)

Refused: TypeAlias = tuple[tuple[str, str], ...]
"""Privileges that cannot become a right, each with the code that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """Something a member may have now.

    Attributes:
        privilege: In words of the policy; the register knows it by them.
        tag: The right, when it is one.
        name: The domain's name that is to stand for the member, when it is one.
        until: When it ends at the latest.
        owner: Who owns what the right is about.
    """

    privilege: str
    tag: Tag | None = None
    name: str | None = None
    until: datetime | None = None
    owner: Principal | None = None

    @property
    def right(self) -> bytes:
        """What the certificate gives, in one comparable form."""
        return _name_given(self.name or "") if self.tag is None else encode(self.tag.to_sexp())


def right_of(certificate: Certificate) -> bytes:
    """Give what a certificate gives, in the form of `Entitlement.right`."""
    body = certificate.body
    return encode(body.tag) if isinstance(body, Authorisation) else _name_given(body.name)


def _name_given(name: str) -> bytes:
    return encode((b"name", name.encode()))


def subject_key(body: Body) -> KeyId | None:
    """Give the key that a certificate speaks of; nothing when its subject is no key."""
    return body.subject.key_id if isinstance(body.subject, PublicKey | KeyHash) else None


def line_of(
    certificate: Certificate,
    *,
    at: datetime,
    holder: str | None = None,
    privilege: str | None = None,
    right: bytes | None = None,
    parent: CertificateId | None = None,
) -> database.CertificateRecord:
    """Write the line of the register for a certificate that is entered now."""
    return database.CertificateRecord(
        certificate_id=certificate.certificate_id,
        raw=certificate.raw,
        holder=holder,
        privilege=privilege,
        right=right,
        parent=parent,
        issued=at,
        until=certificate.body.period.not_after,
    )


def entitlements_of(
    member: Member,
    privileges: Mapping[Privilege, datetime | None],
    roles: Mapping[str, datetime | None],
    *,
    catalogue: TypeCatalogue,
    settings: Settings,
    closed_to_domain: Callable[[CompiledRight], bool] = lambda _: False,
    denials: Sequence[DenialInForce] = (),
) -> tuple[tuple[Entitlement, ...], Refused]:
    """List what a member may have, and the privileges that cannot become a right, with the code that says why.

    Args:
        member: Who.
        privileges: What its roles give, each with its end.
        roles: The roles it has active that agreements speak of, by name.
        catalogue: The known types.
        settings: How the domain issues.
        closed_to_domain: Whether a right speaks of attributes that are closed to the domain, and so would give nothing.
        denials: What the policy denies to the member.
    """
    found = [Entitlement(privilege=MEMBER, name=member.name)]
    refused: list[tuple[str, str]] = []
    if member.kind is MemberKind.BROKER:
        found.append(Entitlement(privilege=BROKERS, name=BROKERS))
    if member.kind is MemberKind.DOMAIN:
        found.append(Entitlement(privilege=DOMAINS, name=DOMAINS))
    if settings.connect:
        try:
            connect = compile_allowed(_CONNECT, denials, catalogue).right
        except MalformedError:
            connect = None  # the domain belongs to no network
        if connect is not None:
            found.append(Entitlement(privilege=CONNECT, tag=connect.tag, owner=connect.owner))
    found += [
        Entitlement(privilege=role_name(role), name=role_name(role), until=until) for role, until in roles.items()
    ]
    for privilege, until in privileges.items():
        try:
            allowed = compile_allowed(privilege, denials, catalogue)
        except MaiaError as error:
            refused.append((str(privilege), error.code))
            continue
        right, said = allowed.right, allowed.words(privilege)
        if allowed.whole:
            refused.append((str(privilege), DENIED_BY_RULE))
        if right is not None and closed_to_domain(right):
            refused.append((said, SPEAKS_OF_CLOSED))
        elif right is not None:
            found.append(Entitlement(privilege=said, tag=right.tag, until=until, owner=right.owner))
    return tuple(found), tuple(refused)


def write_body(
    wanted: Entitlement, member: Member, *, domain: PublicKey, settings: Settings, at: datetime, back: int = 0
) -> Body | None:
    """Write the certificate of something a member may have; nothing when its time is over.

    Args:
        wanted: What.
        member: For whom.
        domain: The issuer.
        settings: How the domain issues.
        at: Now.
        back: Seconds by which it starts earlier, to tell it from one that says the same.
    """
    starts = at.replace(microsecond=0)
    ends = starts + settings.life
    if wanted.until is not None:
        ends = min(ends, wanted.until.replace(microsecond=0))
    if ends < starts:
        return None
    period, tests = Period(starts - back * _SECOND, ends), settings.online_tests(domain)
    if wanted.name is not None:
        return Naming(issuer=domain, name=wanted.name, subject=member.key, period=period, tests=tests)
    assert wanted.tag is not None  # noqa: S101 - either of the two
    return Authorisation(
        issuer=domain,
        subject=member.key,
        delegate=member.kind is MemberKind.DOMAIN,
        tag=wanted.tag.to_sexp(),
        period=period,
        tests=tests,
        renew=settings.renew,
    )


def blanket_body(domain: PublicKey, settings: Settings) -> Authorisation:
    """Write the grant to all brokers: whatever the domain has, as far as it has it."""
    return Authorisation(
        issuer=domain,
        subject=Name(domain, (BROKERS,)),
        delegate=False,
        tag=one_of((type_blanket(), network_blanket())).to_sexp(),
        tests=settings.online_tests(domain),
    )


def serves(record: database.CertificateRecord, wanted: Entitlement, *, settings: Settings, at: datetime) -> bool:
    """Tell whether a live certificate gives what is wanted for long enough to be handed out again."""
    if record.right != wanted.right or record.until is None:
        return record.right == wanted.right
    ends = at + settings.life if wanted.until is None else min(at + settings.life, wanted.until)
    return record.until <= ends + _SECOND and record.until - at >= (ends - at) / 2


def chain_of(
    wanted: Iterable[Entitlement], *, domain: PublicKey, pool: CertificatePool, book: StatementBook, at: datetime
) -> tuple[bytes, ...]:
    """Find the certificates by which the domain itself has the rights that it passes on."""
    verifier = Verifier(statements=book)
    found: dict[bytes, None] = {}
    for item in wanted:
        if item.tag is None or item.owner is None:
            continue
        try:
            clauses = verifier.clauses(
                Request(wanted=item.tag, owner=item.owner), principal=domain, evidence=pool, at=at
            )
        except UncheckedError:
            continue
        for clause in clauses:
            if clause.delegate:
                for identity in clause.proof.certificate_ids():
                    found[pool.get(identity).raw] = None
    return tuple(found)
