"""Rates: at most so many publications in any stretch of time of a given length.

    rate(10, "1m")           at most ten in any minute, for each principal that publishes under the certificate
    shared_rate(10, "1m")    at most ten in any minute, for all of them together

Rules:
    1. A rate is a condition of its own: several conditions of a certificate are conjoined anyway.
    2. It belongs to the certificate that carries it. Passing the right on makes new principals, each with a rate of its
       own; who wants to bound them together writes ``shared_rate``.
    3. It counts publications. What does not publish is not limited by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from maia.policy.conditions_problems import ConditionSyntaxError

MAX_RATE = 1_000_000
_LONGEST = timedelta(days=31)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_CALL = re.compile(r"\s*(rate|shared_rate)\s*\(")
_WHOLE = re.compile(r"""\s*(rate|shared_rate)\s*\(\s*([0-9]{1,9})\s*,\s*(["'])([0-9]{1,9})([smhd])\3\s*\)\s*""")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most ``count`` publications in any stretch of length ``period``.

    Attributes:
        count: How many.
        period: In what time.
        shared: Whether all principals under the certificate are counted together.
    """

    count: int
    period: timedelta
    shared: bool = False


def parse_rate(source: str) -> RateLimit | None:
    """Read a rate; ``None`` for a condition of another kind.

    >>> parse_rate('rate(10, "1m")').period.total_seconds()
    60.0
    >>> parse_rate('rate(10, "1m") || true')
    Traceback (most recent call last):
    maia.policy.conditions_problems.ConditionSyntaxError: [CONDITION_RATE] a rate is written `rate(10, "1m")` ...

    Raises:
        ConditionSyntaxError: It starts as a rate and is none.
    """
    start = _CALL.match(source)
    if start is None:
        return None
    column = start.start(1) + 1
    found = _WHOLE.fullmatch(source)
    if found is None:
        message = 'a rate is written `rate(10, "1m")` (s, m, h or d) and stands alone, as a condition of its own'
        raise ConditionSyntaxError(message, code="CONDITION_RATE", column=column)
    count, period = int(found[2]), timedelta(seconds=int(found[4]) * _UNITS[found[5]])
    if count > MAX_RATE or not timedelta() < period <= _LONGEST:
        message = f"a rate allows at most {MAX_RATE} in at most {_LONGEST.days} days"
        raise ConditionSyntaxError(message, code="CONDITION_RATE", column=column)
    return RateLimit(count=count, period=period, shared=found[1] == "shared_rate")
