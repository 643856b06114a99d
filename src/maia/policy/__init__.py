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
from maia.policy.facts import Fact, FactKind
from maia.policy.formatting import format_policy, format_text
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
from maia.policy.terms import Atom, Constant, Term, Variable

__all__ = [
    "DEFAULT_CONDITION_LIMITS",
    "MAX_RATE",
    "ActivationRule",
    "Ask",
    "Atom",
    "AttributeUse",
    "AuthorisationRule",
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
    "Occasion",
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
    "Rule",
    "Session",
    "Severity",
    "Term",
    "Variable",
    "Watcher",
    "Withdrawal",
    "cannot_ask",
    "check",
    "compile_condition",
    "format_policy",
    "format_text",
    "grammar",
    "parse_fact",
    "parse_policy",
    "parse_privilege",
    "parse_rate",
    "require_runnable",
]
