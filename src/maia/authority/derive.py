"""Symbolic reduction: every right that a principal has, each with the chain that gives it.

Where `search` answers yes or no for one ground request, this walks the chains and intersects their tags, which plans,
explanations and rights matrices need. Chains are simple (no key twice), intersections that become empty end a walk, and
the number of steps and of results is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product

from maia.authority.budget import Budget
from maia.authority.graph import Graph
from maia.authority.proof import Held, Joined, Proof, ProofTree
from maia.authority.search import Reach
from maia.authority.tag_forms import NOTHING, Tag, is_nothing
from maia.authority.tags import intersect
from maia.authority.thresholds import Choice
from maia.authority.tuples import FiveTuple, FourTuple, NameNode, Node, PrincipalNode, Root, ThresholdNode
from maia.errors import TagError, UncheckedError
from maia.principals import KeyId, Period


@dataclass(frozen=True, slots=True)
class Derived:
    """One right of a principal: what it admits, when, on which conditions, and why.

    ``until`` is when a validity statement that it rests on runs out (exclusive), as far as the caller knows statements.
    """

    tag: Tag
    period: Period
    delegate: bool
    conditions: tuple[str, ...]
    proof: Proof
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """What is left of the right at one point of a walk."""

    tag: Tag
    period: Period
    delegate: bool
    conditions: tuple[str, ...]

    def narrowed(self, link: FiveTuple, budget: Budget | None = None) -> _State | None:
        """Apply one link, or return ``None`` when nothing is left."""
        period = self.period.intersect(link.period)
        tag = NOTHING if period is None else _intersect(self.tag, link.tag, budget)
        if period is None or is_nothing(tag):
            return None
        return _State(tag, period, link.delegate, self.conditions + link.conditions)

    def within(self, namings: tuple[FourTuple, ...]) -> _State | None:
        """Hold only while the names that lead here are valid."""
        period: Period | None = self.period
        for naming in namings:
            period = None if period is None else period.intersect(naming.period)
        return None if period is None else replace(self, period=period)


_Result = tuple[_State, ProofTree]


def derive(graph: Graph, roots: Sequence[Root], found: Reach, wanted: Tag) -> Iterator[Derived]:
    """Yield the rights of the principal within ``wanted``, one per chain, as they are found.

    Args:
        graph: The certificates in force.
        roots: Where rights may start.
        found: The finished search that tells which links matter.
        wanted: The part of authority that is of interest.

    Raises:
        UncheckedError: More steps are needed than the limits allow.
    """
    useful: dict[KeyId, list[FiveTuple]] = {}
    for link in sorted(found.useful, key=lambda link: link.source):
        useful.setdefault(link.issuer, []).append(link)
    walker = _Walker(graph, found, useful)
    for root in roots:
        tag = intersect(root.tag, wanted, graph.budget)
        if is_nothing(tag):
            continue
        start = _State(tag, root.period, root.delegate, ())
        for state, tree in walker.from_node(root.node, start, frozenset()):
            yield Derived(state.tag, state.period, state.delegate, state.conditions, Proof(root, tree))


@dataclass(frozen=True, slots=True)
class _Walker:
    graph: Graph
    found: Reach
    useful: dict[KeyId, list[FiveTuple]]

    def from_node(self, node: Node, state: _State, path: frozenset[KeyId]) -> Iterator[_Result]:
        if isinstance(node, ThresholdNode):
            yield from self._from_threshold(node, state, path)
        elif isinstance(node, bytes):
            yield from self._from_key(node, node, state, path)
        elif isinstance(node, NameNode):  # pragma: no branch - an object has no keys, so no useful link leads to it
            for key in sorted(self.graph.names.resolve(node)):
                yield from self._from_key(node, key, state, path)

    def _from_key(self, node: PrincipalNode, key: KeyId, state: _State, path: frozenset[KeyId]) -> Iterator[_Result]:
        self.graph.spend(4 + (len(path) + len(state.conditions)) // 8)
        namings = self.graph.names.support(node, key) if isinstance(node, NameNode) else ()
        named = state.within(namings)
        if named is None:
            return
        state = named
        if key == self.found.principal:
            yield state, Held(node, key, namings, None, None)
            # No return: a principal may also pass the right to itself, narrowed.
        if not state.delegate or key in path or len(path) >= self.graph.limits.max_chain_length:
            return
        for link in self.useful.get(key, ()):
            narrowed = state.narrowed(link, self.graph.budget)
            if narrowed is None:
                continue
            for result, tree in self.from_node(link.subject, narrowed, path | {key}):
                yield result, Held(node, key, namings, link, tree)

    def _from_threshold(self, node: ThresholdNode, state: _State, path: frozenset[KeyId]) -> Iterator[_Result]:
        for choice in self._all_choices(node, state):
            branches = [list(self._from_key(leaf, key, state, path)) for leaf, key in choice]
            for combination in product(*branches):
                self.graph.spend()
                joined = _join([result for result, _ in combination], self.graph.budget)
                if joined is not None:
                    trees = tuple(tree for _, tree in combination if isinstance(tree, Held))
                    yield joined, Joined(node, trees)

    def _all_choices(self, node: ThresholdNode, state: _State) -> Iterator[Choice]:
        """Go through the sets of distinct members that meet the threshold."""
        willing = self.found.willing(delegate=state.delegate)

        def fill(inner: ThresholdNode, start: int, needed: int, used: frozenset[KeyId]) -> Iterator[Choice]:
            self.graph.spend()
            if needed == 0:
                yield ()
                return
            for index in range(start, len(inner.members) - needed + 1):
                for head in slot(inner.members[index], used):
                    taken = used | {key for _, key in head}
                    for rest in fill(inner, index + 1, needed - 1, taken):
                        yield head + rest

        def slot(member: PrincipalNode, used: frozenset[KeyId]) -> Iterator[Choice]:
            if isinstance(member, ThresholdNode):
                yield from fill(member, 0, member.k, used)
            else:
                for key in sorted(self.graph.keys_of(member) - used):
                    if willing(key):
                        yield ((member, key),)

        yield from fill(node, 0, node.k, frozenset())


def _intersect(a: Tag, b: Tag, budget: Budget | None) -> Tag:
    """Intersect as evidence wants it: what grows beyond bounds was not proven."""
    try:
        return intersect(a, b, budget)
    except TagError as error:
        raise UncheckedError(f"a chain cannot be summed up: {error.message}", code="LIMIT_EXCEEDED") from error


def _join(states: list[_State], budget: Budget | None) -> _State | None:
    """Intersect the shares of a threshold."""
    result = states[0]
    for state in states[1:]:
        tag = _intersect(result.tag, state.tag, budget)
        period = result.period.intersect(state.period)
        if is_nothing(tag) or period is None:
            return None
        conditions = result.conditions + tuple(c for c in state.conditions if c not in result.conditions)
        result = _State(tag, period, result.delegate and state.delegate, conditions)
    return result
