"""What a policy alone says: which roles can ever read or write an attribute, and what would have to be assumed.

No certificate is looked at here, and nobody's appointments: a role can be had when some rule for it asks for roles that
can be had, for appointments and for circumstances, which others decide. The engine that runs the policy is asked
whether a role can be activated on stated facts; where it says no, it says what is missing, and what may be assumed of
that is stated as well and listed. So a conclusion says on what it rests, and a refusal which premises it lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from maia.authority import Action, cell_rights, permits
from maia.errors import DeniedError, MalformedError, UsageError
from maia.policy import (
    Atom,
    AuthorisationRule,
    Constant,
    EventRight,
    Policy,
    PolicyEngine,
    PolicyProof,
    Premise,
    Privilege,
    Rule,
    TypeCatalogue,
    UnmetRule,
    compile_privilege,
    parse_fact,
)

_MOST_ROUNDS = 64
_ACTIONS = {"subscribe": Action.SUBSCRIBE, "publish": Action.PUBLISH, "advertise": Action.PUBLISH}
Signature = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RoleRight:
    """A rule by which a role reads or writes an attribute.

    Attributes:
        role: The role, as the rule writes it.
        rule: The rule.
        line: Its line.
        rests_on: Appointments and circumstances that must be decided by others before the role can be had, sorted.
        file: The file that it stands in, where that is known.
    """

    role: str
    rule: str
    line: int
    rests_on: tuple[str, ...]
    file: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Whether somebody can have a role, on stated facts.

    Attributes:
        holds: Whether it can.
        proof: The rule and what met it, line by line.
        privileges: What it gives then.
        assumed: What was assumed and not stated, sorted.
        lacks: Where it cannot: what each rule for it lacks.
        lines: The lines of the rules that the proof used, sorted.
        denied: What the policy denies on these facts, whatever gives it, each with the rule.
    """

    holds: bool
    proof: tuple[str, ...] = ()
    privileges: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    lacks: tuple[UnmetRule, ...] = ()
    lines: tuple[int, ...] = ()
    denied: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Stand for the answer."""
        return self.holds


def roles_that(
    policy: Policy, catalogue: TypeCatalogue, event_type: str, attribute: str, action: Action = Action.SUBSCRIBE
) -> tuple[RoleRight, ...]:
    r"""Find every role that can ever read or write an attribute, by the rules alone.

    >>> from maia.events import EventType, TypeName, attribute, parse_version
    >>> from maia.policy import parse_policy
    >>> from maia.principals import KeySigner
    >>> name = TypeName(KeySigner(bytes(32)).public_key, "Report", parse_version("1"))
    >>> known = TypeCatalogue([EventType(name=name, attributes=(attribute("text", 1, "string"),))])
    >>> rules = parse_policy("doctor(self) <- employed(self)*\ndoctor(d) |- subscribe Report(text)")
    >>> [(found.role, found.rests_on) for found in roles_that(rules, known, "Report", "text")]
    [('doctor(d)', ('employed',))]

    Args:
        policy: The rules.
        catalogue: The types that they may speak of.
        event_type: The type, by a word of the policy.
        attribute: The attribute, by name.
        action: Whether it is read or written.

    Raises:
        MalformedError: There is no such type or attribute.
    """
    known = catalogue.find(event_type)
    if attribute not in known.attributes:
        raise MalformedError(f"the event type `{event_type}` has no attribute `{attribute}`", code="POLICY_ATTRIBUTE")
    uids = {str(item.uid) for item in known.attributes[attribute]}
    grounds = _grounds(policy)
    found = []
    for rule in policy.authorisations:
        role = rule.role.signature
        if role in grounds and _opens(rule, catalogue, known.name, uids, action):
            rests = grounds[role] | {_leaf(premise) for premise in rule.conditions}
            found.append(RoleRight(str(rule.role), str(rule), rule.line, tuple(sorted(rests))))
    return tuple(found)


def conclude(
    policy: Policy,
    role: str,
    principal: str,
    *,
    appointed: Iterable[str] = (),
    observed: Iterable[str] = (),
    assume: Collection[str] = (),
) -> Conclusion:
    """Tell whether somebody can have a role on stated facts, and on what may be assumed.

    Roles that it needs of itself are activated as well. A premise whose name is among those to be assumed is taken as
    met; a value that nothing determines is then named by its variable.

    >>> from maia.policy import parse_policy
    >>> rules = parse_policy("treating(self, p) <- consultant(self)*, referral(self, p)*")
    >>> conclude(rules, "treating(brown, patterson)", "brown", appointed=["consultant(brown)"]).lacks[0].lacks
    ('referral(brown, patterson)',)
    >>> conclude(rules, "treating(brown, patterson)", "brown", assume=["consultant", "referral"]).assumed
    ('consultant(brown)', 'referral(brown, patterson)')

    Args:
        policy: The rules.
        role: The role, with its parameters.
        principal: Who activates it.
        appointed: Appointments that are stated.
        observed: Circumstances that are stated.
        assume: The names of appointments and circumstances that may be assumed.
    """
    engine = PolicyEngine(policy)
    for fact in appointed:
        engine.appoint(fact)
    for fact in observed:
        engine.observe(fact)
    environment = {premise.atom.name for rule in policy.rules for premise in _premises(rule) if premise.environment}
    assumed: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        try:
            proof = engine.activate(role, principal=principal)
        except DeniedError:
            lacks = engine.unmet(role, principal=principal)
            if not any(_supply(engine, one, principal, assume, environment, assumed) for one in lacks):
                return Conclusion(holds=False, lacks=lacks)
            continue
        given = [str(privilege) for who, privilege in engine.privileges(principal) if who == principal]
        return Conclusion(
            True, tuple(proof.lines()), tuple(sorted(given)), tuple(sorted(assumed)), lines=tuple(sorted(_used(proof))),
            denied=tuple(f"{item.privilege}   by {item.rule}" for item in engine.denials(principal)),
        )  # fmt: skip
    raise UsageError(f"`{role}` needs too many other roles to be looked at", code="POLICY_TOO_DEEP")


def _supply(
    engine: PolicyEngine,
    unmet: UnmetRule,
    principal: str,
    assume: Collection[str],
    environment: Collection[str],
    assumed: set[str],
) -> bool:
    """Give a rule what it lacks: by activating roles, or by assuming; say whether something was given."""
    given = False
    for text in unmet.lacks:
        atom = parse_fact(text)
        if atom.signature in engine.policy.roles:
            try:
                engine.activate(atom, principal=principal)
            except DeniedError:
                deeper = engine.unmet(atom, principal=principal)
                given |= any(_supply(engine, one, principal, assume, environment, assumed) for one in deeper)
            else:
                given = True
        elif atom.name in assume and str(atom) not in assumed:
            assumed.add(str(atom))
            given |= engine.observe(atom) if atom.name in environment else engine.appoint(atom)
    return given


def _used(proof: PolicyProof) -> set[int]:
    return {proof.line} - {0} | {line for premise in proof.premises for line in _used(premise)}


def _premises(rule: Rule) -> tuple[Premise, ...]:
    return rule.conditions if isinstance(rule, AuthorisationRule) else rule.premises


def _leaf(premise: Premise) -> str:
    return f"{'?' if premise.environment else ''}{premise.atom.name}"


def _grounds(policy: Policy) -> Mapping[Signature, frozenset[str]]:
    """Find the roles that can be had, and the appointments and circumstances that rules for them ask others for."""
    found: dict[Signature, frozenset[str]] = {}
    changed = True
    while changed:  # at most once for each role and each name that one rests on: sets only grow
        changed = False
        for rule in policy.activations:
            needed = [premise for premise in rule.premises if not premise.environment]
            above = [premise.atom.signature for premise in needed if premise.atom.signature in policy.roles]
            if any(signature not in found for signature in above):
                continue
            leaves = {_leaf(premise) for premise in rule.premises if premise.atom.signature not in above}
            rests = found.get(rule.head.signature, frozenset()) | leaves | {
                name for signature in above for name in found[signature]
            }  # fmt: skip
            if rests != found.get(rule.head.signature):
                found[rule.head.signature], changed = rests, True
    return found


def _opens(rule: AuthorisationRule, catalogue: TypeCatalogue, name: str, uids: set[str], action: Action) -> bool:
    """Tell whether a rule gives an attribute, whatever values its variables take."""
    right = _unbound(rule.privilege)
    if right is None or _ACTIONS.get(right.action) is not action:
        return False
    try:
        compiled = compile_privilege(right, catalogue)
        known = catalogue.find(right.event_type)
    except MalformedError:
        return False
    if compiled is None or known.name != name:
        return False
    return any(permits(cells.uids, uid.encode()) for cells in cell_rights(compiled.tag) for uid in uids)


def _unbound(privilege: Privilege) -> EventRight | None:
    """Take a right on a type without what it asks of values, which variables may hold: it opens the same attributes."""
    match privilege:
        case EventRight(action=action, event_type=event_type, attributes=uses):
            plain = None if uses is None else tuple(replace(use, operator=None, value=None) for use in uses)
            return EventRight(action=action, event_type=event_type, attributes=plain)
        case Atom(name=action, arguments=(Constant(value=event_type),)):
            return EventRight(action=action, event_type=event_type)
        case _:
            return None
