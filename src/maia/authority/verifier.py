"""The one place that decides whether evidence proves a right.

A decision goes through fixed stages (row 6.02), and nothing later can make up for a failure in an earlier one:

1. evidence: certificates are read strictly; what is malformed is left out and can prove nothing;
2. signatures: each certificate of the proof was signed by its issuer, over exactly these bytes;
3. validity: each is inside its period at ``at``, ends included;
4. on-line tests: each test of each has a statement of the named key in force; absence denies;
5. names: names are reduced to keys, through certificates that passed 2 to 4 as well;
6. reduction: from link to link the subject is the issuer, delegation is allowed but at the end, thresholds are met by
   distinct keys;
7. root: the first issuer is the owner in the name of what is asked, or a configured root; never one from the evidence;
8. request: every link permits the request, and together they leave something of it.

There is no second, shorter path for delegated certificates: every link passes the same function. The order of the
evidence, its repetition, and the state of caches do not change an answer. Cached are: signatures, by the exact bytes
(they are true forever); and grants, by principal, request, evidence and statements, and only while every certificate of
the proof is inside its period. A denial is never cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from maia.authority.book import StatementBook
from maia.authority.decision import SEAL, Decision, Grant, Stage
from maia.authority.derive import Derived, derive
from maia.authority.diagnosis import Diagnosis, diagnose
from maia.authority.graph import Graph
from maia.authority.limits import DEFAULT_VERIFIER_LIMITS, VerifierLimits
from maia.authority.pool import CertificatePool
from maia.authority.proof import Joined, Proof, ProofTree
from maia.authority.request import Request
from maia.authority.search import Reach, find_proof, reach
from maia.authority.statements import Challenge
from maia.authority.tags import Tag
from maia.authority.tuples import FiveTuple, Root
from maia.errors import ExpiredError, SignatureError, UncheckedError, VerificationError
from maia.principals import (
    Certificate,
    CertificateId,
    KeyHash,
    KeyId,
    Period,
    PublicKey,
    UnverifiedCertificate,
    check_aware,
    verify_certificate,
)

Evidence = CertificatePool | Iterable[bytes | UnverifiedCertificate | Certificate]


class SignatureCache:
    """Certificates whose signature was verified in this process, by their exact bytes; bounded, oldest out first."""

    def __init__(self, capacity: int = DEFAULT_VERIFIER_LIMITS.max_memory) -> None:
        """Hold up to ``capacity`` certificates."""
        self._capacity = capacity
        self._verified: OrderedDict[bytes, Certificate] = OrderedDict()
        self.verifications = 0

    def verify(self, certificate: UnverifiedCertificate) -> Certificate:
        """Return the verified certificate, checking the signature only if these bytes were never checked.

        Raises:
            SignatureError: The signature does not verify.
        """
        known = self._verified.get(certificate.raw)
        if known is not None:
            return known
        self.verifications += 1
        verified = verify_certificate(certificate)
        if len(self._verified) >= self._capacity:
            self._verified.popitem(last=False)
        self._verified[certificate.raw] = verified
        return verified

    def __len__(self) -> int:
        """Count the certificates held."""
        return len(self._verified)

    def __iter__(self) -> Iterator[Certificate]:
        """Go through the certificates, oldest first."""
        return iter(tuple(self._verified.values()))


class Verifier:
    """Decides requests from evidence, at an instant, with the statements it has."""

    def __init__(
        self,
        roots: Iterable[Root] = (),
        *,
        statements: StatementBook | None = None,
        limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS,
        signatures: SignatureCache | None = None,
    ) -> None:
        """Configure what is trusted.

        Args:
            roots: Trusted principals for requests that name no owner.
            statements: What is known about validity; empty by default, which denies what needs a statement.
            limits: Bounds on the work for one decision.
            signatures: A cache to share between verifiers.
        """
        self._roots = tuple(roots)
        self._limits = limits
        self._statements = statements if statements is not None else StatementBook(limits=limits)
        self.signatures = signatures if signatures is not None else SignatureCache(limits.max_memory)
        # INVARIANT: what a remembered grant rests on and its key does not name stays the same, hence no setters.
        self._pools: OrderedDict[tuple[bytes, ...], CertificatePool] = OrderedDict()
        self._grants: OrderedDict[tuple[object, ...], Grant] = OrderedDict()

    @property
    def roots(self) -> tuple[Root, ...]:
        """The trusted principals for requests that name no owner."""
        return self._roots

    @property
    def limits(self) -> VerifierLimits:
        """The bounds on the work for one decision."""
        return self._limits

    @property
    def statements(self) -> StatementBook:
        """What this verifier knows about validity."""
        return self._statements

    def verify(
        self,
        request: Request,
        *,
        principal: PublicKey | KeyHash,
        evidence: Evidence,
        at: datetime,
        challenge: Challenge | None = None,
    ) -> Grant:
        """Prove that a principal has a right now, or raise.

        Args:
            request: What is asked for.
            principal: Who asks; that it holds the key is proven elsewhere (see `maia.principals`).
            evidence: Certificates in any order, more than needed or a pool.
            at: The instant of the decision.
            challenge: The question asked for one-time revalidations, if any; one asked for another request is none.

        Returns:
            The grant, with a proof that a third party can replay.

        Raises:
            VerificationError: Not proven; the error names the first stage that failed and the nearest missing link.
        """
        decision = self.decide(request, principal=principal, evidence=evidence, at=at, challenge=challenge)
        if decision.grant is None:
            raise decision.error if decision.error is not None else VerificationError("not proven")
        return decision.grant

    def decide(
        self,
        request: Request,
        *,
        principal: PublicKey | KeyHash,
        evidence: Evidence,
        at: datetime,
        challenge: Challenge | None = None,
    ) -> Decision:
        """Answer a request with a `Decision`; like `verify`, but a denial is a value."""
        check_aware(at)
        try:
            pool = self._pool(evidence)
        except UncheckedError as error:
            return Decision(None, error, Stage.EVIDENCE)
        memory = (principal.key_id, request, pool.token, self.statements.revision)
        # SECURITY: an answer about one request must not serve another that shares its certificates.
        if challenge is not None and challenge.request not in (None, request.digest):
            challenge = None
        known = self._grants.get(memory) if challenge is None else None
        if known is not None and known.holds_at(at):
            return Decision(known, None, None)
        case = _Case(self, pool, request, principal.key_id, at, challenge)
        try:
            grant = case.prove()
            if grant is None:
                found = case.explain()
                return Decision(None, found.error, found.stage)
        except VerificationError as error:
            return Decision(None, error, Stage.REDUCTION)
        if challenge is not None:
            self.statements.use(case.nonces(item.certificate_id for item in grant.certificates), until=challenge.until)
        else:
            self._remember(memory, grant)
        return Decision(grant, None, None)

    def clauses(
        self,
        request: Request,
        *,
        principal: PublicKey | KeyHash,
        evidence: Evidence,
        at: datetime,
        challenge: Challenge | None = None,
    ) -> tuple[Derived, ...]:
        """List every right of a principal within a request, one per chain; the clauses of its authority.

        The answers to a challenge on which they rest are spent: they serve this derivation and no other.

        Raises:
            UncheckedError: There are more chains than the limits allow.
        """
        check_aware(at)
        case = _Case(self, self._pool(evidence), request, principal.key_id, at, challenge)
        found = case.clauses()
        if challenge is not None:
            used = {identity for derived in found for identity in derived.proof.certificate_ids()}
            self.statements.use(case.nonces(used), until=challenge.until)
        return found

    def _pool(self, evidence: Evidence) -> CertificatePool:
        if isinstance(evidence, CertificatePool):
            return evidence
        items = tuple(islice(evidence, self.limits.max_certificates + 1))
        key = tuple(item if isinstance(item, bytes) else item.raw for item in items)
        pool = self._pools.get(key)
        if pool is None:
            pool = CertificatePool(items, limits=self.limits)
            if len(self._pools) >= 1024:
                self._pools.popitem(last=False)
            self._pools[key] = pool
        return pool

    def _remember(self, memory: tuple[object, ...], grant: Grant) -> None:
        if len(self._grants) >= self.limits.max_memory:
            self._grants.popitem(last=False)
        self._grants[memory] = grant


@dataclass(slots=True)
class _Case:
    """One decision in progress."""

    verifier: Verifier
    pool: CertificatePool
    request: Request
    principal: KeyId
    at: datetime
    challenge: Challenge | None
    problems: dict[CertificateId, VerificationError] = field(default_factory=dict)
    _usable: dict[CertificateId, bool] = field(default_factory=dict)
    _until: dict[CertificateId, datetime | None] = field(default_factory=dict)
    _nonces: dict[CertificateId, set[bytes]] = field(default_factory=dict)
    _admits: dict[int, bool] = field(default_factory=dict)

    def prove(self) -> Grant | None:
        """Find a proof from certificates that are in force, then check the signatures it rests on.

        When one of them is forged, all that could matter are checked and the search is run once more, so bad
        signatures cost their sender one extra search and no more.
        """
        graph, roots, found = self._search()
        derived = self._first(graph, roots, found)
        if derived is None:
            return None
        try:
            return self._grant(derived)
        except SignatureError:
            self._check_all(found.candidates)
        derived = self._first(*self._search())
        return None if derived is None else self._grant(derived)

    def clauses(self) -> tuple[Derived, ...]:
        """Derive every right from verified certificates."""
        _, _, found = self._search()
        self._check_all(found.candidates)
        graph, roots, found = self._search()
        unique: dict[tuple[object, ...], Derived] = {}
        for derived in derive(graph, roots, found, self.request.wanted):
            until = self._ends(derived.proof.certificate_ids())
            key = (derived.tag, derived.period, derived.conditions, derived.delegate, until)
            unique.setdefault(key, replace(derived, until=until))
            if len(unique) > self.verifier.limits.max_clauses:
                raise UncheckedError("more clauses than allowed", code="LIMIT_EXCEEDED")
        return tuple(unique.values())

    def explain(self) -> Diagnosis:
        """Say what is missing, naming no forged link: what could lead to the principal is verified first."""
        leading = self._leading_to_principal()
        self._check_all(leading)
        return diagnose(
            self.pool, leading, self.request, self.request.roots(self.verifier.roots), self.principal, self.usable,
            self.problems, self.verifier.limits,
        )  # fmt: skip

    def _leading_to_principal(self) -> list[FiveTuple]:
        """Walk back from the principal over every link, whatever it grants; a stranger's denial costs no signature."""
        graph = Graph(self.pool.links, self.pool.namings, lambda _: True, self.verifier.limits)
        towards: dict[KeyId, list[FiveTuple]] = {}
        for links in self.pool.links.values():
            for link in links:
                for holder in graph.keys_of(link.subject):
                    towards.setdefault(holder, []).append(link)
        leading: list[FiveTuple] = []
        seen, queue = {self.principal}, [self.principal]
        while queue:
            for link in towards.get(queue.pop(), ()):
                leading.append(link)
                if link.issuer not in seen:
                    seen.add(link.issuer)
                    queue.append(link.issuer)
        return leading

    def nonces(self, identities: Iterable[CertificateId]) -> set[bytes]:
        """List the one-time answers that certificates rest on."""
        return {nonce for identity in identities for nonce in self._nonces.get(identity, ())}

    def usable(self, identity: CertificateId) -> bool:
        """Tell whether a certificate is in force: period and tests; remember why not."""
        known = self._usable.get(identity)
        if known is None:
            try:
                self._check_in_force(self.pool.get(identity))
                known = True
            except VerificationError as error:
                self.problems[identity] = error
                known = False
            self._usable[identity] = known
        return known

    def _check_in_force(self, certificate: UnverifiedCertificate) -> None:
        period = certificate.body.period
        if not period.contains(self.at):
            if period.not_after is not None and self.at > period.not_after:
                raise ExpiredError(f"certificate `{_short(certificate)}` expired at {period.not_after.isoformat()}")
            raise ExpiredError(f"certificate `{_short(certificate)}` is not valid yet", code="NOT_YET_VALID")
        until: datetime | None = None
        for test in certificate.body.tests:
            answer = self.verifier.statements.check(
                test, certificate.certificate_id, at=self.at, challenge=self.challenge
            )
            if answer.nonce is not None:
                self._nonces.setdefault(certificate.certificate_id, set()).add(answer.nonce)
            if answer.until is not None and (until is None or answer.until < until):
                until = answer.until
        self._until[certificate.certificate_id] = until

    def _search(self) -> tuple[Graph, tuple[Root, ...], Reach]:
        graph = Graph(self.pool.links, self.pool.namings, self.usable, self.verifier.limits)
        roots = tuple(root for root in self.request.roots(self.verifier.roots) if root.period.contains(self.at))
        return graph, roots, reach(graph, roots, self.principal, self._admits_link)

    def _admits_link(self, link: FiveTuple) -> bool:
        key = id(link.tag)
        known = self._admits.get(key)
        if known is None:
            known = self._admits[key] = self.request.admitted_by(link.tag)
        return known

    def _first(self, graph: Graph, roots: tuple[Root, ...], found: Reach) -> Derived | None:
        """Take the shortest proof, or for an open request the first chain that leaves something of it."""
        proof = find_proof(graph, roots, found)
        if proof is None:
            return None
        if self.request.ground is not None:
            return _reduced(proof, self.request.wanted)
        return next(derive(graph, roots, found, self.request.wanted), None)

    def _grant(self, derived: Derived) -> Grant:
        certificates = tuple(self._check_signature(identity) for identity in derived.proof.certificate_ids())
        return Grant(
            self.principal, self.request, derived.proof, certificates, derived.tag,
            _common(derived.period, *(item.body.period for item in certificates)), self.at,
            self._ends(item.certificate_id for item in certificates), derived.conditions, derived.delegate, SEAL,
        )  # fmt: skip

    def _ends(self, identities: Iterable[CertificateId]) -> datetime | None:
        """Tell when the first of the statements behind these certificates runs out."""
        untils = (self._until.get(identity) for identity in identities)
        return min((until for until in untils if until is not None), default=None)

    def _check_signature(self, identity: CertificateId) -> Certificate:
        error: SignatureError | None = None
        for spelling in self.pool.spellings(identity):
            try:
                return self.verifier.signatures.verify(spelling)
            except SignatureError as problem:
                error = problem
        self._usable[identity] = False
        self.problems[identity] = error or SignatureError("signature does not verify")
        raise self.problems[identity]

    def _check_all(self, links: Iterable[FiveTuple]) -> None:
        """Check the signatures of these links and of every name certificate, forgetting those that fail."""
        sources = [link.source for link in links]
        sources += [naming.source for namings in self.pool.namings.values() for naming in namings]
        for identity in sources:
            try:
                self._check_signature(identity)
            except SignatureError:
                continue


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
