"""Frames in Parquet files, for the tests of handlers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from maia.testing import Command

COLUMNS = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("height", "width", "channels")),
        pa.field("pixels", pa.binary(), nullable=False),
    ]
)


def write_frames(path: Path, *images: np.ndarray) -> Path:
    """Write images as the frames 0, 1, … of a stream."""
    shapes = [image.shape if image.ndim == 3 else (*image.shape, 1) for image in images]
    columns = {
        "number": range(len(images)),
        **{name: [shape[place] for shape in shapes] for place, name in enumerate(("height", "width", "channels"))},
        "pixels": [np.ascontiguousarray(image).tobytes() for image in images],
    }
    pq.write_table(pa.Table.from_pydict(columns, schema=COLUMNS), path)
    return path


def read_frames(path: Path) -> dict[int, np.ndarray]:
    """Read the frames of a stream, by number."""
    rows = pq.read_table(path).to_pylist()
    return {
        row["number"]: np.frombuffer(row["pixels"], np.uint8).reshape(row["height"], row["width"], row["channels"])
        for row in rows
    }


def picture(seed: int = 0, height: int = 480, width: int = 640) -> np.ndarray:
    """Draw something with edges, slopes and noise."""
    random = np.random.default_rng(seed)
    image = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
    image[: height // 4] = np.linspace(0, 255, width, dtype=np.uint8)[None, :, None]
    image[height // 3 : height // 2, width // 4 : width // 2] = (255, 0, 128)
    return image


def install(folder: Path, name: str, code: str | bytes, *more: str) -> dict[str, object]:
    """Install code and send the frames through it."""
    path = folder / name
    path.write_bytes(code.encode() if isinstance(code, str) else code)
    return Command(folder).do(
        "handler", "run", str(folder / "frames.parquet"), "--handler", str(path), "--out", str(folder / "out.parquet"),
        "--strikes", "1", *more,
    )  # fmt: skip


def busy_module(*, ifs: int, variables: int) -> bytes:
    """Write a module of one handler whose branches each touch other variables; a compiler takes their product."""

    def number(value: int) -> bytes:
        low, rest = value & 127, value >> 7
        return bytes([low | 128]) + number(rest) if rest else bytes([low])

    def section(kind: int, content: bytes) -> bytes:
        return bytes([kind]) + number(len(content)) + content

    def branch(place: int) -> bytes:
        first, second, third, made = (number(place * factor % variables) for factor in (1, 7, 13, 29))
        return b"\x20" + first + b"\x04\x40\x20" + second + b"\x20" + third + b"\x6a\x21" + made + b"\x0b"

    handle = b"\x01" + number(variables) + b"\x7f" + b"".join(map(branch, range(ifs))) + b"\x41\0\x0b"
    alloc = b"\0\x41\0\x0b"
    exports = b"\x03\x06memory\x02\0\x05alloc\0\0\x06handle\0\x01"
    return b"\0asm\1\0\0\0" + b"".join(
        (
            section(1, b"\x01\x60\x01\x7f\x01\x7f"), section(3, b"\x02\0\0"), section(5, b"\x01\0\x01"),
            section(7, exports),
            section(10, b"\x02" + b"".join(number(len(body)) + body for body in (alloc, handle))),
        )
    )  # fmt: skip
