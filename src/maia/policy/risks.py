"""Risk classes: which kind of rule an attribute needs, said once, and held against every rule.

    [high]
    attributes = ["path_report.patient-name", "path_report.patient-ID"]
    requires = ["row", "monitored"]

A rule that gives an attribute of a class must have what the class requires:

- ``row``: a demand on the values of the row, so that it gives some rows and not all;
- ``bound``, or one kind of it such as ``strict-lower`` or ``max``: an access-control filter;
- ``condition``: a circumstance that is asked whenever the right is used;
- ``monitored``: every premise of every rule for the role is watched, so that the right ends when one fails.

Rules kept here: words that are not known are refused, and so is an attribute of two classes; a class without
requirements says so with an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from maia.errors import MalformedError
from maia.policy.catalogue import TypeCatalogue
from maia.policy.checking import PolicyFinding, Severity
from maia.policy.rules import AuthorisationRule, EventRight, Policy

POLICY_RISK = "POLICY_RISK"
_BOUNDS = ("upper", "strict-upper", "lower", "strict-lower", "min", "exact", "max")
_WORDS = {
    "row": "a demand on the row", "bound": "an access-control filter", "condition": "a condition at each use",
    "monitored": "premises that are all monitored", **{kind: f"a `{kind}` filter" for kind in _BOUNDS},
}  # fmt: skip
_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskClass:
    """A class of attributes, and what rules must have that give one of them.

    Attributes:
        name: What people call it.
        attributes: Pairs of a type, by a word of the policy, and an attribute.
        requires: What each rule must have.
    """

    name: str
    attributes: frozenset[tuple[str, str]]
    requires: tuple[str, ...]


def parse_risks(data: Mapping[str, object]) -> tuple[RiskClass, ...]:
    """Read risk classes from what a TOML file says.

    >>> parse_risks({"low": {"attributes": ["Report.ward"], "requires": []}})[0].attributes
    frozenset({('Report', 'ward')})

    Raises:
        MalformedError: ``POLICY_RISKS``; the message says what.
    """
    found: list[RiskClass] = []
    taken: dict[tuple[str, str], str] = {}
    for name, value in data.items():
        if not isinstance(value, dict) or set(value) != {"attributes", "requires"}:
            raise _wrong(f"the risk class `{name}` needs `attributes` and `requires`, and nothing else")
        listed, needed = (_texts(value[word], name, word) for word in ("attributes", "requires"))
        for word in needed:
            if word not in _WORDS:
                raise _wrong(f"the risk class `{name}` requires `{word}`; there is {', '.join(_WORDS)}")
        pairs = [_pair(text) for text in listed]
        for pair in pairs:
            if taken.setdefault(pair, name) != name:
                raise _wrong(f"`{pair[0]}.{pair[1]}` is of the risk classes `{taken[pair]}` and `{name}`")
        found.append(RiskClass(name=name, attributes=frozenset(pairs), requires=tuple(needed)))
    return tuple(found)


def check_risks(policy: Policy, risks: tuple[RiskClass, ...], catalogue: TypeCatalogue) -> tuple[PolicyFinding, ...]:
    """List the rules that give an attribute without what its risk class requires.

    Args:
        policy: The rules.
        risks: The classes.
        catalogue: What is known; a right on a whole type gives all its attributes.

    Raises:
        MalformedError: A class names a type or an attribute that there is not.
    """
    classes: dict[tuple[str, str], RiskClass] = {}
    for risk in risks:
        for word, attribute in sorted(risk.attributes):
            known = catalogue.find(word)
            if attribute not in known.attributes:
                raise _wrong(f"the event type `{word}` has no attribute `{attribute}`")
            classes[known.name, attribute] = risk
    found: list[PolicyFinding] = []
    for rule in policy.authorisations:
        for name, attribute in _given(rule, catalogue):
            needed = classes.get((name, attribute))
            for word in () if needed is None else needed.requires:
                if not _HAS.get(word, _has_bound(word))(rule, policy):
                    assert needed is not None  # noqa: S101 - it requires something
                    message = f"`{attribute}` is of risk class `{needed.name}`, which requires {_WORDS[word]}"
                    found.append(PolicyFinding(
                        severity=Severity.ERROR, code=POLICY_RISK, line=rule.line, column=1, message=message
                    ))  # fmt: skip
    return tuple(found)


def _given(rule: AuthorisationRule, catalogue: TypeCatalogue) -> Iterator[tuple[str, str]]:
    right = rule.privilege
    if not isinstance(right, EventRight) or right.action not in ("publish", "subscribe", "advertise"):
        return
    try:
        known = catalogue.find(right.event_type)
    except MalformedError:
        return  # named by the check of privileges
    names = known.attributes if right.attributes is None else [use.name for use in right.attributes]
    yield from ((known.name, name) for name in names)


def _has_row(rule: AuthorisationRule, _policy: Policy) -> bool:
    right = rule.privilege
    return isinstance(right, EventRight) and any(use.value is not None for use in right.attributes or ())


def _has_condition(rule: AuthorisationRule, _policy: Policy) -> bool:
    return any(premise.environment for premise in rule.conditions)


def _is_monitored(rule: AuthorisationRule, policy: Policy) -> bool:
    rules = [item for item in policy.activations if item.head.signature == rule.role.signature]
    return bool(rules) and all(premise.monitored for item in rules for premise in item.premises)


def _has_bound(kind: str) -> Callable[[AuthorisationRule, Policy], bool]:
    def has(rule: AuthorisationRule, _policy: Policy) -> bool:
        right = rule.privilege
        return isinstance(right, EventRight) and any(kind in ("bound", bound.kind) for bound in right.bounds)

    return has


_HAS: dict[str, Callable[[AuthorisationRule, Policy], bool]] = {
    "row": _has_row, "condition": _has_condition, "monitored": _is_monitored,
}  # fmt: skip


def _texts(value: object, name: str, word: str) -> list[str]:
    if not isinstance(value, list) or len(value) > _MOST or not all(isinstance(item, str) for item in value):
        raise _wrong(f"`{word}` of the risk class `{name}` is no list of texts")
    return value


def _pair(text: str) -> tuple[str, str]:
    word, _, attribute = text.rpartition(".")
    if not word or not attribute:
        raise _wrong(f"`{text}` is no attribute of a type; write `TYPE.ATTRIBUTE`")
    return word, attribute


def _wrong(message: str) -> MalformedError:
    return MalformedError(message, code="POLICY_RISKS")
