"""All columns of an event in one plaintext: the block of event mode.

For each column the length of its uid (2 octets, big-endian), the uid, the length of the column (4), the column.
"""

from __future__ import annotations

from collections.abc import Mapping

from maia.encryption.blocks import Octets
from maia.encryption.header import MAX_BLOCKS
from maia.errors import SealError


def join_columns(plain: Mapping[bytes, bytes]) -> bytes:
    """Put all columns into one plaintext: the block of event mode."""
    parts: list[bytes] = []
    for uid, octets in plain.items():
        parts += [len(uid).to_bytes(2, "big"), uid, len(octets).to_bytes(4, "big"), octets]
    return b"".join(parts)


def split_columns(plain: Octets) -> list[tuple[bytes, memoryview]]:
    """Take such a plaintext apart.

    Raises:
        SealError: It is none.
    """
    view, position = memoryview(plain), 0
    out: dict[bytes, memoryview] = {}
    while position < len(view):
        stop = position + 2 + int.from_bytes(view[position : position + 2], "big")
        uid = bytes(view[position + 2 : stop])
        size = int.from_bytes(view[stop : stop + 4], "big")
        position = stop + 4 + size
        if position > len(view) or not uid or uid in out or len(out) >= MAX_BLOCKS:
            raise SealError("the parcel cannot be opened")
        out[uid] = view[stop + 4 : position]
    return list(out.items())
