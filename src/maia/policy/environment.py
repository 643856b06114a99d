"""The environment of a policy: facts that come from outside, through providers that are declared by name.

Rules:
    1. A fact counts only when a declared provider says yes. A provider that fails, is slow or does not know says no,
       with a reason that is counted.
    2. To a condition a failure is not the answer no but no answer, so that ``!on_leave(principal)`` denies too.
    3. The engine holds what was observed; a `Watcher` brings it up to date. What a failing provider said before is
       taken back: the worst case between a change and its effect is the interval of the polls plus the provider's time
       limit, and a provider that notifies is polled at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from maia.errors import MaiaError, UnavailableError, UsageError
from maia.policy.engine import PolicyEngine
from maia.policy.facts import Fact, FactKind
from maia.policy.terms import Atom, variables

MAX_PROVIDERS = 1_000
MAX_LISTED = 100_000
MAX_WATCHED = 100_000


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentChange:
    """What one look at the environment changed.

    Attributes:
        observed: Facts that hold now and did not.
        retracted: Facts that held and do not now.
        fallen: The roles that fell with them.
        failed: The predicates whose providers failed, with the code; all their facts were taken back.
    """

    observed: tuple[Atom, ...]
    retracted: tuple[Atom, ...]
    fallen: tuple[Fact, ...]
    failed: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Watcher:
    """Keeps the environment facts of an engine up to date by looking at the providers every so often.

    >>> from datetime import UTC, datetime
    >>> from maia.policy import Environment, PolicyEngine, parse_policy
    >>> watcher = Watcher(PolicyEngine(parse_policy("chief(self) <- ?emergency*, officer(self)*")), Environment(()))
    >>> watcher.poll(at=datetime(2026, 1, 1, tzinfo=UTC)).observed
    ()

    Attributes:
        engine: What is kept up to date.
        environment: Where facts come from.
        every: The interval of the polls, which bounds how long a change stays unseen.
    """

    engine: PolicyEngine
    environment: Environment
    every: timedelta = timedelta(seconds=5)
    _watched: dict[Predicate, set[Atom]] = field(default_factory=dict)
    _known: dict[Predicate, frozenset[Atom]] = field(default_factory=dict)
    _due: dict[Predicate, datetime] = field(default_factory=dict)

    def watch(self, fact: Atom) -> None:
        """Ask for this fact at every poll; for providers that cannot list what they know.

        Raises:
            UsageError: It has variables, no provider answers it, or too much is watched.
        """
        predicate = Predicate(*fact.signature)
        if any(True for _ in variables(fact)) or predicate not in self.environment.predicates:
            raise UsageError(f"`{fact}` cannot be watched", code="NOT_WATCHED")
        if sum(map(len, self._watched.values())) >= MAX_WATCHED:
            raise UsageError(f"a watcher watches at most {MAX_WATCHED} facts", code="PROVIDER_LIMIT")
        self._watched.setdefault(predicate, set()).add(fact)
        self._due.pop(predicate, None)

    def forget(self, fact: Atom) -> None:
        """Ask for a fact no more; it is taken back at the next poll."""
        predicate = Predicate(*fact.signature)
        self._watched.get(predicate, set()).discard(fact)
        self._due.pop(predicate, None)

    def notify(self, predicate: Predicate) -> None:
        """Hear that something changed: the provider is asked at the next poll, whenever that is."""
        self._due.pop(predicate, None)

    def poll(self, *, at: datetime) -> EnvironmentChange:
        """Look at the providers whose time has come, and tell the engine what changed."""
        observed: list[Atom] = []
        retracted: list[Atom] = []
        fallen: list[Fact] = []
        failed: list[tuple[str, str]] = []
        for provider in self.environment.providers():
            predicate = provider.predicate
            due = self._due.get(predicate)
            # A clock that was set back must not silence the polls.
            if due is not None and due - self.every <= at < due:
                continue
            self._due[predicate] = at + self.every
            now, code = self._facts(provider, at)
            if code is not None:
                failed.append((str(predicate), code))
            before = self._known.get(predicate, frozenset())
            self._known[predicate] = before | now  # an engine that is full must not make us forget what it holds
            for fact in sorted(before - now, key=str):
                fallen += self.engine.retract(fact, kind=FactKind.ENVIRONMENT).fallen
                retracted.append(fact)
            for fact in sorted(now - before, key=str):
                self.engine.observe(fact)
                observed.append(fact)
            self._known[predicate] = now
        return EnvironmentChange(
            observed=tuple(observed), retracted=tuple(retracted), fallen=tuple(fallen), failed=tuple(failed)
        )

    def _facts(self, provider: Provider, at: datetime) -> tuple[frozenset[Atom], str | None]:
        try:
            found = self.environment.listed(provider, at=at)
            if found is None:
                asked = sorted(self._watched.get(provider.predicate, ()), key=str)
                return frozenset(fact for fact in asked if self.environment.ask(fact, at)), None
        except UnavailableError as error:
            return frozenset(), error.code
        return found, None
