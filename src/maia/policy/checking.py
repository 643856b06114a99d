"""What is wrong with a policy that reads well: found before it runs, each with its line and column.

Rules:
    1. A variable of a head or a privilege that no premise binds is an error: it would stand for anything.
    2. A right on an event type or attribute that does not exist is an error, when the types are known.
    3. A role that cannot be reached, a privilege whose role no rule activates, a rule written twice, and a name used
       with different numbers of parameters are warnings: such rules grant nothing they should not, but surely not what
       their author meant.
    4. A denial stands on appointments, and says only what a right can be cut down by; anything else is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from maia.policy.problems import PolicySyntaxError
from maia.policy.rules import (
    ActivationRule,
    AuthorisationRule,
    DenialRule,
    EventRight,
    Policy,
    Premise,
    Rule,
    privilege_variables,
)
from maia.policy.terms import SELF, Atom, Variable, variables


class Severity(StrEnum):
    """Whether a policy with this finding may run."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFinding:
    """One thing wrong with a policy, and where."""

    severity: Severity
    code: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Show the finding on one line."""
        return f"line {self.line}, column {self.column}: {self.severity}: {self.message}"


def check(policy: Policy, *, types: Mapping[str, Collection[str]] | None = None) -> tuple[PolicyFinding, ...]:
    """List what is wrong with a policy, in the order of its lines.

    >>> from maia.policy import parse_policy
    >>> [str(found) for found in check(parse_policy("tracker(plate) <- detective(self)*"))]
    ['line 1, column 9: error: the variable `plate` is bound by no premise']

    Args:
        policy: The rules.
        types: The attributes of each known event type, by the name the policy uses; None when types are not known.

    Returns:
        The findings; none when the policy is good.
    """
    looks = (_unbound, wrong_denials, _unreachable, _roleless, _duplicates, _arities)
    found = [finding for look in looks for finding in look(policy)]
    if types is not None:
        found += _unknown(policy, types)
    return tuple(sorted(found, key=lambda finding: (finding.line, finding.column, finding.code)))


def require_runnable(policy: Policy) -> None:
    """Refuse a policy with unbound variables, which no engine may run.

    >>> from maia.policy import parse_policy
    >>> require_runnable(parse_policy("doctor(d) |- read(x)"))
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [POLICY_UNBOUND] line 1, column 19: the variable `x` is bound by no premise

    Args:
        policy: The rules.

    Raises:
        PolicySyntaxError: A variable of a head or a privilege is bound by no premise.
    """
    for finding in _unbound(policy):
        message = f"line {finding.line}, column {finding.column}: {finding.message}"
        raise PolicySyntaxError(message, code="POLICY_UNBOUND", line=finding.line, column=finding.column)
    for finding in wrong_denials(policy):
        message = f"line {finding.line}, column {finding.column}: {finding.message}"
        raise PolicySyntaxError(message, code="POLICY_DENIAL", line=finding.line, column=finding.column)


def wrong_denials(policy: Policy) -> Iterator[PolicyFinding]:
    """Find the denials that say what no right can be cut down to, or that somebody could step out of.

    SECURITY: a role is left whenever its holder likes, so a role denies nothing: what denies is an appointment.
    """
    for rule in policy.denials:
        for premise in rule.premises:
            if premise.atom.signature in policy.roles:
                message = f"`{premise.atom.name}` is a role, which its holder may leave; name an appointment"
                yield _refused(rule, message)
        right = rule.privilege
        if not isinstance(right, EventRight):
            continue
        if right.bounds:
            yield _refused(rule, "a denial has no access-control filters: they say how a right is used")
        if "@" in right.event_type:
            yield _refused(rule, "a denial is on all versions of a type")
        if right.action != "subscribe" and any(use.operator for use in right.attributes or ()):
            yield _refused(rule, f"a denial to `{right.action}` names attributes, without demands on values")


def _bound(premises: Iterable[Premise]) -> set[str]:
    return {SELF, *(variable.name for premise in premises for variable in variables(premise.atom))}


def _unbound(policy: Policy) -> Iterator[PolicyFinding]:
    for rule in policy.rules:
        used: Iterator[Variable]
        if isinstance(rule, ActivationRule):
            bound, used = _bound(rule.premises), variables(rule.head)
        else:
            bound, used = _bound(rule_premises(rule)), privilege_variables(rule.privilege)
        for variable in used:
            if variable.name not in bound:
                yield PolicyFinding(
                    severity=Severity.ERROR,
                    code="UNBOUND_VARIABLE",
                    line=rule.line,
                    column=variable.column or 1,
                    message=f"the variable `{variable}` is bound by no premise",
                )


def rule_premises(rule: Rule) -> tuple[Premise, ...]:
    """Give everything that stands left of a rule's arrow, or right of it where that gives a role."""
    if isinstance(rule, AuthorisationRule):
        return (Premise(atom=rule.role), *rule.conditions)
    return rule.premises


