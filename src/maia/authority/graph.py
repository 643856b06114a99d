"""The certificates of one decision as a graph: who passes rights to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maia.authority.limits import VerifierLimits
from maia.authority.names import LocalName, NameClosure
from maia.authority.thresholds import Budget, Choice, choose_members
from maia.authority.tuples import FiveTuple, FourTuple, NameNode, Node, PrincipalNode, ThresholdNode
from maia.errors import UncheckedError
from maia.principals import CertificateId, KeyId

NO_KEYS: frozenset[KeyId] = frozenset()


class _Usable(Mapping[LocalName, Iterable[FourTuple]]):
    """Name certificates filtered as they are looked up, so that only what is asked for is tested."""

    def __init__(
        self, namings: Mapping[LocalName, Iterable[FourTuple]], usable: Callable[[CertificateId], bool]
    ) -> None:
        self._namings = namings
        self._usable = usable

    def __getitem__(self, place: LocalName) -> list[FourTuple]:
        return [naming for naming in self._namings.get(place, ()) if self._usable(naming.source)]

    def __iter__(self) -> Iterator[LocalName]:  # pragma: no cover - required by Mapping, unused
        return iter(self._namings)

    def __len__(self) -> int:  # pragma: no cover - required by Mapping, unused
        return len(self._namings)


@dataclass(slots=True)
class Graph:
    """Links by issuer and names by place, restricted to certificates that ``usable`` admits."""

    links: Mapping[KeyId, Sequence[FiveTuple]]
    namings: Mapping[LocalName, Sequence[FourTuple]]
    usable: Callable[[CertificateId], bool]
    limits: VerifierLimits
    names: NameClosure = field(init=False)
    steps: Budget = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing resolved."""
        self.names = NameClosure(_Usable(self.namings, self.usable), max_steps=self.limits.max_name_steps)
        self.steps = Budget(self.limits.max_search_steps)

    def links_of(self, key: KeyId) -> list[FiveTuple]:
        """Return the usable authorisations issued by a key."""
        return [link for link in self.links.get(key, ()) if self.usable(link.source)]

    def keys_of(self, node: Node) -> frozenset[KeyId]:
        """Return the keys that take part in a node: itself, a name's meanings, all leaves of a threshold."""
        if isinstance(node, bytes):
            return frozenset((node,))
        if isinstance(node, NameNode):
            return self.names.resolve(node)
        if isinstance(node, ThresholdNode):
            return frozenset().union(*(self.keys_of(member) for member in node.members))
        return NO_KEYS

    def choose(self, node: ThresholdNode, willing: Callable[[KeyId], bool]) -> Choice | None:
        """Choose distinct members of a threshold among the keys that are willing."""

        def keys(leaf: PrincipalNode) -> frozenset[KeyId]:
            return frozenset(key for key in self.keys_of(leaf) if willing(key))

        return choose_members(node, keys, Budget(self.limits.max_threshold_steps))

    def spend(self) -> None:
        """Count one step of the search."""
        if self.steps.left <= 0:
            raise UncheckedError("the search for a proof takes more steps than allowed", code="LIMIT_EXCEEDED")
        self.steps.left -= 1
