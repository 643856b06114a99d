"""Who comes first when there is not room for all: nobody takes a place before others had their turn.

Whoever holds a right to pass on can write any number of chains that end at somebody else, unasked. Where rights are
bounded in number or cost, they are therefore taken in turns: at each link of the chains, from the root down, every
branch comes once before any comes twice. What others gave to a principal is found before the second of a flood.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fairly(items: Iterable[T], chain_of: Callable[[T], Sequence[Hashable]]) -> list[T]:
    """Order things by their chains so that the branches of the tree of chains take turns.

    Args:
        items: The things, in an order of their own.
        chain_of: Tells the chain behind one, from the root.

    >>> flood = [("flood", str(n)) for n in range(4)]
    >>> [chain[-1] for chain in fairly([*flood, ("owner", "mine")], lambda chain: chain)]
    ['0', 'mine', '1', '2', '3']
    """
    turns: dict[tuple[Hashable, ...], dict[Hashable, int]] = {}
    ranked: list[tuple[int, int, int, T]] = []
    for number, item in enumerate(items):
        chain = tuple(chain_of(item))
        turn = 0
        for level, link in enumerate(chain):
            branch = turns.setdefault(chain[:level], {})
            turn = max(turn, branch.setdefault(link, len(branch)))
        ranked.append((turn, len(chain), number, item))
    return [item for *_, item in sorted(ranked, key=lambda entry: entry[:3])]
