"""Counting what costs: signatures that are checked and chains that are searched while a block runs, in its thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from maia.authority import Action
from maia.principals import PublicKey, verify_signature

_SEARCHES = ("Case.prove", "Case.clauses")


@dataclass(slots=True)
class Checks:
    """What was checked.

    Attributes:
        signatures: How many signatures, of whatever.
        searched: For whom a chain was searched and what it asked for, one entry a search.
    """

    signatures: int = 0
    searched: list[tuple[bytes, str]] = field(default_factory=list)

    def chains(self, key: PublicKey, action: Action) -> int:
        """Count the searches for a right of one key."""
        return sum(principal == key.key_id and action.value in asked for principal, asked in self.searched)


@contextmanager
def counted_checks() -> Iterator[Checks]:
    """Count what is checked while the block runs; the product itself is not changed for it."""
    found, before = Checks(), sys.getprofile()

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            if frame.f_code is verify_signature.__code__:
                found.signatures += 1
            elif frame.f_code.co_qualname in _SEARCHES:
                case = frame.f_locals["self"]
                found.searched.append((bytes(case.principal), str(case.request)))

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
