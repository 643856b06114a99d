"""The one place where a home reads the clock of its machine."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Read the clock of this machine."""
    return datetime.now(UTC)
