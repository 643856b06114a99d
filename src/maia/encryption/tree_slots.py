"""Who sits at which leaf of a key tree: the lowest free slot for a newcomer, so that the tree stays low."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush


class Slots:
    """Slots by member. A member keeps its slot until it is freed."""

    __slots__ = ("_bound", "_by_slot", "_free", "_slots", "_top")

    def __init__(self, taken: Iterable[tuple[int, bytes]] = ()) -> None:
        """Start with some slots taken."""
        self._by_slot = dict(taken)
        self._slots = {member: slot for slot, member in self._by_slot.items()}
        self._top = max(self._by_slot, default=-1)
        self._bound = self._top + 1
        # INVARIANT: exactly the slots below the bound that nobody has are in the heap.
        self._free = [slot for slot in range(self._bound) if slot not in self._by_slot]
        heapify(self._free)

    @property
    def height(self) -> int:
        """How many levels a tree over these slots has above its leaves."""
        return max(self._top, 0).bit_length()

    def items(self) -> list[tuple[int, bytes]]:
        """List the taken slots, in order."""
        return sorted(self._by_slot.items())

    def take(self, member: bytes) -> int:
        """Give a newcomer the lowest free slot."""
        if self._free:
            slot = heappop(self._free)
        else:
            slot = self._bound
            self._bound += 1
        self._by_slot[slot], self._slots[member] = member, slot
        self._top = max(self._top, slot)
        return slot

    def free(self, member: bytes) -> int:
        """Take a member's slot back."""
        slot = self._slots.pop(member)
        del self._by_slot[slot]
        heappush(self._free, slot)
        while self._top >= 0 and self._top not in self._by_slot:
            self._top -= 1
        return slot
