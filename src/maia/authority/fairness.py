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
    return _take_turns([(tuple(chain_of(item)), item) for item in items], 0)


def _take_turns(entries: list[tuple[tuple[Hashable, ...], T]], level: int) -> list[T]:
    """Order things that share a chain up to a link: those that end there, then one of each branch, then the next."""
    ended = [item for chain, item in entries if len(chain) == level]
    branches: dict[Hashable, list[tuple[tuple[Hashable, ...], T]]] = {}
    for chain, item in entries:
        if len(chain) > level:
            branches.setdefault(chain[level], []).append((chain, item))
    turns = [
        (turn, number, item)
        for number, branch in enumerate(branches.values())
        for turn, item in enumerate(_take_turns(branch, level + 1) if len(branch) > 1 else [branch[0][1]])
    ]
    return ended + [item for *_, item in sorted(turns, key=lambda entry: entry[:2])]
