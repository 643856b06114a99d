"""Says on the terminal how far a long test is, where the bounds of CI are lifted."""

from __future__ import annotations

import os
import sys

TORTURE = bool(os.environ.get("MAIA_TORTURE"))
_EVERY = 25


def say(what: str, done: int, of: int) -> None:
    """Show a count now and then, past pytest's capturing; nothing in CI."""
    if TORTURE and sys.__stderr__ is not None and (done % _EVERY == 0 or done == of or of < _EVERY):
        print(f"  {what}: {done}{f' of {of}' if of >= 0 else ''}", file=sys.__stderr__, flush=True)
