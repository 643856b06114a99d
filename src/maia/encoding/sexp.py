"""What an S-expression is in memory, and the limits every reader obeys.

An expression is an octet string (``bytes``), an octet string with a display hint (`Hinted`), or a list (``tuple``) of
expressions. Two expressions are equal when their canonical bytes are equal, so a hint always counts:
``[text/plain]foo`` is not ``foo``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from maia.errors import UsageError


@dataclass(frozen=True, slots=True)
class Hinted:
    """An octet string that carries a display hint."""

    hint: bytes
    octets: bytes


class EndOfList:
    """What a writer puts on its stack to remember a closing bracket; no expression holds one."""


END_OF_LIST = EndOfList()

Sexp: TypeAlias = "bytes | Hinted | tuple[Sexp, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SexpLimits:
    """How much of someone else's data a reader is willing to look at.

    Attributes:
        max_bytes: Largest input, in octets.
        max_depth: Deepest nesting of lists; a lone octet string has depth 0.
        max_atom: Longest single octet string.
    """

    max_bytes: int = 1 << 20
    max_depth: int = 64
    max_atom: int = 1 << 20

    def __post_init__(self) -> None:
        """Refuse limits that admit nothing."""
        if min(self.max_bytes, self.max_depth, self.max_atom) < 1:
            raise UsageError("limits of an S-expression must be positive")


DEFAULT_LIMITS = SexpLimits()
