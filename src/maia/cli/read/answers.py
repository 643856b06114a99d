"""Answers of the person at the terminal, where something cannot be undone."""

from __future__ import annotations

import sys

from maia.cli.show.output import printable
from maia.errors import UsageError


def confirm(question: str, *, otherwise: str) -> None:
    """Ask, and go on only after a plain yes.

    Raises:
        UsageError: Nobody said yes; ``otherwise`` says what did not happen: ``CONFIRMATION_MISSING``.
    """
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline(64).strip().lower() not in ("y", "yes"):
        raise UsageError(f"{otherwise}: nobody confirmed it", code="CONFIRMATION_MISSING")
