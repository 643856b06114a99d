"""Validity statements: what is read is written back, and the fuzzer never makes a signature."""

from __future__ import annotations

from harness import run, seeds

from maia.authority import parse_statement, verify_statement
from maia.encoding import encode
from maia.errors import VerificationError

SIGNED = set(seeds("statement_hex"))


def target(data: bytes) -> None:
    """Read, compare the body, and verify."""
    statement = parse_statement(data)
    assert encode(statement.body.to_sexp()) in data
    try:
        verify_statement(statement)
    except VerificationError:
        return
    assert data in SIGNED, "a statement nobody signed"


if __name__ == "__main__":
    run(target, "statement_hex")
