"""The one place that decides whether evidence proves a right.

A decision goes through fixed stages (row 6.02), and nothing later can make up for a failure in an earlier one:

1. evidence: certificates are read strictly; what is malformed is left out and can prove nothing;
2. signatures: each certificate of the proof was signed by its issuer, over exactly these bytes;
3. validity: each is inside its period at ``at``, ends included;
4. on-line tests: each test of each has a statement of the named key in force; absence denies;
5. names: names are reduced to keys, through certificates that passed 2 to 4 as well;
6. reduction: from link to link the subject is the issuer, delegation is allowed but at the end, thresholds are met by
   distinct keys; what a link adds names only attributes that its issuer holds (see `speech`);
7. root: the first issuer is the owner in the name of what is asked, or a configured root; never one from the evidence;
8. request: every link permits the request, and together they leave something of it.

One `Budget` counts what all stages of a decision cost; what runs out of it is a doubt, ``LIMIT_EXCEEDED``, no proven
denial. Signatures are checked as certificates are reached from a root, before anything is searched behind them, so
evidence that is forged, or signed by keys that no root leads to, costs its reading and hashing.

There is no second, shorter path for delegated certificates: every link passes the same function. The order of the
evidence, its repetition, and the state of caches do not change an answer. Cached are: signatures, by the exact bytes
(they are true forever); and grants, by principal, request, evidence and statements, and only while every certificate of
the proof is inside its period. A denial is never cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import islice

from maia.authority.book import StatementBook
from maia.authority.budget import Budget, MonotonicClock
from maia.authority.case import Case
from maia.authority.decision import Decision, Grant, Stage
from maia.authority.derive import Derived
from maia.authority.hindsight import Hindsight
from maia.authority.limits import DEFAULT_VERIFIER_LIMITS, VerifierLimits
from maia.authority.pool import CertificatePool
from maia.authority.request import Request
from maia.authority.signatures import SignatureCache
from maia.authority.statements import Challenge, Statement
from maia.authority.tuples import Root
from maia.errors import UncheckedError, VerificationError
from maia.principals import (
    Certificate,
    CertificateId,
    KeyHash,
    KeyId,
    PublicKey,
    Threshold,
    UnverifiedCertificate,
    check_aware,
)

Evidence = CertificatePool | Iterable[bytes | UnverifiedCertificate | Certificate]


class Verifier:
    """Decides requests from evidence, at an instant, with the statements it has."""

    def __init__(
        self,
        roots: Iterable[Root] = (),
        *,
        statements: StatementBook | None = None,
        limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS,
        signatures: SignatureCache | None = None,
        clock: MonotonicClock | None = None,
    ) -> None:
        """Configure what is trusted.

        Args:
            roots: Trusted principals for requests that name no owner.
            statements: What is known about validity; empty by default, which denies what needs a statement.
            limits: Bounds on the work for one decision.
            signatures: A cache to share between verifiers.
            clock: Tells the wall time that a decision takes; without one only steps and signatures are counted.
        """
        self._roots = tuple(roots)
        self._limits = limits
        self._clock = clock
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
    def clock(self) -> MonotonicClock | None:
        """What tells the wall time of a decision, if anything does."""
        return self._clock

    @property
    def statements(self) -> StatementBook:
        """What this verifier knows about validity."""
        return self._statements

    def budget(self, evidence: CertificatePool) -> Budget:
        """Start the budget of one decision on this evidence; hand it to each question that the decision asks."""
        return self._limits.budget(evidence.octets, clock=self._clock)

    def verify(
        self,
        request: Request,
        *,
        principal: PublicKey | KeyHash,
        evidence: Evidence,
        at: datetime,
        challenge: Challenge | None = None,
        budget: Budget | None = None,
        hindsight: tuple[Statement, ...] | None = None,
    ) -> Grant:
        """Prove that a principal has a right now, or raise.

        Args:
            request: What is asked for.
            principal: Who asks; that it holds the key is proven elsewhere (see `maia.principals`).
            evidence: Certificates in any order, more than needed or a pool.
            at: The instant of the decision.
            challenge: The question asked for one-time revalidations, if any; one asked for another request is none.
            budget: Where this question is part of a larger decision, what is left to that.
            hindsight: Ask what is known today of an instant that may be over, with the lists that were brought along;
                see `hindsight`. Such an answer is not remembered.

        Returns:
            The grant, with a proof that a third party can replay.

        Raises:
            VerificationError: Not proven; the error names the first stage that failed and the nearest missing link.
        """
        decision = self.decide(
            request, principal=principal, evidence=evidence, at=at, challenge=challenge, budget=budget,
            hindsight=hindsight,
        )  # fmt: skip
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
        budget: Budget | None = None,
        hindsight: tuple[Statement, ...] | None = None,
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
        known = self._grants.get(memory) if challenge is None and hindsight is None else None
        if known is not None and known.holds_at(at):
            return Decision(known, None, None)
        case = self._case(pool, request, principal, at, challenge, budget, hindsight)
        try:
            grant = case.prove()
            if grant is None:
                found = case.explain()
                return Decision(None, found.error, found.stage)
        except VerificationError as error:
            return Decision(None, error, Stage.REDUCTION)
        if challenge is not None:
            self.statements.use(case.nonces(item.certificate_id for item in grant.certificates), until=challenge.until)
        elif hindsight is None:
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
        budget: Budget | None = None,
        hindsight: tuple[Statement, ...] | None = None,
    ) -> tuple[Derived, ...]:
        """List every right of a principal within a request, one per chain; the clauses of its authority.

        The answers to a challenge on which they rest are spent: they serve this derivation and no other. With
        ``hindsight``, as in `verify`, they are those of an instant that may be over.

        Raises:
            UncheckedError: There are more chains than the limits allow, or the budget is used up.
        """
        check_aware(at)
        case = self._case(self._pool(evidence), request, principal, at, challenge, budget, hindsight)
        found = case.clauses()
        if challenge is not None:
            used = {identity for derived in found for identity in derived.proof.certificate_ids()}
            self.statements.use(case.nonces(used), until=challenge.until)
        return found

    def reached(
        self, request: Request, *, evidence: CertificatePool, at: datetime
    ) -> tuple[frozenset[KeyId], tuple[CertificateId, ...]]:
        """Name the keys that may hold a right within a request, without deciding for any of them.

        Returns:
            Every key to which certificates in force lead that each permit something of the request, so that nobody else
            holds it by a certificate; and, sorted, the certificates of which nobody could tell whether they are in
            force, since a statement is missing: who holds it by those alone is not among the keys.

        Raises:
            UncheckedError: The budget of one decision does not suffice.
        """
        check_aware(at)
        case = self._case(evidence, request, KeyHash(KeyId(bytes(32))), at, None, None, None)
        keys = case.reached()
        unknown = (identity for identity, why in case.problems.items() if isinstance(why, UncheckedError))
        return keys, tuple(sorted(unknown))

    def _case(
        self,
        pool: CertificatePool,
        request: Request,
        principal: PublicKey | KeyHash,
        at: datetime,
        challenge: Challenge | None,
        budget: Budget | None,
        hindsight: tuple[Statement, ...] | None,
    ) -> Case:
        statements = self._statements if hindsight is None else Hindsight(self._statements, pool, hindsight)
        if isinstance(request.owner, Threshold):
            request = replace(request, speaker=self._statements.successions.speaker(request.owner))
        return Case(
            self._roots, statements, self._limits, self.signatures, pool, request, principal.key_id, at,
            challenge, self.budget(pool) if budget is None else budget,
        )  # fmt: skip

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
