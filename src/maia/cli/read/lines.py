"""Standard input in stretches of whole lines, so that an endless one needs no more memory than a short one."""

from __future__ import annotations

import io
import os
import select
import sys
import time
from collections.abc import Iterator

from maia.errors import MalformedError

MAX_LINES = 50_000
MAX_OCTETS = 32 << 20
_READ = 1 << 20
_PATIENCE = 1.0


def stretches(*, by_time: bool) -> Iterator[list[bytes]]:
    """Give the lines of standard input in stretches, without empty ones.

    Args:
        by_time: Also end a stretch a second after its first line, so that slow input is not held back. Without it the
            stretches of the same input are always the same, which is what makes a repeated publication count once.

    Raises:
        MalformedError: A line has no end within 32 MB.
    """
    rest, lines, size, first = b"", list[bytes](), 0, 0.0
    for data in _chunks(by_time=by_time):
        *whole, rest = (rest + data).split(b"\n")
        if len(rest) > MAX_OCTETS:
            raise MalformedError("a line of standard input has no end", code="INPUT_LINE")
        for line in whole:
            if not line.strip():
                continue
            first = first if lines else time.monotonic()
            lines.append(line)
            size += len(line)
            if len(lines) >= MAX_LINES or size >= MAX_OCTETS:
                yield lines
                lines, size = [], 0
        if by_time and lines and time.monotonic() - first >= _PATIENCE:
            yield lines
            lines, size = [], 0
    if rest.strip():
        lines.append(rest)
    if lines:
        yield lines


def _chunks(*, by_time: bool) -> Iterator[bytes]:
    """Give what comes; an empty chunk when nothing came for a while, so that the clock is looked at."""
    try:
        descriptor = sys.stdin.fileno()
    except (io.UnsupportedOperation, AttributeError, ValueError):  # not a real one: in tests and notebooks
        while data := sys.stdin.buffer.read(_READ):
            yield data
        return
    while True:
        if by_time and not select.select([descriptor], [], [], _PATIENCE)[0]:
            yield b""
            continue
        data = os.read(descriptor, _READ)
        if not data:
            return
        yield data
