"""The steps that events go through, told as they are taken: a name and a count each, never a value (row 7.05).

Publishing:  type check, translate, null, force or drop, stamp, encrypt, route
Delivering:  verify, judge origin, decrypt (what filters and rights ask about), match, decrypt (what else is shown),
             type check (once for each version that is subscribed to), deliver

Names become uids right after the type check: rights name uids, so attributes are closed and values forced by uid. What
is counted: rows of a type check and of what follows from it, columns of a translation, blocks that are encrypted or
decrypted, pairs of row and subscription that match, events that are routed or delivered.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECK = "type check"
TRANSLATE = "translate"
NULL = "null"
FORCE_OR_DROP = "force or drop"
STAMP = "stamp"
ENCRYPT = "encrypt"
ROUTE = "route"
VERIFY = "verify"
JUDGE = "judge origin"
DECRYPT = "decrypt"
MATCH = "match"
DELIVER = "deliver"

Tell = Callable[[str, int], None]
"""Hears of a step and its count."""


def untold(_step: str, _count: int) -> None:
    """Let a step pass in silence."""
