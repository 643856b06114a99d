"""Principals: keys, hashes, names and thresholds are written back as they were read."""

from __future__ import annotations

from harness import run

from maia.encoding import parse_canonical
from maia.principals import parse_principal, parse_subject, principal_id


def target(data: bytes) -> None:
    """Read and write."""
    expression = parse_canonical(data)
    assert parse_subject(expression).to_sexp() == expression
    principal = parse_principal(expression)
    assert principal.to_sexp() == expression
    assert len(principal_id(principal)) == 32


if __name__ == "__main__":
    run(target, "expression", "name", "roots")
