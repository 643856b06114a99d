"""From a policy to what a capability carries: the condition on the clock under which a user may see a camera.

Deny is resolved when a right is issued. What is left is positive: a certificate whose condition holds in exactly the
minutes in which the policies allow the camera, and the handlers that frames must have passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import time

from maia.encoding import printable
from maia.errors import DeniedError
from maia.policy.conditions import compile_condition
from maia.policy.xml.decision import See, decide
from maia.policy.xml.rules import AccessRule, ForcedHandler, XmlPolicy

_DAY = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraRight:
    """What policies leave to a user of a camera, as an ordinary capability has it.

    Attributes:
        condition: Must hold whenever the right is used; none when it always holds.
        handlers: What every frame must have passed.
    """

    condition: str | None
    handlers: tuple[ForcedHandler, ...]


def entitle(policies: Sequence[XmlPolicy], asked: See, *, zone: str = "UTC") -> CameraRight:
    """Say what may be issued to a user who asks for a camera.

    >>> from maia.policy import xml
    >>> night = xml.parse_xml('''<policies xmlns="urn:maia:policy:1">
    ...   <access user="*" camera="*" effect="allow"/>
    ...   <access user="X" camera="Y" effect="deny"><between from="22:00" to="06:00"/></access>
    ... </policies>''')
    >>> entitle([night], See(user="X", camera="Y")).condition
    '(now.clock("UTC") >= "06:00" && now.clock("UTC") < "22:00")'

    Args:
        policies: All of them count.
        asked: Who asks for which camera.
        zone: The time zone whose clock the hours mean.

    Raises:
        DeniedError: There is no minute in which they allow it: ``XML_DENIED``.
        ConditionSyntaxError: There is no such zone (``CONDITION_ZONE``), or the hours are too many for one condition
            (``CONDITION_LIMIT``).
    """
    turns = _turns(policies)
    decisions = [decide(policies, asked, at=time(*divmod(minute, 60))) for minute in turns]
    granted = [decision for decision in decisions if decision]
    if not granted:
        told = f"`{printable(asked.user)}` see `{printable(asked.camera)}`"
        raise DeniedError(f"the policies never let {told}", code="XML_DENIED")
    condition = None
    if len(granted) < len(turns):
        held = zip(turns, [*turns[1:], _DAY], map(bool, decisions), strict=True)
        condition = " || ".join(_written(start, end, zone) for start, end in _stretches(held))
        compile_condition(condition)
    return CameraRight(condition=condition, handlers=granted[0].handlers)


def _turns(policies: Sequence[XmlPolicy]) -> list[int]:
    """List the minutes of the day at which a decision may change: where hours begin and end."""
    access = [rule for policy in policies for rule in policy.rules if isinstance(rule, AccessRule)]
    ends = {clock for rule in access for hours in rule.between for clock in (hours.start, hours.end)}
    return sorted({0, *(clock.hour * 60 + clock.minute for clock in ends)})


def _stretches(held: Iterable[tuple[int, int, bool]]) -> Iterator[tuple[int, int]]:
    """Join what holds without a break: from the first minute to before the last."""
    start = None
    last = 0
    for begins, ends, holds in held:
        if holds and start is None:
            start = begins
        elif not holds and start is not None:
            yield start, begins
            start = None
        last = ends
    if start is not None:
        yield start, last


def _written(start: int, end: int, zone: str) -> str:
    clock = f'now.clock("{zone}")'
    parts = [f'{clock} >= "{start // 60:02}:{start % 60:02}"'] if start else []
    parts += [f'{clock} < "{end // 60:02}:{end % 60:02}"'] if end < _DAY else []
    return f"({' && '.join(parts)})"
