"""The contract of handlers on image streams: a frame in, a frame or nothing out, within a budget.

Rules:
    1. A handler sees one frame and gives one frame or none; a reply that is neither is a fault, not a frame.
    2. A budget bounds what a handler may use for one frame: steps, memory, time, and the size of its reply.
    3. A fault costs the frame, never the channel: the frame is a dead letter with a reason and the name of its handler.
    4. After so many faults a handler is taken off. Frames go on without one that its user installed; without one that a
       policy forces, none goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from maia.errors import MalformedError

MAX_SIDE = 16_384
_SCHEMA_FIELDS = (
    ("number", pa.int64()),
    ("height", pa.int32()),
    ("width", pa.int32()),
    ("channels", pa.int32()),
    ("pixels", pa.binary()),
)
FRAME_SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _SCHEMA_FIELDS])
"""Frames as rows: pixels are octets, row by row, channel by channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One image of a stream.

    >>> Frame(number=0, height=1, width=2, channels=3, pixels=b"RGBRGB").pixels
    b'RGBRGB'

    Attributes:
        number: Its place in the stream.
        height: In pixels.
        width: In pixels.
        channels: Octets for each pixel: 1, 3 or 4.
        pixels: The octets.
    """

    number: int
    height: int
    width: int
    channels: int
    pixels: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no image."""
        sides = 0 < self.height <= MAX_SIDE and 0 < self.width <= MAX_SIDE and 0 <= self.number < 1 << 63
        if not sides or self.channels not in (1, 3, 4):
            raise MalformedError("a frame has sides, and 1, 3 or 4 channels", code="FRAME_SHAPE")
        if len(self.pixels) != self.height * self.width * self.channels:
            raise MalformedError("a frame has as many octets as its sides and channels say", code="FRAME_SHAPE")


class HandlerReason(StrEnum):
    """Why a handler gave no frame."""

    STEPS = "HANDLER_STEPS"
    TIME = "HANDLER_TIME"
    CRASHED = "HANDLER_CRASHED"
    REPLY = "HANDLER_REPLY"
    WALLS = "HANDLER_WALLS"
    OFF = "HANDLER_OFF"


