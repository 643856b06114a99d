"""Places in the overlay: 160-bit identifiers on a ring, for brokers and for event types.

A broker's identifier is a hash of what names it; a type's is the front of ``h(owner ‖ name)``, in which the version
takes no part, so that all versions share one tree and every broker can compute it alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NewType

from maia.errors import UsageError
from maia.events import TypeId

Identifier = NewType("Identifier", int)
"""A place on the ring, below 2 to the power of 160."""

BITS = 160
DIGIT_BITS = 4
DIGITS = BITS // DIGIT_BITS
RING = 1 << BITS


def identifier(data: bytes) -> Identifier:
    """Hash what names a broker to its place.

    >>> f"{identifier(b'b1'):040x}"
    '7dc96f776c8423e57a2785489a3f9c43fb6e7568'
    """
    return Identifier(int.from_bytes(hashlib.sha256(data).digest()[: BITS // 8], "big"))


def rendezvous(type_id: TypeId) -> Identifier:
    """Tell where the tree of a type has its root: at the broker closest to this.

    >>> from maia.events import type_id
    >>> from maia.principals import KeySigner
    >>> pito, evil = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))
    >>> rendezvous(type_id(pito, "Numberplate")) == rendezvous(type_id(evil, "Numberplate"))
    False
    """
    return Identifier(int.from_bytes(type_id[: BITS // 8], "big"))


def distance(a: int, b: int) -> int:
    """How far two places are apart, the shorter way around the ring."""
    apart = abs(a - b)
    return min(apart, RING - apart)


def closest(key: int, places: Iterable[Identifier]) -> Identifier:
    """Find the place that is numerically closest to a key; of two that are equally close, the lower.

    >>> closest(7, [Identifier(2), Identifier(9), Identifier(30)])
    9
    """
    found = min(places, key=lambda place: (distance(place, key), place), default=None)
    if found is None:
        raise UsageError("a network has at least one broker")
    return found


def digit(place: int, row: int) -> int:
    """The hexadecimal digit of a place, counted from the front."""
    return (place >> (BITS - DIGIT_BITS * (row + 1))) & ((1 << DIGIT_BITS) - 1)


def shared_digits(a: int, b: int) -> int:
    """How many digits two places share from the front.

    >>> shared_digits(0x12 << 152, 0x13 << 152)
    1
    """
    return (BITS - (a ^ b).bit_length()) // DIGIT_BITS