def _unreachable(policy: Policy) -> Iterator[PolicyFinding]:
    """Roles that only roles of the same kind lead to: no appointment and no predicate can start them."""
    roles = policy.roles
    needs = {
        index: {premise.atom.signature for premise in rule.premises if not premise.environment} & roles
        for index, rule in enumerate(policy.activations)
    }
    waiting: dict[tuple[str, int], list[int]] = {}
    for index, needed in needs.items():
        for role in needed:
            waiting.setdefault(role, []).append(index)
    ready = [index for index, needed in needs.items() if not needed]
    reached: set[tuple[str, int]] = set()
    while ready:  # bounded: each role is reached once, each rule becomes ready once
        role = policy.activations[ready.pop()].head.signature
        if role in reached:
            continue
        reached.add(role)
        for index in waiting.get(role, ()):
            needs[index].discard(role)
            if not needs[index]:
                ready.append(index)
    for rule in policy.activations:
        if rule.head.signature not in reached:
            yield _warning("UNREACHABLE_ROLE", rule, f"the role `{rule.head.name}` can never be activated")


def _roleless(policy: Policy) -> Iterator[PolicyFinding]:
    for rule in policy.authorisations:
        if rule.role.signature not in policy.roles:
            yield _warning("NO_SUCH_ROLE", rule, f"no rule activates the role `{rule.role.name}`")


def _duplicates(policy: Policy) -> Iterator[PolicyFinding]:
    first: dict[str, int] = {}
    for rule in policy.rules:
        line = first.setdefault(_renamed(rule), rule.line)
        if line != rule.line:
            yield _warning("DUPLICATE_RULE", rule, f"the rule says the same as line {line}")


def _renamed(rule: Rule) -> str:
    """The rule with its variables numbered in order and its premises sorted where that cannot matter."""
    names: dict[str, str] = {SELF: SELF}

    def rename(premise: Premise) -> str:
        for variable in variables(premise.atom):
            names.setdefault(variable.name, f"v{len(names)}")
        return str(
            Premise(atom=_apply(premise.atom, names), environment=premise.environment, monitored=premise.monitored)
        )

    if isinstance(rule, ActivationRule):
        head = rename(Premise(atom=rule.head))
        return f"{head} <- {sorted(set(map(rename, rule.premises)))}"
    if isinstance(rule, DenialRule):
        role, conditions = "!", sorted(set(map(rename, rule.premises)))
    else:
        role = rename(Premise(atom=rule.role))
        conditions = sorted(set(map(rename, rule.conditions)))
    shown = str(rule.privilege)
    if isinstance(rule.privilege, Atom):
        shown = rename(Premise(atom=rule.privilege))
    elif isinstance(rule.privilege, EventRight):
        right = rule.privilege
        uses = right.attributes or ()
        bounded = [(bound.kind, demand.name, demand.operator) for bound in right.bounds for demand in bound.demands]
        used = [use.value for use in uses]
        used += [value for bound in right.bounds for demand in bound.demands for value in demand.values]
        values = [names.get(value.name, "") if isinstance(value, Variable) else value for value in used]
        shown = repr((right.action, right.event_type, [(u.name, u.operator) for u in uses], bounded, values))
    return f"{role}, {conditions} |- {shown}"


def _apply(atom: Atom, names: Mapping[str, str]) -> Atom:
    return Atom(
        atom.name,
        tuple(
            Variable(names[argument.name])
            if isinstance(argument, Variable)
            else _apply(argument, names)
            if isinstance(argument, Atom)
            else argument
            for argument in atom.arguments
        ),
    )


def _arities(policy: Policy) -> Iterator[PolicyFinding]:
    seen: dict[tuple[bool, str], int] = {}
    for rule in policy.rules:
        heads = (Premise(atom=rule.head),) if isinstance(rule, ActivationRule) else ()
        for premise in (*heads, *rule_premises(rule)):
            name, arity = premise.atom.signature
            before = seen.setdefault((premise.environment, name), arity)
            if before != arity:
                message = f"`{name}` has {arity} parameters here and {before} before"
                yield _warning("PARAMETER_COUNT", rule, message)


def _unknown(policy: Policy, types: Mapping[str, Collection[str]]) -> Iterator[PolicyFinding]:
    for rule in policy.on_privileges:
        right = rule.privilege
        if not isinstance(right, EventRight):
            continue
        attributes = types.get(right.event_type)
        if attributes is None:
            yield _error("UNKNOWN_TYPE", rule, f"there is no event type `{right.event_type}`")
            continue
        listed = [use.name for use in right.attributes or ()]
        for name in listed + [demand.name for bound in right.bounds for demand in bound.demands]:
            if name not in attributes:
                message = f"the event type `{right.event_type}` has no attribute `{name}`"
                yield _error("UNKNOWN_ATTRIBUTE", rule, message)


def _warning(code: str, rule: Rule, message: str) -> PolicyFinding:
    return PolicyFinding(severity=Severity.WARNING, code=code, line=rule.line, column=1, message=message)


def _refused(rule: DenialRule, message: str) -> PolicyFinding:
    return PolicyFinding(severity=Severity.ERROR, code="POLICY_DENIAL", line=rule.line, column=1, message=message)


def _error(code: str, rule: AuthorisationRule | DenialRule, message: str) -> PolicyFinding:
    return PolicyFinding(severity=Severity.ERROR, code=code, line=rule.line, column=1, message=message)
