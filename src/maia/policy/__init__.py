"""A domain's inner policy: OASIS rules that lead from appointments and circumstances to roles, and on to privileges."""

from maia.policy.checking import Finding, Severity, check, require_runnable
from maia.policy.engine import EngineLimits, PolicyEngine, Withdrawal
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
    "ActivationRule",
    "Atom",
    "AttributeUse",
    "AuthorisationRule",
    "Constant",
    "Decision",
    "EngineLimits",
    "EventRight",
    "Fact",
    "FactKind",
    "Finding",
    "Policy",
    "PolicyEngine",
    "PolicyLimits",
    "PolicySyntaxError",
    "Premise",
    "Privilege",
    "Proof",
    "Rule",
    "Session",
    "Severity",
    "Term",
    "Variable",
    "Withdrawal",
    "check",
    "format_policy",
    "format_text",
    "grammar",
    "parse_fact",
    "parse_policy",
    "parse_privilege",
    "require_runnable",
]
