"""Canonical S-expressions: what is read is written back octet for octet."""

from __future__ import annotations

from harness import run

from maia.encoding import encode, parse_canonical


def target(data: bytes) -> None:
    """Read and write."""
    assert encode(parse_canonical(data)) == data


if __name__ == "__main__":
    run(target, "data_hex", "certificate_hex", "tag", "expression")
