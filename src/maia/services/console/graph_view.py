"""The delegation graph, laid out in layers from the owners on: who gave to whom, as points and lines of a drawing.

Only the places are computed here; the template draws them. Rounds in the graph are cut where they close.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from maia.domain import Delegation

MOST_NODES = 120
"""Principals that are drawn; more are listed only."""
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _EDGE = 184, 46, 96, 26, 16
_LETTERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A principal in the drawing."""

    label: str
    first: str
    second: str
    x: int
    y: int
    group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A certificate in the drawing: its path, and what it says."""

    path: str
    delegation: Delegation


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The whole of it, with its size."""

    width: int
    height: int
    points: tuple[Point, ...]
    lines: tuple[Line, ...]
    box: tuple[int, int] = (_WIDTH, _HEIGHT)


def draw(delegations: Sequence[Delegation]) -> Drawing | None:
    """Lay a graph out; nothing when it is empty, or too large to be read."""
    pairs = [(one.issuer, one.subject) for one in delegations]
    labels = list(dict.fromkeys(label for pair in sorted(pairs) for label in pair))
    if not labels or len(labels) > MOST_NODES:
        return None
    layers = _layers(labels, pairs)
    columns: dict[int, list[str]] = defaultdict(list)
    for label in labels:
        columns[layers[label]].append(label)
    _untangle(columns, pairs)
    tallest = max(len(column) for column in columns.values())
    height = tallest * (_HEIGHT + _DOWN) - _DOWN + 2 * _EDGE
    groups = {one.issuer for one in delegations if one.naming}
    places = {}
    for number, column in columns.items():
        free = height - 2 * _EDGE - (len(column) * (_HEIGHT + _DOWN) - _DOWN)
        for at, label in enumerate(column):
            places[label] = (_EDGE + number * (_WIDTH + _ACROSS), _EDGE + free // 2 + at * (_HEIGHT + _DOWN))
    return Drawing(
        width=2 * _EDGE + (max(columns) + 1) * (_WIDTH + _ACROSS) - _ACROSS, height=height,
        points=tuple(_point(label, places[label], group=label in groups) for label in labels),
        lines=tuple(_line(one, places) for one in delegations),
    )  # fmt: skip


def _layers(labels: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Put everybody behind all from whom something comes to it, lines that close a round left out."""
    ahead: dict[str, set[str]] = defaultdict(set)
    for issuer, subject in pairs:
        if issuer != subject:
            ahead[issuer].add(subject)
    order: list[str] = []
    state: dict[str, int] = {}
    closing: set[tuple[str, str]] = set()
    for root in labels:
        stack = [(root, iter(sorted(ahead[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            label, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                stack.pop()
                state[label] = 2
                order.append(label)
            elif child not in state:
                state[child] = 1
                stack.append((child, iter(sorted(ahead[child]))))
            elif state[child] == 1:
                closing.add((label, child))
    layers = dict.fromkeys(order, 0)
    for label in reversed(order):
        for child in ahead[label]:
            if (label, child) not in closing:
                layers[child] = max(layers[child], layers[label] + 1)
    return layers


def _untangle(columns: Mapping[int, list[str]], pairs: Iterable[tuple[str, str]]) -> None:
    """Order each column by where its neighbours stand, a few times over, so that fewer lines cross."""
    beside: dict[str, set[str]] = defaultdict(set)
    for issuer, subject in pairs:
        beside[issuer].add(subject)
        beside[subject].add(issuer)
    numbers = sorted(columns)
    for turn in range(4):
        for number in numbers if turn % 2 == 0 else reversed(numbers):
            near = columns.get(number - 1 if turn % 2 == 0 else number + 1, [])
            place = {label: at for at, label in enumerate(near)}

            def middle(label: str, place: Mapping[str, int] = place) -> tuple[float, str]:
                found = [place[other] for other in beside[label] if other in place]
                return (sum(found) / len(found) if found else float(len(place)) / 2, label)

            columns[number].sort(key=middle)


def _point(label: str, place: tuple[int, int], *, group: bool) -> Point:
    name, _, rest = label.partition(" (")
    mark = rest.removesuffix(")") if rest.endswith(")") and " of (" not in label else ""
    first = name if mark else label
    second = mark or ("a name for several" if group or ": " in label else "")
    return Point(label=label, first=_cut(first), second=_cut(second), x=place[0], y=place[1], group=group)


def _line(one: Delegation, places: Mapping[str, tuple[int, int]]) -> Line:
    (left, top), (right, bottom) = places[one.issuer], places[one.subject]
    if right > left:
        start, end, bend = (left + _WIDTH, top + _HEIGHT // 2), (right, bottom + _HEIGHT // 2), _ACROSS // 2
        path = f"M{start[0]},{start[1]} C{start[0] + bend},{start[1]} {end[0] - bend},{end[1]} {end[0]},{end[1]}"
    else:  # back, or to itself: around below
        start, end = (left + _WIDTH // 2, top + _HEIGHT), (right + _WIDTH // 2, bottom + _HEIGHT)
        path = f"M{start[0]},{start[1]} C{start[0]},{start[1] + 24} {end[0]},{end[1] + 24} {end[0]},{end[1]}"
    return Line(path=path, delegation=one)


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
