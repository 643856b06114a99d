"""Name reduction as a closure: which keys does a name stand for?

``value(K, n)`` is the least set that holds, for every valid name certificate ``K: n -> S``, the keys of ``S``; a key
stands for itself, and ``[B, p1, …, pm]`` for ``value`` followed part by part. Computing the least fixpoint, instead of
rewriting certificates, makes loops, self-references and doubling names harmless: each (certificate, position, key) is
visited once. Only names that are asked for, and those they depend on, are computed.

Every derived fact keeps the certificate and the earlier facts that gave it, so a proof can be read off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from maia.authority.budget import Budget
from maia.authority.tuples import FourTuple, NameNode
from maia.principals import KeyId

LocalName = tuple[KeyId, str]


@dataclass(frozen=True, slots=True)
class _Walk:
    """A name being followed: the certificate it came from (or a question), how far, and through which facts."""

    target: LocalName
    parts: tuple[str, ...]
    position: int
    key: KeyId
    naming: FourTuple | None
    trail: tuple[tuple[LocalName, KeyId], ...]


@dataclass(frozen=True, slots=True)
class _Support:
    naming: FourTuple | None
    trail: tuple[tuple[LocalName, KeyId], ...]


class NameClosure:
    """The meanings of names under one set of name certificates, computed when asked."""

    def __init__(self, namings: Mapping[LocalName, Iterable[FourTuple]], budget: Budget) -> None:
        """Take the certificates that are in force, grouped by issuer and name; each step is drawn from the budget."""
        self._namings = namings
        self._budget = budget
        self._values: dict[LocalName, dict[KeyId, _Support]] = {}
        self._waiting: dict[LocalName, list[_Walk]] = defaultdict(list)
        self._visited: set[tuple[LocalName, object, int, KeyId]] = set()
        self._questions: dict[NameNode, LocalName] = {}

    def resolve(self, name: NameNode) -> frozenset[KeyId]:
        """Return the keys that a name stands for.

        Raises:
            UncheckedError: The closure needs more steps than are left.
        """
        found = self._values[self._ask(name)]
        self._budget.spend(1 + len(found) // 16)
        return frozenset(found)

    def support(self, name: NameNode, key: KeyId) -> tuple[FourTuple, ...]:
        """Return name certificates that show that ``name`` stands for ``key``, without doubles."""
        found: dict[bytes, FourTuple] = {}
        stack: list[tuple[LocalName, KeyId]] = [(self._ask(name), key)]
        # SECURITY: by fact, not by certificate. One certificate may give two facts, each resting on others; leaving the
        # second out would leave out certificates whose signatures are then never checked.
        seen: set[tuple[LocalName, KeyId]] = set()
        while stack:
            fact = stack.pop()
            if fact in seen:
                continue
            seen.add(fact)
            self._budget.spend()
            place, value = fact
            support = self._values[place][value]
            if support.naming is not None:
                found[support.naming.source] = support.naming
            stack.extend(support.trail)
        return tuple(found.values())

    def _ask(self, name: NameNode) -> LocalName:
        if len(name.parts) == 1:
            place = (name.base, name.parts[0])
            self._demand(place)
            return place
        if name not in self._questions:
            # A question is a name nobody can define: its key is no key identity.
            place = (KeyId(b"?"), f"{len(self._questions)}")
            self._questions[name] = place
            self._values[place] = {}
            self._run([_Walk(place, name.parts, 0, name.base, None, ())])
        return self._questions[name]

    def _demand(self, place: LocalName) -> None:
        if place not in self._values:
            self._values[place] = {}
            self._run(self._walks(place))

    def _walks(self, place: LocalName) -> list[_Walk]:
        walks = []
        for naming in self._namings.get(place, ()):
            if isinstance(naming.subject, NameNode):
                walks.append(_Walk(place, naming.subject.parts, 0, naming.subject.base, naming, ()))
            else:
                walks.append(_Walk(place, (), 0, naming.subject, naming, ()))
        return walks

    def _run(self, queue: list[_Walk]) -> None:
        while queue:
            walk = queue.pop()
            seen = (walk.target, walk.naming and walk.naming.source, walk.position, walk.key)
            if seen in self._visited:
                continue
            self._visited.add(seen)
            self._budget.spend(2)
            if walk.position == len(walk.parts):
                queue.extend(self._learn(walk))
                continue
            place = (walk.key, walk.parts[walk.position])
            if place not in self._values:
                self._values[place] = {}
                queue.extend(self._walks(place))
            self._waiting[place].append(walk)
            queue.extend(_follow(walk, place, key) for key in self._values[place])

    def _learn(self, walk: _Walk) -> list[_Walk]:
        """Record a new meaning and wake the names that wait for it."""
        values = self._values[walk.target]
        if walk.key in values:
            return []
        # INVARIANT: a fact's trail holds only facts recorded before it, so supports have no cycles.
        values[walk.key] = _Support(walk.naming, walk.trail)
        return [_follow(waiting, walk.target, walk.key) for waiting in self._waiting[walk.target]]


def _follow(walk: _Walk, place: LocalName, key: KeyId) -> _Walk:
    trail = (*walk.trail, (place, key))
    return _Walk(walk.target, walk.parts, walk.position + 1, key, walk.naming, trail)
