"""Where new uids come from: a sequence for one manager, folded UUIDs for several.

The first version of a type can use the shortest uids, 0, 1, 2 and so on. Later versions either go on counting (one
manager) or draw collision-resistant ones; lengths may differ from version to version. A drawn uid is compared with all
uids the manager knows of, and ``x`` keeps the two kinds apart, so that a counter never meets a folded UUID.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from maia.errors import UnavailableError, UsageError
from maia.events.attributes import Uid

_UUID_OCTETS = 16
_ATTEMPTS = 64


class UidPolicy(Protocol):
    """Gives an attribute a uid that none of the known ones equals."""

    def next_uid(self, taken: AbstractSet[str]) -> Uid:
        """Return a uid outside ``taken``."""
        ...


@dataclass(frozen=True, slots=True)
class SequenceUids:
    """Counts on from the highest counter in use; for types with a single manager."""

    def next_uid(self, taken: AbstractSet[str]) -> Uid:
        """Return one more than the highest counter in ``taken``, or 0.

        >>> SequenceUids().next_uid({"0", "1", "x7f"})
        '2'
        """
        return Uid(str(max((int(uid) for uid in taken if uid.isdecimal()), default=-1) + 1))


@dataclass(frozen=True, slots=True)
class FoldedUids:
    """Draws UUIDs and folds them to fewer octets.

    Attributes:
        octets: How long a uid is; 8 makes an accidental clash of two managers as good as impossible.
        remainder: Take the last octets of the UUID instead of joining all of them by exclusive or.
        source: Makes the UUIDs.
    """

    octets: int = 8
    remainder: bool = False
    source: Callable[[], uuid.UUID] = uuid.uuid4

    def __post_init__(self) -> None:
        """Refuse lengths that a UUID cannot give."""
        if not 1 <= self.octets < _UUID_OCTETS:
            raise UsageError(f"a UUID folds to 1 to {_UUID_OCTETS - 1} octets")

    def next_uid(self, taken: AbstractSet[str]) -> Uid:
        """Return a folded UUID outside ``taken``.

        Raises:
            UnavailableError: So many uids of this length are taken that none was found.
        """
        for _ in range(_ATTEMPTS):
            drawn = self.source().bytes
            uid = Uid("x" + (drawn[-self.octets :] if self.remainder else fold(drawn, self.octets)).hex())
            if uid not in taken:
                return uid
        raise UnavailableError(f"found no free uid of {self.octets} octets; use longer ones", code="UIDS_EXHAUSTED")


@dataclass(frozen=True, slots=True)
class WholeUuids:
    """Uses whole UUIDs, as the healthcare definitions do."""

    source: Callable[[], uuid.UUID] = uuid.uuid4

    def next_uid(self, taken: AbstractSet[str]) -> Uid:
        """Return a fresh UUID."""
        for _ in range(_ATTEMPTS):
            uid = Uid(str(self.source()))
            if uid not in taken:
                return uid
        raise UnavailableError("the source of UUIDs repeats itself", code="UIDS_EXHAUSTED")


def fold(octets: bytes, length: int) -> bytes:
    """Join segments of ``length`` octets by exclusive or; a shorter last segment counts from its left.

    >>> fold(bytes.fromhex("0102030405060708"), 4).hex()
    '0404040c'
    """
    result = bytearray(length)
    for index, octet in enumerate(octets):
        result[index % length] ^= octet
    return bytes(result)
