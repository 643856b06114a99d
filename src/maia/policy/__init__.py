"""A domain's inner policy: OASIS rules that lead from appointments and circumstances to roles, and on to privileges."""

from maia.policy.checking import Finding, Severity, check, require_runnable
from maia.policy.conditions import (
    DEFAULT_CONDITION_LIMITS,
    Ask,
    Condition,
    ConditionLimits,
    EventValue,
    Occasion,
    cannot_ask,
    compile_condition,
)
from maia.policy.conditions_problems import ConditionSyntaxError
from maia.policy.conditions_rates import MAX_RATE, RateLimit, parse_rate
from maia.policy.engine import EngineLimits, PolicyEngine, Withdrawal
from maia.policy.environment import Environment, EnvironmentChange, Predicate, Provider, Watcher
from maia.policy.environment_hours import Hours
from maia.policy.environment_places import Places, Terminals
from maia.policy.facts import Fact, FactKind
from maia.policy.formatting import format_policy, format_text
from maia.policy.issuing import (
    CompiledRight,
    KnownType,
    TypeCatalogue,
    check_privileges,
    compile_privilege,
    require_issuable,
)
from maia.policy.language import PolicyLimits, grammar, parse_fact, parse_policy, parse_privilege
from maia.policy.problems import PolicySyntaxError
from maia.policy.proofs import Decision, Proof
from maia.policy.rules import (
    ActivationRule,
    AttributeUse,
    AuthorisationRule,
    EventRight,
    Policy,
    Premise,
    Privilege,
    Rule,
)
from maia.policy.sessions import Session
from maia.policy.states import (
    Restored,
    RoleState,
    dependents,
    ends_of,
    fact_from_bytes,
    fact_to_bytes,
    given,
    is_active,
    restore,
    role_state,
)
from maia.policy.terms import Atom, Constant, Term, Variable

__all__ = [
    "DEFAULT_CONDITION_LIMITS",
    "MAX_RATE",
    "ActivationRule",
    "Ask",
    "Atom",
    "AttributeUse",
    "AuthorisationRule",
    "CompiledRight",
    "Condition",
    "ConditionLimits",
    "ConditionSyntaxError",
    "Constant",
    "Decision",
    "EngineLimits",
    "Environment",
    "EnvironmentChange",
    "EventRight",
    "EventValue",
    "Fact",
    "FactKind",
    "Finding",
    "Hours",
    "KnownType",
    "Occasion",
    "Places",
    "Policy",
    "PolicyEngine",
    "PolicyLimits",
    "PolicySyntaxError",
    "Predicate",
    "Premise",
    "Privilege",
    "Proof",
    "Provider",
    "RateLimit",
    "Restored",
    "RoleState",
    "Rule",
    "Session",
    "Severity",
    "Term",
    "Terminals",
    "TypeCatalogue",
    "Variable",
    "Watcher",
    "Withdrawal",
    "cannot_ask",
    "check",
    "check_privileges",
    "compile_condition",
    "compile_privilege",
    "dependents",
    "ends_of",
    "fact_from_bytes",
    "fact_to_bytes",
    "format_policy",
    "format_text",
    "given",
    "grammar",
    "is_active",
    "parse_fact",
    "parse_policy",
    "parse_privilege",
    "parse_rate",
    "require_issuable",
    "require_runnable",
    "restore",
    "role_state",
]
