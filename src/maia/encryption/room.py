"""How far a parcel may grow in the memory of its reader: what compression saved is given back within a stated bound.

Rules kept here:

- a parcel holds at most ``FREE_EVENTS`` events, and ``EVENTS_PER_OCTET`` more for each octet of its blocks;
- its opened columns take at most ``FREE_OCTETS``, and ``OCTETS_PER_OCTET`` more for each octet of its blocks. Each
  column is counted before it is unpacked;
- whoever seals keeps to both: what would grow further is not compressed.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.errors import SealError

FREE_EVENTS, EVENTS_PER_OCTET = 1 << 14, 64
FREE_OCTETS, OCTETS_PER_OCTET = 64 << 20, 256


def most_events(octets: int) -> int:
    """Tell how many events blocks of so many octets may hold.

    >>> most_events(1000)
    80384
    """
    return FREE_EVENTS + EVENTS_PER_OCTET * octets


def most_octets(octets: int) -> int:
    """Tell how many octets the opened columns of so many octets of blocks may take."""
    return FREE_OCTETS + OCTETS_PER_OCTET * octets


@dataclass(slots=True)
class Room:
    """What is left for the columns of one parcel.

    >>> room = Room(10)
    >>> room.take(7)
    >>> room.left
    3
    """

    left: int

    def take(self, octets: int) -> None:
        """Count a column, before anything is made for it.

        Raises:
            SealError: There is no room for it.
        """
        # SECURITY: what is small where it lies must not fill the memory of whoever reads it.
        if octets > self.left:
            raise SealError("the block cannot be opened")
        self.left -= octets
