"""What a neighbour proved that it may do, kept in its routing entry: its credentials, reduced once.

At the handshake both sides show their certificates. What they prove is kept beside the neighbour, per type, and
consulted for every advertisement that comes from it: what it may not publish itself, nobody publishes through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from maia.authority import Action, Verifier, ask_type, cell_rights
from maia.encoding import format_advanced
from maia.events import type_id
from maia.filters import TypedFilter
from maia.principals import Principal, PublicKey
from maia.routing.identifiers import Identifier, rendezvous


@dataclass(frozen=True, slots=True)
class NeighbourRight:
    """The actions a neighbour may take on a type, the attributes each opens, and what it may publish at most."""

    actions: Mapping[Action, tuple[str, ...]]
    bound: TypedFilter = field(default_factory=TypedFilter)


@dataclass(frozen=True, slots=True)
class NeighbourRights:
    """The reduced authority of a neighbour, by the rendezvous of each type."""

    types: Mapping[Identifier, NeighbourRight]

    def publish(self, key: Identifier) -> TypedFilter | None:
        """What the neighbour may publish of a type; ``None`` is nothing."""
        right = self.types.get(key)
        return right.bound if right is not None and Action.PUBLISH in right.actions else None


def reduce_rights(
    verifier: Verifier,
    peer: PublicKey,
    types: Iterable[tuple[Principal, str]],
    *,
    evidence: Iterable[bytes],
    at: datetime,
) -> NeighbourRights:
    """Reduce a neighbour's credentials to what it may do with each of these types.

    Args:
        verifier: Who decides.
        peer: The neighbour's key, proven.
        types: The types that are routed here, by owner and name.
        evidence: The certificates it showed.
        at: The instant.

    Returns:
        Its rights; a type of which it may do nothing is absent.
    """
    found: dict[Identifier, NeighbourRight] = {}
    pool = tuple(evidence)
    for owner, name in types:
        actions = {}
        for action in (Action.PUBLISH, Action.SUBSCRIBE):
            request = ask_type(action, owner, name, None)
            cells = [
                format_advanced(right.uids.to_sexp())
                for derived in verifier.clauses(request, principal=peer, evidence=pool, at=at)
                for right in cell_rights(derived.tag)
            ]
            if cells:
                actions[action] = tuple(sorted(dict.fromkeys(cells)))
        if actions:
            found[rendezvous(type_id(owner, name))] = NeighbourRight(actions)
    return NeighbourRights(found)
