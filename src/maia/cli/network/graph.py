"""A network as a picture: lines of text, Mermaid, or SVG. Arrows go the way that events go."""

from __future__ import annotations

import math
from html import escape

from maia.cli.network.standing import DomainStanding, LinkStanding, NetworkStanding
from maia.cli.show.output import printable

_WIDTH, _HEIGHT, _BOX, _TALL = 720, 480, 150, 62
_COLOURS = {"ready": "#2e7d32", "starts": "#ef6c00", "waiting": "#ef6c00", "failed": "#c62828", "down": "#757575"}


def graph_lines(found: NetworkStanding) -> list[str]:
    """Draw it as text: each domain, what it serves, and who copies from it."""
    lines = []
    for domain in found.domains:
        lines.append(f"{domain.name}{_served(domain)}")
        lines += [f"  type {printable(name)}" for name in domain.types]
        lines += [f"  ──▶ {link.target}{_state(link)}" for link in found.links if link.source == domain.name]
    return lines


def graph_mermaid(found: NetworkStanding) -> list[str]:
    """Draw it as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    for domain in found.domains:
        told = "<br/>".join(_plain(text) for text in (domain.name, *_services(domain), *domain.types))
        lines.append(f'    {_id(domain.name)}["{told}"]')
    lines += [f'    {_id(link.source)} -->|"{_label(link)}"| {_id(link.target)}' for link in found.links]
    return lines


def graph_svg(found: NetworkStanding) -> str:
    """Draw it as SVG: domains in a circle, links as arrows."""
    spots = {}
    for number, domain in enumerate(found.domains):
        turn = 2 * math.pi * number / len(found.domains) - math.pi
        spots[domain.name] = (
            _WIDTH / 2 + (_WIDTH / 2 - _BOX / 2 - 10) * math.cos(turn) * (len(found.domains) > 1),
            _HEIGHT / 2 + (_HEIGHT / 2 - _TALL / 2 - 10) * math.sin(turn) * (len(found.domains) > 1),
        )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">',
        "<title>Domains and the links between them</title>",
        (
            '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#37474f"/></marker></defs>'
        ),
    ]
    for link in found.links:
        parts += _arrow(spots[link.source], spots[link.target], link)
    for domain in found.domains:
        parts += _box(spots[domain.name], domain)
    return "\n".join([*parts, "</svg>", ""])


def _arrow(start: tuple[float, float], end: tuple[float, float], link: LinkStanding) -> list[str]:
    (left, top), (right, bottom) = start, end
    across, down = right - left, bottom - top
    length = math.hypot(across, down) or 1.0
    # To the edge of either box, and a little aside, so that links there and back do not lie on each other.
    edge = min(_BOX / 2 / abs(across) if across else 1.0, _TALL / 2 / abs(down) if down else 1.0, 0.45)
    aside = (-down / length * 7, across / length * 7)
    ends = [(left + across * part + aside[0], top + down * part + aside[1]) for part in (edge, 1 - edge)]
    middle = tuple((one + two) / 2 for one, two in zip(*ends, strict=True))
    colour = "#c62828" if link.error or link.parked else "#37474f"
    return [
        (
            f'<line x1="{ends[0][0]:.0f}" y1="{ends[0][1]:.0f}" x2="{ends[1][0]:.0f}" y2="{ends[1][1]:.0f}" '
            f'stroke="{colour}" stroke-width="2" marker-end="url(#end)"/>'
        ),
        (
            f'<text x="{middle[0] + aside[0]:.0f}" y="{middle[1] + aside[1] - 4:.0f}" font-size="12" fill="{colour}" '
            f'text-anchor="middle">{escape(_label(link))}</text>'
        ),
    ]


def _box(spot: tuple[float, float], domain: DomainStanding) -> list[str]:
    left, top = spot[0] - _BOX / 2, spot[1] - _TALL / 2
    worst = next((part.state for part in domain.parts if part.state != "ready"), "ready")
    texts = [(domain.name, 16), (", ".join(_services(domain)) or "serves nothing", 11)]
    texts.append((", ".join(printable(name) for name in domain.types)[:28] or "no types", 11))
    return [
        (
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{_BOX}" height="{_TALL}" rx="8" fill="#fff" '
            f'stroke="{_COLOURS.get(worst, "#757575")}" stroke-width="2"/>'
        ),
        *(
            f'<text x="{spot[0]:.0f}" y="{top + 20 + 16 * row:.0f}" font-size="{size}" text-anchor="middle">'
            f"{escape(text)}</text>"
            for row, (text, size) in enumerate(texts)
        ),
    ]


def _services(domain: DomainStanding) -> list[str]:
    return [part.what for part in domain.parts if part.address]


def _served(domain: DomainStanding) -> str:
    return "".join(f", {part.what} on {part.address}" for part in domain.parts if part.address)


def _state(link: LinkStanding) -> str:
    wrong = "".join(f", {code}" for code in (*([link.error] if link.error else ()), *link.parked))
    return f": {_label(link)}{wrong}"


def _label(link: LinkStanding) -> str:
    return f"{link.state}, {link.events:,} events, lag {link.lag:,}"


def _id(name: str) -> str:
    return f"d_{name.replace('-', '_')}"


def _plain(text: str) -> str:
    """Leave out what means something to Mermaid."""
    return "".join(letter for letter in printable(text) if letter not in '"`#;<>[]{}|')
