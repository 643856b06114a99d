"""Whether a topic definition speaks for the owner in its name, and who may publish and subscribe under a topic.

Rules kept here:

- the signature covers everything, and the signer is the owner or the credentials prove the owner's `manage` right;
- on a network, the signer is the coordinating principal or the credentials prove `install` for it;
- publishing needs the right on the topic and on every super-topic; subscribing needs it on the topic or on one above.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from datetime import datetime

from maia.authority.decision import Grant
from maia.authority.pool import CertificatePool
from maia.authority.request import Request, ask_network, ask_type
from maia.authority.rights import Action
from maia.authority.types import Network, prove_from_credentials
from maia.authority.verifier import Evidence, Verifier
from maia.errors import (
    UsageError,
    VerificationError,
)
from maia.events import (
    FIRST,
    Topic,
    TopicName,
    TopicPattern,
    UnverifiedTopic,
    verify_topic_signature,
)
from maia.principals import KeyHash, Principal, PublicKey


class _Proof:
    """Held by this module alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedTopic:
    """A topic definition that speaks for its owner. Only `verify_topic` makes one."""

    topic: Topic
    signer: PublicKey
    grants: tuple[Grant, ...]
    network: Network | None
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_topic`, by a copy too."""
        # INVARIANT: the authority of a VerifiedTopic was proven in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_topic makes a VerifiedTopic")

    def holds_at(self, at: datetime) -> bool:
        """Tell whether the same credentials still carry the definition at another instant."""
        return all(grant.holds_at(at) for grant in self.grants)


def verify_topic(
    unverified: UnverifiedTopic, *, verifier: Verifier, at: datetime, network: Network | None = None
) -> VerifiedTopic:
    """Prove that a topic definition speaks for the owner in its name, or raise.

    Args:
        unverified: The definition as it came.
        verifier: Decides about the credentials; the owner is the root.
        at: The instant of the decision.
        network: Also demand the right to install on this network.

    Raises:
        VerificationError: Not proven, for whatever reason.

    >>> from datetime import UTC
    >>> from maia.events import sign_topic
    >>> from maia.principals import KeySigner
    >>> exchange = KeySigner(bytes(32))
    >>> stocks = sign_topic(Topic(name=TopicName(exchange.public_key, "Stocks")), exchange)
    >>> verify_topic(stocks, verifier=Verifier(), at=datetime(2026, 6, 1, tzinfo=UTC)).topic.name.name
    'Stocks'
    """
    signed = verify_topic_signature(unverified)
    name, credentials = signed.topic.name, signed.topic.credentials
    requests = [_ask_topic(Action.MANAGE, name.owner, name.name)]
    if network is not None:
        requests.append(ask_network(Action.INSTALL, *network))
    grants = [
        prove_from_credentials(request, signed.signer, credentials, verifier=verifier, at=at) for request in requests
    ]
    return VerifiedTopic(signed.topic, signed.signer, tuple(grants), network, _PROOF)


def prove_topic_publish(
    topic: TopicName, *, verifier: Verifier, principal: PublicKey | KeyHash, evidence: Evidence, at: datetime
) -> tuple[Grant, ...]:
    """Prove the right to publish under a topic: on the topic and on every super-topic.

    Returns:
        One grant for each, from the top.

    Raises:
        VerificationError: One of them is not proven.

    >>> from datetime import UTC
    >>> from maia.principals import KeySigner
    >>> exchange = KeySigner(bytes(32)).public_key
    >>> nokia = TopicName(exchange, "Stocks.Nokia")
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> len(prove_topic_publish(nokia, verifier=Verifier(), principal=exchange, evidence=(), at=now))
    2
    """
    pool = _once(evidence)
    return tuple(
        verifier.verify(_ask_topic(Action.PUBLISH, item.owner, item.name), principal=principal, evidence=pool, at=at)
        for item in topic.lineage
    )


def prove_topic_subscribe(
    pattern: TopicPattern, *, verifier: Verifier, principal: PublicKey | KeyHash, evidence: Evidence, at: datetime
) -> Grant:
    """Prove the right to subscribe to a topic and its sub-topics: on that topic, or on one above.

    Raises:
        VerificationError: Neither is proven; the error is about the topic itself.

    >>> from datetime import UTC
    >>> from maia.principals import KeySigner
    >>> exchange = KeySigner(bytes(32)).public_key
    >>> pattern = TopicPattern(exchange, "MarketQuotes.*.Nokia")
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> str(prove_topic_subscribe(pattern, verifier=Verifier(), principal=exchange, evidence=(), at=now).request)
    'subscribe MarketQuotes.*.Nokia version 0'
    """
    pool = _once(evidence)
    refusal: VerificationError | None = None
    for name in pattern.sufficient:
        request = _ask_topic(Action.SUBSCRIBE, pattern.owner, name)
        decision = verifier.decide(request, principal=principal, evidence=pool, at=at)
        if decision.grant is not None:
            return decision.grant
        refusal = refusal or decision.error
    raise refusal or VerificationError("not proven")


def _ask_topic(action: Action, owner: Principal, name: str) -> Request:
    """Ask about a topic; it has no versions, so requests name the first."""
    return ask_type(action, owner, name, FIRST.text)


def _once(evidence: Evidence) -> Evidence:
    """Keep evidence that can be read only once, since several requests are decided from it."""
    return evidence if isinstance(evidence, CertificatePool) else tuple(evidence)
