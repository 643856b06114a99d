"""Tags: a tag keeps its meaning when written, and an intersection admits only what both tags admit."""

from __future__ import annotations

from harness import run

from maia.authority import intersect, is_nothing, parse_tag, permits
from maia.encoding import parse_canonical


def target(data: bytes) -> None:
    """Read a list of two tags and a request."""
    expression = parse_canonical(data)
    tag = parse_tag(expression)
    assert parse_tag(tag.to_sexp()) == tag
    if isinstance(expression, tuple) and len(expression) == 3:
        first, second, request = expression
        a, b = parse_tag(first), parse_tag(second)
        both = intersect(a, b)
        assert not permits(both, request) or (permits(a, request) and permits(b, request))
        assert not (is_nothing(both) and permits(both, request))


if __name__ == "__main__":
    run(target, "tag", "a", "b", "request")
