"""Blocks that lie apart from their header: fetched when they are needed, and compared with the digest that was signed.

    octets 0-3      "MPH1"
    octets 4-7      length of the header, big-endian
    then            the header (canonical S-expression, see `header`)
    then            per block: its length (4 octets, big-endian) and its digest (SHA-256)
    last 32+64      the origin's public key and its signature

That is the *head* of a parcel: all but its blocks. The signature covers header and digests, as that of a whole parcel
does, so a block that nobody asks for need not be read.

Rules kept here:

- a block is given to nobody before its octets were found to have the length and the digest of the head;
- whether the digests are the origin's is told by the signature alone (`parcel.verify_parcel`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import overload

from maia.encryption.header import ParcelHeader, parse_header
from maia.errors import DamagedError, EncodingError
from maia.principals import SIGNATURE_LENGTH, PublicKey, public_key

HEAD_MAGIC = b"MPH1"
DIGEST = 32
_KEY = 32
_ENTRY = 4 + DIGEST
_TAIL = _KEY + SIGNATURE_LENGTH
Octets = bytes | memoryview
Fetch = Callable[[int, int], Octets]
"""Gives the octets of a block by its number and length, from wherever they lie; nothing is believed of them."""


class ApartBlocks(Sequence[Octets]):
    """The blocks of a head, each fetched when it is asked for and compared before it is given."""

    def __init__(self, lengths: tuple[int, ...], digests: tuple[bytes, ...], fetch: Fetch) -> None:
        """Fetch nothing yet."""
        self.lengths = lengths
        self.digests = digests
        self._fetch = fetch

    def __len__(self) -> int:
        """Count the blocks."""
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> Octets: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Octets, ...]: ...
    def __getitem__(self, index: int | slice) -> Octets | tuple[Octets, ...]:
        """Fetch a block.

        Raises:
            DamagedError: What lies there is not what was signed.
        """
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        index = range(len(self))[index]
        octets = self._fetch(index, self.lengths[index])
        # SECURITY: what was fetched is what was signed, or nobody gets it.
        if len(octets) != self.lengths[index] or hashlib.sha256(octets).digest() != self.digests[index]:
            raise DamagedError("a block is not what its parcel's head says")
        return octets


def digests_of(blocks: Sequence[Octets]) -> tuple[bytes, ...]:
    """Give the digests of blocks: those of the head, by which each is compared when it is fetched, or their own."""
    return blocks.digests if isinstance(blocks, ApartBlocks) else tuple(hashlib.sha256(one).digest() for one in blocks)


def lengths_of(blocks: Sequence[Octets]) -> tuple[int, ...]:
    """Give the lengths of blocks, without fetching any."""
    return blocks.lengths if isinstance(blocks, ApartBlocks) else tuple(len(one) for one in blocks)


def write_head(header: ParcelHeader, blocks: Sequence[Octets], signer: PublicKey, signature: bytes) -> bytes:
    """Write the head of a parcel."""
    encoded = header.encoded()
    entries = (
        length.to_bytes(4, "big") + digest
        for length, digest in zip(lengths_of(blocks), digests_of(blocks), strict=True)
    )
    return b"".join((HEAD_MAGIC, len(encoded).to_bytes(4, "big"), encoded, *entries, signer.raw, signature))


def read_head(data: Octets, fetch: Fetch) -> tuple[ParcelHeader, ApartBlocks, PublicKey, bytes]:
    """Read a head, believing nothing; ``fetch`` finds its blocks.

    Raises:
        EncodingError: The bytes are no head.
        KeyFormatError: Its key is refused.
    """
    view = memoryview(data).cast("B")
    start = 8 + int.from_bytes(view[4:8], "big")
    end = len(view) - _TAIL
    if view[:4] != HEAD_MAGIC or not 8 < start <= end:
        raise EncodingError("not the head of a parcel", code="PARCEL_SHAPE")
    header = parse_header(bytes(view[8:start]))
    if end - start != _ENTRY * len(header.labels):
        raise EncodingError("a head with another number of blocks than its header", code="PARCEL_SHAPE")
    entries = [bytes(view[at : at + _ENTRY]) for at in range(start, end, _ENTRY)]
    blocks = ApartBlocks(
        tuple(int.from_bytes(entry[:4], "big") for entry in entries), tuple(entry[4:] for entry in entries), fetch
    )
    return header, blocks, public_key(bytes(view[end : end + _KEY])), bytes(view[end + _KEY :])
