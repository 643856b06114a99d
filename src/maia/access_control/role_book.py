"""The roles of a domain: an engine in memory whose facts and active roles stand in the database.

Rules kept here:

- every change of the engine is written by the transaction that asks for it; when that does not commit, the caller drops
  this object and loads another;
- a recorded fact with an end holds up to and including that instant;
- facts that providers gave are never recorded: after a restart they are asked again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime
from typing import Self, TypeVar

from maia import database
from maia.access_control.values import Outside
from maia.errors import MaiaError
from maia.policy import (
    Atom,
    Fact,
    FactKind,
    Policy,
    PolicyDecision,
    PolicyEngine,
    PolicyProof,
    Privilege,
    RoleState,
    dependents,
    ends_of,
    fact_from_bytes,
    fact_to_bytes,
    given,
    is_active,
    parse_fact,
    parse_policy,
    restore,
    role_state,
)

_T = TypeVar("_T")


class RoleBook:
    """The engine with what the database keeps of it."""

    def __init__(self, engine: PolicyEngine, ends: dict[Fact, datetime], anonymous: set[Fact]) -> None:
        """Use an engine whose state is in the database."""
        self.engine = engine
        self.anonymous = anonymous
        self._ends = ends
        self._queue = [(until, fact_to_bytes(fact)) for fact, until in ends.items()]
        heapq.heapify(self._queue)
        self._provided: frozenset[Fact] = frozenset()

    @classmethod
    def load(
        cls,
        rows: database.RoleRows,
        text: str,
        outside: Outside | None,
        *,
        at: datetime,
        policy: Policy | None = None,
    ) -> tuple[Self, tuple[Fact, ...]]:
        """Bring the engine back as it was, and say which roles did not come back.

        Args:
            rows: What the database keeps.
            text: The policy in force.
            outside: Is asked what holds now.
            at: Now; facts that have ended are dropped.
            policy: Another policy to come under: a role stays when it could be activated at this moment.
        """
        ends: dict[Fact, datetime] = {}
        facts: list[Fact] = []
        for raw, until in tuple(rows.facts()):
            if until is not None and until < at:
                rows.drop_fact(raw)
                continue
            fact = fact_from_bytes(raw)
            facts.append(fact)
            if until is not None:
                ends[fact] = until
        provided = _provided(outside, at=at)
        states: list[RoleState] = []
        anonymous: set[Fact] = set()
        for raw, hidden in rows.roles():
            states.append(RoleState.from_bytes(raw))
            if hidden:
                anonymous.add(states[-1].role)
        rules = parse_policy(text) if policy is None else policy
        engine, fallen = restore(rules, (*facts, *provided - set(facts)), states, anew=policy is not None)
        book = cls(engine, ends, anonymous - set(fallen))
        book._provided = provided
        rows.drop_roles(fact_to_bytes(role) for role in fallen)
        if policy is not None:
            book._save(rows, engine.roles())
        return book, fallen

    # -- facts

    def record(self, rows: database.RoleRows, facts: Iterable[tuple[Fact, datetime | None]]) -> tuple[bool, ...]:
        """Record appointments and environment facts, or change their ends; say of each whether it is new."""
        new: list[bool] = []
        recorded: list[tuple[str, bytes, datetime | None]] = []
        for fact, until in facts:
            add = self.engine.appoint if fact.kind is FactKind.APPOINTMENT else self.engine.observe
            new.append(add(fact.atom))
            raw = fact_to_bytes(fact)
            recorded.append((fact.kind.value, raw, until))
            if until is None:
                self._ends.pop(fact, None)
            else:
                self._ends[fact] = until
                heapq.heappush(self._queue, (until, raw))
        rows.put_facts(recorded)
        return tuple(new)

    def retract(self, rows: database.RoleRows, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """Take facts back; give the roles that fell, each after what it stood on."""
        fallen: dict[Fact, None] = {}
        for fact in facts:
            touched = dependents(self.engine, [fact])
            for role in self.engine.retract(fact.atom, kind=fact.kind).fallen:
                fallen[role] = None
            rows.drop_fact(fact_to_bytes(fact))
            self._ends.pop(fact, None)
            self._settle(rows, touched)
        self._drop(rows, fallen)
        return tuple(fallen)

    def refresh(
        self, rows: database.RoleRows, outside: Outside | None, *, at: datetime
    ) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """Ask anew what is true outside; give the facts that hold no longer and the roles that fell with them."""
        now = _provided(outside, at=at)
        for fact in now - self._provided:
            self.engine.observe(fact.atom)
        recorded = {fact for fact in self._provided - now if self._is_recorded(rows, fact)}
        gone = tuple(sorted(self._provided - now - recorded, key=str))
        self._provided = now
        return gone, self.retract(rows, gone)

    def ended(self, *, at: datetime) -> tuple[Fact, ...]:
        """Give the recorded facts whose end has passed."""
        over: dict[Fact, None] = {}
        while self._queue and self._queue[0][0] < at:
            until, raw = heapq.heappop(self._queue)
            fact = fact_from_bytes(raw)
            if self._ends.get(fact) == until:  # otherwise its end was changed meanwhile
                over[fact] = None
        return tuple(over)

    @property
    def next_end(self) -> datetime | None:
        """The first instant after which a recorded fact may have ended."""
        return self._queue[0][0] if self._queue else None

    # -- roles

    def activate(self, rows: database.RoleRows, roles: Iterable[tuple[Fact, bool]]) -> tuple[PolicyProof, ...]:
        """Activate roles of principals, each anonymously or not, in order, and keep them.

        When one fails, nothing is written: the caller drops this object if it is not the first.
        """
        proofs: list[PolicyProof] = []
        states: list[tuple[bytes, bytes, bool | None]] = []
        for role, anonymous in roles:
            proofs.append(self.engine.activate(role.atom, principal=role.holder))
            (self.anonymous.add if anonymous else self.anonymous.discard)(role)
            states.append((fact_to_bytes(role), role_state(self.engine, role).to_bytes(), anonymous))
        rows.put_roles(states)
        return tuple(proofs)

    def deactivate(self, rows: database.RoleRows, roles: Iterable[Fact]) -> tuple[Fact, ...]:
        """Give up roles of principals; give all that fell, each after what it stood on."""
        fallen: dict[Fact, None] = {}
        touched: dict[Fact, None] = {}
        for role in roles:
            if role not in fallen:  # otherwise it fell with an earlier one
                touched.update(dict.fromkeys(dependents(self.engine, [role])))
                fallen.update(dict.fromkeys(self.engine.deactivate(role.atom, principal=role.holder).fallen))
        self._settle(rows, touched)
        self._drop(rows, fallen)
        return tuple(fallen)

    def close(self, rows: database.RoleRows, principals: Iterable[str]) -> tuple[Fact, ...]:
        """Give up every role of some principals."""
        return self.deactivate(rows, [role for name in principals for role in self.engine.roles(name)])

    def privileges(self, principal: str) -> dict[Privilege, datetime | None]:
        """Give the privileges that a principal has now, each with the instant at which it ends at the latest."""
        return self._latest_ends(given(self.engine, principal))

    def role_ends(self, principal: str) -> dict[str, datetime | None]:
        """Give the names of the roles that a principal has active, each with its latest end."""
        return self._latest_ends((role.atom.name, role) for role in self.engine.roles(principal))

    def _latest_ends(self, stands_on: Iterable[tuple[_T, Fact]]) -> dict[_T, datetime | None]:
        """Give each thing with the latest end of the roles it stands on; ``None`` when one of them has no end."""
        found: dict[_T, datetime | None] = {}
        for thing, role in stands_on:
            until = ends_of(self.engine, role, self._ends)
            if thing in found:
                known = found[thing]
                until = None if until is None or known is None else max(until, known)
            found[thing] = until
        return found

    def decide(self, privilege: Privilege | str, *, principal: str) -> PolicyDecision:
        """Say whether a principal has a privilege now."""
        return self.engine.decide(privilege, principal=principal)

    def concerned(self, gone: Iterable[Fact]) -> frozenset[str]:
        """Give the principals whose privileges may end because facts do, beside those whose roles fell."""
        signatures = {fact.atom.signature for fact in gone if fact.kind is FactKind.ENVIRONMENT}
        roles = {
            rule.role.signature
            for rule in self.engine.policy.authorisations
            if any(condition.atom.signature in signatures for condition in rule.conditions)
        }
        holders = (role.holder for role in self.engine.roles() if role.atom.signature in roles)
        return frozenset(holders if roles else ())

    # -- what stands in the database

    def _save(self, rows: database.RoleRows, roles: Iterable[Fact]) -> None:
        rows.put_roles((fact_to_bytes(role), role_state(self.engine, role).to_bytes(), None) for role in roles)

    def _settle(self, rows: database.RoleRows, touched: Iterable[Fact]) -> None:
        """Write the states of roles that may stand on less than before."""
        self._save(rows, [role for role in touched if is_active(self.engine, role)])

    def _drop(self, rows: database.RoleRows, fallen: Iterable[Fact]) -> None:
        # Whether they were used anonymously is remembered until their fall is noted, see `forget`.
        rows.drop_roles(map(fact_to_bytes, fallen))

    def forget(self, fallen: Iterable[Fact]) -> None:
        """Forget how roles were used whose fall was noted."""
        self.anonymous.difference_update(fallen)

    @staticmethod
    def _is_recorded(rows: database.RoleRows, fact: Fact) -> bool:
        return rows.has_fact(fact_to_bytes(fact))


def _provided(outside: Outside | None, *, at: datetime) -> frozenset[Fact]:
    """Ask what holds; whoever fails says no."""
    if outside is None:
        return frozenset()
    try:
        return frozenset(Fact(FactKind.ENVIRONMENT, atom) for atom in outside.facts(at=at))
    except MaiaError:
        return frozenset()


def as_atom(text: Atom | str) -> Atom:
    """Read a fact or a role where it is still text.

    >>> as_atom("detective(smith)").name
    'detective'
    """
    return parse_fact(text) if isinstance(text, str) else text
