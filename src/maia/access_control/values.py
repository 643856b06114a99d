"""What the access control service takes and gives, and the ports through which it reaches the rest of a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from maia.authority import CertificatePool, Exposure, Statement, StatementBook
from maia.policy import Atom, DenialInForce, PolicyFinding, TypeCatalogue
from maia.principals import Authenticated, Certificate, CertificateId, KeyId, PublicKey, TestKind

MAX_TOGETHER = 1_000
"""How many principals one call invites, enrols or lets go."""

MAX_APPOINTMENTS = 100
"""How many facts an invitation brings."""

MAX_ROLES = 100
"""How many roles an enrolment activates."""


class MemberKind(StrEnum):
    """What a member is: a client, a broker that serves clients, or a domain that has members of its own."""

    CLIENT = "client"
    BROKER = "broker"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A principal that belongs to the domain.

    Attributes:
        name: What the domain's policy calls it; given once.
        key: Its key, which is all that decides.
        kind: What it is.
        joined: Since when.
        gone: When it ceased to be a member, if it did.
    """

    name: str
    key: PublicKey
    kind: MemberKind
    joined: datetime
    gone: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """Whom to invite.

    Attributes:
        name: What the policy will call the member.
        kind: What it will be.
        life: How long the invitation is open.
        appointments: Facts that are recorded when it is used, such as ``detective(smith)``.
    """

    name: str
    kind: MemberKind = MemberKind.CLIENT
    life: timedelta = timedelta(days=1)
    appointments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A principal that asks to become a member.

    Attributes:
        who: Has just proven its key.
        invitation: The code of an invitation.
        appointment: Or an appointment certificate of the domain for that key.
        roles: Roles that it activates at once, in this order, each with all its parameters.
    """

    who: Authenticated
    invitation: str | None = field(default=None, repr=False)
    appointment: bytes | None = field(default=None, repr=False)
    roles: tuple[Atom | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What a principal takes away: its certificates, what proves them, and what says that they are valid.

    Attributes:
        certificates: Its own, each in the register already.
        chain: The domain's certificates that lead from owners to the domain, as they came.
        statements: The domain's validity lists in force, signed.
        refused: Privileges that could not become a right, with the code that says why.
    """

    certificates: tuple[Certificate, ...]
    chain: tuple[bytes, ...] = ()
    statements: tuple[bytes, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def evidence(self) -> tuple[bytes, ...]:
        """Everything that a verifier needs besides statements."""
        return (*(item.raw for item in self.certificates), *self.chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A member that has just joined, with its first certificates."""

    member: Member
    handed: Handed


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the register: a live certificate.

    Attributes:
        certificate_id: Its identity.
        certificate: Its signed octets.
        holder: The member it was issued to, if it was issued to one.
        privilege: What it was issued for, in words of the policy.
        until: Its last instant, if it has one.
        reported: Whether a delegate issued it and reported it.
    """

    certificate_id: CertificateId
    certificate: bytes = field(repr=False)
    holder: str | None
    privilege: str | None
    until: datetime | None
    reported: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A certificate that a withdrawal ends.

    Attributes:
        certificate_id: Its identity.
        holder: The member it was issued to.
        privilege: What it was issued for.
        exposure: The worst case until no verifier accepts it.
        reported: Whether a delegate issued it; it ends because what it stands on does.
    """

    certificate_id: CertificateId
    holder: str | None
    privilege: str | None
    exposure: Exposure
    reported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What a withdrawal did, or would do, in the order in which it does it.

    Attributes:
        roles: The roles that fell, with their holders, each after what it stood on.
        certificates: The certificates that ended.
        statement: The signed list that says so; nothing when no certificate of the domain's own ended.
        members: Members that are gone.
        told: Whether everybody that had to hear of it has heard.
    """

    roles: tuple[str, ...] = ()
    certificates: tuple[Ended, ...] = ()
    statement: bytes | None = field(default=None, repr=False)
    members: tuple[str, ...] = ()
    told: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a change of policy means for one principal."""

    principal: str
    lost_roles: tuple[str, ...] = ()
    gained_privileges: tuple[str, ...] = ()
    lost_privileges: tuple[str, ...] = ()
    ended: tuple[Ended, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPrivilege:
    """Something that a member's roles give, and what denials take of it.

    Attributes:
        privilege: As the rule gives it.
        words: The same, with what is denied.
        whole: Whether nothing is left.
        denied_by: The denials that take something.
    """

    privilege: str
    words: str
    whole: bool
    denied_by: tuple[DenialInForce, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A policy that was applied, or would be, and what it changes for whom.

    Attributes:
        number: The policy's number; 0 for a preview.
        findings: What the checker has to say; errors refuse the policy.
        differences: Only principals for whom something changes, by name.
    """

    number: int
    findings: tuple[PolicyFinding, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """What is told to those who hold something open on the strength of certificates: brokers and key groups.

    Attributes:
        certificates: The certificates that ended.
        keys: The members that held them.
        at: When it was decided.
    """

    certificates: frozenset[CertificateId]
    keys: frozenset[KeyId]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """What a register took over from the lists that were ever signed under its domain's key.

    Attributes:
        number: The highest number of a list, by kind; the next is above it.
        certificates: What those lists revoke and the register did not.
    """

    number: dict[TestKind, int]
    certificates: frozenset[CertificateId]


class OwnSeries(Protocol):
    """Port: what was ever stated under the domain's key, kept outside the database."""

    def take(self, kind: TestKind, *, above: int) -> int:
        """Take the next number of a list, above all that were taken before; durable when this returns."""
        ...

    def known(self, kind: TestKind) -> tuple[Statement, ...]:
        """Give the signed lists of the domain's own key that its home and its log show; nothing stops this."""
        ...

    def revoked(self, kind: TestKind) -> Mapping[CertificateId, datetime | None]:
        """Give what was revoked by hand before there was a register, with the ends where they are known."""
        ...


class Outside(Protocol):
    """Port: what is true outside. Whoever cannot say gives nothing, which means no."""

    def facts(self, *, at: datetime) -> Iterable[Atom]:
        """Give every fact that holds now, of all predicates that are provided."""
        ...


class Holdings(Protocol):
    """Port: what the domain holds: types, certificates and statements."""

    def types(self, *, at: datetime) -> TypeCatalogue:
        """Give the event types that verify now, and the domain's networks."""
        ...

    def evidence(self) -> CertificatePool:
        """Give the certificates that the domain holds."""
        ...

    def statements(self) -> StatementBook:
        """Give what the domain knows about the validity of others' certificates."""
        ...

    def keep(self, certificate: Certificate) -> None:
        """Keep a certificate that the domain received; keeping one twice changes nothing."""
        ...


class Telling(Protocol):
    """Port: those who must hear. Each call may come again after a crash and must not mind."""

    def statement(self, signer: KeyId, raw: bytes) -> None:
        """Publish a signed validity list."""
        ...

    def certificate(self, domain: KeyId, raw: bytes) -> None:
        """Publish a certificate of the domain to its brokers."""
        ...

    def withdrawn(self, notice: Withdrawn) -> None:
        """Close what stands on certificates: subscriptions and advertisements first, then key groups."""
        ...
