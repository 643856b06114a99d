"""Which roles are active, on what each stands, and which of them fall when something they stand on is gone.

Rules:
    1. Each active role keeps its supports: every instance of a rule that was met when it was activated, with the facts
       that the instance needs to stay true.
    2. A role stands as long as one of its supports has all its monitored facts. What was not monitored may go.
    3. A support through roles counts only when those roles stand without this one: roles that hold each other fall.
    4. A role about to fall stays when it could be activated at this moment, without the roles that fall with it.
    5. Whatever cannot be shown to stand within the stated steps falls.

Rule 3 is kept by ranks. INVARIANT: every active role has a support whose monitored roles all have a lower rank.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from maia.policy.facts import Fact, FactKind, FactStore
from maia.policy.rules import ActivationRule


@dataclass(frozen=True, slots=True)
class Support:
    """One instance of a rule: the facts that met its premises, and those of them that must stay."""

    rule: ActivationRule
    premises: tuple[Fact, ...]
    monitored: frozenset[Fact]


@dataclass(slots=True)
class _Standing:
    rank: int
    supports: list[Support] = field(default_factory=list)


class Activations:
    """The active roles over a store of facts, which holds them too."""

    def __init__(self, store: FactStore) -> None:
        self._store = store
        self._active: dict[Fact, _Standing] = {}
        self._held: dict[str, dict[Fact, None]] = {}
        self._dependents: dict[Fact, dict[Fact, None]] = {}
        self._ranks = 0

    def __len__(self) -> int:
        """Count the active roles."""
        return len(self._active)

    def __contains__(self, role: object) -> bool:
        """Whether a role is active for its holder."""
        return role in self._active

    def __iter__(self) -> Iterator[Fact]:
        """Walk the active roles in the order of their activation."""
        return iter(self._active)

    def held_by(self, principal: str) -> Sequence[Fact]:
        """The roles that one principal has active."""
        return tuple(self._held.get(principal, ()))

    def founding(self, role: Fact) -> Support:
        """A support of an active role that leans on no role that leans on this one."""
        rank = self._active[role].rank
        return next(support for support in self._active[role].supports if self._stands_on(support, rank, {}))

    def add(self, role: Fact, supports: Sequence[Support]) -> None:
        """Let a role be active, or give an active one further supports."""
        standing = self._active.get(role)
        if standing is None:
            standing = self._active[role] = _Standing(rank=self._next_rank())
            self._held.setdefault(role.holder, {})[role] = None
            self._store.add(role)
        self._set_supports(role, standing, [*standing.supports, *supports])

    def remove(self, role: Fact) -> None:
        """Let a role be active no longer; what stands on it is not looked at."""
        standing = self._active.pop(role)
        self._set_supports(role, standing, [])
        self._store.discard(role)
        held = self._held[role.holder]
        del held[role]
        if not held:
            del self._held[role.holder]

    def withdraw(self, gone: Iterable[Fact], search: Callable[[Fact], Sequence[Support]]) -> tuple[Fact, ...]:
        """Let every role fall that no longer stands, now that some facts are gone from the store.

        Args:
            gone: The facts that hold no longer.
            search: Gives the supports that a role would have if it were activated now, or none.

        Returns:
            The roles that fell, each after what it stood on.
        """
        suspects, touched = self._suspects(gone)
        for role in suspects:
            self._store.discard(role)
        pending = dict(suspects)
        self._restore(list(pending), pending)
        weak = tuple(pending)
        while self._take_over(pending, search):  # bounded: each round restores at least one of the pending roles
            pass
        for role in pending:
            self.remove(role)
        for role in weak:
            if role not in pending:  # as if activated anew, so that the order of the search leaves no trace
                self.add(role, search(role))
        for role in touched:
            standing = self._active.get(role)
            if standing is not None:  # a support that was lost does not count again when its facts come back
                kept = [support for support in standing.supports if self._holds(support)]
                self._set_supports(role, standing, kept)
        return tuple(pending)

    def _suspects(self, gone: Iterable[Fact]) -> tuple[dict[Fact, None], dict[Fact, None]]:
        """Everything without a support that surely stands; and everything that may have lost a support."""
        suspects: dict[Fact, None] = {}
        touched: dict[Fact, None] = {}
        queue = deque(gone)
        while queue:  # bounded: each active role enters once
            for role in self._dependents.get(queue.popleft(), ()):
                touched[role] = None
                standing = self._active[role]
                if role in suspects or any(
                    self._stands_on(support, standing.rank, suspects) for support in standing.supports
                ):
                    continue
                suspects[role] = None
                queue.append(role)
        return suspects, touched

    def _holds(self, support: Support) -> bool:
        return all(fact in self._store for fact in support.monitored)

    def _stands_on(self, support: Support, rank: int, suspects: dict[Fact, None]) -> bool:
        return all(
            fact in self._store
            and fact not in suspects
            and (fact.kind is not FactKind.ROLE or self._active[fact].rank < rank)
            for fact in support.monitored
        )

    def _restore(self, roles: list[Fact], pending: dict[Fact, None]) -> None:
        """Put back the pending roles that have a support without any pending role, and so on from those."""
        queue = deque(roles)
        while queue:  # bounded: a role enters again only when one it stands on was restored
            role = queue.popleft()
            if role not in pending:
                continue
            standing = self._active[role]
            if any(self._holds(support) for support in standing.supports):
                del pending[role]
                standing.rank = self._next_rank()
                self._store.add(role)
                queue.extend(other for other in self._dependents.get(role, ()) if other in pending)

    def _take_over(self, pending: dict[Fact, None], search: Callable[[Fact], Sequence[Support]]) -> bool:
        """Put back the pending roles that could be activated now; say whether there was one."""
        before = len(pending)
        for role in tuple(pending):
            if role not in pending:
                continue
            found = search(role)
            if found:
                standing = self._active[role]
                self._set_supports(role, standing, [*standing.supports, *found])
                self._restore([role], pending)
        return len(pending) < before

    def _set_supports(self, role: Fact, standing: _Standing, supports: Sequence[Support]) -> None:
        before = {fact for support in standing.supports for fact in support.monitored}
        seen: dict[tuple[ActivationRule, frozenset[Fact]], Support] = {}
        for support in supports:
            seen.setdefault((support.rule, support.monitored), support)
        standing.supports = list(seen.values())
        after = {fact for support in standing.supports for fact in support.monitored}
        for fact in before - after:
            dependents = self._dependents[fact]
            del dependents[role]
            if not dependents:
                del self._dependents[fact]
        for fact in after - before:
            self._dependents.setdefault(fact, {})[role] = None

    def _next_rank(self) -> int:
        self._ranks += 1
        return self._ranks
