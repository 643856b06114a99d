"""Errors that leave a process of Spark's as one line, with their code, without the frames of two interpreters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from maia.errors import MaiaError


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let an error of Maia's leave a process of Spark's as one line; that process ends with it."""
    try:
        yield
    except MaiaError as error:
        sys.tracebacklimit = 0
        raise error from None  # what it came from says nothing more to whoever reads it
