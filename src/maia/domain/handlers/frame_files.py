"""Handling the frames of a Parquet file: batch by batch, within bounds, into another file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import MalformedError, NotFoundError
from maia.kernel import (
    DEFAULT_HANDLER_BUDGET,
    FRAME_SCHEMA,
    DeadFrame,
    HandlerBudget,
    HandlerLine,
    HandlerPost,
    batch_of,
    frames_of,
)

BATCH = 16
MAX_DEAD = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledFrames:
    """What became of the frames of a file.

    Attributes:
        read: How many came in.
        written: How many went out.
        octets_read: Of their pixels.
        octets_written: Of their pixels.
        dead: Those that were lost, with handler and reason; the first `MAX_DEAD`.
        lost: How many were lost.
        off: The handlers that were taken off.
    """

    read: int
    written: int
    octets_read: int
    octets_written: int
    dead: tuple[DeadFrame, ...]
    lost: int
    off: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """How many a handler dropped on purpose."""
        return self.read - self.written - self.lost


def handle_file(
    source: Path,
    target: Path,
    posts: Sequence[HandlerPost],
    *,
    budget: HandlerBudget = DEFAULT_HANDLER_BUDGET,
    strikes: int = 3,
) -> HandledFrames:
    """Send the frames of one file through handlers into another; a fault of a handler costs its frame and no more.

    Args:
        source: A Parquet file of frames.
        target: Is written whole or not at all.
        posts: The handlers, in order.
        budget: What each may use.
        strikes: After how many faults one is taken off.

    Raises:
        NotFoundError: There is no such file: ``NO_FILE``.
        MalformedError: It holds no frames: ``FRAME_COLUMNS``, ``FRAME_SHAPE``; or one of the handlers is none:
            ``HANDLER_CODE``.
    """
    for post in posts:
        post.handler.prepare()
    line = HandlerLine(posts, budget=budget, strikes=strikes)
    dead: list[DeadFrame] = []
    lost = read = written = octets_read = octets_written = 0

    def tell(item: DeadFrame) -> None:
        nonlocal lost
        lost += 1
        if len(dead) < MAX_DEAD:
            dead.append(item)

    made = target.with_name(f".{target.name}.part")
    try:
        with pq.ParquetFile(source) as file, pq.ParquetWriter(made, FRAME_SCHEMA, compression="zstd") as out:
            for batch in file.iter_batches(batch_size=BATCH):
                frames = frames_of(batch)
                kept = line.handle(frames, tell)
                read, written = read + len(frames), written + len(kept)
                octets_read += sum(len(frame.pixels) for frame in frames)
                octets_written += sum(len(frame.pixels) for frame in kept)
                if kept:
                    out.write_batch(batch_of(kept))
        made.replace(target)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{source}`", code="NO_FILE") from error
    except pa.ArrowInvalid as error:
        raise MalformedError(f"`{source}` is no Parquet file", code="FRAME_COLUMNS") from error
    finally:
        made.unlink(missing_ok=True)
    return HandledFrames(
        read=read, written=written, octets_read=octets_read, octets_written=octets_written, dead=tuple(dead), lost=lost,
        off=tuple(post.handler.name for post in posts if post.off),
    )  # fmt: skip
