"""What a play raises."""

from __future__ import annotations


class ViolationError(Exception):
    """Something that a law forbids happened."""
