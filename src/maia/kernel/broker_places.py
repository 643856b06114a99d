"""Who is a broker, and of which domain: what lets a key hold the keys of others' events.

Rules kept here:

- Clients are never members. A key counts as a broker when a domain names it ``brokers`` (a name certificate ``<domain>
  brokers -> <key>``, or a chain of names): the domain whose ``brokers`` the last link of its chain gives the right to,
  or else the issuer of that link; the owner of a type needs no name. Rights alone do not tell a broker from a client,
  since a client may hold all that its domain holds.
- Not everybody who may pass a right on is a domain (C42). On a network a domain holds a ``connect`` that it may pass
  on, or is the network's or the type's owner. Without a network it is the type's owner, whom the owner calls one of its
  ``domains``, and so on down, or a domain to whose brokers by name one of these gives the right.
- A domain is a group of brokers or of domains (4.01): one that names both, as far as the evidence shows, is neither,
  and has no brokers (``DOMAIN_KIND``).
- An owner of several keys speaks by each member that a chain begins with; every share of a threshold is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from maia.authority import (
    Action,
    Budget,
    CertificatePool,
    Decision,
    Grant,
    Held,
    Joined,
    NameNode,
    ProofTree,
    Request,
    Verifier,
    ask_network,
)
from maia.errors import ChainError
from maia.kernel.member_names import BROKERS, DOMAINS, MemberNames
from maia.principals import CertificateId, KeyHash, KeyId, Principal, PublicKey, Threshold, fingerprint

Network = tuple[Principal, str]
_GIVEN = 2  # holders on a way by which somebody gave the right to somebody


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCase:
    """One broker, and what its rights are judged with; all questions draw from one budget."""

    broker: PublicKey
    evidence: CertificatePool
    verifier: Verifier
    at: datetime
    network: Network | None
    budget: Budget

    def decide(self, request: Request, principal: PublicKey | KeyHash) -> Decision:
        """Ask whether somebody has a right, on the broker's evidence."""
        return self.verifier.decide(
            request, principal=principal, evidence=self.evidence, at=self.at, budget=self.budget
        )


class BrokerPlaces:
    """The places of one broker in domains, on the evidence for one type."""

    def __init__(self, case: BrokerCase, owner: Principal) -> None:
        """Ask about a broker and a type of this owner."""
        self._case = case
        self._owner = owner
        self._names = MemberNames(case.evidence, verifier=case.verifier, at=case.at, budget=case.budget)
        self._connected: dict[KeyId, Grant | None] = {}

    def of(self, tree: ProofTree) -> tuple[Grant, ...]:
        """Prove that the broker is one, of a domain, at each end of a chain; give what proves it.

        Raises:
            ChainError: Its domain does not call it one (``NOT_A_BROKER``), or whoever does is none (``NOT_A_DOMAIN``,
                ``DOMAIN_KIND``).
        """
        grants: dict[tuple[CertificateId, ...], Grant] = {}
        for path in _paths(tree):
            found = self._placed_by(path)
            grants |= {tuple(item.certificate_id for item in grant.certificates): grant for grant in found}
        return tuple(grants.values())

    def _placed_by(self, path: tuple[Held, ...]) -> tuple[Grant, ...]:
        """Look at one way from the root to the broker: who names it, and whether that is a domain."""
        if len(path) < _GIVEN:
            return ()  # the owner itself
        *givers, last = path
        node = last.node
        by_name = isinstance(node, NameNode) and node.parts == (BROKERS,)
        domain = node.base if isinstance(node, NameNode) and by_name else givers[-1].key
        naming = self._names.proof(self._case.broker.key_id, domain, BROKERS)
        if naming is None:
            raise ChainError(
                f"`{self._case.broker.fingerprint}` is no broker: its domain gives it no name `{BROKERS}`",
                code="NOT_A_BROKER",
            )
        self._names.check_kind(domain)
        keys = [held.key for held in givers]
        standing = self._standing(keys if by_name else keys[:-1], domain, by_name=by_name)
        if standing is None:
            raise ChainError(f"`{fingerprint(domain)}` is no domain: {self._lacks()}", code="NOT_A_DOMAIN")
        return (naming, *standing)

    def _standing(self, above: Sequence[KeyId], domain: KeyId, *, by_name: bool) -> tuple[Grant, ...] | None:
        """Return why a key is a domain, or ``None``; ``above`` are those through whose hands the right went to it."""
        own = keys_of(self._owner)
        if self._case.network is not None:
            if domain in own | keys_of(self._case.network[0]):
                return ()
            connected = self._connection(domain, self._case.network)
            return None if connected is None else (connected,)
        line = [*above, domain]
        if by_name:
            line.pop()  # whoever gives to the brokers of a domain by name takes it for one
        grants: list[Grant] = []
        for parent, child in pairwise(line):
            grant = self._names.proof(child, parent, DOMAINS)
            if grant is None:
                return None
            self._names.check_kind(parent)
            grants.append(grant)
        return tuple(grants) if line and line[0] in own else None

    def _connection(self, domain: KeyId, network: Network) -> Grant | None:
        """Prove that a key may connect to the network and let others connect."""
        if domain not in self._connected:
            grant = self._case.decide(ask_network(Action.CONNECT, *network), KeyHash(domain)).grant
            self._connected[domain] = grant if grant is not None and grant.may_delegate else None
        return self._connected[domain]

    def _lacks(self) -> str:
        if self._case.network is not None:
            return "it holds no right to connect to the network that it may pass on"
        return f"the owner of the type gives it no name `{DOMAINS}`"


def _paths(tree: ProofTree) -> Iterator[tuple[Held, ...]]:
    """Give every way from the root of a proof to an end; a threshold has several."""
    stack: list[tuple[ProofTree, tuple[Held, ...]]] = [(tree, ())]
    while stack:
        node, before = stack.pop()
        if isinstance(node, Joined):
            stack.extend((branch, before) for branch in node.branches)
        elif node.then is None:
            yield (*before, node)
        else:
            stack.append((node.then, (*before, node)))


def keys_of(principal: Principal) -> frozenset[KeyId]:
    """List the keys that speak for an owner, each for itself or as a member."""
    if isinstance(principal, Threshold):
        return frozenset().union(*(keys_of(member) for member in principal.members))
    return frozenset((principal.key_id,)) if isinstance(principal, (PublicKey, KeyHash)) else frozenset()