class HandlerFaultError(MalformedError):
    """A handler did not do what a handler does; ``reason`` says what."""

    default_code = HandlerReason.CRASHED.value

    def __init__(self, message: str, *, code: str | None = None) -> None:
        """Keep the reason, which is the code."""
        super().__init__(message, code=code)

    @property
    def reason(self) -> HandlerReason:
        """The code, as a word of its kind."""
        return HandlerReason(self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerBudget:
    """What a handler may use.

    Attributes:
        steps: Instructions of WebAssembly for one frame.
        memory: Octets.
        seconds: For one frame in WebAssembly, and for all frames of one batch in a child.
        octets: Of one reply.
        turn: Seconds for all frames that it is given together.
    """

    steps: int = 1_000_000_000
    memory: int = 256 << 20
    seconds: float = 5.0
    octets: int = 64 << 20
    turn: float = math.inf


DEFAULT_HANDLER_BUDGET = HandlerBudget()


class FrameHandler(Protocol):
    """Code in a sandbox. What it makes of a frame depends on that frame alone."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def spent(self) -> float:
        """How many seconds it took for frames up to now, what it takes to start it left out."""
        ...

    def prepare(self) -> None:
        """Get ready to run; of what it is nothing is looked at before, so rights are asked first.

        Raises:
            MalformedError: It is no handler: ``HANDLER_CODE``.
        """
        ...

    def run(self, frames: Sequence[Frame], budget: HandlerBudget) -> list[Frame | None]:
        """Handle frames; one reply for each, nothing where it is dropped.

        Raises:
            HandlerFaultError: It did not, within the budget.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFrame:
    """A frame that a handler did not give back."""

    number: int
    handler: str
    reason: HandlerReason


@dataclass(slots=True)
class HandlerPost:
    """A handler in its place on a channel, how many frames it saw, and how it behaved."""

    handler: FrameHandler
    forced: bool = False
    faults: int = 0
    off: bool = False
    seen: int = 0


class HandlerLine:
    """The handlers on one user's way to a stream, in order; each frame goes through all of them."""

    def __init__(
        self,
        posts: Sequence[HandlerPost],
        *,
        budget: HandlerBudget = DEFAULT_HANDLER_BUDGET,
        strikes: int = 3,
        share: float = math.inf,
    ) -> None:
        """Put handlers up.

        Args:
            posts: In order.
            budget: What each may use.
            strikes: How often one may fail; then it is taken off.
            share: How many seconds what a user installed may take for a frame, on average, where others wait for it.
                It has the seconds of the budget to spare, and is taken off when they are spent.
        """
        self.posts = tuple(posts)
        self._budget = budget
        self._strikes = strikes
        self._share = share
        self._spare = budget.seconds if share < math.inf else math.inf

    def handle(self, frames: Sequence[Frame], dead: Callable[[DeadFrame], None]) -> list[Frame]:
        """Handle a batch of frames.

        A batch in which a handler fails is handled again, frame by frame, so that only the frames at fault are lost.

        Args:
            frames: In the order of the stream.
            dead: Is told of every frame that is lost, and why.

        Returns:
            What comes out, in the same order; each frame comes out, is dropped by a handler, or is dead.
        """
        left = list(frames)
        if left:
            given = self._share * len(left)
            self._spare = min(self._spare + given, max(self._budget.seconds, given))
        for post in self.posts:
            if left and not (post.off and not post.forced):
                post.seen += 0 if post.off else len(left)
                left = self._post(post, left, dead)
        return left

    def _post(self, post: HandlerPost, frames: list[Frame], dead: Callable[[DeadFrame], None]) -> list[Frame]:
        if not post.off:
            try:
                return [frame for frame in self._run(post, frames) if frame is not None]
            except HandlerFaultError:
                pass  # which frames are at fault is found below
        found, faults = list[Frame](), post.faults
        for frame in frames:
            if post.off:
                if post.forced:
                    # SECURITY: without a handler that a policy forces, nothing goes on.
                    dead(DeadFrame(number=frame.number, handler=post.handler.name, reason=HandlerReason.OFF))
                else:
                    found.append(frame)
                continue
            try:
                found += [made for made in self._run(post, [frame]) if made is not None]
            except HandlerFaultError as error:
                post.faults += 1
                # SECURITY: who takes the others' time without a fault is taken off like one who fails.
                post.off = post.faults >= self._strikes or (self._spare <= 0 and not post.forced)
                dead(DeadFrame(number=frame.number, handler=post.handler.name, reason=error.reason))
        if faults == post.faults and not post.forced and self._share < math.inf:
            # SECURITY: what fails on many frames and on none of them has each handled twice, at the others' cost.
            post.faults += 1
            post.off = post.faults >= self._strikes
        return found

    def _run(self, post: HandlerPost, frames: list[Frame]) -> list[Frame | None]:
        """Let a handler run; what is installed runs on the time that its user has left."""
        if post.forced:
            return post.handler.run(frames, self._budget)
        before = post.handler.spent
        try:
            return post.handler.run(frames, replace(self._budget, turn=max(0.0, self._spare)))
        finally:
            self._spare -= post.handler.spent - before


def frames_of(batch: pa.RecordBatch) -> list[Frame]:
    """Read frames from a batch.

    Raises:
        MalformedError: It has other columns, a null, or a row that is no frame.
    """
    if batch.schema.names != FRAME_SCHEMA.names or batch.schema.types != FRAME_SCHEMA.types:
        wanted = ", ".join(f"{name}: {kind}" for name, kind in _SCHEMA_FIELDS)
        raise MalformedError(f"frames have the columns {wanted}", code="FRAME_COLUMNS")
    if any(column.null_count for column in batch.columns):
        raise MalformedError("frames have no nulls", code="FRAME_COLUMNS")
    return [Frame(**row) for row in batch.to_pylist()]


def batch_of(frames: Sequence[Frame]) -> pa.RecordBatch:
    """Write frames as a batch."""
    columns = {name: [getattr(frame, name) for frame in frames] for name in FRAME_SCHEMA.names}
    return pa.RecordBatch.from_pydict(columns, schema=FRAME_SCHEMA)
