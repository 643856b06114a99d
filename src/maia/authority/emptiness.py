"""Is there a string in all of these patterns? Decided by walking the product of their automata.

Globs (prefixes among them) are walked as sets of positions, ``alpha`` ranges as two comparisons in progress. Only
octets that can make a difference are tried: those named by a pattern, their neighbours, and one that nobody names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maia.authority.budget import Budget

STAR = -1  # the token of a glob that stands for any run of octets
MAX_STEPS = 2_000
_FINDING_LETTERS = 12  # steps to find out which octets can make a difference, and one for each four of a glob
_DECIDED = -1  # the string already lies strictly inside this limit

Positions = frozenset[int]


@dataclass(frozen=True, slots=True)
class Edge:
    """One end of an interval of octet strings."""

    octets: bytes
    inclusive: bool


Window = tuple[Edge | None, Edge | None]
_State = tuple[tuple[Positions, ...], tuple[tuple[int, int], ...]]


def disjoint(globs: Sequence[tuple[int, ...]], windows: Sequence[Window], budget: Budget | None = None) -> bool:
    """Tell whether no string matches all globs and lies in all windows; ``False`` when in doubt.

    What a budget does not allow stays in doubt, as what takes more than `MAX_STEPS` does.

    >>> a_then_anything, ends_in_b = (97, STAR), (STAR, 98)
    >>> disjoint([a_then_anything, ends_in_b], [])
    False
    >>> disjoint([a_then_anything], [(Edge(b"b", True), None)])
    True
    """
    if budget is not None:
        finding = _FINDING_LETTERS + sum(map(len, globs)) // 4
        if budget.steps < 2 * finding:
            return False
        budget.spend(finding)
    letters = _letters(globs, windows)
    start: _State = (tuple(_with_empty_stars(glob, {0}) for glob in globs), tuple((0, 0) for _ in windows))
    seen, queue, steps = {start}, [start], 0
    while queue:
        state = queue.pop()
        if _accepts(state, globs, windows):
            return False
        width = sum(map(len, state[0])) + len(windows)  # what reading one letter costs
        if budget is not None:
            price = 4 * len(letters) + 2 * width
            if budget.steps < 2 * price:  # the other half is for what must be known
                return False
            budget.spend(price)
        for letter in letters:
            steps += width
            if steps > MAX_STEPS:
                return False
            following = _advance(state, globs, windows, letter)
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return True


def _with_empty_stars(glob: tuple[int, ...], positions: set[int]) -> Positions:
    """Add the positions reached when stars take nothing."""
    out = set(positions)
    for position in positions:
        while position < len(glob) and glob[position] == STAR:
            position += 1  # noqa: PLW2901 - walking on from here is the point
            out.add(position)
    return frozenset(out)


def _step(glob: tuple[int, ...], positions: Positions, token: int) -> set[int]:
    """Read one token at every position."""
    out = set()
    for position in positions:
        if position < len(glob):
            if glob[position] == STAR:
                out.add(position)
            elif glob[position] == token:
                out.add(position + 1)
    return out


def _letters(globs: Sequence[tuple[int, ...]], windows: Sequence[Window]) -> list[int]:
    named = {token for glob in globs for token in glob if token != STAR}
    for window in windows:
        for bound in window:
            named.update(bound.octets if bound is not None else b"")
    chosen = {near for octet in named for near in (octet - 1, octet, octet + 1) if 0 <= near <= 255}
    fresh = next((octet for octet in range(97, 256) if octet not in named), None)
    return sorted(chosen | {0, 255} | ({fresh} if fresh is not None else set()))


def _accepts(state: _State, globs: Sequence[tuple[int, ...]], windows: Sequence[Window]) -> bool:
    if any(len(glob) not in positions for glob, positions in zip(globs, state[0], strict=True)):
        return False
    for (low, high), (at_low, at_high) in zip(windows, state[1], strict=True):
        if low is not None and at_low != _DECIDED and (at_low < len(low.octets) or not low.inclusive):
            return False
        if high is not None and at_high == len(high.octets) and not high.inclusive:
            return False
    return True


def _advance(state: _State, globs: Sequence[tuple[int, ...]], windows: Sequence[Window], letter: int) -> _State | None:
    moved: list[Positions] = []
    for glob, positions in zip(globs, state[0], strict=True):
        reached = _step(glob, positions, letter)
        if not reached:
            return None
        moved.append(_with_empty_stars(glob, reached))
    compared: list[tuple[int, int]] = []
    for (low, high), (at_low, at_high) in zip(windows, state[1], strict=True):
        next_low, next_high = _advance_low(low, at_low, letter), _advance_high(high, at_high, letter)
        if next_low is None or next_high is None:
            return None
        compared.append((next_low, next_high))
    return tuple(moved), tuple(compared)


def _advance_low(bound: Edge | None, position: int, letter: int) -> int | None:
    if bound is None or position == _DECIDED or position == len(bound.octets) or letter > bound.octets[position]:
        return _DECIDED
    return position + 1 if letter == bound.octets[position] else None


def _advance_high(bound: Edge | None, position: int, letter: int) -> int | None:
    if bound is None or position == _DECIDED:
        return _DECIDED
    if position == len(bound.octets) or letter > bound.octets[position]:
        return None
    return position + 1 if letter == bound.octets[position] else _DECIDED
