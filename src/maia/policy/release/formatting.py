"""From release rules back to text, in one canonical spelling that parses back to equal rules."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from maia.policy.release.language import parse_releases
from maia.policy.release.rules import ReleaseRule, TextPlace

_SCANNED = re.compile(r"'[^'\r\n]*'|\"[^\"\r\n]*\"|(#[^\r\n]*)|\n")


def format_releases(text: str) -> str:
    r"""Write release rules in the canonical spelling: one clause a line, one empty line between rules.

    Comments are kept: behind a clause that ends on their line, else before what follows. Formatting twice changes
    nothing more, and the rules stay equal.

    >>> print(format_releases("release T to registry keep a,b # agreed in May\n# no names"), end="")
    release T to registry
      keep    a, b  # agreed in May
    # no names

    Raises:
        PolicySyntaxError: The text is none of rules; a text that cannot be read is not touched.
    """
    units = [unit for rule in parse_releases(text) for unit in _units(rule)]
    comments = deque(_comments(text))
    lines: list[str] = []
    for number, (place, line) in enumerate(units):
        indent = line[: len(line) - len(line.lstrip())]
        if lines and not indent:
            lines.append("")
        while comments and comments[0][0] < place.end_line:
            lines.append(f"{indent}{comments.popleft()[1]}")
        lines.append(line)
        last = number + 1 == len(units) or units[number + 1][0].line > place.end_line
        if last and comments and comments[0][0] == place.end_line:
            lines[-1] += f"  {comments.popleft()[1]}"
    lines += [comment for _, comment in comments]
    return "\n".join(lines) + "\n" if lines else ""


def _units(rule: ReleaseRule) -> Iterator[tuple[TextPlace, str]]:
    yield rule.place, rule.head
    for clause in rule.clauses:
        yield clause.place, f"  {clause}"


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Find the comments, each with its line."""
    line = 1
    for match in _SCANNED.finditer(text):
        if match[0] == "\n":
            line += 1
        elif match[1]:
            yield line, match[1].rstrip()
