"""Who belongs to which domain, as far as serving asks: by names, and by the chains of rights.

The rules are in `serving`: whose names count, and which domain is the nearest on a chain (rows 4.01, 4.02).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from maia.authority import Action, CertificatePool, NameNode, Verifier, ask_network
from maia.errors import DeniedError
from maia.kernel.broker_places import Network, keys_of
from maia.kernel.member_names import BROKERS, CLIENTS, MEMBER_WORDS, MemberNames
from maia.principals import (
    Authorisation,
    CertificateId,
    KeyHash,
    KeyId,
    Name,
    Principal,
    PublicKey,
    fingerprint,
)

Chains: TypeAlias = Iterable[Sequence[CertificateId]]
Holder: TypeAlias = PublicKey | KeyHash


class Neighbourhood:
    """Who belongs to which domain, as far as serving asks, on one set of evidence at one instant."""

    def __init__(
        self,
        evidence: CertificatePool,
        *,
        verifier: Verifier,
        at: datetime,
        network: Network | None = None,
        domain: KeyId | None = None,
        issuers: Mapping[str, Sequence[KeyId]] | None = None,
    ) -> None:
        """Ask about a client and a broker.

        Args:
            evidence: The certificates.
            verifier: Proves rights and names, with the statements it has.
            at: Now.
            network: The network that the broker belongs to, if any.
            domain: The domain of the broker's own home, if it says so.
            issuers: What `namers_in` says of the evidence, where somebody kept it.
        """
        self._evidence = evidence
        self._verifier = verifier
        self._at = at
        self._network = network
        self._home = frozenset(() if domain is None else (domain,))
        self._names = MemberNames(evidence, verifier=verifier, at=at, issuers=issuers)
        self._domains: dict[KeyId, bool] = {}

    def check_local(
        self, client: Holder, broker: PublicKey, owner: Principal, *, client_chains: Chains, broker_chains: Chains
    ) -> None:
        """Let a client use a broker of its own domain, and no other.

        Args:
            client: Who asks.
            broker: Whom.
            owner: The owner of the type that it asks about.
            client_chains: The certificates of the client's rights to it.
            broker_chains: The certificates of the broker's rights to it.

        Raises:
            ChainError: The domain that they share is both kinds of group: ``DOMAIN_KIND``.
            DeniedError: They share none: ``NOT_LOCAL``.
        """
        named, theirs = self._domains_of_broker(broker, owner, broker_chains)
        called, ours = self._domains_of_client(client, owner, client_chains, theirs)
        if not theirs and not called:
            return  # a broker without any right, which serves nobody for that reason
        shared = theirs & ours
        if not shared:
            raise DeniedError(
                f"`{fingerprint(client.key_id)}` belongs to another domain than the broker `{broker.fingerprint}`: "
                "a client uses a broker of its own domain",
                code="NOT_LOCAL",
            )
        if all(domain in named and self._names.is_mixed(domain) for domain in shared):
            self._names.check_kind(min(shared))

    def is_ours(
        self, client: Holder, broker: PublicKey, owner: Principal, *, client_chains: Chains, broker_chains: Chains
    ) -> bool:
        """Tell whether a client belongs to a broker's domain; one without a right has that of its own home."""
        _, theirs = self._domains_of_broker(broker, owner, broker_chains)
        theirs = theirs or self._home
        _, ours = self._domains_of_client(client, owner, client_chains, theirs)
        return bool(theirs & ours)

    def _domains_of_broker(
        self, broker: PublicKey, owner: Principal, chains: Chains
    ) -> tuple[frozenset[KeyId], frozenset[KeyId]]:
        """List the domains that name a broker, and all that it belongs to."""
        named = self._named(broker, BROKERS, owner, chains, self._home)
        return named, self._with_chains(named, broker, owner, chains, self._home)

    def _domains_of_client(
        self, client: Holder, owner: Principal, chains: Chains, theirs: frozenset[KeyId]
    ) -> tuple[frozenset[KeyId], frozenset[KeyId]]:
        """List the domains that name a client, and all that it belongs to."""
        called = self._named(client, CLIENTS, owner, chains, theirs)
        return called, self._with_chains(called, client, owner, chains, frozenset())

    def _with_chains(
        self, named: frozenset[KeyId], key: Holder, owner: Principal, chains: Chains, sure: frozenset[KeyId]
    ) -> frozenset[KeyId]:
        """Add the domains by chain, unless somebody whose word stands has named the key."""
        owners = keys_of(owner) | (frozenset() if self._network is None else keys_of(self._network[0]))
        # SECURITY: anybody who may pass a right on is above whom it gives it to; its names must cut nobody off.
        return named if named & (owners | sure) else named | self._by_chain(key, owner, chains)

    def _named(
        self, key: Holder, word: str, owner: Principal, chains: Chains, more: frozenset[KeyId]
    ) -> frozenset[KeyId]:
        """List the domains that call a client or a broker theirs and may: owners, who is above it, and some more."""
        found = self._names.namers(key.key_id, word)
        if not found:
            return found
        # SECURITY: anybody signs names, and they reach homes over the log.
        may = keys_of(owner) | ((more | self._all_above(chains)) - {key.key_id})
        if self._network is not None:
            may |= keys_of(self._network[0]) | (self._all_above(self._connections(key)) - {key.key_id})
        return found & may

    def _by_chain(self, key: Holder, owner: Principal, chains: Chains) -> frozenset[KeyId]:
        """List the domains that a client or a broker belongs to by its rights."""
        found: frozenset[KeyId] = frozenset()
        if self._network is not None:
            found = self._nearest(key.key_id, self._network[0], self._connections(key))
        return found or self._nearest(key.key_id, owner, chains)

    def _all_above(self, chains: Chains) -> frozenset[KeyId]:
        """List through whose hands, or by whose names, a right went on its chains."""
        found: set[KeyId] = set()
        for link in (link for chain in chains for link in self._links(chain)):
            found.add(link.issuer_id)
            if isinstance(link.subject, Name):
                found.add(link.subject.base.key_id)
        return frozenset(found)

    def _links(self, chain: Sequence[CertificateId]) -> list[Authorisation]:
        return [body for item in chain if isinstance(body := self._evidence.get(item).body, Authorisation)]

    def _connections(self, key: Holder) -> Chains:
        """List the chains by which a key may connect to the network."""
        assert self._network is not None  # noqa: S101 - asked by the caller
        request = ask_network(Action.CONNECT, *self._network)
        rights = self._verifier.clauses(request, principal=key, evidence=self._evidence, at=self._at)
        return [chain for right in rights for chain in (right.proof.certificate_ids(), *right.others)]

    def _nearest(self, key: KeyId, owner: Principal, chains: Chains) -> frozenset[KeyId]:
        """Find the nearest domain above a key on each of its chains.

        Several keys that own one thing together are one domain here, except those that have members of their own.
        """
        own = keys_of(owner)
        first = min(own, default=key)
        found: set[KeyId] = set()
        for chain in chains:
            found |= self._above(key, self._links(chain), own)
        return frozenset(first if domain in own and not self._has_members(domain) else domain for domain in found)

    def _above(self, key: KeyId, links: Sequence[Authorisation], own: frozenset[KeyId]) -> frozenset[KeyId]:
        found, seen, waiting = set(), {key}, [key]
        if not links and key in own:
            return frozenset((key,))
        while waiting:
            holder = waiting.pop()
            for link in links:
                candidates = self._givers(link, holder)
                domain = next((giver for giver in candidates if giver in own or self._is_domain(giver)), None)
                if domain is not None:
                    found.add(domain)
                elif candidates and candidates[-1] not in seen:
                    seen.add(candidates[-1])
                    waiting.append(candidates[-1])
        return frozenset(found)

    def _givers(self, link: Authorisation, holder: KeyId) -> tuple[KeyId, ...]:
        """Tell from whom a link gives to a holder, the nearest first: whose name stands for it, and who signed."""
        subject = link.subject
        if isinstance(subject, PublicKey | KeyHash):
            return (link.issuer_id,) if subject.key_id == holder else ()
        if isinstance(subject, Name) and self._names.stands_for(NameNode(subject.base.key_id, subject.parts), holder):
            return (subject.base.key_id, link.issuer_id)
        return ()

    def _is_domain(self, key: KeyId) -> bool:
        if key not in self._domains:
            self._domains[key] = self._has_members(key) or self._may_let_connect(key)
        return self._domains[key]

    def _has_members(self, key: KeyId) -> bool:
        return any(self._names.has(key, word) for word in MEMBER_WORDS)

    def _may_let_connect(self, key: KeyId) -> bool:
        if self._network is None:
            return False
        if key in keys_of(self._network[0]):
            return True
        request = ask_network(Action.CONNECT, *self._network)
        grant = self._verifier.decide(request, principal=KeyHash(key), evidence=self._evidence, at=self._at).grant
        return grant is not None and grant.may_delegate
