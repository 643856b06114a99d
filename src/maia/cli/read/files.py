"""Input from files and standard input, within a limit."""

from __future__ import annotations

import sys
from pathlib import Path

from maia.errors import EncodingError, NotFoundError

MAX_INPUT = 64 << 20


def read_source(source: str, *, literal: bool = False) -> bytes:
    """Read a file, or standard input for ``-``; with ``literal`` a text that is no file stands for itself.

    Raises:
        NotFoundError: There is no such file.
        EncodingError: The input is too large.
    """
    if source == "-":
        data = sys.stdin.buffer.read(MAX_INPUT + 1)
    elif literal and not Path(source).exists():
        data = source.encode("utf-8", "surrogateescape")
    else:
        path = Path(source)
        if not path.is_file():
            raise NotFoundError(f"no file `{source}`", code="NO_SUCH_FILE")
        with path.open("rb") as stream:
            data = stream.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise EncodingError(f"`{source}` is larger than {MAX_INPUT} octets", code="TOO_LARGE")
    return data


def write_target(target: Path, data: bytes) -> None:
    """Write signed bytes to a file, or to standard output for ``-``."""
    if str(target) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        target.write_bytes(data)
