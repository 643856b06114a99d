"""A contact sheet: small images beside each other, written as PNG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_GAP = 6
_PAPER, _CLOSED, _CROSS = 244, (40, 40, 44), (200, 60, 60)
_GREY, _COLOUR = 1, 3


def closed_image(height: int, width: int) -> np.ndarray:
    """Draw what somebody sees who is shown nothing: a dark field, crossed out."""
    made = np.full((height, width, _COLOUR), _CLOSED, dtype=np.uint8)
    for x in range(width):
        y = x * (height - 1) // max(width - 1, 1)
        made[max(y - 1, 0) : y + 2, x] = made[max(height - y - 2, 0) : height - y + 1, x] = _CROSS
    return made


def contact_sheet(rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Put images into a grid, each at its own size in the corner of its field.

    >>> contact_sheet([[np.zeros((2, 3, 1), np.uint8), np.zeros((4, 3, 3), np.uint8)]]).shape
    (16, 24, 3)
    """
    height = max(image.shape[0] for row in rows for image in row)
    width = max(image.shape[1] for row in rows for image in row)
    columns = max(map(len, rows))
    sheet = np.full(
        (len(rows) * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, _COLOUR), _PAPER, dtype=np.uint8
    )
    for down, row in enumerate(rows):
        for across, image in enumerate(row):
            top, left = down * (height + _GAP) + _GAP, across * (width + _GAP) + _GAP
            sheet[top : top + image.shape[0], left : left + image.shape[1]] = image
    return sheet


def write_png(path: Path, image: np.ndarray) -> None:
    """Write an image of one or three channels as PNG, without filters."""
    height, width, channels = image.shape
    kind = {_GREY: 0, _COLOUR: 2}[channels]
    lines = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(image))
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
