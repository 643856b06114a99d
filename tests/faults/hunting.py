"""The plaintext hunt: reads a file as everything it might be, and looks for a word in every form it might have."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MAX = 256 << 20


def forms(word: str) -> list[bytes]:
    """Write a word in UTF-8, UTF-16, hex and base64 at each alignment."""
    raw = word.encode()
    found = [raw, word.encode("utf-16-le"), word.encode("utf-16-be"), raw.hex().encode(), raw.hex().upper().encode()]
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + raw)
        core = text[(shift * 8 + 5) // 6 : len(text) - 4]
        found += [core, core.replace(b"+", b"-").replace(b"/", b"_")]
    return found


def times(first: datetime, count: int) -> list[bytes]:
    """Write instants as the integers that columns hold."""
    start = (first - _EPOCH) // timedelta(microseconds=1)
    return [(start + number).to_bytes(8, order) for number in range(count) for order in ("little", "big")]


def readings(path: Path) -> Iterator[bytes]:
    """Give the octets of a file, and what they decode to."""
    data = path.read_bytes()[:_MAX]
    yield data
    for codec in ("gzip", "zstd", "lz4", "bz2"):
        parts: list[bytes] = []
        with (
            contextlib.suppress(OSError, ValueError),
            pa.input_stream(pa.BufferReader(data), compression=codec) as file,
        ):
            while part := file.read(1 << 16):  # what was cut off by a kill is read up to the cut
                parts.append(part)
        if parts:
            yield b"".join(parts)
    if data[:4] == b"PAR1" and data[-4:] == b"PAR1":
        for column in pq.read_table(pa.BufferReader(data)).columns:
            for chunk in column.chunks:
                yield b"\n".join(bytes(buffer) for buffer in leaf_buffers(chunk))
    for text in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", data):
        with contextlib.suppress(ValueError):
            yield base64.b64decode(text[: len(text) // 4 * 4])


def leaf_buffers(array: pa.Array) -> Iterator[pa.Buffer]:
    """Give the value buffers of an array, dictionaries and lists unfolded."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    yield from (buffer for buffer in array.buffers() if buffer is not None)


def hunt(root: Path, needles: list[bytes], *, spare: tuple[str, ...] = ()) -> list[str]:
    """List the files below a folder in which something is found; ``spare`` leaves folders of it out."""
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root).as_posix()
        if not path.is_file() or path.is_symlink() or relative.startswith(spare or "\0"):
            continue
        if any(needle in reading for reading in readings(path) for needle in needles):
            found.append(relative)
    return found


def hunt_processes(group: int, needles: list[bytes]) -> set[str]:
    """Look into the arguments and environments of all processes of a group and their children."""
    hits = set()
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(folder.name)] = (int(fields[1]), int(fields[2]))
    ours = {pid for pid, (_, leader) in parents.items() if leader == group}
    for _ in range(8):
        ours |= {pid for pid, (parent, _) in parents.items() if parent in ours}
    for pid in ours:
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                data = (Path("/proc") / str(pid) / name).read_bytes()
                if any(needle in data for needle in needles):
                    hits.add(f"{pid} {name}")
    return hits


def hunt_memory(pid: int, needles: list[bytes]) -> int:
    """Count what is found in the memory of a living process: all that a core of it would hold.

    Raises:
        PermissionError: The system does not let us look.
    """
    hits = 0
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in maps:
            span, mode, *_ = line.split()
            start, end = (int(part, 16) for part in span.split("-"))
            if not mode.startswith(
                "rw"
            ):  # what is not written to is a file, and files are hunted through by themselves
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                data = memory.read(end - start)
                hits += sum(data.count(needle) for needle in needles)
    return hits
