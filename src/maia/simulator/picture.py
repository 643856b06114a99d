"""Line charts as SVG: series over one axis, either axis in powers of ten where that reads better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48
_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b4b94", "#d9a404")
_MARK = 3

Series = Mapping[str, Sequence[tuple[float, float]]]


def line_chart(title: str, across: str, up: str, series: Series, *, log_x: bool = False, log_y: bool = False) -> str:
    """Draw series as lines with marks, with a legend; the text is a whole SVG file."""
    points = [point for line in series.values() for point in line]
    horizontal = _Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, powers=log_x)
    vertical = _Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, powers=log_y)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="12" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>',
        (
            f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
            f"{escape(up)}</text>"
        ),
    ]
    for value in horizontal.ticks():
        x = horizontal.at(value)
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:,g}</text>')
    for value in vertical.ticks():
        y = vertical.at(value)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:,g}</text>')
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [(horizontal.at(x), vertical.at(y)) for x, y in line]
        drawn = " ".join(f"{x},{y}" for x, y in places)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="{_MARK}" fill="{colour}"/>' for x, y in places]
        y = TOP + 14 + 18 * number
        parts.append(f'<line x1="{LEFT + 10}" y1="{y}" x2="{LEFT + 34}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 40}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Values along one direction, from one edge to the other."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, powers: bool) -> None:
        self._start, self._end, self._powers = start, end, powers
        low, high = (min(values), max(values)) if values else (1.0, 10.0)
        if powers:
            low, high = floor(log10(max(low, 0.1))), ceil(log10(max(high, 0.1)))
        self._low, self._high = (low, high) if powers else (min(0.0, low), high)
        if self._high <= self._low:
            self._high = self._low + 1

    def at(self, value: float) -> float:
        """Where a value lies, in whole tenths."""
        place = log10(max(value, 0.1)) if self._powers else value
        share = (place - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)

    def ticks(self) -> list[float]:
        """Where lines are drawn: at powers of ten, or five times at round values."""
        if self._powers:
            return [10.0**power for power in range(int(self._low), int(self._high) + 1)]
        step = 10 ** floor(log10((self._high - self._low) / 5 or 1))
        step *= next(factor for factor in (1, 2, 5, 10) if (self._high - self._low) / (step * factor) <= 6)
        return [self._low + step * number for number in range(int((self._high - self._low) / step) + 1)]
