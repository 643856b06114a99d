"""Symbolic reduction: every right that a principal has, each with the chain that gives it.

Where `search` answers yes or no for one ground request, this walks the chains and intersects their tags, which plans,
explanations and rights matrices need. Chains are simple (no key twice), intersections that become empty end a walk, and
the number of steps and of results is bounded. A link that speaks of what its issuer does not hold gives nothing: what
is held is followed for whole types and actions, and the request is compared with it, so that a request for one cell and
one for all of them meet the same law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product

from maia.authority.budget import Budget
from maia.authority.graph import Graph
from maia.authority.known_versions import KnownVersions
from maia.authority.proof import Held, Joined, Proof, ProofTree
from maia.authority.search import Reach
from maia.authority.speech import join, narrow, scope_of, speaks
from maia.authority.tag_forms import Tag, is_nothing
from maia.authority.tags import intersect
from maia.authority.thresholds import Choice
from maia.authority.tuples import (
    FiveTuple,
    FourTuple,
    NameNode,
    Node,
    PrincipalNode,
    Root,
    ThresholdNode,
    shares_differ,
    speaks_of_closed,
)
from maia.errors import ChainError, TagError, UncheckedError
from maia.principals import CertificateId, KeyId, Period


@dataclass(frozen=True, slots=True)
class Derived:
    """One right of a principal: what it admits, when, on which conditions, and why.

    ``until`` is when the validity statements that it rests on carry it no longer (exclusive), as far as the caller
    knows statements. ``others`` are further chains to the very same right.
    """

    tag: Tag
    period: Period
    delegate: bool
    conditions: tuple[str, ...]
    proof: Proof
    until: datetime | None = None
    others: tuple[tuple[CertificateId, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class _Question:
    """What is wanted, and what was said against the law of speech on the way to it."""

    wanted: Tag
    scope: Tag
    offences: list[ChainError]
    budget: Budget
    overruns: list[UncheckedError] = field(default_factory=list)
    versions: KnownVersions | None = None

    @classmethod
    def of(cls, wanted: Tag, offences: list[ChainError], budget: Budget, versions: KnownVersions | None) -> _Question:
        """Ask for something, over all cells of its types."""
        scope = scope_of(wanted, every_version=versions is not None)
        return cls(wanted, scope, offences, budget, versions=versions)

    def within(self, tag: Tag) -> Tag:
        """Cut what is held down to what is wanted."""
        return tag if self.scope == self.wanted else _intersect(tag, self.wanted, self.budget)


@dataclass(frozen=True, slots=True)
class _State:
    """What is left of the right at one point of a walk."""

    tag: Tag
    period: Period
    delegate: bool
    conditions: tuple[str, ...]

    def narrowed(self, link: FiveTuple, question: _Question) -> _State | None:
        """Apply one link, or return ``None`` when nothing of the question is left."""
        period = self.period.intersect(link.period)
        if period is None:
            return None
        try:
            heard = narrow(
                self.tag, link.tag, conditions=link.conditions, known=self.conditions, budget=question.budget,
                versions=question.versions,
            )  # fmt: skip
        except TagError as error:
            raise _too_large(error) from error
        if is_nothing(question.within(heard.tag)):
            if heard.closed:
                question.offences.append(speaks_of_closed(link, heard))
            return None
        return _State(heard.tag, period, link.delegate, self.conditions + link.conditions)

    def within(self, namings: tuple[FourTuple, ...]) -> _State | None:
        """Hold only while the names that lead here are valid."""
        period: Period | None = self.period
        for naming in namings:
            period = None if period is None else period.intersect(naming.period)
        return None if period is None else replace(self, period=period)


_Result = tuple[_State, ProofTree]


def derive(
    graph: Graph,
    roots: Sequence[Root],
    found: Reach,
    wanted: Tag,
    offences: list[ChainError] | None = None,
    *,
    versions: KnownVersions | None = None,
) -> Iterator[Derived]:
    """Yield the rights of the principal within ``wanted``, one per chain, as they are found.

    Args:
        graph: The certificates in force.
        roots: Where rights may start.
        found: The finished search that tells which links matter.
        wanted: The part of authority that is of interest.
        offences: Takes the links that gave nothing because they speak of what is closed to their issuer.
        versions: What the versions of the type have, where that is known.

    Raises:
        UncheckedError: More steps are needed than the limits allow.
    """
    useful: dict[KeyId, list[FiveTuple]] = {}
    for link in sorted(found.useful, key=lambda link: link.source):
        useful.setdefault(link.issuer, []).append(link)
    assert graph.budget is not None  # noqa: S101 - set when a graph is made
    question = _Question.of(wanted, [] if offences is None else offences, graph.budget, versions)
    walker = _Walker(graph, found, useful, question)
    nothing = True
    for root in roots:
        start = _State(_intersect(root.tag, question.scope, question.budget), root.period, root.delegate, ())
        if is_nothing(question.within(start.tag)):
            continue
        for state, tree in walker.from_node(root.node, start, frozenset()):
            tag = question.within(state.tag)
            if not is_nothing(tag):  # pragma: no branch - shares of a threshold may have nothing of it in common
                nothing = False
                yield Derived(tag, state.period, state.delegate, state.conditions, Proof(root, tree))
    if nothing and question.overruns:
        raise question.overruns[0]


def keeps_law(proof: Proof, wanted: Tag, budget: Budget, *, versions: KnownVersions | None = None) -> bool:
    """Tell whether along a proof no link takes the request away by speaking of what its issuer does not hold.

    ``False`` may also mean that only the derivation can tell: the shares of a threshold have to be compared.
    """
    if not any(speaks(link.tag, link.conditions) for link in proof.links()):
        return True
    question = _Question.of(wanted, [], budget, versions)
    root = proof.root
    tree, state = proof.tree, _State(_intersect(root.tag, question.scope, budget), root.period, root.delegate, ())
    while isinstance(tree, Held) and tree.link is not None and tree.then is not None:
        narrowed = state.narrowed(tree.link, question)
        if narrowed is None:
            return False
        tree, state = tree.then, narrowed
    return isinstance(tree, Held)


@dataclass(frozen=True, slots=True)
class _Walker:
    graph: Graph
    found: Reach
    useful: dict[KeyId, list[FiveTuple]]
    question: _Question

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
        links, budget = self.useful.get(key, ()), self.question.budget
        for number, link in enumerate(links):
            for result, tree in self._behind(link, state, path | {key}, len(links) - number):
                yield result, Held(node, key, namings, link, tree)
            if budget.exhausted:
                return

    def _behind(self, link: FiveTuple, state: _State, path: frozenset[KeyId], waiting: int) -> list[_Result]:
        """Follow one link with its share of what is left; what takes more is given up, and its siblings go on.

        SECURITY: whoever holds a right may write links to a principal unasked. They must not take from it what others
        gave, and fewer clauses only ever close cells.
        """
        try:
            with self.question.budget.share(waiting):
                narrowed = state.narrowed(link, self.question)
                return [] if narrowed is None else list(self.from_node(link.subject, narrowed, path))
        except UncheckedError as error:
            self.question.overruns.append(error)
            return []

    def _from_threshold(self, node: ThresholdNode, state: _State, path: frozenset[KeyId]) -> Iterator[_Result]:
        for choice in self._all_choices(node, state):
            branches = [list(self._from_key(leaf, key, state, path)) for leaf, key in choice]
            for combination in product(*branches):
                self.graph.spend()
                joined = _join([result for result, _ in combination], self.question)
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
        raise _too_large(error) from error


def _too_large(error: TagError) -> UncheckedError:
    return UncheckedError(f"a chain cannot be summed up: {error.message}", code="LIMIT_EXCEEDED")


def _join(states: list[_State], question: _Question) -> _State | None:
    """Intersect the shares of a threshold; what one closes, no other speaks of."""
    first, *others = states
    period: Period | None = first.period
    for state in others:
        period = None if period is None else period.intersect(state.period)
    if period is None:
        return None
    try:
        heard = join([(state.tag, state.conditions) for state in states], question.budget, versions=question.versions)
    except TagError as error:
        raise _too_large(error) from error
    if is_nothing(question.within(heard.tag)):
        if heard.closed:
            question.offences.append(shares_differ(heard))
        return None
    conditions = tuple(dict.fromkeys(text for state in states for text in state.conditions))
    return _State(heard.tag, period, all(state.delegate for state in states), conditions)
