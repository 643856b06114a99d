"""From a privilege to a right: what a role gives, written as the tag of a certificate.

    subscribe Numberplate(location, timestamp, numberplate = 'AE05 XYZ')

becomes ``(maia-type <owner> <name> (*) subscribe <uids> <rows>)`` over the uids of the known definitions, because names
of attributes change from version to version and uids do not.

Rules:
    1. Only a known event type or network can be meant, by its whole name or by its last part where that is one type's,
       and with its owner before it (``pito/Numberplate``) where several own one of that name.
    2. An attribute's name must mean one uid of one type in all known versions; otherwise nobody can say what is given.
    3. A value is read by the attribute's type, never guessed from how it is written, and never rounded.
    4. A right holds for later versions too, with the same uids, unless the rule names one: ``Numberplate@8516``.
    5. What does not compile gives nothing. At upload it is an error with its line and column.
    6. ``define``, ``advertise``, ``publish`` and ``subscribe`` with one parameter are rights on the type of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from maia.authority import Action, Constraint, Tag, network_right, type_right
from maia.errors import MalformedError, UsageError
from maia.events import AttributeType
from maia.policy.bounds import check_bounds, compile_bounds
from maia.policy.catalogue import TypeCatalogue
from maia.policy.checking import PolicyFinding, Severity
from maia.policy.known_types import KnownType, find_attribute, read_value
from maia.policy.rules import AttributeUse, AuthorisationRule, DenialRule, EventRight, Policy, Privilege
from maia.policy.terms import Atom, Constant, Variable
from maia.principals import Principal

_METHODS = {
    "define": Action.MANAGE,
    "advertise": Action.PUBLISH,
    "publish": Action.PUBLISH,
    "subscribe": Action.SUBSCRIBE,
}
_NO_TYPE = ("POLICY_TYPE", "POLICY_ACTION")
_PLACED = re.compile(
    r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\"|#[^\n]*|[|!]-|[^\W\d][\w.-]*(?:/[\w.-]+)?(?:@[\w.]+)?|\n|."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRight:
    """A right as it stands in a certificate, and who owns what it is about."""

    tag: Tag
    owner: Principal


def compile_privilege(privilege: Privilege, catalogue: TypeCatalogue) -> CompiledRight | None:
    """Write a privilege as a right.

    >>> from maia.events import EventType, TypeName, attribute, parse_version
    >>> from maia.policy import parse_privilege
    >>> from maia.principals import KeySigner
    >>> pito = KeySigner(bytes(32)).public_key
    >>> name = TypeName(pito, "uk.gov.pito.Numberplate", parse_version("8516"))
    >>> known = TypeCatalogue([EventType(name=name, attributes=(attribute("numberplate", 3265, "string"),))])
    >>> right = compile_privilege(parse_privilege("subscribe Numberplate(numberplate = 'AE05 XYZ')"), known)
    >>> right.tag.to_sexp()[4:]
    (b'subscribe', b'3265', (b'*', b'where', (b'3265', b'AE05 XYZ')))

    Args:
        privilege: What an active role gives, without variables.
        catalogue: What is known.

    Returns:
        The right; nothing when the privilege is a matter of the domain itself, such as a word in quotes.

    Raises:
        MalformedError: It is meant as a right and cannot be one: ``POLICY_TYPE``, ``POLICY_AMBIGUOUS``,
            ``POLICY_ATTRIBUTE``, ``POLICY_ACTION``, ``POLICY_VALUE``.
        UsageError: It holds variables.
    """
    if isinstance(privilege, EventRight):
        return _compile_right(privilege, catalogue, partial=False)
    return _compile_method(privilege, catalogue, partial=False) if isinstance(privilege, Atom) else None


def as_event_right(privilege: Privilege) -> EventRight | None:
    """Write a privilege as a right on an event type or a network, when it is one.

    >>> from maia.policy import parse_privilege
    >>> print(as_event_right(parse_privilege("define(Report)")))
    define Report
    """
    match privilege:
        case EventRight():
            return privilege
        case Atom(name=name, arguments=(Constant(value=word),)) if name in _METHODS:
            return EventRight(action=name, event_type=word)
        case _:
            return None


def check_privileges(policy: Policy, catalogue: TypeCatalogue, *, text: str = "") -> tuple[PolicyFinding, ...]:
    """List the privileges of a policy that could never become a right, each with its place.

    Values that a rule leaves to variables are looked at when the role is activated.

    >>> from maia.policy import parse_policy
    >>> source = "spy(self) |- subscribe Nothing(x)"
    >>> [str(found) for found in check_privileges(parse_policy(source), TypeCatalogue(), text=source)]
    ['line 1, column 24: error: there is no event type `Nothing`']

    Args:
        policy: The rules.
        catalogue: What is known.
        text: The text they were read from, which tells the columns.
    """
    found: list[PolicyFinding] = []
    for rule in policy.on_privileges:
        wrong: dict[str, PolicyFinding] = {}
        for part, column, alone in _parts(rule.privilege):
            if alone and wrong:
                break
            error = _problem(part, catalogue)
            if error is not None:
                known = (
                    column and error.code not in _NO_TYPE
                )  # these are about the whole right, wherever its parts stand
                line, at = (rule.line, column) if known else _place(text, rule, error.message)
                wrong.setdefault(
                    error.message,
                    PolicyFinding(
                        severity=Severity.ERROR, code=error.code, line=line, column=at, message=error.message
                    ),
                )
                if error.code in _NO_TYPE:
                    break
        found += wrong.values()
    return tuple(found)


def _problem(privilege: Privilege, catalogue: TypeCatalogue) -> MalformedError | None:
    """Say why a privilege could never become a right."""
    try:
        if isinstance(privilege, EventRight):
            _compile_right(privilege, catalogue, partial=True)
        elif isinstance(privilege, Atom):
            _compile_method(privilege, catalogue, partial=True)
    except MalformedError as error:
        return error
    return None


def _parts(privilege: Privilege) -> Iterator[tuple[Privilege, int, bool]]:
    """Take a right apart, so that all that is wrong with it is found at once.

    Yields:
        Each part with its column, if known; and whether it is the whole, which is looked at when its parts are right.
    """
    if isinstance(privilege, EventRight):
        alone = replace(privilege, attributes=None, bounds=())
        for use in privilege.attributes or ():
            yield replace(alone, attributes=(use,)), 0, False
        for bound in privilege.bounds:
            for demand in bound.demands:
                yield replace(alone, bounds=(replace(bound, demands=(demand,)),)), demand.column, False
        yield privilege, privilege.bounds[0].column if privilege.bounds else 0, True
    else:
        yield privilege, 0, True


def _compile_right(right: EventRight, catalogue: TypeCatalogue, *, partial: bool) -> CompiledRight:
    action = right_action(right.action)
    if action.on_network:
        if right.attributes is not None or right.bounds:
            raise MalformedError(f"`{right.action}` is about a network, which has no attributes", code="POLICY_ACTION")
        owner, name = catalogue.find_network(right.event_type)
        return CompiledRight(tag=network_right(owner, name, [action]), owner=owner)
    known = catalogue.find(right.event_type)
    if right.attributes is None and not right.bounds:
        return _whole(known, action)
    if not action.on_cells:
        raise MalformedError(f"`{right.action}` is about a whole type, not its attributes", code="POLICY_ACTION")
    uses = right.attributes or ()
    uids = None if right.attributes is None else dict.fromkeys(find_attribute(known, use.name).uid for use in uses)
    constraints = [made for use in uses if (made := row_demand(known, use, partial=partial)) is not None]
    bounds = compile_bounds(right.bounds, known, partial=partial)
    check_bounds(bounds, known, uids)
    return CompiledRight(
        tag=type_right(
            known.owner,
            known.name,
            known.version,
            actions=[action],
            attributes=uids,
            constraints=constraints,
            bounds=bounds,
        ),
        owner=known.owner,
    )


def _compile_method(privilege: Atom, catalogue: TypeCatalogue, *, partial: bool) -> CompiledRight | None:
    action = _METHODS.get(privilege.name)
    if action is None or len(privilege.arguments) != 1:
        return None
    (argument,) = privilege.arguments
    if isinstance(argument, Constant):
        return _whole(catalogue.find(argument.value), action)
    if isinstance(argument, Variable) and not partial:
        raise UsageError(f"the privilege `{privilege}` holds variables", code="POLICY_GROUND")
    return None


def _whole(known: KnownType, action: Action) -> CompiledRight:
    return CompiledRight(tag=type_right(known.owner, known.name, known.version, actions=[action]), owner=known.owner)


def right_action(word: str) -> Action:
    """Read the action of a right, as rules write it.

    >>> right_action("advertise").value
    'publish'

    Raises:
        MalformedError: There is none: ``POLICY_ACTION``.
    """
    if word in _METHODS:
        return _METHODS[word]
    try:
        return Action.parse(word)
    except MalformedError as error:
        raise MalformedError(f"there is no action `{word}`", code="POLICY_ACTION") from error


def row_demand(known: KnownType, use: AttributeUse, *, partial: bool) -> Constraint | None:
    """Write what an attribute of a right asks of the row; nothing when it asks nothing.

    Raises:
        MalformedError: The value is none of its type, or there is no such attribute.
        UsageError: The value is a variable, and that is not expected.
    """
    attribute = find_attribute(known, use.name)
    if use.operator == "any":
        return Constraint(attribute.uid, "any", ())
    if use.operator is None or use.value is None:
        return None
    if not attribute.type.filterable:
        raise MalformedError(f"values of `{use.name}` cannot be compared", code="POLICY_VALUE")
    if attribute.type is AttributeType.BOOLEAN and use.operator not in ("=", "!="):
        raise MalformedError(f"values of `{use.name}` have no order", code="POLICY_VALUE")
    if isinstance(use.value, Variable):
        if not partial:
            raise UsageError(f"the value of `{use.name}` is a variable", code="POLICY_GROUND")
        return None
    return Constraint(attribute.uid, use.operator, read_value(attribute, use.value.value))


def _place(text: str, rule: AuthorisationRule | DenialRule, message: str) -> tuple[int, int]:
    """Find the word that a message quotes in the privilege of a rule: its line and column, or the rule's start."""
    lines = text.split("\n")
    if not 0 < rule.line <= len(lines):
        return rule.line, 1
    quoted = re.findall(r"`([^`]*)`", message)
    right = False
    found: dict[str, int] = {}
    for token in _PLACED.finditer(lines[rule.line - 1]):
        if token[0] in ("|-", "!-"):
            right = True
        elif right and token[0].strip():
            found.setdefault(token[0].strip("'\""), token.start() + 1)
    columns = [found[word] for word in quoted if word in found]
    # The last word is the narrowest: a message names the type first and then its attribute.
    return rule.line, columns[-1] if columns else 1
