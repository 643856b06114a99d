"""Who speaks for an owner of several keys now: members of a threshold, exchanged by a quorum of those before.

The owner's name stays what it was, a threshold of its founders: it is in the names of its types and networks, and in
every right on them. Only who speaks for it changes. Rules kept here:

- an exchange is a certificate of a member: from this step on, and from these members on, it is those. It has no end and
  no on-line test, since nobody could say later who the owner was;
- it counts when at least k different members of that moment signed the same one, and then once, in its turn: what was
  signed for another step, or for other members, is nothing. Whoever was exchanged has no say in later steps;
- when two quorums of one moment disagree neither counts;
- nobody believes an exchange because somebody presents it, or leaves it out: a verifier knows those that its home
  keeps, like the key of the owner itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from maia.authority.budget import Budget
from maia.authority.thresholds import choose_members
from maia.authority.tuples import ThresholdNode, principal_node
from maia.errors import UncheckedError
from maia.principals import (
    Authorisation,
    Certificate,
    KeyId,
    Period,
    Principal,
    PublicKey,
    Threshold,
    UnverifiedCertificate,
    principal_id,
    threshold_leaves,
)

EXCHANGE = b"maia-exchange"
MAX_EXCHANGES = 1_000
_STEPS = 100_000


class Successions:
    """The exchanges of members that a verifier knows of.

    >>> from maia.principals import KeySigner, issue
    >>> a, b, c, d = (KeySigner(bytes([number]) * 32) for number in range(1, 5))
    >>> founders = Threshold(2, (a.public_key, b.public_key, c.public_key))
    >>> later = Threshold(2, (a.public_key, b.public_key, d.public_key))
    >>> signed = [issue(Successions().exchange(founders, later, who.public_key), who) for who in (a, b)]
    >>> Successions(signed).speaker(founders) == later, Successions(signed[:1]).speaker(founders) == founders
    (True, True)
    """

    def __init__(self, certificates: Iterable[Certificate] = ()) -> None:
        """Know some exchanges; what is none is left out."""
        self._said: dict[tuple[bytes, bytes, bytes], dict[Threshold, set[KeyId]]] = {}
        for item in certificates:
            tag, body = exchange_of(item), item.body
            if tag is not None and isinstance(body.subject, Threshold):
                self._said.setdefault(tag, {}).setdefault(body.subject, set()).add(body.issuer_id)

    def speaker(self, owner: Principal) -> Principal:
        """Tell who speaks for an owner now: itself, or those whom its members and their successors made it."""
        return self._walk(owner)[0]

    def exchange(self, owner: Threshold, successor: Threshold, issuer: PublicKey) -> Authorisation:
        """Write what a member signs to make others the owner's members from now on."""
        current, step = self._walk(owner)
        tag = (EXCHANGE, principal_id(owner), _number(step), principal_id(current))
        return Authorisation(issuer=issuer, subject=successor, delegate=True, tag=tag)

    def _walk(self, owner: Principal) -> tuple[Principal, int]:
        current, step = owner, 1
        while isinstance(current, Threshold) and step <= MAX_EXCHANGES:
            said = self._said.get((principal_id(owner), _number(step), principal_id(current)), {})
            made = [successor for successor, signers in said.items() if _quorum(current, signers)]
            if len(made) != 1:
                break
            current, step = made[0], step + 1
        return current, step


def exchange_of(certificate: Certificate | UnverifiedCertificate) -> tuple[bytes, bytes, bytes] | None:
    """Tell of which owner, step and members a certificate speaks, when it is an exchange."""
    body = certificate.body
    if not isinstance(body, Authorisation) or not isinstance(body.subject, Threshold):
        return None
    match body.tag:
        case (bytes(word), bytes(owner), bytes(step), bytes(current)) if word == EXCHANGE:
            plain = body.delegate and body.period == Period() and not body.tests
            return (owner, step, current) if plain else None
        case _:
            return None


def speaks_for(key: PublicKey, owner: Principal | None, known: Successions) -> bool:
    """Tell whether a key is one of the members that speak for an owner of several keys now."""
    speaker = None if owner is None else known.speaker(owner)
    return isinstance(speaker, Threshold) and any(
        leaf.key_id == key.key_id for leaf in threshold_leaves(speaker) if not hasattr(leaf, "parts")
    )


def _quorum(current: Threshold, signers: set[KeyId]) -> bool:
    node = principal_node(current)
    if not isinstance(node, ThresholdNode):
        return False
    try:
        chosen = choose_members(
            node, lambda leaf: frozenset(signers & {leaf}) if isinstance(leaf, bytes) else frozenset(),
            Budget(steps=_STEPS, signatures=1),
        )  # fmt: skip
    except UncheckedError:
        return False
    return chosen is not None


def _number(step: int) -> bytes:
    return str(step).encode()
