"""One decision in progress: the stages that `verifier` lists, run over one pool of evidence for one request.

Rules kept here: a certificate counts only while it is in force and once its signature was checked, which happens when a
search reaches it from a root and before anything is searched behind it; every link passes the same checks, and what it
adds names only what its issuer holds; all of it draws from one budget; nothing of a case outlives its decision but what
it proves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from maia.authority.book import StatementBook
from maia.authority.budget import Budget
from maia.authority.decision import SEAL, Grant
from maia.authority.derive import Derived, derive, keeps_law
from maia.authority.diagnosis import Diagnosis, diagnose
from maia.authority.fairness import fairly
from maia.authority.graph import Graph, mentioned
from maia.authority.hindsight import Hindsight
from maia.authority.limits import VerifierLimits
from maia.authority.pool import CertificatePool
from maia.authority.proof import Joined, Proof, ProofTree
from maia.authority.request import Request
from maia.authority.search import Reach, find_proof, reach, reached
from maia.authority.signatures import SignatureCache
from maia.authority.statements import Challenge
from maia.authority.tag_forms import Tag
from maia.authority.tuples import FiveTuple, Root
from maia.errors import ExpiredError, SignatureError, VerificationError
from maia.principals import (
    Certificate,
    CertificateId,
    KeyId,
    Period,
    UnverifiedCertificate,
)


@dataclass(slots=True)
class Case:
    """One decision in progress."""

    roots: tuple[Root, ...]
    statements: StatementBook | Hindsight
    limits: VerifierLimits
    signatures: SignatureCache
    pool: CertificatePool
    request: Request
    principal: KeyId
    at: datetime
    challenge: Challenge | None
    budget: Budget
    problems: dict[CertificateId, VerificationError] = field(default_factory=dict)
    _usable: dict[CertificateId, bool] = field(default_factory=dict)
    _signed: dict[CertificateId, Certificate | None] = field(default_factory=dict)
    _until: dict[CertificateId, datetime | None] = field(default_factory=dict)
    _nonces: dict[CertificateId, set[bytes]] = field(default_factory=dict)
    _admits: dict[int, bool] = field(default_factory=dict)

    def prove(self) -> Grant | None:
        """Find a proof from certificates that are in force and signed by their issuers."""
        derived = self._first(*self._search())
        return None if derived is None else self._grant(derived)

    def clauses(self) -> tuple[Derived, ...]:
        """Derive every right from verified certificates."""
        graph, roots, found = self._search()
        unique: dict[tuple[object, ...], Derived] = {}
        for derived in derive(graph, roots, found, self.request.wanted, versions=self.request.versions):
            until = self._ends(derived.proof.certificate_ids(), answered=self._answered)
            key = (derived.tag, derived.period, derived.conditions, derived.delegate, until)
            known = unique.get(key)
            if known is None:
                unique[key] = replace(derived, until=until)
            else:
                unique[key] = replace(known, others=(*known.others, derived.proof.certificate_ids()))
        rights = list(unique.values())
        if len(rights) > self.limits.max_clauses:
            rights = fairly(rights, lambda right: right.proof.certificate_ids())[: self.limits.max_clauses]
        return tuple(rights)

    def reached(self) -> frozenset[KeyId]:
        """Name every key that certificates in force lead to, whoever asks."""
        graph = Graph(self.pool.links, self.pool.namings, self.usable, self.limits, self.budget)
        return reached(graph, self._standing_roots(), self._admits_link, self._could_admit)

    def explain(self) -> Diagnosis:
        """Say what is missing, from what may have to do with the principal, whatever it grants."""
        leads = self.pool.leading_to(self.principal, self.budget)
        leading = [
            link
            for issuer in sorted(leads & self.pool.links.keys())
            for link in self.pool.links[issuer]
            if any(key in leads for key in mentioned(link.subject))
        ]
        return diagnose(
            self.pool, leading, self.request, self.request.roots(self.roots), self.principal, self.usable,
            self.signed, self.problems, self.limits, self.budget,
        )  # fmt: skip

    def nonces(self, identities: Iterable[CertificateId]) -> set[bytes]:
        """List the one-time answers that certificates rest on."""
        return {nonce for identity in identities for nonce in self._nonces.get(identity, ())}

    def usable(self, identity: CertificateId) -> bool:
        """Tell whether a certificate is in force and signed: period, tests and signature; remember why not."""
        known = self._usable.get(identity)
        if known is None:
            try:
                self._check_in_force(self.pool.get(identity))
                known = self.signed(identity)
            except VerificationError as error:
                self.problems[identity] = error
                known = False
            self._usable[identity] = known
        return known

    def signed(self, identity: CertificateId) -> bool:
        """Tell whether a certificate was signed by its issuer; each is checked once."""
        if identity not in self._signed:
            self._signed[identity] = self._check_signature(identity)
        return self._signed[identity] is not None

    def _check_in_force(self, certificate: UnverifiedCertificate) -> None:
        period = certificate.body.period
        if not period.contains(self.at):
            if period.not_after is not None and self.at > period.not_after:
                raise ExpiredError(f"certificate `{_short(certificate)}` expired at {period.not_after.isoformat()}")
            raise ExpiredError(f"certificate `{_short(certificate)}` is not valid yet", code="NOT_YET_VALID")
        until: datetime | None = None
        for test in certificate.body.tests:
            answer = self.statements.check(test, certificate.certificate_id, at=self.at, challenge=self.challenge)
            end = None
            if answer.nonce is not None:
                self._nonces.setdefault(certificate.certificate_id, set()).add(answer.nonce)
            elif answer.until is not None:  # lists that were accepted already may follow the one in force
                end = self.statements.assured_until(test, certificate.certificate_id, at=self.at)
            if end is not None and (until is None or end < until):
                until = end
        self._until[certificate.certificate_id] = until

    def _search(self) -> tuple[Graph, tuple[Root, ...], Reach]:
        leads = self.pool.leading_to(self.principal, self.budget)
        graph = Graph(self.pool.links, self.pool.namings, self.usable, self.limits, self.budget, leads)
        roots = self._standing_roots()
        return graph, roots, reach(graph, roots, self.principal, self._admits_link, self._could_admit)

    def _standing_roots(self) -> tuple[Root, ...]:
        return tuple(root for root in self.request.roots(self.roots) if root.period.contains(self.at))

    def _could_admit(self, link: FiveTuple) -> bool:
        return not self.request.excluded_by(link.tag)

    def _admits_link(self, link: FiveTuple) -> bool:
        key = id(link.tag)
        known = self._admits.get(key)
        if known is None:
            known = self._admits[key] = self.request.admitted_by(link.tag, self.budget)
        return known

    def _first(self, graph: Graph, roots: tuple[Root, ...], found: Reach) -> Derived | None:
        """Take the shortest proof; for an open request, or past a link that gives nothing, the first chain."""
        proof = find_proof(graph, roots, found)
        if proof is None:
            return None
        wanted, versions = self.request.wanted, self.request.versions
        if self.request.ground is not None and keeps_law(proof, wanted, self.budget, versions=versions):
            return _reduced(proof, wanted)
        derived = next(derive(graph, roots, found, wanted, versions=versions), None)
        return derived if derived is None or self.request.ground is None else replace(derived, tag=wanted)

    def _grant(self, derived: Derived) -> Grant:
        certificates = tuple(self._verified(identity) for identity in derived.proof.certificate_ids())
        return Grant(
            self.principal, self.request, derived.proof, certificates, derived.tag,
            _common(derived.period, *(item.body.period for item in certificates)), self.at,
            self._ends((item.certificate_id for item in certificates), answered=self.at), derived.conditions,
            derived.delegate, SEAL,
        )  # fmt: skip

    @property
    def _answered(self) -> datetime:
        """Until when a right that rests on an answer may be worked by: as long as the question is open."""
        return self.at if self.challenge is None else self.challenge.until

    def _ends(self, identities: Iterable[CertificateId], *, answered: datetime) -> datetime | None:
        """Tell when the statements accepted so far carry the first of these certificates no longer.

        Args:
            identities: The certificates.
            answered: When answers to the challenge carry no longer.
        """
        chain = tuple(identities)
        untils = [self._until.get(identity) for identity in chain]
        untils += [answered for identity in chain if identity in self._nonces]
        return min((until for until in untils if until is not None), default=None)

    def _verified(self, identity: CertificateId) -> Certificate:
        certificate = self._signed.get(identity)
        # SECURITY: a grant rests on verified certificates only, whatever the search believed.
        if certificate is None:
            raise SignatureError("signature does not verify")
        return certificate

    def _check_signature(self, identity: CertificateId) -> Certificate | None:
        for spelling in self.pool.spellings(identity):
            self.budget.check_signature()
            try:
                return self.signatures.verify(spelling)
            except SignatureError as problem:
                self.problems[identity] = problem
        return None


def _reduced(proof: Proof, wanted: Tag) -> Derived:
    """Sum a ground proof up: the request itself is what is left of the tag."""
    links = proof.links()
    period = _common(proof.root.period, *(link.period for link in links))
    conditions = tuple(dict.fromkeys(condition for link in links for condition in link.conditions))
    return Derived(wanted, period, _may_delegate(proof), conditions, proof)


def _common(period: Period, *others: Period) -> Period:
    """Intersect periods that all hold the instant of the decision, so that something is left."""
    for other in others:
        common = period.intersect(other)
        assert common is not None  # noqa: S101 - certificates outside their period never get here
        period = common
    return period


def _may_delegate(proof: Proof) -> bool:
    """Tell whether every branch of a proof ends with a right that may be passed on."""
    stack: list[tuple[ProofTree, bool]] = [(proof.tree, proof.root.delegate)]
    while stack:
        tree, delegate = stack.pop()
        if isinstance(tree, Joined):
            stack.extend((branch, delegate) for branch in tree.branches)
        elif tree.link is not None and tree.then is not None:
            stack.append((tree.then, tree.link.delegate))
        elif not delegate:
            return False
    return True


def _short(certificate: UnverifiedCertificate) -> str:
    return certificate.certificate_id.hex()[:16]
