"""Who is a domain, so that the keys it calls ``brokers`` may hold keys of groups.

Not everybody who may pass a right on is a domain (choice C42). Rules kept here:

- on a network a domain holds a ``connect`` that it may pass on, or is the owner of the network or of the type;
- without a network it is the owner of the type, whom the owner calls one of its ``domains``, whom that one calls so,
  and so on down the hands through which the right went; or a domain to whose ``brokers`` by name one of these gives it;
- an owner of several keys speaks by each member that a chain begins with; every chain of a threshold is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from maia.authority import Action, Budget, CertificatePool, Grant, Root, Verifier, ask, ask_network
from maia.encoding import Sexp
from maia.errors import UncheckedError
from maia.kernel.sessions import Network
from maia.principals import KeyHash, KeyId, Name, Principal, PublicKey, Threshold

BROKERS = "brokers"
"""What a domain calls its brokers."""
DOMAINS = "domains"
"""What a domain calls the domains inside it."""
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


class Standing:
    """Who is a domain for one type, on some evidence; each question is asked once."""

    def __init__(
        self,
        owner: Principal,
        network: Network | None,
        evidence: CertificatePool,
        *,
        verifier: Verifier,
        at: datetime,
        budget: Budget,
    ) -> None:
        """Look from the owner of a type, on a network or without one."""
        self._owner = _keys(owner)
        self._network = network
        self._evidence = evidence
        self._verifier = verifier
        self._at = at
        self._budget = budget
        self._names: dict[tuple[KeyId, KeyId, str], Grant | None] = {}
        self._connected: dict[KeyId, Grant | None] = {}

    def prove(self, domain: KeyId, above: Sequence[KeyId], *, by_name: bool) -> tuple[Grant, ...] | None:
        """Return why a key is a domain, or ``None``.

        Args:
            domain: Who calls somebody its broker.
            above: Through whose hands the right went, from the owner on, before it came to the domain.
            by_name: Whether the last of these gave it to the brokers of the domain, and so takes it for one.
        """
        if self._network is not None:
            if domain in self._owner | _keys(self._network[0]):
                return ()
            connected = self._connection(self._network, domain)
            return None if connected is None else (connected,)
        line = [*above] if by_name else [*above, domain]
        grants: list[Grant] = []
        for parent, child in pairwise(line):
            grant = self.named(child, parent, DOMAINS)
            if grant is None:
                return None
            grants.append(grant)
        return tuple(grants) if line and line[0] in self._owner else None

    def named(self, key: KeyId, issuer: KeyId, name: str) -> Grant | None:
        """Prove that an issuer's name stands for a key."""
        asked = (key, issuer, name)
        if asked not in self._names:
            self._names[asked] = named(
                KeyHash(key), issuer, name, self._evidence, verifier=self._verifier, at=self._at, budget=self._budget
            )
        return self._names[asked]

    def lacks(self) -> str:
        """Say what somebody who is no domain does not have."""
        if self._network is not None:
            return "it holds no right to connect to the network that it may pass on"
        return f"the owner of the type gives it no name `{DOMAINS}`"

    def _connection(self, network: Network, domain: KeyId) -> Grant | None:
        """Prove that a key may connect to the network and let others connect."""
        if domain not in self._connected:
            grant = self._verifier.decide(
                ask_network(Action.CONNECT, *network), principal=KeyHash(domain), evidence=self._evidence, at=self._at,
                budget=self._budget,
            ).grant  # fmt: skip
            self._connected[domain] = grant if grant is not None and grant.may_delegate else None
        return self._connected[domain]


def _keys(principal: Principal) -> frozenset[KeyId]:
    """List the keys that speak for an owner, each for itself or as a member."""
    if isinstance(principal, Threshold):
        return frozenset().union(*(_keys(member) for member in principal.members))
    return frozenset((principal.key_id,)) if isinstance(principal, (PublicKey, KeyHash)) else frozenset()
