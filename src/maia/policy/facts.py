"""What holds now, kept so that a premise finds what it can match without looking at the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from maia.policy.terms import Atom, Binding, Constant, Variable


class FactKind(StrEnum):
    """Where a fact comes from: an appointment certificate, the environment, or the activation of a role."""

    APPOINTMENT = "appointment"
    ENVIRONMENT = "environment"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that holds: an appointment, an environment predicate, or a role that its holder has active."""

    kind: FactKind
    atom: Atom
    holder: str = ""

    def __str__(self) -> str:
        """Show the fact, a role with its holder."""
        return f"{self.holder}: {self.atom}" if self.holder else str(self.atom)


_T = TypeVar("_T")
_Key = tuple[FactKind, str, int]
_EMPTY: dict[Fact, None] = {}


class FactStore:
    """A set of facts in the order in which they came, found by kind, name and any known parameter."""

    def __init__(self) -> None:
        self._facts: dict[Fact, None] = {}
        self._by_key: dict[_Key, dict[Fact, None]] = {}
        self._by_argument: dict[tuple[_Key, int, Constant | Atom], dict[Fact, None]] = {}

    def __len__(self) -> int:
        """Count the facts."""
        return len(self._facts)

    def __contains__(self, fact: object) -> bool:
        """Whether a fact holds."""
        return fact in self._facts

    def __iter__(self) -> Iterator[Fact]:
        """Walk the facts in the order in which they came."""
        return iter(self._facts)

    def add(self, fact: Fact) -> None:
        """Let a fact hold."""
        key = (fact.kind, *fact.atom.signature)
        self._facts[fact] = None
        self._by_key.setdefault(key, {})[fact] = None
        for position, argument in enumerate(fact.atom.arguments):
            if not isinstance(argument, Variable):
                self._by_argument.setdefault((key, position, argument), {})[fact] = None

    def discard(self, fact: Fact) -> None:
        """Let a fact no longer hold."""
        if fact not in self._facts:
            return
        del self._facts[fact]
        key = (fact.kind, *fact.atom.signature)
        _drop(self._by_key, key, fact)
        for position, argument in enumerate(fact.atom.arguments):
            if not isinstance(argument, Variable):
                _drop(self._by_argument, (key, position, argument), fact)

    def candidates(self, kind: FactKind, atom: Atom, binding: Binding) -> Collection[Fact]:
        """Give the smallest known set of facts among which every match of an atom is.

        The result is the store's own; copy it before changing the store.
        """
        key = (kind, *atom.signature)
        best = self._by_key.get(key, _EMPTY)
        for position, argument in enumerate(atom.arguments):
            known = binding.get(argument.name) if isinstance(argument, Variable) else argument
            if known is None or (isinstance(known, Atom) and known is argument):
                continue  # not bound yet, or written with variables inside
            found = self._by_argument.get((key, position, known), _EMPTY)
            if len(found) < len(best):
                best = found
        return best.keys()


def _drop(index: dict[_T, dict[Fact, None]], key: _T, fact: Fact) -> None:
    bucket = index[key]
    del bucket[fact]
    if not bucket:
        del index[key]
