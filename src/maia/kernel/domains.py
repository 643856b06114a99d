"""Domains as their certificates tell them: groups of brokers, or groups of domains, never both.

A domain is a key. It says who belongs to it with name certificates: ``brokers``, ``domains`` and ``clients``. Nothing
here decides on rights; those come from chains through the domain's key, and the verifier reads them. Rules kept here:

- 4.01: a domain is a group of brokers or a group of domains, recursively. One that names both is neither: it is refused
  as a whole. Clients live in groups of brokers (C24);
- 4.13: brokers without clients, and clients that are customers, make a domain like any other;
- a member counts only while the names that make it one verify (`member_names`). No depth is too deep, but the size is
  bounded.

Whom a broker serves is decided in `serving`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import CertificatePool, Verifier
from maia.errors import ChainError, UncheckedError, UsageError
from maia.kernel.member_names import BROKERS, CLIENTS, DOMAINS, MemberNames
from maia.principals import KeyId

MAX_DOMAINS = 10_000


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
    names = MemberNames(evidence, verifier=verifier, at=at)
    order = [domain]
    below: dict[KeyId, tuple[frozenset[KeyId], frozenset[KeyId], tuple[KeyId, ...]]] = {}
    for key in order:  # grows while it is read
        if key in below:
            raise ChainError("a domain lies below itself, or below two others", code="DOMAIN_LOOP")
        domains = tuple(sorted(names.members(key, DOMAINS)))
        below[key] = (names.members(key, BROKERS), names.members(key, CLIENTS), domains)
        order.extend(domains)
        if len(order) > MAX_DOMAINS:
            raise UncheckedError("more domains than are looked at", code="LIMIT_EXCEEDED")
    made: dict[KeyId, DomainTree] = {}
    for key in reversed(order):
        brokers, clients, domains = below[key]
        made[key] = DomainTree(key=key, brokers=brokers, clients=clients, domains=tuple(made[item] for item in domains))
    return made[domain]
