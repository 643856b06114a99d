"""Domains as their certificates tell them: groups of brokers, or groups of domains, never both.

A domain is a key. It says who belongs to it with name certificates: ``brokers``, ``domains`` and ``clients``. Nothing
here decides on rights; those come from chains through the domain's key, and the verifier reads them. Rules kept here:

- 4.01: a domain is a group of brokers or a group of domains, recursively. One that names both is neither: it is refused
  as a whole;
- 4.02: clients live in groups of brokers, and a client uses a broker of its own domain;
- 4.05: a broker acts for its domain and serves only what it may do itself: what a client's right opens beyond the
  broker's own is refused;
- 4.13: brokers without clients, and clients that are customers, make a domain like any other;
- a member counts only while the names that make it one verify. No depth is too deep, but the size is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import Action, CertificatePool, NameClosure, NameNode, Verifier, covers
from maia.errors import ChainError, DeniedError, UncheckedError, UsageError
from maia.events import EventType
from maia.kernel.broker_places import BROKERS, DOMAINS, named
from maia.kernel.clauses import ask_version
from maia.principals import KeyHash, KeyId, PublicKey

CLIENTS = "clients"
"""What a domain calls its clients."""
MAX_DOMAINS = 10_000
MAX_MEMBERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainTree:
    """A domain and what belongs to it.

    Attributes:
        key: The domain itself.
        domains: Its sub-domains, when it is a group of domains.
        brokers: Its brokers, when it is a group of brokers.
        clients: Its clients, who use those brokers.
    """

    key: KeyId
    domains: tuple[DomainTree, ...] = ()
    brokers: frozenset[KeyId] = frozenset()
    clients: frozenset[KeyId] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what is both kinds of group, or has a member twice."""
        if self.domains and (self.brokers or self.clients):
            raise ChainError("a domain has sub-domains, or brokers and clients, not both", code="DOMAIN_KIND")
        if self.brokers & self.clients:
            raise ChainError("a client is no broker", code="DOMAIN_KIND")
        if len({domain.key for domain in self.domains} - {self.key}) != len(self.domains):
            raise ChainError("a domain has each sub-domain once, and is not its own", code="DOMAIN_LOOP")

    def walk(self) -> Iterator[DomainTree]:
        """Go through this domain and all below it."""
        stack = [self]
        while stack:
            domain = stack.pop()
            yield domain
            stack.extend(reversed(domain.domains))

    def domains_of(self, member: KeyId) -> tuple[DomainTree, ...]:
        """Return the groups of brokers that a broker or a client belongs to."""
        return tuple(domain for domain in self.walk() if member in domain.brokers | domain.clients)

    def with_member(self, name: str, key: KeyId) -> DomainTree:
        """Return the domain with one more member, to see whether it may be named before it is.

        >>> corp = DomainTree(key=KeyId(bytes(32))).with_member(DOMAINS, KeyId(b"p" * 32))
        >>> corp.with_member(BROKERS, KeyId(b"b" * 32))
        Traceback (most recent call last):
        ...
        maia.errors.ChainError: [DOMAIN_KIND] a domain has sub-domains, or brokers and clients, not both

        Raises:
            ChainError: The domain would be both kinds of group, or its own sub-domain.
            UsageError: The name is none that makes a member.
        """
        if name == DOMAINS:
            return replace(self, domains=(*self.domains, DomainTree(key=key)))
        if name == BROKERS:
            return replace(self, brokers=self.brokers | {key})
        if name == CLIENTS:
            return replace(self, clients=self.clients | {key})
        raise UsageError(f"`{name}` makes no member of a domain", code="DOMAIN_MEMBER")


def read_domain(domain: KeyId, evidence: CertificatePool, *, verifier: Verifier, at: datetime) -> DomainTree:
    """Read a domain and all below it from the name certificates that are in force.

    Raises:
        ChainError: A domain names brokers or clients as well as sub-domains (``DOMAIN_KIND``), or lies below itself
            (``DOMAIN_LOOP``).
        UncheckedError: There are more members than are looked at.
    """
    reading = _Reading(evidence, verifier, at)
    order = [domain]
    below: dict[KeyId, tuple[frozenset[KeyId], frozenset[KeyId], tuple[KeyId, ...]]] = {}
    for key in order:  # grows while it is read
        if key in below:
            raise ChainError("a domain lies below itself, or below two others", code="DOMAIN_LOOP")
        domains = tuple(sorted(reading.members(key, DOMAINS)))
        below[key] = (reading.members(key, BROKERS), reading.members(key, CLIENTS), domains)
        order.extend(domains)
        if len(order) > MAX_DOMAINS:
            raise UncheckedError("more domains than are looked at", code="LIMIT_EXCEEDED")
    made: dict[KeyId, DomainTree] = {}
    for key in reversed(order):
        brokers, clients, domains = below[key]
        made[key] = DomainTree(key=key, brokers=brokers, clients=clients, domains=tuple(made[item] for item in domains))
    return made[domain]


def check_local(domain: DomainTree, client: PublicKey, broker: PublicKey) -> DomainTree:
    """Let a client use a broker of its own domain, and no other.

    Args:
        domain: The broker's domain, or one above it.
        client: Who connects.
        broker: To whom.

    Returns:
        The domain they share.

    Raises:
        DeniedError: They share none: ``NOT_LOCAL``.
    """
    for found in domain.domains_of(client.key_id):
        if client.key_id in found.clients and broker.key_id in found.brokers:
            return found
    raise DeniedError("a client uses a broker of its own domain", code="NOT_LOCAL")


def check_served(
    client: PublicKey,
    broker: PublicKey,
    action: Action,
    event_type: EventType,
    evidence: CertificatePool,
    *,
    verifier: Verifier,
    at: datetime,
) -> None:
    """Let a broker act for a client only within its own right: every right of the client lies in one of the broker's.

    Raises:
        VerificationError: The client has no right.
        DeniedError: The broker lacks it: ``BROKER_LACKS_RIGHT``.
    """
    request = ask_version(action, event_type)
    wanted = verifier.clauses(request, principal=client, evidence=evidence, at=at)
    if not wanted:
        verifier.verify(request, principal=client, evidence=evidence, at=at)
    held = verifier.clauses(request, principal=broker, evidence=evidence, at=at)
    for right in wanted:
        if not any(covers(own.tag, right.tag) and set(own.conditions) <= set(right.conditions) for own in held):
            raise DeniedError("the broker may not do what the client asks of it", code="BROKER_LACKS_RIGHT")


class _Reading:
    """Names, each proven once."""

    def __init__(self, evidence: CertificatePool, verifier: Verifier, at: datetime) -> None:
        self._evidence = evidence
        self._verifier = verifier
        self._at = at
        self._names = NameClosure(evidence.namings, verifier.budget(evidence))
        self._left = MAX_MEMBERS

    def members(self, domain: KeyId, name: str) -> frozenset[KeyId]:
        """List the keys that a domain's name stands for, by certificates that verify now."""
        candidates = self._names.resolve(NameNode(domain, (name,)))
        self._left -= len(candidates)
        if self._left < 0:
            raise UncheckedError("more members than are looked at", code="LIMIT_EXCEEDED")
        return frozenset(key for key in candidates if self._stands(key, domain, name))

    def _stands(self, key: KeyId, domain: KeyId, name: str) -> bool:
        proven = named(KeyHash(key), domain, name, self._evidence, verifier=self._verifier, at=self._at)
        return proven is not None
