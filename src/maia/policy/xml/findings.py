"""Rules of an XML policy that change nothing: no errors, but whoever wrote them meant something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from maia.policy.checking import PolicyFinding, Severity
from maia.policy.xml.rules import ANYONE, AccessRule, Effect, InstallRule, XmlPolicy, XmlRule


def find_idle(policy: XmlPolicy) -> tuple[PolicyFinding, ...]:
    """List what has no effect, in the order of lines.

    >>> from maia.policy import xml
    >>> rule = '<install user="X" filter="mirror" effect="allow"/>'
    >>> [found.code for found in find_idle(xml.parse_xml(f'<policies xmlns="urn:maia:policy:1">{rule}</policies>'))]
    ['ALLOWS_NOBODY', 'SAYS_NOTHING']
    """
    return tuple(sorted(_found(policy), key=lambda finding: (finding.line, finding.code)))


def _found(policy: XmlPolicy) -> Iterator[PolicyFinding]:
    if not any(isinstance(rule, AccessRule) and rule.effect is Effect.ALLOW for rule in policy.rules):
        yield _warning("ALLOWS_NOBODY", 1, "no `access` rule allows anybody anything; alone it denies everything")
    seen: dict[XmlRule, int] = {}
    for rule in policy.rules:
        if isinstance(rule, InstallRule) and not rule.only and rule.effect is Effect.ALLOW:
            yield _warning("SAYS_NOTHING", rule.line, "what nobody denies may be installed without such a rule")
        if (
            isinstance(rule, AccessRule)
            and rule.effect is Effect.DENY
            and not rule.between
            and (rule.user, rule.camera) == (ANYONE, ANYONE)
        ):
            yield _warning("DENIES_ALL", rule.line, "nobody sees anything, whatever other rules say")
        first = seen.setdefault(replace(rule, line=0), rule.line)
        if first != rule.line:
            yield _warning("DUPLICATE_RULE", rule.line, f"the rule says the same as line {first}")


def _warning(code: str, line: int, message: str) -> PolicyFinding:
    return PolicyFinding(severity=Severity.WARNING, code=code, line=line, column=1, message=message)
