"""The advanced form: what is read survives the canonical form, and its own."""

from __future__ import annotations

from harness import run

from maia.encoding import encode, format_advanced, parse_advanced, parse_canonical


def target(data: bytes) -> None:
    """Read, write in both forms, and read again."""
    expression = parse_advanced(data.decode("utf-8", "surrogateescape"))
    assert parse_canonical(encode(expression)) == expression
    assert parse_advanced(format_advanced(expression)) == expression


if __name__ == "__main__":
    run(target, "text", "data_hex")
