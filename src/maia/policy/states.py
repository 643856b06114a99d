"""The state of an engine as values: why each active role is active, kept outside and brought back after a restart.

Rules:
    1. A role comes back only on a kept instance of a rule that the policy still has, whose monitored facts hold. What
       was not monitored may be gone, as while the engine ran.
    2. Roles that only support each other do not come back.
    3. What comes back stands on exactly the kept instances that hold; nothing is searched for anew.
    4. Octets that are no state are refused whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import DeniedError, EncodingError, UncheckedError
from maia.policy.activations import Support
from maia.policy.engine import DEFAULT_ENGINE_LIMITS, EngineLimits, PolicyEngine
from maia.policy.facts import Fact, FactKind
from maia.policy.rules import Policy, Privilege
from maia.policy.solving import Steps, StepsUsedUpError
from maia.policy.terms import Atom, Constant, Term, Variable

ROLE_STATE_LIMITS = SexpLimits(max_bytes=16 << 20, max_depth=32, max_atom=1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleState:
    """An active role and the instances of rules that it stands on.

    Attributes:
        role: The role with its holder.
        supports: For each instance the text of its rule, the facts that met it, and which of them are monitored.
    """

    role: Fact
    supports: tuple[tuple[str, tuple[Fact, ...], frozenset[Fact]], ...]

    def to_bytes(self) -> bytes:
        """Write the state in its one canonical form."""
        supports: list[Sexp] = []
        for rule, facts, monitored in self.supports:
            marked: list[Sexp] = [(_fact_sexp(fact), b"*" if fact in monitored else b"") for fact in facts]
            supports.append((rule.encode(), *marked))
        return encode((b"role", _fact_sexp(self.role), *supports))

    @classmethod
    def from_bytes(cls, raw: bytes) -> RoleState:
        """Read a state.

        Raises:
            EncodingError: The octets are no state.
        """
        match parse_canonical(raw, limits=ROLE_STATE_LIMITS):
            case (b"role", role, *supports):
                return cls(role=_fact(role), supports=tuple(map(_support, supports)))
            case _:
                raise EncodingError("not the state of a role", code="ROLE_STATE")


class Restored(NamedTuple):
    """An engine that was brought back, and the roles that did not come back with it."""

    engine: PolicyEngine
    fallen: tuple[Fact, ...]


def role_state(engine: PolicyEngine, role: Fact) -> RoleState:
    """Say on what an active role stands.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*"))
    >>> proof = engine.appoint("employed(ali)") and engine.activate("doctor(ali)", principal="ali")
    >>> [rule for rule, _, _ in role_state(engine, engine.roles()[0]).supports]
    ['doctor(self) <- employed(self)*']

    Args:
        engine: The engine.
        role: One of its active roles.
    """
    supports = engine._active._active[role].supports  # noqa: SLF001 - this module is the engine's way out and in
    return RoleState(role=role, supports=tuple((str(item.rule), item.premises, item.monitored) for item in supports))


def is_active(engine: PolicyEngine, role: Fact) -> bool:
    """Tell whether its holder has a role active.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*"))
    >>> is_active(engine, Fact(FactKind.ROLE, Atom("doctor", (Constant("ali"),)), "ali"))
    False
    """
    return role in engine._active  # noqa: SLF001 - as above


def dependents(engine: PolicyEngine, facts: Iterable[Fact]) -> frozenset[Fact]:
    """Give the active roles with an instance that some of the facts, or roles above them, are monitored for.

    Whoever keeps states asks before a withdrawal: these are the roles whose state may change by it.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*"))
    >>> proof = engine.appoint("employed(ali)") and engine.activate("doctor(ali)", principal="ali")
    >>> employed = Fact(FactKind.APPOINTMENT, Atom("employed", (Constant("ali"),)))
    >>> [str(role) for role in dependents(engine, [employed])]
    ['ali: doctor(ali)']
    """
    edges = engine._active._dependents  # noqa: SLF001 - as above
    found: set[Fact] = set()
    waiting = list(facts)
    while waiting:  # bounded: each active role enters once
        for role in edges.get(waiting.pop(), ()):
            if role not in found:
                found.add(role)
                waiting.append(role)
    return frozenset(found)


def restore(
    policy: Policy,
    facts: Iterable[Fact],
    states: Iterable[RoleState],
    *,
    limits: EngineLimits = DEFAULT_ENGINE_LIMITS,
    anew: bool = False,
) -> Restored:
    """Build an engine from what was kept of another one.

    >>> from maia.policy import parse_policy
    >>> policy = parse_policy("doctor(self) <- employed(self)*")
    >>> engine = PolicyEngine(policy)
    >>> proof = engine.appoint("employed(ali)") and engine.activate("doctor(ali)", principal="ali")
    >>> kept = role_state(engine, engine.roles()[0])
    >>> employed = Fact(FactKind.APPOINTMENT, Atom("employed", (Constant("ali"),)))
    >>> [str(role) for role in restore(policy, [employed], [kept]).engine.roles()]
    ['ali: doctor(ali)']
    >>> [str(role) for role in restore(policy, [], [kept]).fallen]
    ['ali: doctor(ali)']

    Args:
        policy: The rules; they may have changed.
        facts: The appointments and environment facts that hold now.
        states: The roles that were active, in the order of their activation.
        limits: How much the engine holds.
        anew: Whether a role without an instance comes back when it could be activated now, as on a change of policy.

    Returns:
        The engine and the roles that fell, in the order in which they came.

    Raises:
        PolicySyntaxError: No engine may run the policy.
        UsageError: There are more facts than the limits allow.
    """
    engine = PolicyEngine(policy, limits=limits)
    for fact in facts:
        engine._add(fact)  # noqa: SLF001 - as above
    rules = {str(rule): rule for rule in policy.activations}
    pending = {
        state.role: [
            Support(rules[text], premises, monitored) for text, premises, monitored in state.supports if text in rules
        ]
        for state in states
    }
    kept = dict(pending)
    _bring_back(engine, pending)
    while anew and _activate_anew(engine, pending):  # bounded: each round brings back at least one role
        _bring_back(engine, pending)
    active = engine._active  # noqa: SLF001 - as above
    for role in active:
        held = [item for item in kept[role] if all(fact in engine._store for fact in item.monitored)]  # noqa: SLF001
        if held:
            active.add(role, held)
    return Restored(engine=engine, fallen=tuple(pending))


def ends_of(engine: PolicyEngine, role: Fact, ends: Mapping[Fact, datetime]) -> datetime | None:
    """Say until when an active role can last at most, when the facts it stands on end at known instants.

    An instance lasts as long as the first of its facts to end, monitored or not; a role as long as the last of its
    instances. ``None``: nothing that it stands on has an end.

    >>> from datetime import UTC
    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("tracker(self) <- order(self)*"))
    >>> proof = engine.appoint("order(smith)") and engine.activate("tracker(smith)", principal="smith")
    >>> order = Fact(FactKind.APPOINTMENT, Atom("order", (Constant("smith"),)))
    >>> ends_of(engine, engine.roles()[0], {order: datetime(2008, 6, 30, tzinfo=UTC)}).year
    2008
    """
    known: dict[Fact, datetime | None] = {}
    standing = engine._active._active  # noqa: SLF001 - as above
    # In the order of ranks every role comes after those that it may stand on, so a circle lengthens nothing.
    for each in sorted(_below(engine, role), key=lambda found: standing[found].rank):
        lasting = [
            _first(ends.get(fact) if fact.kind is not FactKind.ROLE else known.get(fact) for fact in item.premises)
            for item in standing[each].supports
            if all(fact.kind is not FactKind.ROLE or fact in known for fact in item.monitored)
        ]
        bounded = [instant for instant in lasting if instant is not None]
        known[each] = max(bounded) if lasting and len(bounded) == len(lasting) else None
    return known[role]


def _below(engine: PolicyEngine, role: Fact) -> frozenset[Fact]:
    """A role and the active roles that it stands on, directly or not."""
    active = engine._active  # noqa: SLF001 - as above
    found = {role}
    waiting = [role]
    while waiting:  # bounded: each active role enters once
        for item in active._active[waiting.pop()].supports:  # noqa: SLF001 - as above
            new = {fact for fact in item.premises if fact in active} - found
            found |= new
            waiting.extend(new)
    return frozenset(found)


def _first(instants: Iterable[datetime | None]) -> datetime | None:
    return min((instant for instant in instants if instant is not None), default=None)


def _bring_back(engine: PolicyEngine, pending: dict[Fact, list[Support]]) -> None:
    """Activate the pending roles that have an instance without any pending role, and so on from those."""
    active, store = engine._active, engine._store  # noqa: SLF001 - as above
    waiting: dict[Fact, list[Fact]] = {}
    for role, supports in pending.items():
        for fact in {fact for item in supports for fact in item.monitored if fact.kind is FactKind.ROLE}:
            waiting.setdefault(fact, []).append(role)
    queue = list(pending)
    for role in queue:  # bounded: a role enters again only when one it stands on came back
        if role in pending and (held := _held(pending[role], store)):
            active.add(role, held)
            del pending[role]
            queue.extend(other for other in waiting.get(role, ()) if other in pending)


def _activate_anew(engine: PolicyEngine, pending: dict[Fact, list[Support]]) -> bool:
    before = len(pending)
    for role in tuple(pending):
        try:
            engine.activate(role.atom, principal=role.holder)
        except (DeniedError, UncheckedError):
            continue
        del pending[role]
    return len(pending) < before


def _held(supports: list[Support], store: Collection[Fact]) -> list[Support]:
    return [item for item in supports if all(fact in store for fact in item.monitored)]


def _fact_sexp(fact: Fact) -> Sexp:
    return (fact.kind.value.encode(), fact.holder.encode(), _term_sexp(fact.atom))


def _term_sexp(term: Term) -> Sexp:
    if isinstance(term, Constant):
        return term.value.encode()
    if isinstance(term, Variable):
        raise EncodingError("a fact holds no variables", code="ROLE_STATE")
    return (term.name.encode(), *map(_term_sexp, term.arguments))


def _fact(expression: Sexp) -> Fact:
    match expression:
        case (bytes() as kind, bytes() as holder, tuple() as atom):
            try:
                return Fact(FactKind(kind.decode()), _atom(atom), holder.decode())
            except ValueError as error:
                raise EncodingError("not the state of a role", code="ROLE_STATE") from error
        case _:
            raise EncodingError("not the state of a role", code="ROLE_STATE")


def _atom(expression: Sexp) -> Atom:
    match expression:
        case (bytes() as name, *arguments):
            found = tuple(Constant(item.decode()) if isinstance(item, bytes) else _atom(item) for item in arguments)
            return Atom(name.decode(), found)
        case _:
            raise EncodingError("not the state of a role", code="ROLE_STATE")


def _support(expression: Sexp) -> tuple[str, tuple[Fact, ...], frozenset[Fact]]:
    match expression:
        case (bytes() as rule, *premises):
            pairs = [item for item in premises if isinstance(item, tuple) and len(item) == 2]
            if len(pairs) != len(premises):
                raise EncodingError("not the state of a role", code="ROLE_STATE")
            facts = tuple(_fact(fact) for fact, _ in pairs)
            monitored = frozenset(fact for fact, (_, mark) in zip(facts, pairs, strict=True) if mark == b"*")
            return rule.decode(errors="replace"), facts, monitored
        case _:
            raise EncodingError("not the state of a role", code="ROLE_STATE")


def fact_to_bytes(fact: Fact) -> bytes:
    """Write a fact in its one canonical form.

    >>> fact_to_bytes(Fact(FactKind.APPOINTMENT, Atom("employed", (Constant("ali"),))))
    b'(11:appointment0:(8:employed3:ali))'
    """
    return encode(_fact_sexp(fact))


def fact_from_bytes(raw: bytes) -> Fact:
    """Read a fact.

    >>> str(fact_from_bytes(b'(11:appointment0:(8:employed3:ali))'))
    'employed(ali)'

    Raises:
        EncodingError: The octets are no fact.
    """
    return _fact(parse_canonical(raw, limits=ROLE_STATE_LIMITS))


def given(engine: PolicyEngine, principal: str) -> tuple[tuple[Privilege, Fact], ...]:
    r"""List the privileges that a principal has now, each with the active role that gives it.

    >>> from maia.policy import parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*\ndoctor(d) |- read('notes')"))
    >>> proof = engine.appoint("employed(ali)") and engine.activate("doctor(ali)", principal="ali")
    >>> [(str(privilege), str(role)) for privilege, role in given(engine, "ali")]
    [('read(notes)', 'ali: doctor(ali)')]

    Raises:
        UncheckedError: The conditions of a role's privileges need more steps than allowed.
    """
    found: dict[tuple[Privilege, Fact], None] = {}
    try:
        for role in engine._active.held_by(principal):  # noqa: SLF001 - as above
            budget = Steps(engine._limits.steps)  # noqa: SLF001 - as above
            for privilege, _, _ in engine._given(role, budget):  # noqa: SLF001 - as above
                found[privilege, role] = None
    except StepsUsedUpError as error:
        raise UncheckedError("the privileges of a role need more steps than allowed", code="POLICY_STEPS") from error
    return tuple(found)


def would_give(engine: PolicyEngine, role: Fact) -> tuple[Privilege, ...]:
    r"""List the privileges that a role would give its holder now, whether it is active or not.

    >>> from maia.policy import parse_fact, parse_policy
    >>> engine = PolicyEngine(parse_policy("doctor(self) <- employed(self)*\ndoctor(d) |- read('notes')"))
    >>> [str(found) for found in would_give(engine, Fact(FactKind.ROLE, parse_fact("doctor(ali)"), "ali"))]
    ['read(notes)']

    Raises:
        UncheckedError: The conditions of its privileges need more steps than allowed.
    """
    try:
        budget = Steps(engine._limits.steps)  # noqa: SLF001 - as above
        return tuple(dict.fromkeys(found for found, _, _ in engine._given(role, budget)))  # noqa: SLF001 - as above
    except StepsUsedUpError as error:
        raise UncheckedError("the privileges of a role need more steps than allowed", code="POLICY_STEPS") from error
