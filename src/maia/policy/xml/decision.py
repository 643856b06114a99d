"""Decides what a user may see or install under XML policies.

Rules:
    1. Everything that is not denied is allowed to a user whom some ``access`` rule with the effect ``allow`` names now:
       to see a camera, a rule that names the camera too; to install a filter, one on any camera.
    2. Deny overrides, wherever it stands and in whichever of the policies.
    3. ``only`` denies every other filter on its channel, to everybody or to its user; several of them leave what all
       of them list. It gives nothing by itself.
    4. A rule with hours counts while any of them hold: the first minute is inside, the last is not.
    5. Whoever may see a camera sees it through the handlers of every ``image`` rule that names both; equal ones count
       once, in the order in which the policies first name them. Who may not see gets no handlers.
    6. A user is called by a name and by the roles it has; all names are of one directory. No policy allows nothing.
    7. A request may name anything. What no rule can name, such as an empty text or ``*``, only rules with a star reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import time

from maia.errors import UsageError
from maia.policy.xml.reader import DEFAULT_XML_LIMITS, XmlLimits
from maia.policy.xml.rules import AccessRule, Effect, ForcedHandler, ImageRule, InstallRule, XmlPolicy, XmlRule


@dataclass(frozen=True, slots=True, kw_only=True)
class See:
    """A user asks for the stream of a camera."""

    user: str
    camera: str
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """A user asks to put a filter on a channel."""

    user: str
    filter: str
    channel: str
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedRule:
    """A rule that decided: which of the policies, and its line there."""

    policy: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlDecision:
    """What becomes of a request.

    Attributes:
        allowed: Whether it is granted.
        reason: ``ALLOWED``, ``NOT_NAMED`` when no rule allows it, or ``DENIED_BY_RULE``.
        handlers: What frames go through, in this order.
        cited: The rules behind it: those that allow and that force handlers, or those that deny.
    """

    allowed: bool
    reason: str
    handlers: tuple[ForcedHandler, ...] = ()
    cited: tuple[CitedRule, ...] = ()

    def __bool__(self) -> bool:
        """Stand for the answer."""
        return self.allowed


def decide(
    policies: Sequence[XmlPolicy], asked: See | Install, *, at: time, limits: XmlLimits = DEFAULT_XML_LIMITS
) -> XmlDecision:
    """Decide a request under all policies together.

    >>> from maia.policy import xml
    >>> night = xml.parse_xml('''<policies xmlns="urn:maia:policy:1">
    ...   <access user="*" camera="*" effect="allow"/>
    ...   <access user="X" camera="Y" effect="deny"><between from="22:00" to="06:00"/></access>
    ... </policies>''')
    >>> decide([night], See(user="X", camera="Y"), at=time(21, 59)).allowed
    True
    >>> decide([night], See(user="X", camera="Y"), at=time(22)).reason
    'DENIED_BY_RULE'

    Args:
        policies: All of them count, in whatever order.
        asked: Who asks for what.
        at: The time of the day.
        limits: How many policies decide together.

    Raises:
        UsageError: Too many policies decide together: ``XML_TOO_MANY``.
    """
    if len(policies) > limits.policies:
        raise UsageError(f"at most {limits.policies} policies decide together", code="XML_TOO_MANY")
    names = frozenset({asked.user}) | asked.roles
    denied = [place for place, rule in _placed(policies) if _denies(rule, asked, names, at)]
    if denied:
        return XmlDecision(allowed=False, reason="DENIED_BY_RULE", cited=tuple(denied))
    allowing = [place for place, rule in _placed(policies) if _allows(rule, asked, names, at)]
    if not allowing:
        return XmlDecision(allowed=False, reason="NOT_NAMED")
    forcing, handlers = list[CitedRule](), dict[ForcedHandler, None]()
    if isinstance(asked, See):
        for index, policy in enumerate(policies):
            for rule in policy.rules:
                if isinstance(rule, ImageRule) and rule.concerns(names, asked.camera):
                    forcing.append(CitedRule(policy=index, line=rule.line))
                    handlers |= dict.fromkeys(rule.handlers)
    return XmlDecision(allowed=True, reason="ALLOWED", handlers=tuple(handlers), cited=(*allowing, *forcing))


def _placed(policies: Sequence[XmlPolicy]) -> Iterator[tuple[CitedRule, XmlRule]]:
    for index, policy in enumerate(policies):
        for rule in policy.rules:
            yield CitedRule(policy=index, line=rule.line), rule


def _denies(rule: XmlRule, asked: See | Install, names: frozenset[str], at: time) -> bool:
    if isinstance(asked, See):
        return isinstance(rule, AccessRule) and rule.effect is Effect.DENY and rule.concerns(names, asked.camera, at)
    return isinstance(rule, InstallRule) and rule.denies(names, asked.filter, asked.channel)


def _allows(rule: XmlRule, asked: See | Install, names: frozenset[str], at: time) -> bool:
    camera = asked.camera if isinstance(asked, See) else None
    return isinstance(rule, AccessRule) and rule.effect is Effect.ALLOW and rule.concerns(names, camera, at)
