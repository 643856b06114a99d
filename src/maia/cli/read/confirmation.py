"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys

from maia.encoding import printable
from maia.errors import UsageError


def confirm(question: str, *, otherwise: str) -> None:
    """Ask on standard error, and go on only after a yes.

    Args:
        question: What is asked, without its question mark: ``Revoke 3fa1c9``.
        otherwise: What is true when nobody says yes: ``not revoked``.

    Raises:
        UsageError: Nobody said yes: ``CONFIRMATION_MISSING``.
    """
    print(f"{printable(question)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline(64).strip().lower() not in ("y", "yes"):
        raise UsageError(f"{otherwise}: nobody confirmed it", code="CONFIRMATION_MISSING")
