"""Deciding a ground request: is the principal reached from a root by links that each permit it?

The question is answered by reachability, not by building intersections, so its cost is linear in the links looked at:

1. forward from the roots, over links that are signed, in force and permit the request, collect what could matter. What
   no such link reaches is never looked at, so forged evidence and that of strangers costs its reading and no more;
2. backward from the principal, compute the least set of keys from which the right reaches it. A key is in the set when
   it issued a link whose subject is the principal, or (when the link may be passed on) is itself in the set. A name is
   in when one of its keys is; a threshold when enough distinct member keys are, each with a path of its own (C36);
3. a root that is in the set proves the right, and the links that put keys into the set are the proof.

Step 2 is a fixpoint over a set, hence the order of certificates cannot matter, and cycles add nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from maia.authority.graph import Graph
from maia.authority.proof import Held, Joined, Proof, ProofTree
from maia.authority.tuples import FiveTuple, NameNode, Node, PrincipalNode, Root, ThresholdNode
from maia.principals import KeyId


@dataclass(slots=True)
class Reach:
    """What the search found out: the links that matter, and from where the principal is reached."""

    principal: KeyId
    candidates: list[FiveTuple] = field(default_factory=list)
    passes: dict[KeyId, FiveTuple] = field(default_factory=dict)
    useful: list[FiveTuple] = field(default_factory=list)

    rank: dict[KeyId, int] = field(default_factory=dict)

    def willing(self, *, delegate: bool, before: KeyId | None = None) -> Callable[[KeyId], bool]:
        """Tell which keys, given the right, bring it to the principal; ``before``: found before this one."""
        if not delegate:
            return lambda key: key == self.principal
        limit = len(self.rank) if before is None else self.rank[before]
        return lambda key: key == self.principal or self.rank.get(key, limit) < limit


def reach(
    graph: Graph,
    roots: Sequence[Root],
    principal: KeyId,
    admits: Callable[[FiveTuple], bool],
    could: Callable[[FiveTuple], bool] = lambda _: True,
) -> Reach:
    """Find every link that can take part in bringing the right from a root to the principal.

    Args:
        graph: The certificates in force.
        roots: Roots that admit the request.
        principal: Who asks.
        admits: Whether a link permits the request; asked only of links that are in force and signed.
        could: Rules links out at little cost, before their signature is checked.
    """
    result = Reach(principal, candidates=_forward(graph, roots, admits, could))
    _backward(graph, result)
    return result


def reached(
    graph: Graph,
    roots: Sequence[Root],
    admits: Callable[[FiveTuple], bool],
    could: Callable[[FiveTuple], bool] = lambda _: True,
) -> frozenset[KeyId]:
    """Name every key that a link which permits the request leads to, from link to link.

    Whoever holds the right by a certificate is among them; whoever is among them need not hold it: thresholds are taken
    as met, and links that have nothing in common as chains.
    """
    links = _forward(graph, roots, admits, could)
    return frozenset(key for link in links for key in graph.keys_of(link.subject))


def find_proof(graph: Graph, roots: Sequence[Root], found: Reach) -> Proof | None:
    """Read a proof off a finished search, or return ``None`` when no root reaches the principal."""
    for root in roots:
        tree = _tree(graph, root.node, found, delegate=root.delegate)
        if tree is not None:
            return Proof(root, tree)
    return None


def satisfied(graph: Graph, node: Node, found: Reach, *, delegate: bool) -> bool:
    """Tell whether a node that holds the right brings it to the principal."""
    willing = found.willing(delegate=delegate)
    if isinstance(node, ThresholdNode):
        return graph.choose(node, willing) is not None
    return any(willing(key) for key in graph.keys_of(node))


def _forward(
    graph: Graph,
    roots: Sequence[Root],
    admits: Callable[[FiveTuple], bool],
    could: Callable[[FiveTuple], bool],
) -> list[FiveTuple]:
    candidates: list[FiveTuple] = []
    seen: set[KeyId] = set()
    queue: deque[tuple[KeyId, int]] = deque()
    for root in roots:
        if root.delegate:
            queue.extend((key, 0) for key in graph.keys_of(root.node))
    while queue:
        key, depth = queue.popleft()
        if key in seen or depth >= graph.limits.max_chain_length:
            continue
        seen.add(key)
        for link in graph.links_of(key, could):
            if not admits(link):
                continue
            candidates.append(link)
            if link.delegate:
                queue.extend((holder, depth + 1) for holder in graph.keys_of(link.subject))
    return candidates


def _backward(graph: Graph, found: Reach) -> None:
    waiting: dict[KeyId, list[FiveTuple]] = defaultdict(list)
    # The order of evidence must not choose the proof either, hence by identity.
    for link in sorted(found.candidates, key=lambda link: link.source):
        for key in graph.keys_of(link.subject):
            graph.spend()
            waiting[key].append(link)
    done: set[bytes] = set()
    queue = deque([found.principal])
    while queue:
        key = queue.popleft()
        for link in waiting[key]:
            graph.spend()
            if link.source in done or not satisfied(graph, link.subject, found, delegate=link.delegate):
                continue
            done.add(link.source)
            found.useful.append(link)
            if link.issuer not in found.passes:
                found.rank[link.issuer] = len(found.passes)
                found.passes[link.issuer] = link
                queue.append(link.issuer)


def _tree(graph: Graph, node: Node, found: Reach, *, delegate: bool, before: KeyId | None = None) -> ProofTree | None:
    willing = found.willing(delegate=delegate, before=before)
    if isinstance(node, ThresholdNode):
        choice = graph.choose(node, willing)
        if choice is None:
            return None
        return Joined(node, tuple(_held(graph, leaf, key, found) for leaf, key in choice))
    if not isinstance(node, NameNode):
        return _held(graph, node, node, found) if isinstance(node, bytes) and willing(node) else None
    keys = sorted(key for key in graph.names.resolve(node) if willing(key))
    # The principal itself before anyone who would have to pass the right on.
    keys.sort(key=lambda key: key != found.principal)
    return _held(graph, node, keys[0], found) if keys else None


def _held(graph: Graph, node: PrincipalNode, key: KeyId, found: Reach) -> Held:
    namings = graph.names.support(node, key) if isinstance(node, NameNode) else ()
    if key == found.principal:
        return Held(node, key, namings, None, None)
    link = found.passes[key]
    # INVARIANT: only keys found before this one carry on, so the proof ends at the principal whoever else could.
    return Held(node, key, namings, link, _tree(graph, link.subject, found, delegate=link.delegate, before=key))
