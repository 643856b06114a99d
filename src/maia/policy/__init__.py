"""A domain's inner policy: OASIS rules that lead from appointments and circumstances to roles, and on to privileges."""

from maia.policy import peers, release, xml
from maia.policy.agreement_text import format_agreement, parse_agreement
from maia.policy.agreements import (
    BROKERS,
    Agreement,
    AgreementRow,
    SignedAgreement,
    VerifiedAgreement,
    check_meaning,
    draft_agreement,
    draft_rows,
    giver_bodies,
    role_name,
    sign_agreement,
    verify_agreement,
)
from maia.policy.bounds import check_bounds, compile_bounds
from maia.policy.catalogue import TypeCatalogue
from maia.policy.checking import PolicyFinding, Severity, check, require_runnable
from maia.policy.conditions import Condition, cannot_ask, compile_condition
from maia.policy.conditions_inputs import DEFAULT_CONDITION_LIMITS, Ask, ConditionLimits, EventValue, Occasion
from maia.policy.conditions_problems import ConditionSyntaxError
from maia.policy.conditions_rates import MAX_RATE, RateLimit, parse_rate
from maia.policy.conditions_tree import Node as ConditionNode
from maia.policy.denials import DENIED_BY_RULE, AllowedRight, DenialInForce, compile_allowed
from maia.policy.engine import EngineLimits, PolicyEngine, Withdrawal
from maia.policy.environment import Environment, Predicate, Provider
from maia.policy.environment_hours import Hours
from maia.policy.environment_places import Places, Terminals
from maia.policy.facts import Fact, FactKind
from maia.policy.flow_tags import TagBook, flow_tag, numbered
from maia.policy.formatting import format_text
from maia.policy.issuing import CompiledRight, check_privileges, compile_privilege
from maia.policy.known_types import KnownType
from maia.policy.language import parse_bound, parse_fact, parse_policy, parse_privilege, read_rules
from maia.policy.limits import PolicyLimits, grammar
from maia.policy.problems import PolicySyntaxError
from maia.policy.proofs import PolicyDecision, PolicyProof
from maia.policy.risks import RiskClass, check_risks, parse_risks
from maia.policy.role_sets import PolicySource, combine_sources, locate_line, parse_source
from maia.policy.rules import (
    ActivationRule,
    AttributeUse,
    AuthorisationRule,
    BoundDemand,
    BoundUse,
    DenialRule,
    EventRight,
    Policy,
    Premise,
    Privilege,
    Rule,
)
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
    would_give,
)
from maia.policy.terms import Atom, Constant, Term, Variable
from maia.policy.unmet import UnmetRule

__all__ = [
    "BROKERS",
    "DEFAULT_CONDITION_LIMITS",
    "DENIED_BY_RULE",
    "MAX_RATE",
    "ActivationRule",
    "Agreement",
    "AgreementRow",
    "AllowedRight",
    "Ask",
    "Atom",
    "AttributeUse",
    "AuthorisationRule",
    "BoundDemand",
    "BoundUse",
    "CompiledRight",
    "Condition",
    "ConditionLimits",
    "ConditionNode",
    "ConditionSyntaxError",
    "Constant",
    "DenialInForce",
    "DenialRule",
    "EngineLimits",
    "Environment",
    "EventRight",
    "EventValue",
    "Fact",
    "FactKind",
    "Hours",
    "KnownType",
    "Occasion",
    "Places",
    "Policy",
    "PolicyDecision",
    "PolicyEngine",
    "PolicyFinding",
    "PolicyLimits",
    "PolicyProof",
    "PolicySource",
    "PolicySyntaxError",
    "Predicate",
    "Premise",
    "Privilege",
    "Provider",
    "RateLimit",
    "Restored",
    "RiskClass",
    "RoleState",
    "Rule",
    "Severity",
    "SignedAgreement",
    "TagBook",
    "Term",
    "Terminals",
    "TypeCatalogue",
    "UnmetRule",
    "Variable",
    "VerifiedAgreement",
    "Withdrawal",
    "cannot_ask",
    "check",
    "check_bounds",
    "check_meaning",
    "check_privileges",
    "check_risks",
    "combine_sources",
    "compile_allowed",
    "compile_bounds",
    "compile_condition",
    "compile_privilege",
    "dependents",
    "draft_agreement",
    "draft_rows",
    "ends_of",
    "fact_from_bytes",
    "fact_to_bytes",
    "flow_tag",
    "format_agreement",
    "format_text",
    "given",
    "giver_bodies",
    "grammar",
    "is_active",
    "locate_line",
    "numbered",
    "parse_agreement",
    "parse_bound",
    "parse_fact",
    "parse_policy",
    "parse_privilege",
    "parse_rate",
    "parse_risks",
    "parse_source",
    "peers",
    "read_rules",
    "release",
    "require_runnable",
    "restore",
    "role_name",
    "role_state",
    "sign_agreement",
    "verify_agreement",
    "would_give",
    "xml",
]
