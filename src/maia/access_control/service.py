"""The access control service of a domain: role policy in, capabilities out. It knows no HTTP and reads no clock.

Rules kept here:

- whoever asks for something has proven its key: methods for members take an `Authenticated`, which only a successful
  run of the protocol makes. What they get is for that key and no other;
- a certificate is in the register before it is handed out, and a withdrawal is durable before it is acknowledged;
- a withdrawal goes in order: roles, then capabilities, then the signed list, then subscriptions and key groups;
- what fails leaves everything as it was;
- several processes may serve one database: each sees by its revision that another one wrote, and loads anew.

What each method does, and what it raises, stands in the module of its subject; here it is called, and what was decided
is told when it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from sqlalchemy import Connection, Engine

from maia import database
from maia.access_control import (
    appointments,
    denied,
    enrol,
    facts,
    grants,
    issue,
    lists,
    lost,
    outbox,
    policy_change,
    roles,
    series,
    withdraw,
)
from maia.access_control.challenges import Challenges
from maia.access_control.register import Register, no_roles
from maia.access_control.role_book import as_atom
from maia.access_control.settings import Settings
from maia.access_control.values import (
    MAX_APPOINTMENTS,
    MAX_ROLES,
    MAX_TOGETHER,
    Application,
    Enrolment,
    Entry,
    Handed,
    HeldPrivilege,
    Holdings,
    Invitation,
    Member,
    MemberKind,
    Outside,
    OwnSeries,
    PolicyChange,
    Revocation,
    TakenOver,
    Telling,
)
from maia.authority import Challenge, Statement, Tag
from maia.errors import DeniedError
from maia.policy import (
    Atom,
    DenialInForce,
    Fact,
    FactKind,
    PolicyDecision,
    PolicyProof,
    Privilege,
    SignedAgreement,
    UnmetRule,
)
from maia.principals import (
    Authenticated,
    Certificate,
    CertificateId,
    NonceProof,
    PublicKey,
    Signer,
    Subject,
    TestKind,
)

_INVITATION_LIFE = timedelta(days=1)


class AccessControl:
    """The service of one domain, over its database; embedded, it runs in process: `open_access_control`."""

    def __init__(
        self,
        *,
        signer: Signer,
        engine: Engine,
        holdings: Holdings,
        settings: Settings | None = None,
        telling: Telling | None = None,
        outside: Outside | None = None,
        named_roles: Callable[..., Iterable[str]] = no_roles,
        own_series: OwnSeries | None = None,
        transaction: Callable[[], AbstractContextManager[Connection]] | None = None,
    ) -> None:
        """Serve a domain.

        Args:
            signer: The domain's key.
            engine: The database, migrated.
            holdings: Types, certificates and statements that the domain holds.
            settings: How the domain issues.
            telling: Who must hear of statements, certificates and withdrawals; nobody when not given.
            outside: What is true outside.
            named_roles: Gives, for an instant ``at``, the roles that agreements with other domains speak of.
            own_series: What was ever stated under the domain's key, outside the database.
            transaction: How to begin a writing transaction, when not any process may: `Leadership.transaction`.
        """
        self._register = Register(
            signer=signer,
            engine=engine,
            holdings=holdings,
            cascade=withdraw.lapse,
            settings=settings,
            outside=outside,
            named_roles=named_roles,
            series=own_series,
            transaction=transaction,
        )
        self._telling = telling
        self._challenges = Challenges()

    @property
    def key(self) -> PublicKey:
        """The domain's key, which is who the domain is."""
        return self._register.key

    @property
    def settings(self) -> Settings:
        """How the domain issues."""
        return self._register.settings

    # ------------------------------------------------------------------ proving a key

    def challenge(self, *, at: datetime) -> bytes:
        """Give a random number to whoever wants to prove a key; it serves once, for a minute."""
        return self._challenges.make(at=at)

    def authenticate(self, proof: NonceProof, challenge: bytes, *, at: datetime) -> Authenticated:
        """Check the answer to a challenge of this service; the challenge is spent, whatever comes of it."""
        return self._challenges.check(proof, challenge, audience=self.key.key_id, at=at)

    # ------------------------------------------------------------------ members

    def members(self, *, at: datetime) -> tuple[Member, ...]:
        """List the members, those that are gone included, by name."""
        with self._register.reading(at):
            return tuple(member for _, member in sorted(self._register.members.items()))

    def member(self, name: str, *, at: datetime) -> Member:
        """Find a present member, or raise `NotFoundError`."""
        with self._register.reading(at):
            return self._register.present(name)

    def require_administrator(self, who: Authenticated, *, at: datetime) -> None:
        """Refuse whoever may not change the policy: only the domain's own key may, and who is given `administer`."""
        roles.require_administrator(self._register, who, at=at)

    def invite(
        self,
        name: str,
        *,
        at: datetime,
        kind: MemberKind = MemberKind.CLIENT,
        life: timedelta = _INVITATION_LIFE,
        appointments: Iterable[str] = (),
    ) -> str:
        """Invite somebody to become a member; give the code, which is not kept and works once.

        Args:
            name: What the policy will call the member.
            at: Now.
            kind: What it will be.
            life: How long the invitation is open.
            appointments: Facts that are recorded when it is used, such as ``detective(smith)``.

        Raises:
            UsageError: The name is taken or no name, or the appointments are too many.
            PolicySyntaxError: An appointment is no fact.
        """
        facts = tuple(islice(appointments, MAX_APPOINTMENTS + 1))
        (code,) = self.invite_all([Invitation(name=name, kind=kind, life=life, appointments=facts)], at=at)
        return code

    def invite_all(self, invitations: Iterable[Invitation], *, at: datetime) -> tuple[str, ...]:
        """Invite several to become members, at most a thousand; give the codes in order, when all are durable."""
        return enrol.invite_all(self._register, invitations, at=at)

    def enrol(
        self,
        who: Authenticated,
        *,
        at: datetime,
        invitation: str | None = None,
        appointment: bytes | None = None,
        roles: Iterable[Atom | str] = (),
    ) -> Enrolment:
        """Make a principal a member and hand it its first certificates.

        Args:
            who: Has just proven its key.
            at: Now.
            invitation: The code of an invitation; used up, even if it is shown twice at once.
            appointment: An appointment certificate of this domain for that key.
            roles: Roles that it activates at once; what they give is among the certificates.

        Raises:
            DeniedError: ``INVITATION_REFUSED`` for a code that is wrong, used or too old; all look alike. Or no rule
                gives one of the roles.
            VerificationError: The appointment does not prove anything for this key.
            UsageError: Neither is shown, or both; or the key or the name is a member already.
        """
        wanted = tuple(islice(roles, MAX_ROLES + 1))
        application = Application(who=who, invitation=invitation, appointment=appointment, roles=wanted)
        (enrolment,) = self.enrol_all([application], at=at)
        return enrolment

    def enrol_all(self, applications: Iterable[Application], *, at: datetime) -> tuple[Enrolment, ...]:
        """Make several principals members, at most a thousand, and hand each its first certificates.

        It is one transaction: all of them are members when this returns, each with its certificates in the register,
        or nobody is and no invitation is used up. Their roles are activated in the order in which they come.
        """
        found = enrol.enrol_all(self._register, applications, at=at)
        self.tell(at=at)
        return found

    # ------------------------------------------------------------------ facts and roles

    def appoint(self, fact: Atom | str, *, at: datetime, until: datetime | None = None) -> bool:
        """Record an appointment that holds up to and including an instant; say whether it is new.

        Where a denial stands on it, the certificates that it takes away end with this.
        """
        new, ended = facts.record(self._register, Fact(FactKind.APPOINTMENT, as_atom(fact)), at=at, until=until)
        self._told(ended, at=at)
        return new

    def issue_appointment(
        self, subject: PublicKey, name: str, fact: Atom | str, *, at: datetime, until: datetime | None = None
    ) -> Certificate:
        """Sign an appointment that a key brings along when it joins; it stands in the register and can be revoked."""
        signed = appointments.issue_appointment(self._register, subject, name, fact, at=at, until=until)
        self.tell(at=at)
        return signed

    def observe(self, fact: Atom | str, *, at: datetime, until: datetime | None = None) -> bool:
        """Record that an environment predicate is true; say whether that is new."""
        new, _ = facts.record(self._register, Fact(FactKind.ENVIRONMENT, as_atom(fact)), at=at, until=until)
        return new

    def retract(self, fact: Atom | str, *, at: datetime, kind: FactKind | None = None) -> Revocation:
        """Take back an appointment or what was recorded as true, with everything that stands on it."""
        return self._told(withdraw.retract(self._register, fact, at=at, kind=kind), at=at)

    def refresh(self, *, at: datetime) -> Revocation:
        """Ask the environment anew, let ended facts end, and withdraw what stood on them; for a timer to call."""
        return self._told(withdraw.refresh(self._register, at=at), at=at)

    def activate(
        self, who: Authenticated, role: Atom | str, *, at: datetime, anonymous: bool | None = None
    ) -> PolicyProof:
        """Activate a role for a member, and give the proof; by default the settings say whether it is anonymous."""
        return roles.activate(self._register, who, role, at=at, anonymous=anonymous)

    def deactivate(self, who: Authenticated, role: Atom | str, *, at: datetime) -> Revocation:
        """Give up a role; what stood on it ends, also for others."""
        return self._told(withdraw.deactivate(self._register, who, role, at=at), at=at)

    def roles(self, *, at: datetime, principal: str | None = None) -> tuple[Fact, ...]:
        """List the active roles, of one member or of all, sorted by holder."""
        with self._register.reading(at):
            return self._register.roles.engine.roles(principal)

    def privileges(self, *, at: datetime, principal: str | None = None) -> tuple[tuple[str, Privilege], ...]:
        """List who has which privilege now."""
        with self._register.reading(at):
            return self._register.roles.engine.privileges(principal)

    def held(self, principal: str, *, at: datetime) -> tuple[HeldPrivilege, ...]:
        """List what the roles of a member give, each with what denials take of it, by which rule and which facts."""
        with self._register.reading(at):
            return denied.held_privileges(self._register, principal, at=at)

    def denials(self, principal: str, *, at: datetime) -> tuple[DenialInForce, ...]:
        """List what the policy denies to a member now, whatever its roles give."""
        with self._register.reading(at):
            return self._register.roles.engine.denials(principal)

    def lost(self, *, at: datetime, principal: str | None = None) -> tuple[lost.Lost, ...]:
        """List who lost which privilege when, latest first, of one member or of all; what lapsed is left out."""
        return lost.lost_privileges(self._register, principal, at=at)

    def decide(self, privilege: Privilege | str, *, principal: str, at: datetime) -> PolicyDecision:
        """Say whether a member has a privilege now, and why."""
        with self._register.reading(at):
            return self._register.roles.decide(privilege, principal=principal)

    def explain(self, role: Atom | str, *, principal: str, at: datetime) -> PolicyProof | None:
        """Give the proof of an active role, or nothing."""
        with self._register.reading(at):
            return self._register.roles.engine.explain(role, principal=principal)

    def unmet(self, role: Atom | str, *, principal: str, at: datetime) -> tuple[UnmetRule, ...]:
        """Tell which rules would give a role, and what each lacks; for whoever runs the domain, not for its members."""
        with self._register.reading(at):
            return self._register.roles.engine.unmet(role, principal=principal)

    # ------------------------------------------------------------------ policy

    def policy(self, *, at: datetime) -> str:
        """Give the text of the policy in force."""
        with self._register.reading(at):
            return self._register.policy

    def preview(self, text: str, *, at: datetime) -> PolicyChange:
        """Say what a policy would change for whom, and change nothing."""
        return policy_change.preview(self._register, text, at=at)

    def apply(self, text: str, *, at: datetime) -> PolicyChange:
        """Put a policy in force: roles that it does not carry fall, and what stood on them ends."""
        change = policy_change.apply(self._register, text, at=at)
        self.tell(at=at)
        return change

    # ------------------------------------------------------------------ capabilities

    def renew_by_id(self, who: Authenticated, identity: bytes, *, at: datetime) -> Handed:
        """As `renew`, for a certificate that the register knows by its identity."""
        with self._register.reading_rows() as records:
            known = records.certificates.find(identity)
        if known is None or not known.raw:
            raise DeniedError("its issuer does not renew the certificate", code="RENEWAL_REFUSED")
        return self.renew(who, known.raw, at=at)

    def capabilities(self, who: Authenticated, *, at: datetime) -> Handed:
        """Hand a member the certificates of everything it may have now, with the domain's chain and lists.

        A certificate that still serves is handed out again; otherwise a fresh one is signed.
        """
        handed = issue.capabilities(self._register, who, at=at)
        self.tell(at=at)
        return handed

    def renew(self, who: Authenticated, certificate: bytes, *, at: datetime) -> Handed:
        """Issue a certificate anew, when its holder would be given it today."""
        handed = issue.renew(self._register, who, certificate, at=at)
        self.tell(at=at)
        return handed

    def grant(
        self,
        subject: Subject,
        tag: Tag,
        *,
        at: datetime,
        delegate: bool = False,
        until: datetime | None = None,
        holder: str | None = None,
    ) -> Certificate:
        """Issue a right outside the policy, by the domain's own decision; it stands in the register like others."""
        granted = grants.grant(self._register, subject, tag, at=at, delegate=delegate, until=until, holder=holder)
        self.tell(at=at)
        return granted

    def honour(self, signed: SignedAgreement, *, at: datetime) -> Handed:
        """Issue what an agreement gives to another domain's roles and brokers, in the register like everything else.

        Honouring an agreement again hands out the same certificates.
        """
        handed = grants.honour(self._register, signed, at=at)
        self.tell(at=at)
        return handed

    def gain(self, certificate: bytes, *, at: datetime) -> Certificate:
        """Take in a certificate that gives the domain a right, and push it to the domain's brokers."""
        gained = grants.gain(self._register, certificate, at=at)
        self.tell(at=at)
        return gained

    def register(self, *, at: datetime, look: bool = False) -> tuple[Entry, ...]:
        """List the live certificates, those that were reported included; expired ones are removed, unless one looks."""
        return (grants.look_at_entries if look else grants.entries)(self._register, at=at)

    def report(self, who: Authenticated, certificate: bytes, *, at: datetime) -> None:
        """Enter a delegation that a delegate made from a right of this domain's."""
        grants.report(self._register, who, certificate, at=at)

    # ------------------------------------------------------------------ withdrawal

    def revoke(
        self,
        *,
        at: datetime,
        certificates: Iterable[bytes] = (),
        role: Atom | str | None = None,
        principal: str | None = None,
        principals: Iterable[str] = (),
    ) -> Revocation:
        """Withdraw certificates by their ids, a role of a member, or members with everything they have.

        The answer comes when it is durable. What stands on a role falls with it, also for others. All that is named
        goes in one transaction, under one list, or nothing does.

        Args:
            at: Now.
            certificates: Ids of certificates of this domain.
            role: A role; with ``principal`` of this member, else of everybody who has it active.
            principal: A member; without ``role`` it ceases to be one, and neither its name nor its key returns.
            principals: Further members, at most a thousand at a time.

        Raises:
            NotFoundError: There is no such certificate, member or active role.
            UsageError: Nothing is named, or too much.
        """
        named = _principals(principal, principals)
        work = withdraw.revocation(self._register, tuple(certificates), role, named, at=at)
        return self._told(self._register.write(work, at=at), at=at)

    def lift(self, *, at: datetime, certificate: bytes | None = None, principal: str | None = None) -> int:
        """Let a right be issued anew that was revoked by itself: one that a certificate gave, or all of a member."""
        return withdraw.lift(self._register, certificate, principal, at=at)

    def preview_revocation(
        self,
        *,
        at: datetime,
        certificates: Iterable[bytes] = (),
        role: Atom | str | None = None,
        principal: str | None = None,
        principals: Iterable[str] = (),
    ) -> Revocation:
        """Say what `revoke` would do, and do nothing."""
        named = _principals(principal, principals)
        work = withdraw.revocation(self._register, tuple(certificates), role, named, at=at)
        return self._register.preview(work, at=at)

    # ------------------------------------------------------------------ statements, the outbox and the journal

    def beat(self, *, at: datetime) -> tuple[Statement, ...]:
        """Sign the lists that are due now, once, whoever calls how often; for a timer to call."""
        signed = lists.beat(self._register, at=at)
        self.tell(at=at)
        return signed

    def state(
        self,
        kind: TestKind,
        *,
        at: datetime,
        revoke: Mapping[CertificateId, datetime | None] | None = None,
        good: frozenset[CertificateId] = frozenset(),
        interval: tuple[datetime, datetime] | None = None,
        sequence: int | None = None,
    ) -> Statement:
        """Sign a list by hand, as the next one of the domain's series; it carries everything that was revoked."""
        signed = lists.state(
            self._register, kind, at=at, revoke=revoke or {}, good=good, interval=interval, sequence=sequence
        )
        self.tell(at=at)
        return signed

    def repair(self, *, at: datetime) -> TakenOver:
        """Take over what was ever signed under the domain's key, after the database was restored from an older copy."""
        found = series.repair(self._register, at=at)
        self.tell(at=at)
        return found

    def statements(self, *, at: datetime) -> tuple[bytes, ...]:
        """Give the signed lists that count now."""
        self.beat(at=at)
        with self._register.reading_rows() as records:
            return records.lists.current(at=at)

    def answer(self, challenge: Challenge, certificates: Iterable[bytes], *, at: datetime) -> Statement:
        """Answer one challenge of one verifier: which of some certificates are good."""
        return lists.answer(self._register, challenge, certificates, at=at)

    def tell(self, *, at: datetime) -> bool:  # noqa: ARG002 - every method takes the instant
        """Tell what was decided and not yet told; say whether nothing is left. Safe to call at any time."""
        return outbox.tell(self._register, self._telling)

    def _told(self, revocation: Revocation, *, at: datetime) -> Revocation:
        return replace(revocation, told=self.tell(at=at))

    def journal(self, *, after: int = 0, limit: int = 1_000) -> tuple[database.JournalRecord, ...]:
        """Read what the service did; roles that are used anonymously name nobody."""
        with self._register.reading_rows() as records:
            return records.journal.read(after=after, limit=limit)


def _principals(first: str | None, others: Iterable[str]) -> tuple[str, ...]:
    return (*(() if first is None else (first,)), *islice(others, MAX_TOGETHER + 1))
