"""The engine of a domain's roles: principals activate, conditions are watched, privileges follow.

Rules:
    1. A role becomes active only when its principal activates it and all premises of one rule are met. Any one rule
       suffices; no premise is negated.
    2. An activation that fails changes nothing.
    3. A role that fell stays down until it is activated anew, even when what it stood on comes back.
    4. A privilege belongs to the holder of an active role, while the conditions of its rule are met: they are asked
       at each question, not at activation.
    5. A denial that concerns somebody overrides every rule that gives; of rights on event types it takes the cells it
       names, where they are issued (`denials`), of everything else the privilege itself.
    6. Every search has a stated number of steps; what is not shown within them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maia.errors import DeniedError, UncheckedError, UsageError
from maia.policy.activations import Activations, Support
from maia.policy.checking import require_runnable
from maia.policy.denials import DENIED_BY_RULE, DenialInForce, denials_in_force
from maia.policy.facts import Fact, FactKind, FactStore
from maia.policy.filling import filled, may_concern
from maia.policy.issuing import as_event_right
from maia.policy.language import parse_fact, parse_privilege
from maia.policy.proofs import PolicyDecision, PolicyProof
from maia.policy.rules import ActivationRule, AuthorisationRule, Policy, Privilege
from maia.policy.solving import Search, Steps, StepsUsedUpError, kind_of
from maia.policy.terms import Atom, match, variables
from maia.policy.unmet import UnmetRule, find_unmet

_SHOWN_RULES = 3
_SHOWN_DEPTH = 64
_SHOWN_PREMISES = 1_000  # roles that share prerequisites would otherwise fill a tree without end
_MAX_PRINCIPAL = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """How much an engine holds and how long it searches.

    Attributes:
        facts: Appointments, environment facts and active roles together.
        steps: Rules and facts tried for one activation, one decision, or the privileges of one role.
        supports: Instances of rules kept for one active role.
        takeover_steps: Rules and facts tried in one withdrawal to keep roles by another instance; then the rest falls.
    """

    facts: int = 1_000_000
    steps: int = 100_000
    supports: int = 32
    takeover_steps: int = 10_000_000


DEFAULT_ENGINE_LIMITS = EngineLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What a retraction did: whether the fact held, and the roles that fell, each after what it stood on."""

    held: bool
    fallen: tuple[Fact, ...]


