"""What a domain calls those that belong to it, and who counts as such: the words, and the names that verify now.

A domain is a key. It says who belongs to it with name certificates: ``brokers``, ``domains`` and ``clients``. Rules
kept here:

- a member counts only while the names that make it one verify, on lists that are in force;
- 4.01: a domain is a group of brokers or a group of domains. One that names sub-domains beside brokers or clients is
  neither: whoever asks about its kind is refused (``DOMAIN_KIND``);
- the size of what is looked at is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from maia.authority import Budget, CertificatePool, Grant, NameClosure, NameNode, Root, Verifier, ask
from maia.encoding import Sexp
from maia.errors import ChainError, UncheckedError
from maia.principals import KeyHash, KeyId, Name, PublicKey, fingerprint

BROKERS = "brokers"
"""What a domain calls its brokers."""
CLIENTS = "clients"
"""What a domain calls its clients."""
DOMAINS = "domains"
"""What a domain calls the domains inside it."""
WORKERS = "workers"
"""What a broker calls those who run its tasks on other machines; no part of what a domain is."""
MEMBER_WORDS = (BROKERS, CLIENTS, DOMAINS)
MAX_MEMBERS = 100_000
_NAMED: Sexp = (b"maia-named",)


def named(
    key: PublicKey | KeyHash,
    issuer: KeyId,
    name: str,
    evidence: CertificatePool,
    *,
    verifier: Verifier,
    at: datetime,
    budget: Budget | None = None,
) -> Grant | None:
    """Prove that an issuer's name stands for a key, through certificates in force; ``None`` when it does not."""
    root = Root(subject=Name(KeyHash(issuer), (name,)))
    asker = Verifier(
        (root,),
        statements=verifier.statements,
        limits=verifier.limits,
        signatures=verifier.signatures,
        clock=verifier.clock,
    )
    decision = asker.decide(ask(_NAMED), principal=key, evidence=evidence, at=at, budget=budget)
    if budget is not None and decision.reason == "LIMIT_EXCEEDED":
        raise UncheckedError("a name takes more steps than allowed", code="LIMIT_EXCEEDED")
    return decision.grant


def namers_in(evidence: CertificatePool) -> dict[str, tuple[KeyId, ...]]:
    """List by word who names members, whether or not it verifies; worth keeping while the evidence stays."""
    found: dict[str, list[KeyId]] = {word: [] for word in MEMBER_WORDS}
    for issuer, name in sorted(evidence.namings):
        if name in found:
            found[name].append(issuer)
    return {word: tuple(issuers) for word, issuers in found.items()}


class MemberNames:
    """Who belongs to which domain, on one set of evidence at one instant; each name is proven once."""

    def __init__(
        self,
        evidence: CertificatePool,
        *,
        verifier: Verifier,
        at: datetime,
        budget: Budget | None = None,
        issuers: Mapping[str, Sequence[KeyId]] | None = None,
    ) -> None:
        """Read the names of domains, for one decision: its steps and its time are bounded.

        Args:
            evidence: The certificates.
            verifier: Proves names, with the statements it has.
            at: Now.
            budget: What is left to the decision that this is a part of; without one each name has its own.
            issuers: What `namers_in` says of the evidence, where somebody kept it.
        """
        self._evidence = evidence
        self._verifier = verifier
        self._at = at
        self._budget = budget
        self._names = NameClosure(evidence.namings, verifier.budget(evidence) if budget is None else budget)
        self._proven: dict[tuple[KeyId, KeyId, str], Grant | None] = {}
        self._said: dict[NameNode, frozenset[KeyId]] = {}
        self._issuers = issuers
        self._left = MAX_MEMBERS

    def proof(self, key: KeyId, domain: KeyId, word: str) -> Grant | None:
        """Prove that a domain's name stands for a key, now; ``None`` when it does not."""
        asked = (key, domain, word)
        if asked not in self._proven:
            self._proven[asked] = named(
                KeyHash(key), domain, word, self._evidence, verifier=self._verifier, at=self._at, budget=self._budget
            )
        return self._proven[asked]

    def members(self, domain: KeyId, word: str) -> frozenset[KeyId]:
        """List the keys that a domain's name stands for, by certificates that verify now.

        Raises:
            UncheckedError: There are more than are looked at.
        """
        return frozenset(key for key in self._candidates(domain, word) if self.proof(key, domain, word) is not None)

    def has(self, domain: KeyId, word: str) -> bool:
        """Tell whether a domain's name stands for anybody now."""
        return any(self.proof(key, domain, word) is not None for key in sorted(self._candidates(domain, word)))

    def namers(self, key: KeyId, word: str) -> frozenset[KeyId]:
        """List the domains that call a key so, by certificates that verify now."""
        if self._issuers is None:
            self._issuers = namers_in(self._evidence)
        return frozenset(
            domain
            for domain in self._issuers[word]
            if key in self._candidates(domain, word) and self.proof(key, domain, word) is not None
        )

    def stands_for(self, name: NameNode, key: KeyId) -> bool:
        """Tell whether a name leads to a key by what certificates say, whether or not they verify."""
        return key in self._resolved(name)

    def is_mixed(self, domain: KeyId) -> bool:
        """Tell whether a domain is a group of domains and has brokers or clients as well."""
        return self.has(domain, DOMAINS) and (self.has(domain, BROKERS) or self.has(domain, CLIENTS))

    def check_kind(self, domain: KeyId) -> None:
        """Refuse a domain that is a group of domains and has brokers or clients as well.

        Raises:
            ChainError: It is: ``DOMAIN_KIND``.
        """
        if self.is_mixed(domain):
            raise ChainError(
                f"`{fingerprint(domain)}` has sub-domains beside brokers or clients, so it is no domain at all",
                code="DOMAIN_KIND",
            )

    def _candidates(self, domain: KeyId, word: str) -> frozenset[KeyId]:
        found = self._resolved(NameNode(domain, (word,)))
        if self._left < 0:
            raise UncheckedError("more members than are looked at", code="LIMIT_EXCEEDED")
        return found

    def _resolved(self, name: NameNode) -> frozenset[KeyId]:
        """Find whom a name may stand for, once: the steps for it are bounded."""
        found = self._said.get(name)
        if found is None:
            found = self._said[name] = self._names.resolve(name)
            self._left -= len(found)
        return found
