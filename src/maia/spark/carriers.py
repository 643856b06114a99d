"""Columns of a labelled frame that carry labels: their names, which nobody else may use."""

from __future__ import annotations

from itertools import count

from maia.errors import UsageError
from maia.labels import Label

CARRIER = "_carrier_"
_numbers = count()


def new_column(name: str) -> str:
    """Give a name back; refuse one that is kept for columns that carry labels.

    Raises:
        UsageError: It is: ``COLUMN_TAKEN``.
    """
    if name.startswith(CARRIER):
        raise UsageError(f"names that begin with `{CARRIER}` are taken", code="COLUMN_TAKEN")
    return name


def fresh_carrier() -> str:
    """Name a column that carries labels, as no other frame of this process has one."""
    return f"{CARRIER}{next(_numbers)}"


def label_text(label: Label) -> str:
    """Write a label as people do."""
    return f"({{{', '.join(sorted(label.secrecy))}}}, {{{', '.join(sorted(label.integrity))}}})"
