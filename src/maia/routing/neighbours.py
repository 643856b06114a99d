"""Whom a broker knows, and to whom it hands a message for a place: prefix tables and leaf sets, after Pastry.

The leaf set holds the nearest brokers on either side; the table holds, for each number of leading digits shared with
the own identifier and each next digit, one broker. A message goes to the closest leaf when the leaves span its place,
else to a broker that shares a digit more, else to anybody closer. So it arrives at the numerically closest broker,
after about log16 n hops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from maia.errors import UsageError
from maia.routing.identifiers import BITS, DIGIT_BITS, DIGITS, RING, Identifier, closest, digit, distance, shared_digits

DEFAULT_LEAVES = 16


class Routes(Protocol):
    """The way to a place, one hop at a time."""

    @property
    def own(self) -> Identifier:
        """Whose way."""
        ...

    def next_hop(self, key: int) -> Identifier | None:
        """Who is next on the way to a place; ``None`` when nobody is closer."""
        ...

    def known(self) -> frozenset[Identifier]:
        """Everybody this broker knows."""
        ...

    def watched(self) -> frozenset[Identifier]:
        """Those whose loss must be noticed."""
        ...

    def wants(self, peer: Identifier) -> bool:
        """Whether knowing this broker would be of use."""
        ...

    def add(self, peer: Identifier) -> None:
        """Take a broker in that was heard of."""
        ...

    def remove(self, peer: Identifier) -> None:
        """Forget a broker that was lost."""
        ...


class NeighbourTable:
    """The leaf set and the prefix table of one broker.

    >>> near = NeighbourTable(Identifier(5))
    >>> for other in (1, 9, 30):
    ...     near.add(Identifier(other))
    >>> near.next_hop(8), near.next_hop(4)
    (9, None)
    """

    def __init__(self, own: Identifier, *, leaves: int = DEFAULT_LEAVES) -> None:
        """Know nobody.

        Args:
            own: The broker's own place.
            leaves: How many leaves are kept, half on either side.
        """
        if leaves < 2 or leaves % 2:
            raise UsageError("a leaf set holds an even number of brokers, at least 2")
        self._own = own
        self._half = leaves // 2
        self._after: list[Identifier] = []
        self._before: list[Identifier] = []
        self._table: dict[tuple[int, int], Identifier] = {}

    @classmethod
    def settled(
        cls, own: Identifier, ordered: Sequence[Identifier], choose: Callable[[int], int], *, leaves: int
    ) -> NeighbourTable:
        """Know what a broker of a network at rest knows.

        Args:
            own: One of the brokers.
            ordered: All brokers, in order.
            choose: Picks one of so many, for the cells of the table.
            leaves: How many leaves are kept.
        """
        made = cls(own, leaves=leaves)
        count, place = len(ordered), bisect_left(ordered, own)
        reach = min(made._half, count - 1)
        made._after = [ordered[(place + step) % count] for step in range(1, reach + 1)]
        made._before = [ordered[(place - step) % count] for step in range(1, reach + 1)]
        for row in range(DIGITS):
            width = BITS - DIGIT_BITS * (row + 1)
            base = own >> (width + DIGIT_BITS) << (width + DIGIT_BITS)
            edges = [bisect_left(ordered, base + (column << width)) for column in range((1 << DIGIT_BITS) + 1)]
            for column in range(1 << DIGIT_BITS):
                low, high = edges[column], edges[column + 1]
                if low < high and column != digit(own, row):
                    made._table[row, column] = ordered[low + choose(high - low)]
            if edges[-1] - edges[0] <= 1:
                break
        return made

    @property
    def own(self) -> Identifier:
        """The broker's own place."""
        return self._own

    def known(self) -> frozenset[Identifier]:
        """Everybody this broker knows."""
        return frozenset((*self._after, *self._before, *self._table.values()))

    def watched(self) -> frozenset[Identifier]:
        """The leaves: who keeps track of them keeps the ring closed."""
        return frozenset((*self._after, *self._before))

    def wants(self, peer: Identifier) -> bool:
        """Whether the broker would become a leaf or fill an empty cell."""
        if peer == self._own or peer in self._after or peer in self._before:
            return False
        if self._cell(peer) not in self._table:
            return True
        return any(
            len(side) < self._half or offset(peer) < offset(side[-1])
            for side, offset in ((self._after, self._ahead), (self._before, self._behind))
        )

    def add(self, peer: Identifier) -> None:
        """Take a broker in: as a leaf when it is near, and into its cell when that is empty."""
        if peer == self._own:
            return
        for side, offset in ((self._after, self._ahead), (self._before, self._behind)):
            if peer not in side:
                side.append(peer)
                side.sort(key=offset)
                for dropped in side[self._half :]:
                    self._table.setdefault(self._cell(dropped), dropped)
                del side[self._half :]
        self._table.setdefault(self._cell(peer), peer)

    def remove(self, peer: Identifier) -> None:
        """Forget a broker; the nearest of the others move up."""
        others = self.known() - {peer}
        self._table = {cell: other for cell, other in self._table.items() if other != peer}
        self._after = sorted(others, key=self._ahead)[: self._half]
        self._before = sorted(others, key=self._behind)[: self._half]

    def next_hop(self, key: int) -> Identifier | None:
        """Who is next on the way to a place; ``None`` when nobody known is closer than this broker."""
        if self._spans(key):
            found = closest(key, (self._own, *self._after, *self._before))
            return None if found == self._own else found
        row = shared_digits(self._own, key)
        direct = self._table.get((row, digit(key, row))) if row < DIGITS else None
        if direct is not None:
            return direct
        mine = distance(self._own, key)
        nearer = [peer for peer in self.known() if distance(peer, key) < mine and shared_digits(peer, key) >= row]
        return closest(key, nearer) if nearer else None

    def _spans(self, key: int) -> bool:
        if len(self._after) < self._half or len(self._before) < self._half:
            return True  # there is nobody but the leaves
        ahead = (key - self._own) % RING
        return ahead <= self._ahead(self._after[-1]) or RING - ahead <= self._behind(self._before[-1])

    def _cell(self, peer: Identifier) -> tuple[int, int]:
        row = shared_digits(self._own, peer)
        return row, digit(peer, row)

    def _ahead(self, peer: Identifier) -> int:
        return (peer - self._own) % RING

    def _behind(self, peer: Identifier) -> int:
        return (self._own - peer) % RING


