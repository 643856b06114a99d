"""Handlers in Python: each batch in a process of its own, behind walls, with a clock that its parent holds.

Rules kept here:

- the code runs in `maia.domain.handlers.locked_child` and nowhere else: a fresh process for every batch, with an empty
  environment and no descriptor but its own pipes; where a wall cannot be raised it does not start;
- nothing that it says is believed: a reply has a length that is checked before it is read, and is a frame or a fault;
- the parent never waits without an end, be it to write or to read; whoever is late is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from maia.domain.handlers import locked_child
from maia.domain.handlers.wasm import reply_octets
from maia.errors import MalformedError
from maia.kernel import Frame, HandlerBudget, HandlerFaultError

MAX_SOURCE = 1 << 20
_PIECE = 1 << 20
_START_SECONDS = 20.0


class PythonHandler:
    """Python code that defines ``handle(number, pixels)``: from an array of octets to one, or to ``None``."""

    def __init__(self, name: str, source: str) -> None:
        """Take the code; nothing of it runs here, and it is not even compiled.

        Raises:
            MalformedError: It is too long: ``HANDLER_CODE``.
        """
        self.name = name
        self.spent = 0.0
        self._source = source.encode("utf-8")
        if len(self._source) > MAX_SOURCE:
            raise MalformedError(f"a handler has at most {MAX_SOURCE} octets", code="HANDLER_CODE")

    def prepare(self) -> None:
        """Do nothing: each batch has a process of its own, and the code is compiled there."""

    def run(self, frames: Sequence[Frame], budget: HandlerBudget) -> list[Frame | None]:
        """Handle a batch of frames in a fresh process."""
        with _started() as (given, taken):
            begins = struct.pack("<QII", budget.memory, int(budget.seconds) + 2, len(self._source))
            line = _Line(given, taken, time.monotonic() + _START_SECONDS)
            line.write(begins + self._source)
            if line.read(1) != locked_child.WALLED:
                raise HandlerFaultError("a wall around a handler cannot be raised here", code="HANDLER_WALLS")
            started = time.monotonic()
            line = _Line(given, taken, started + min(budget.seconds, budget.turn))
            try:
                if line.read(1) != locked_child.READY:
                    raise HandlerFaultError("a handler's code does not start", code="HANDLER_CRASHED")
                return [_asked(line, frame, budget) for frame in frames]
            finally:
                self.spent += time.monotonic() - started


def _asked(line: _Line, frame: Frame, budget: HandlerBudget) -> Frame | None:
    head = locked_child.FRAME_HEAD.pack(frame.number, frame.height, frame.width, frame.channels)
    line.write(head + frame.pixels)
    kind, height, width, channels = locked_child.REPLY_HEAD.unpack(line.read(locked_child.REPLY_HEAD.size))
    if kind == locked_child.DROPPED:
        return None
    if kind == locked_child.FAILED:
        raise HandlerFaultError("a handler raised an error", code="HANDLER_CRASHED")
    if kind != locked_child.REPLIED:
        raise HandlerFaultError("a handler replied with something else", code="HANDLER_REPLY")
    pixels = line.read(reply_octets(height, width, channels, budget))
    return Frame(number=frame.number, height=height, width=width, channels=channels, pixels=pixels)


class _Line:
    """Both ends of a conversation with a process, until a moment."""

    def __init__(self, given: int, taken: int, ends: float) -> None:
        self._given, self._taken, self._ends = given, taken, ends

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            self._wait(self._given, select.POLLOUT)
            try:
                left = left[os.write(self._given, left[:_PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise HandlerFaultError("a handler's process ended", code="HANDLER_CRASHED") from error

    def read(self, octets: int) -> bytes:
        found = bytearray()
        while len(found) < octets:
            self._wait(self._taken, select.POLLIN)
            piece = os.read(self._taken, min(octets - len(found), _PIECE))
            if not piece:
                raise HandlerFaultError("a handler's process ended", code="HANDLER_CRASHED")
            found += piece
        return bytes(found)

    def _wait(self, descriptor: int, event: int) -> None:
        waiting = select.poll()  # not `select`, which knows only the first 1,024 descriptors of a process
        waiting.register(descriptor, event)
        if not waiting.poll(1_000 * max(0.0, self._ends - time.monotonic())):
            raise HandlerFaultError("a handler took too long", code="HANDLER_TIME")


@contextlib.contextmanager
def _started() -> Iterator[tuple[int, int]]:
    """Start the locked program, and end it whatever happens."""
    process = subprocess.Popen(  # noqa: S603 - our own program, by its path
        [sys.executable, "-I", locked_child.__file__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", bufsize=0,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, close_fds=True, start_new_session=True,
    )  # fmt: skip
    if process.stdin is None or process.stdout is None:
        raise HandlerFaultError("a process without pipes", code="HANDLER_CRASHED")
    try:
        given, taken = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(given, False)
        os.set_blocking(taken, False)
        yield given, taken
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
