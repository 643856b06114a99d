"""Which tests a run of CI leaves for another: it takes a share, chosen by the commit, so that all come in turn.

Only long tests and pages are left to chance, and only those that show no requirement: what carries the mark of one, or
`always`, is taken every time, and `make test` takes them all.
"""

from __future__ import annotations

import hashlib

import pytest

LONG = ("slow", "spark", "browser", "postgres")
"""The marks of tests that take long, or start what does."""

PAGES = "tests/docs/"


def left_to_chance(item: pytest.Item) -> bool:
    """Tell whether a test may be left for the run of another commit."""
    marks = {mark.name for mark in item.iter_markers()}
    if marks & {"always", "requirement"}:
        return False
    return bool(marks & set(LONG)) or (item.nodeid.startswith(PAGES) and "test_snippets_run[" in item.nodeid)


def drawn(nodeid: str, *, one_in: int, seed: str) -> bool:
    """Tell whether a run takes a test that is left to chance."""
    digest = hashlib.sha256(f"{seed}\n{nodeid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % one_in == 0
