"""The environment of a policy: facts that come from outside, through providers that are declared by name.

Rules:
    1. A fact counts only when a declared provider says yes. A provider that fails, is slow or does not know says no,
       with a reason that is counted.
    2. To a condition a failure is not the answer no but no answer, so that ``!on_leave(principal)`` denies too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from maia.errors import MaiaError, UnavailableError, UsageError
from maia.policy.terms import Atom

MAX_PROVIDERS = 1_000
MAX_LISTED = 100_000


@dataclass(frozen=True, slots=True, order=True)
class Predicate:
    """The name of a kind of facts and the number of their parameters.

    >>> print(Predicate("on_duty", 1))
    on_duty/1
    """

    name: str
    arity: int

    def __str__(self) -> str:
        """Show it as ``name/arity``."""
        return f"{self.name}/{self.arity}"


@runtime_checkable
class Provider(Protocol):
    """Something outside that knows the facts of one predicate."""

    @property
    def predicate(self) -> Predicate:
        """Which facts it knows."""
        ...

    def ask(self, fact: Atom, *, at: datetime) -> bool:
        """Tell whether a ground fact holds at an instant, or raise a `MaiaError` when that cannot be told."""
        ...

    def facts(self, *, at: datetime) -> frozenset[Atom] | None:
        """List the facts that hold; ``None`` when they can only be asked for one by one."""
        ...


class Environment:
    """The declared providers of a domain. Questions are answered by one of them, or fail.

    >>> from maia.policy import Atom, Environment
    >>> Environment(()).holds(Atom("emergency"), at=None)
    False
    """

    def __init__(self, providers: Iterable[Provider] = ()) -> None:
        """Take the providers, one per predicate.

        Raises:
            UsageError: Two providers claim the same predicate, or there are too many.
        """
        self._providers: dict[Predicate, Provider] = {}
        self.failures: Counter[tuple[str, str]] = Counter()
        for provider in providers:
            if provider.predicate in self._providers:
                raise UsageError(f"two providers answer `{provider.predicate}`", code="PROVIDER_TWICE")
            self._providers[provider.predicate] = provider
            if len(self._providers) > MAX_PROVIDERS:
                raise UsageError(f"a domain has at most {MAX_PROVIDERS} providers", code="PROVIDER_LIMIT")

    @property
    def predicates(self) -> frozenset[Predicate]:
        """The facts that can be asked for."""
        return frozenset(self._providers)

    def providers(self) -> tuple[Provider, ...]:
        """List the providers by the names of their predicates."""
        return tuple(self._providers[predicate] for predicate in sorted(self._providers))

    def ask(self, fact: Atom, at: datetime) -> bool:
        """Answer a question, or fail: for conditions, where a failure must not look like the answer no.

        Raises:
            UnavailableError: No provider could tell; the reason is counted in ``failures``.
        """
        provider = self._providers.get(Predicate(*fact.signature))
        try:
            if provider is None:
                raise UnavailableError(f"nothing here answers `{fact.name}`", code="NO_PROVIDER")
            return provider.ask(fact, at=at) is True
        except MaiaError as error:
            self.failures[str(Predicate(*fact.signature)), error.code] += 1
            raise UnavailableError(f"`{fact.name}` could not be asked for", code=error.code) from error

    def holds(self, fact: Atom, *, at: datetime) -> bool:
        """Tell whether a fact holds; one that cannot be asked for does not."""
        try:
            return self.ask(fact, at)
        except UnavailableError:
            return False

    def listed(self, provider: Provider, *, at: datetime) -> frozenset[Atom] | None:
        """List the facts of a provider; ``None`` when it can only be asked.

        Raises:
            UnavailableError: It failed, or said more than is taken; the reason is counted in ``failures``.
        """
        try:
            found = provider.facts(at=at)
            if found is not None and len(found) > MAX_LISTED:
                raise UnavailableError(f"a provider lists at most {MAX_LISTED} facts", code="PROVIDER_LIMIT")
        except MaiaError as error:
            self.failures[str(provider.predicate), error.code] += 1
            raise UnavailableError(f"`{provider.predicate}` could not be listed", code=error.code) from error
        if found is not None and any(Predicate(*atom.signature) != provider.predicate for atom in found):
            self.failures[str(provider.predicate), "PROVIDER_FOREIGN"] += 1
            raise UnavailableError(f"`{provider.predicate}` lists facts of another", code="PROVIDER_FOREIGN")
        return found