class PolicyEngine:
    r"""The roles and privileges of a domain under one policy.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*\ndoctor(d) |- read('notes')"))
    >>> engine.appoint("employed(ali)")
    True
    >>> print(*engine.activate("doctor(ali)", principal="ali").lines())
    ali: doctor(ali)   by line 1: doctor(self) <- employed(self)*   employed(ali)
    >>> bool(engine.decide("read('notes')", principal="ali"))
    True
    >>> [str(role) for role in engine.retract("employed(ali)").fallen]
    ['ali: doctor(ali)']
    >>> bool(engine.decide("read('notes')", principal="ali"))
    False
    """

    def __init__(self, policy: Policy, *, limits: EngineLimits = DEFAULT_ENGINE_LIMITS) -> None:
        """Start with no facts and no active role.

        Raises:
            PolicySyntaxError: A variable of a head or a privilege is bound by no premise.
        """
        require_runnable(policy)
        self.policy = policy
        self._limits = limits
        self._store = FactStore()
        self._active = Activations(self._store)
        self._roles = policy.roles
        self._denials = policy.denials
        self._activations: dict[tuple[str, int], list[ActivationRule]] = {}
        for rule in policy.activations:
            self._activations.setdefault(rule.head.signature, []).append(rule)
        self._authorisations: dict[tuple[str, int], list[AuthorisationRule]] = {}
        for authorisation in policy.authorisations:
            self._authorisations.setdefault(authorisation.role.signature, []).append(authorisation)

    def appoint(self, fact: Atom | str) -> bool:
        """Record an appointment; say whether it is new. It activates nothing by itself.

        Raises:
            PolicySyntaxError: The text is no fact.
            UsageError: The fact holds variables, or the engine is full.
        """
        return self._add(Fact(FactKind.APPOINTMENT, _ground(fact)))

    def observe(self, fact: Atom | str) -> bool:
        """Record that an environment predicate is true now; say whether that is new. It activates nothing by itself.

        Raises:
            PolicySyntaxError: The text is no fact.
            UsageError: The fact holds variables, or the engine is full.
        """
        return self._add(Fact(FactKind.ENVIRONMENT, _ground(fact)))

    def retract(self, fact: Atom | str, *, kind: FactKind | None = None) -> Withdrawal:
        """Take back an appointment, or what was observed, and let fall whatever stood on it.

        Args:
            fact: The fact, exactly as it was recorded.
            kind: Which of the two; both when not given. A role is given up with `deactivate`.

        Raises:
            PolicySyntaxError: The text is no fact.
            UsageError: The fact holds variables, or the kind is a role.
        """
        if kind is FactKind.ROLE:
            raise UsageError("a role is deactivated, not revoked as a fact", code="POLICY_KIND")
        atom = _ground(fact)
        kinds = (FactKind.APPOINTMENT, FactKind.ENVIRONMENT) if kind is None else (kind,)
        gone = [found for found in (Fact(each, atom) for each in kinds) if found in self._store]
        for found in gone:
            self._store.discard(found)
        return Withdrawal(held=bool(gone), fallen=self._withdraw(gone))

    def activate(self, role: Atom | str, *, principal: str) -> PolicyProof:
        """Activate a role for a principal, and give the proof.

        All instances of rules that are met now become supports of the role. Activating an active role adds the
        instances that are new.

        Args:
            role: The role with all its parameters.
            principal: Who activates; `self` in the rules.

        Returns:
            Why the role is active.

        Raises:
            DeniedError: No rule is met; nothing changed.
            UncheckedError: The steps did not suffice to find out; nothing changed.
            PolicySyntaxError: The text is no role.
            UsageError: The role holds variables, or the engine is full.
        """
        wanted = Fact(FactKind.ROLE, _ground(role), _principal(principal))
        try:
            supports = self._supports(wanted, Steps(self._limits.steps))
        except StepsUsedUpError as error:
            message = f"the rules for `{wanted.atom}` need more than {self._limits.steps} steps"
            raise UncheckedError(message, code="POLICY_STEPS") from error
        if not supports:
            # SECURITY: what is missing is for whoever runs the domain; a service tells its callers `DENIED`, no more.
            raise DeniedError(
                f"no rule lets `{wanted.holder}` activate `{wanted.atom}`{self._missing(wanted)}", code="ROLE_REFUSED"
            )
        if wanted not in self._active:
            self._require_room()
        self._active.add(wanted, supports)
        return self._explain(wanted)

    def deactivate(self, role: Atom | str, *, principal: str) -> Withdrawal:
        """Give up an active role and let fall whatever stood on it; the role itself is the first that fell.

        Raises:
            PolicySyntaxError: The text is no role.
            UsageError: The role holds variables.
        """
        wanted = Fact(FactKind.ROLE, _ground(role), _principal(principal))
        if wanted not in self._active:
            return Withdrawal(held=False, fallen=())
        self._active.remove(wanted)
        return Withdrawal(held=True, fallen=(wanted, *self._withdraw([wanted])))

    def close(self, principal: str) -> tuple[Fact, ...]:
        """End the session of a principal: all its roles are given up, and what stood on them falls."""
        fallen: list[Fact] = []
        for role in self._active.held_by(principal):
            fallen += self.deactivate(role.atom, principal=principal).fallen
        return tuple(fallen)

    def roles(self, principal: str | None = None) -> tuple[Fact, ...]:
        """List the active roles, of one principal or of all, sorted by holder and text."""
        found = self._active if principal is None else self._active.held_by(principal)
        return tuple(sorted(found, key=lambda role: (role.holder, str(role.atom))))

    def privileges(self, principal: str | None = None) -> tuple[tuple[str, Privilege], ...]:
        """List who has which privilege now, sorted.

        Raises:
            UncheckedError: The conditions of a role's privileges need more steps than allowed.
        """
        found: dict[tuple[str, Privilege], None] = {}
        try:
            for role in self._active if principal is None else self._active.held_by(principal):
                for privilege, _, _ in self._given(role, Steps(self._limits.steps)):
                    found[role.holder, privilege] = None
        except StepsUsedUpError as error:
            message = f"the privileges of a role need more than {self._limits.steps} steps"
            raise UncheckedError(message, code="POLICY_STEPS") from error
        return tuple(sorted(found, key=lambda each: (each[0], str(each[1]))))

    def denials(self, principal: str) -> tuple[DenialInForce, ...]:
        """List what is denied to a principal now, whatever its roles give, in the order of the rules.

        Raises:
            UncheckedError: The denials need more steps than allowed: nobody can say what is given.
        """
        try:
            return self._denied(principal, Steps(self._limits.steps))
        except StepsUsedUpError as error:
            message = f"the denials of a principal need more than {self._limits.steps} steps"
            raise UncheckedError(message, code="POLICY_STEPS") from error

    def decide(self, privilege: Privilege | str, *, principal: str) -> PolicyDecision:
        """Say whether a principal has exactly this privilege now, and why.

        A right on an event type is compared as a whole; what it allows to a request is decided by the capability that
        is issued for it. A denial that may take something of it denies: the whole is not held then.

        Raises:
            PolicySyntaxError: The text is no privilege.
        """
        wanted = parse_privilege(privilege) if isinstance(privilege, str) else privilege
        budget = Steps(self._limits.steps)
        try:
            for item in self._denied(principal, budget):
                if may_concern(item.privilege, wanted):
                    facts = tuple(PolicyProof(conclusion=fact) for fact in item.facts)
                    denial = PolicyProof(
                        conclusion=f"{principal}: not {item.privilege}", rule=item.rule, line=item.line, premises=facts
                    )
                    return PolicyDecision(allowed=False, reason=DENIED_BY_RULE, proof=denial)
            for role in self._active.held_by(principal):
                for given, rule, conditions in self._given(role, budget):
                    if given == wanted:
                        premises = (self._explain(role), *map(_leaf, conditions))
                        proof = PolicyProof(
                            conclusion=f"{principal}: {given}", rule=str(rule), line=rule.line, premises=premises
                        )
                        return PolicyDecision(allowed=True, reason="GRANTED", proof=proof)
        except StepsUsedUpError:
            return PolicyDecision(allowed=False, reason="STEPS_USED_UP")
        return PolicyDecision(allowed=False, reason="NO_PRIVILEGE")

    def explain(self, role: Atom | str, *, principal: str) -> PolicyProof | None:
        """Give the proof of an active role, down to appointments and predicates; None when it is not active.

        Raises:
            PolicySyntaxError: The text is no role.
            UsageError: The role holds variables.
        """
        wanted = Fact(FactKind.ROLE, _ground(role), principal)
        return self._explain(wanted) if wanted in self._active else None

    def _add(self, fact: Fact) -> bool:
        if fact in self._store:
            return False
        self._require_room()
        self._store.add(fact)
        return True

    def _require_room(self) -> None:
        if len(self._store) >= self._limits.facts:
            raise UsageError(f"an engine holds at most {self._limits.facts} facts", code="POLICY_FACTS")

    def _withdraw(self, gone: list[Fact]) -> tuple[Fact, ...]:
        return self._active.withdraw(gone, self._takeover()) if gone else ()

    def _takeover(self) -> Callable[[Fact], list[Support]]:
        """Give the search for another instance that keeps a role; it finds none once its steps are used up."""
        left = Steps(self._limits.takeover_steps)

        def search(role: Fact) -> list[Support]:
            allowed = min(left.steps, self._limits.steps)
            own = Steps(allowed)
            try:
                return self._supports(role, own)
            except StepsUsedUpError:
                return []
            finally:
                left.steps -= allowed - own.steps

        return search

    def _supports(self, role: Fact, budget: Steps) -> list[Support]:
        """Find the instances of rules that are met now; as soon as one is found, running out of steps ends quietly."""
        search = Search(store=self._store, principal=role.holder, budget=budget)
        found: dict[tuple[ActivationRule, frozenset[Fact]], Support] = {}
        try:
            for support in self._instances(role, search):
                found.setdefault((support.rule, support.monitored), support)
                if len(found) >= self._limits.supports:
                    break
        except StepsUsedUpError:
            if not found:
                raise
        return list(found.values())

    def _instances(self, role: Fact, search: Search) -> Iterator[Support]:
        for rule in self._activations.get(role.atom.signature, ()):
            search.budget.spend()
            binding = search.start()
            if not match(rule.head, role.atom, binding):
                continue
            goals = [(kind_of(premise, self._roles), premise.atom) for premise in rule.premises]
            for facts, _ in search.solve(goals, binding):
                if role in facts:
                    continue  # a role is no reason for itself
                watched = (fact for fact, premise in zip(facts, rule.premises, strict=True) if premise.monitored)
                yield Support(rule, facts, frozenset(watched))

    def unmet(self, role: Atom | str, *, principal: str) -> tuple[UnmetRule, ...]:
        """Tell which rules would give a role to a principal, and what each of them lacks.

        Raises:
            PolicySyntaxError: The text is no role.
            UsageError: The role holds variables.
        """
        return self._unmet(Fact(FactKind.ROLE, _ground(role), _principal(principal)))

    def _missing(self, role: Fact) -> str:
        """Say which premises of the rules for a role nothing meets, rule by rule."""
        found = self._unmet(role)
        if not found:
            return ": no rule activates such a role"
        return f": {'; '.join(map(str, found[:_SHOWN_RULES]))}"

    def _unmet(self, role: Fact) -> tuple[UnmetRule, ...]:
        search = Search(store=self._store, principal=role.holder, budget=Steps(self._limits.steps))
        return find_unmet(self._activations.get(role.atom.signature, ()), role, search, self._roles)

    def _given(self, role: Fact, budget: Steps) -> Iterator[tuple[Privilege, AuthorisationRule, tuple[Fact, ...]]]:
        search = Search(store=self._store, principal=role.holder, budget=budget)
        # SECURITY: a denial overrides, whichever rule gives; rights on types are cut down where they are issued.
        denied = {item.privilege for item in self._denied(role.holder, budget)}
        for rule in self._authorisations.get(role.atom.signature, ()):
            binding = search.start()
            if match(rule.role, role.atom, binding):
                goals = [(FactKind.ENVIRONMENT, condition.atom) for condition in rule.conditions]
                for facts, bound in search.solve(goals, binding):
                    given = filled(rule.privilege, bound)
                    if given not in denied or as_event_right(given) is not None:
                        yield given, rule, facts

    def _denied(self, principal: str, budget: Steps) -> tuple[DenialInForce, ...]:
        search = Search(store=self._store, principal=principal, budget=budget)
        return denials_in_force(self._denials, search, budget)

    def _explain(self, role: Fact) -> PolicyProof:
        return self._shown(role, _SHOWN_DEPTH, Steps(_SHOWN_PREMISES))

    def _shown(self, role: Fact, depth: int, room: Steps) -> PolicyProof:
        if depth == 0 or room.steps <= 0:
            return _leaf(role)  # too much to show
        support = self._active.founding(role)
        room.steps -= len(support.premises)
        watched = support.monitored
        premises = tuple(
            self._shown(fact, depth - 1, room) if fact.kind is FactKind.ROLE and fact in watched else _leaf(fact)
            for fact in support.premises
        )
        return PolicyProof(conclusion=str(role), rule=str(support.rule), line=support.rule.line, premises=premises)


def _leaf(fact: Fact) -> PolicyProof:
    return PolicyProof(conclusion=str(fact))


def _principal(principal: str) -> str:
    if not 0 < len(principal) <= _MAX_PRINCIPAL:
        raise UsageError(f"a principal has 1 to {_MAX_PRINCIPAL} characters", code="POLICY_PRINCIPAL")
    return principal


def _ground(fact: Atom | str) -> Atom:
    atom = parse_fact(fact) if isinstance(fact, str) else fact
    if any(True for _ in variables(atom)):
        raise UsageError(f"the fact `{atom}` holds variables", code="POLICY_GROUND")
    return atom
