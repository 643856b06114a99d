"""The access control service of a domain: role policy in, capabilities out. It knows no HTTP and reads no clock.

Rules kept here:

- whoever asks for something has proven its key: methods for members take an `Authenticated`, which only a successful
  run of the protocol makes. What they get is for that key and no other;
- a certificate is in the register before it is handed out, and a withdrawal is durable before it is acknowledged;
- a withdrawal goes in order: roles, then capabilities, then the signed list, then subscriptions and key groups;
- what fails leaves everything as it was;
- several processes may serve one database: each sees by its revision that another one wrote, and loads anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from maia import database
from maia.access_control.certificates import Wanted, chain_of, sign_new
from maia.access_control.handing import Parcel
from maia.access_control.joining import Joining
from maia.access_control.lists import answer_challenge, sign_due
from maia.access_control.outbox import CERTIFICATE
from maia.access_control.role_book import as_atom
from maia.access_control.values import Entry, Handed, Member, Revocation
from maia.access_control.withdrawing import MAX_TOGETHER
from maia.authority import Challenge, Statement, Tag, parse_tag
from maia.encoding import encode
from maia.errors import DeniedError, SignatureError, UsageError, VerificationError
from maia.policy import (
    Atom,
    Decision,
    Fact,
    FactKind,
    Privilege,
    Proof,
    SignedAgreement,
    giver_bodies,
    verify_agreement,
)
from maia.principals import (
    Authenticated,
    Authorisation,
    Certificate,
    CertificateId,
    KeyHash,
    NonceProof,
    Period,
    Principal,
    PublicKey,
    Subject,
    check_aware,
    check_nonce_proof,
    issue,
    parse_certificate,
    verify_certificate,
)

ADMINISTER = Atom("administer")
"""The privilege of those who may change policy, appoint, invite and withdraw."""

_NONCE = 32
_CHALLENGE_LIFE = timedelta(seconds=60)
_MAX_CHALLENGES = 10_000
_Records = database.AccessControlRecords


class AccessControl(Joining):
    """The service of one domain, over its database.

    In the embedded default it runs in process over a home: see `open_access_control`.
    """

    # ------------------------------------------------------------------ proving a key

    def challenge(self, *, at: datetime) -> bytes:
        """Give a random number to whoever wants to prove a key; it serves once, for a minute."""
        with self._lock:
            for nonce in [nonce for nonce, until in self._challenges.items() if until < at]:
                del self._challenges[nonce]
            if len(self._challenges) >= _MAX_CHALLENGES:
                self._challenges.popitem(last=False)  # whoever was slowest asks again
            nonce = secrets.token_bytes(_NONCE)
            self._challenges[nonce] = check_aware(at) + _CHALLENGE_LIFE
            return nonce

    def authenticate(self, proof: NonceProof, challenge: bytes, *, at: datetime) -> Authenticated:
        """Check the answer to a challenge of this service; the challenge is spent, whatever comes of it.

        Raises:
            VerificationError: The challenge is not of this service, or was used, or is too old.
            SignatureError: The answer does not fit it.
        """
        with self._lock:
            until = self._challenges.pop(challenge, None)
        if until is None or until < at:
            raise VerificationError("no such challenge is open", code="NO_CHALLENGE")
        return check_nonce_proof(proof, audience=self.key.key_id, challenge=challenge)

    # ------------------------------------------------------------------ members

    def members(self, *, at: datetime) -> tuple[Member, ...]:
        """List the members, those that are gone included, by name."""
        with self._reading(at):
            return tuple(self._members[name] for name in sorted(self._members))

    def member(self, name: str, *, at: datetime) -> Member:
        """Find a present member.

        Raises:
            NotFoundError: There is none of this name.
        """
        with self._reading(at):
            return self._present(name)

    def require_administrator(self, who: Authenticated, *, at: datetime) -> None:
        """Refuse whoever may not change the policy: only the domain's own key may, and who is given `administer`.

        Raises:
            DeniedError: ``NOT_ADMINISTRATOR``.
        """
        if who.key == self.key:
            return
        with self._reading(at):
            member = self._known(who)
            if member is None or not self._roles.decide(ADMINISTER, principal=member.name):
                raise DeniedError("only administrators of the domain may do this", code="NOT_ADMINISTRATOR")

    # ------------------------------------------------------------------ facts and roles

    def appoint(self, fact: Atom | str, *, at: datetime, until: datetime | None = None) -> bool:
        """Record an appointment that holds up to and including an instant; say whether it is new."""
        return self._record(Fact(FactKind.APPOINTMENT, as_atom(fact)), at=at, until=until)

    def observe(self, fact: Atom | str, *, at: datetime, until: datetime | None = None) -> bool:
        """Record that an environment predicate is true; say whether that is new."""
        return self._record(Fact(FactKind.ENVIRONMENT, as_atom(fact)), at=at, until=until)

    def retract(self, fact: Atom | str, *, at: datetime, kind: FactKind | None = None) -> Revocation:
        """Take back an appointment or what was recorded as true, with everything that stands on it."""
        if kind is FactKind.ROLE:
            raise UsageError("a role is withdrawn, not retracted", code="POLICY_KIND")
        atom = as_atom(fact)
        kinds = (FactKind.APPOINTMENT, FactKind.ENVIRONMENT) if kind is None else (kind,)
        gone = tuple(Fact(each, atom) for each in kinds)

        def work(records: _Records) -> Revocation:
            self._changes()
            fallen = self._roles.retract(records, gone)
            records.note("retract", str(atom), who=None, at=at)
            return self._cascade(records, fallen, gone, at=at)

        return self._told(self._write(work, at=at), at=at)

    def refresh(self, *, at: datetime) -> Revocation:
        """Ask the environment anew, let ended facts end, and withdraw what stood on them; for a timer to call."""

        def work(records: _Records) -> Revocation:
            self._changes()
            gone, fallen = self._roles.refresh(records, self._environment, at=at)
            last = self._cascade(records, fallen, gone, at=at)
            found = (*self._caught, last)
            return Revocation(
                roles=tuple(role for item in found for role in item.roles),
                certificates=tuple(ended for item in found for ended in item.certificates),
                statement=next((item.statement for item in reversed(found) if item.statement is not None), None),
            )

        return self._told(self._write(work, at=at), at=at)

    def activate(self, who: Authenticated, role: Atom | str, *, at: datetime, anonymous: bool | None = None) -> Proof:
        """Activate a role for a member, and give the proof.

        Args:
            who: The member.
            role: The role with all its parameters.
            at: Now.
            anonymous: Whether the journal leaves out who it is; what the settings say for the role when not given.

        Raises:
            DeniedError: No rule is met, or the key is no member's.
            PolicySyntaxError: The text is no role.
        """
        atom = as_atom(role)
        with self._writing(at) as records:
            wanted = Fact(FactKind.ROLE, atom, self._require(who).name)
            hidden = self.settings.hides(wanted) if anonymous is None else anonymous
            (proof,) = self._roles.activate(records, [(wanted, hidden)])
            self._changes()
            self._note_roles(records, "activate", [(wanted, hidden)], at=at)
        return proof

    def deactivate(self, who: Authenticated, role: Atom | str, *, at: datetime) -> Revocation:
        """Give up a role; what stood on it ends, also for others."""
        return self._withdraw_role(role, lambda: self._require(who).name, at=at)

    def roles(self, *, at: datetime, principal: str | None = None) -> tuple[Fact, ...]:
        """List the active roles, of one member or of all, sorted by holder."""
        with self._reading(at):
            return self._roles.engine.roles(principal)

    def privileges(self, *, at: datetime, principal: str | None = None) -> tuple[tuple[str, Privilege], ...]:
        """List who has which privilege now."""
        with self._reading(at):
            return self._roles.engine.privileges(principal)

    def decide(self, privilege: Privilege | str, *, principal: str, at: datetime) -> Decision:
        """Say whether a member has a privilege now, and why."""
        with self._reading(at):
            return self._roles.decide(privilege, principal=principal)

    def explain(self, role: Atom | str, *, principal: str, at: datetime) -> Proof | None:
        """Give the proof of an active role, or nothing."""
        with self._reading(at):
            return self._roles.engine.explain(role, principal=principal)

    # ------------------------------------------------------------------ capabilities

    def capabilities(self, who: Authenticated, *, at: datetime) -> Handed:
        """Hand a member the certificates of everything it may have now, with the domain's chain and lists.

        A certificate that still serves is handed out again; otherwise a fresh one is signed.
        """
        (handed,) = self._write(lambda records: self._hand(records, [self._require(who)], at=at), at=at)
        self.tell(at=at)
        return handed

    def renew(self, who: Authenticated, certificate: bytes, *, at: datetime) -> Handed:
        """Issue a certificate anew, when its holder would be given it today.

        Args:
            who: Must be the certificate's subject.
            certificate: The signed octets of one that this domain issued; it may have expired.
            at: Now.

        Raises:
            DeniedError: ``RENEWAL_REFUSED``: the policy does not give it any more, or not to this principal.
            SignatureError: This domain did not issue it.
        """
        old = verify_certificate(parse_certificate(certificate))
        if old.body.issuer_id != self.key.key_id:
            raise SignatureError("this domain did not issue the certificate", code="WRONG_SIGNER")
        subject = old.body.subject
        with self._writing(at) as records:
            member = self._require(who)
            # SECURITY: a chain of somebody else is worth nothing here, however good it is.
            if not isinstance(subject, PublicKey | KeyHash) or subject.key_id != who.key.key_id:
                raise DeniedError("the certificate is somebody else's", code="RENEWAL_REFUSED")
            ((wanted, _),) = self._wanted([member], at=at)
            right = _right_of(old)
            found = next((item for item in wanted if item.right == right), None)
            fresh = None
            if found is not None:
                (fresh,) = sign_new(records, [(found, member)], signer=self._signer, settings=self.settings, at=at)
            if found is None or fresh is None:
                records.note("refuse", f"renewal of {old.certificate_id.hex()[:16]}", who=member.name, at=at)
                handed = None
            else:
                (handed,) = self._package(records, [Parcel(member, (found,), (), [fresh])], at=at)
        if handed is None:
            raise DeniedError("its issuer does not renew the certificate", code="RENEWAL_REFUSED")
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
        body = Authorisation(
            issuer=self.key,
            subject=subject,
            delegate=delegate,
            tag=tag.to_sexp(),
            period=Period(at.replace(microsecond=0), until),
            tests=self.settings.online_tests(self.key),
            renew=self.settings.renew,
        )
        with self._writing(at) as records:
            certificate = issue(body, self._signer)
            known = records.certificate(certificate.certificate_id)
            if known is not None and known.withdrawn is not None:
                raise DeniedError("exactly this certificate was withdrawn; issue it a second later", code="WITHDRAWN")
            self._register(records, certificate, privilege=None, holder=holder, at=at)
            sign_due(records, signer=self._signer, settings=self.settings, at=at)
        self.tell(at=at)
        return certificate

    def honour(self, signed: SignedAgreement, *, at: datetime) -> Handed:
        """Issue what an agreement gives to another domain's roles and brokers, in the register like everything else.

        Honouring an agreement again hands out the same certificates.

        Raises:
            VerificationError: It is not signed by both, or does not count now.
            DeniedError: This domain is not the giver.
        """
        verified = verify_agreement(signed, at=at, statements=self._home.statements())
        if verified.agreement.giver.key_id != self.key.key_id:
            raise DeniedError("the agreement gives nothing of this domain's", code="NOT_THE_GIVER")
        bodies = giver_bodies(verified, tests=self.settings.online_tests(self.key))
        certificates = tuple(issue(body, self._signer) for body in bodies)
        with self._writing(at) as records:
            for certificate in certificates:
                known = records.certificate(certificate.certificate_id)
                if known is not None and known.withdrawn is not None:
                    raise DeniedError("what the agreement gives was withdrawn; sign a new one", code="WITHDRAWN")
                name = getattr(certificate.body.subject, "parts", ("",))[0]
                self._register(records, certificate, privilege=f"agreement: {name}", holder=None, at=at)
            wanted = [
                Wanted(privilege="", tag=parse_tag(body.tag), owner=owner)
                for body in bodies
                for owner in self._owners(at=at)
            ]
            sign_due(records, signer=self._signer, settings=self.settings, at=at)
            chain = chain_of(wanted, domain=self.key, pool=self._home.evidence(), book=self._home.statements(), at=at)
            statements = records.statements(at=at)
            records.note("agree", verified.agreement.title, who=None, at=at)
        self.tell(at=at)
        return Handed(certificates=certificates, chain=chain, statements=statements)

    def _owners(self, *, at: datetime) -> frozenset[Principal]:
        return frozenset(known.owner for known in self._home.types(at=at).types())

    def gain(self, certificate: bytes, *, at: datetime) -> Certificate:
        """Take in a certificate that gives the domain a right, and push it to the domain's brokers.

        Raises:
            DeniedError: It is not for this domain.
            SignatureError: Its issuer did not sign it.
        """
        found = verify_certificate(parse_certificate(certificate))
        subject = found.body.subject
        if not isinstance(found.body, Authorisation) or getattr(subject, "key_id", None) != self.key.key_id:
            raise DeniedError("the certificate gives this domain nothing", code="NOT_FOR_DOMAIN")
        self._home.keep(found)
        with self._writing(at) as records:
            records.post(CERTIFICATE, self.key.key_id, found.raw)
            records.note("gain", found.certificate_id.hex()[:16], who=None, at=at)
        self.tell(at=at)
        return found

    # ------------------------------------------------------------------ the register

    def register(self, *, at: datetime) -> tuple[Entry, ...]:
        """List the live certificates, those that were reported included; expired ones are removed."""
        with self._writing(at) as records:
            records.forget_certificates(before=at)
            return tuple(
                Entry(
                    certificate_id=record.certificate_id,
                    certificate=record.raw,
                    holder=record.holder,
                    privilege=record.privilege,
                    until=record.until,
                    reported=record.parent is not None,
                )
                for record in records.certificates(at=at)
            )

    def report(self, who: Authenticated, certificate: bytes, *, at: datetime) -> None:
        """Enter a delegation that a delegate made from a right of this domain's.

        Raises:
            DeniedError: ``REPORT_REFUSED``: it was not made by ``who``, or from nothing that it may pass on.
            SignatureError: Its issuer did not sign it.
        """
        found = verify_certificate(parse_certificate(certificate))
        with self._writing(at) as records:
            parent = None if found.body.issuer_id != who.key.key_id else self._delegated_to(records, who, at=at)
            if parent is None or not isinstance(found.body, Authorisation):
                raise DeniedError("nobody gave this delegate something to pass on", code="REPORT_REFUSED")
            self._register(records, found, privilege=None, holder=None, at=at, parent=parent)

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
        return self._told(self._write(self._revoking(tuple(certificates), role, named, at=at), at=at), at=at)

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
        return self._try(self._revoking(tuple(certificates), role, named, at=at), at=at)

    # ------------------------------------------------------------------ statements

    def beat(self, *, at: datetime) -> tuple[Statement, ...]:
        """Sign the lists that are due now, once, whoever calls how often; for a timer to call."""
        signed = self._write(
            lambda records: sign_due(records, signer=self._signer, settings=self.settings, at=at), at=at
        )
        self.tell(at=at)
        return signed

    def statements(self, *, at: datetime) -> tuple[bytes, ...]:
        """Give the signed lists that count now."""
        self.beat(at=at)
        with database.reading(self._database) as connection:
            return self._records(connection).statements(at=at)

    def answer(self, challenge: Challenge, certificates: Iterable[bytes], *, at: datetime) -> Statement:
        """Answer one challenge of one verifier: which of some certificates are good."""
        asked = frozenset(CertificateId(identity) for identity in certificates)
        with self._reading(at), database.reading(self._database) as connection:
            return answer_challenge(self._records(connection), challenge, asked, signer=self._signer, at=at)

    def journal(self, *, after: int = 0, limit: int = 1_000) -> tuple[database.JournalRecord, ...]:
        """Read what the service did; roles that are used anonymously name nobody."""
        with database.reading(self._database) as connection:
            return self._records(connection).journal(after=after, limit=limit)


def _right_of(certificate: Certificate) -> bytes:
    body = certificate.body
    if isinstance(body, Authorisation):
        return encode(body.tag)
    return encode((b"name", body.name.encode()))


def _principals(first: str | None, others: Iterable[str]) -> tuple[str, ...]:
    return (*(() if first is None else (first,)), *islice(others, MAX_TOGETHER + 1))
