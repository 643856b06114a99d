"""The certificates of one decision as a graph: who passes rights to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from maia.authority.budget import Budget
from maia.authority.limits import VerifierLimits
from maia.authority.names import LocalName, NameClosure
from maia.authority.thresholds import Choice, choose_members
from maia.authority.tuples import FiveTuple, FourTuple, NameNode, Node, PrincipalNode, ThresholdNode
from maia.principals import CertificateId, KeyId

NO_KEYS: frozenset[KeyId] = frozenset()


class _Usable(Mapping[LocalName, Iterable[FourTuple]]):
    """Name certificates filtered as they are looked up, so that only what is asked for is tested."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, place: LocalName) -> list[FourTuple]:
        namings = self._graph.namings.get(place, ())
        self._graph.spend(len(namings))
        return [n for n in namings if self._graph.may_lead(n.subject) and self._graph.usable(n.source)]

    def __iter__(self) -> Iterator[LocalName]:  # pragma: no cover - required by Mapping, unused
        return iter(self._graph.namings)

    def __len__(self) -> int:  # pragma: no cover - required by Mapping, unused
        return len(self._graph.namings)


@dataclass(slots=True)
class Graph:
    """Links by issuer and names by place, restricted to certificates that ``usable`` admits.

    ``usable`` is asked when a certificate is reached, never before. With ``leads`` only what may lead to a key in it is
    looked at.
    """

    links: Mapping[KeyId, Sequence[FiveTuple]]
    namings: Mapping[LocalName, Sequence[FourTuple]]
    usable: Callable[[CertificateId], bool]
    limits: VerifierLimits
    budget: Budget | None = None
    leads: AbstractSet[KeyId] | None = None
    names: NameClosure = field(init=False)
    _spend: Callable[[int], None] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing resolved, and without a budget of the decision with a fresh one."""
        if self.budget is None:
            self.budget = self.limits.budget()
        self._spend = self.budget.spend
        self.names = NameClosure(_Usable(self), self.budget)

    def links_of(self, key: KeyId, could: Callable[[FiveTuple], bool] = lambda _: True) -> Iterator[FiveTuple]:
        """Go through the usable authorisations issued by a key, passing over those that ``could`` rules out."""
        for link in self.links.get(key, ()):
            self.spend()
            if self.may_lead(link.subject) and could(link) and self.usable(link.source):
                yield link

    def may_lead(self, node: Node) -> bool:
        """Tell whether a node can have to do with the keys that lead to the principal."""
        if self.leads is None:
            return True
        return any(key in self.leads for key in mentioned(node))

    def keys_of(self, node: Node) -> frozenset[KeyId]:
        """Return the keys that take part in a node: itself, a name's meanings, all leaves of a threshold."""
        if isinstance(node, bytes):
            return frozenset((node,))
        if isinstance(node, NameNode):
            return self.names.resolve(node)
        if isinstance(node, ThresholdNode):
            self.spend(len(node.members))
            return frozenset().union(*(self.keys_of(member) for member in node.members))
        return NO_KEYS

    def choose(self, node: ThresholdNode, willing: Callable[[KeyId], bool]) -> Choice | None:
        """Choose distinct members of a threshold among the keys that are willing."""

        def keys(leaf: PrincipalNode) -> frozenset[KeyId]:
            return frozenset(key for key in self.keys_of(leaf) if willing(key))

        assert self.budget is not None  # noqa: S101 - set when it is made
        return choose_members(node, keys, self.budget)

    def spend(self, steps: int = 1) -> None:
        """Count steps of the search."""
        self._spend(steps)


def mentioned(node: Node) -> Iterator[KeyId]:
    """List the keys that a node is written with: itself, the base of a name, all leaves of a threshold."""
    if isinstance(node, bytes):
        yield node
    elif isinstance(node, NameNode):
        yield node.base
    elif isinstance(node, ThresholdNode):
        for member in node.members:
            yield from mentioned(member)