class FixedRoutes:
    """The way to a place over links that somebody laid and that never change: a line, a star, one broker alone.

    A lost neighbour stays the neighbour: what is behind it waits for its return.
    """

    def __init__(self, own: Identifier, links: Iterable[tuple[Identifier, Identifier]]) -> None:
        """Read the links of the whole network, which form a tree.

        Raises:
            UsageError: The links have a circle, or leave somebody out.
        """
        around: dict[Identifier, set[Identifier]] = {own: set()}
        count = 0
        for a, b in links:
            around.setdefault(a, set()).add(b)
            around.setdefault(b, set()).add(a)
            count += 1
        self._own = own
        self._near = frozenset(around[own])
        self._first: dict[Identifier, Identifier] = {}
        fringe = [(peer, peer) for peer in sorted(self._near)]
        while fringe:
            place, first = fringe.pop()
            if place not in self._first and place != own:
                self._first[place] = first
                fringe += [(peer, first) for peer in sorted(around[place]) if peer != own]
        if len(self._first) + 1 != len(around) or count != len(self._first):
            raise UsageError("fixed links form a tree that reaches every broker", code="FIXED_LINKS")

    @property
    def own(self) -> Identifier:
        """The broker's own place."""
        return self._own

    def known(self) -> frozenset[Identifier]:
        """Those at the other end of a link."""
        return self._near

    def watched(self) -> frozenset[Identifier]:
        """Those at the other end of a link."""
        return self._near

    def wants(self, peer: Identifier) -> bool:
        """Nobody who is not linked."""
        del peer
        return False

    def add(self, peer: Identifier) -> None:
        """Nothing: the links stay as they were laid."""

    def remove(self, peer: Identifier) -> None:
        """Nothing: the links stay as they were laid."""

    def next_hop(self, key: int) -> Identifier | None:
        """Who is next on the way to the broker closest to a place."""
        return self._first.get(closest(key, (self._own, *self._first)))
