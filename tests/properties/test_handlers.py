"""Handlers under fuzzing: modules, replies and the cutting of streams into batches."""

from __future__ import annotations

from functools import cache
from importlib import resources

import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.domain.handlers import open_handler
from maia.domain.handlers.child import PythonHandler
from maia.domain.handlers.wasm import WasmHandler
from maia.errors import MalformedError
from maia.kernel import DeadFrame, Frame, FrameHandler, HandlerBudget, HandlerFaultError, HandlerLine, HandlerPost

SMALL = HandlerBudget(steps=2_000_000, memory=16 << 20, seconds=20.0, octets=1 << 20)
FRAME = Frame(number=3, height=4, width=6, channels=3, pixels=bytes(range(72)))


@cache
def images() -> bytes:
    """Compile Maia's image handlers to octets."""
    text = resources.files("maia.domain.handlers").joinpath("images.wat").read_bytes()
    return bytes(wasmtime.wat2wasm(text))


def outcome(make: object) -> str:
    """Say what became of a frame: a frame, nothing, a fault, or no handler at all; whatever else comes is an error."""
    try:
        handler = make()  # type: ignore[operator]
        (found,) = handler.run([FRAME], SMALL)
    except MalformedError as error:
        return error.code
    except HandlerFaultError as error:
        return error.reason.value
    return "dropped" if found is None else "frame"


OUTCOMES = {
    "frame", "dropped", "HANDLER_CODE", "HANDLER_STEPS", "HANDLER_TIME", "HANDLER_CRASHED", "HANDLER_REPLY",
}  # fmt: skip


@given(st.binary(max_size=200), st.booleans())
def test_nonsense_is_no_module(octets: bytes, headed: bool) -> None:
    """Octets that nobody compiled are refused before anything runs."""
    code = (b"\0asm\1\0\0\0" if headed else b"") + octets
    assert outcome(lambda: WasmHandler("x", code, own=True)) == "HANDLER_CODE"


@settings(max_examples=25)
@given(st.data())
def test_a_damaged_module_is_refused_or_stays_inside(data: st.DataObject) -> None:
    """One octet of a real module changed: no module, a fault within the budget, or some frame; never more."""
    octets = bytearray(images())
    octets[data.draw(st.integers(8, len(octets) - 1))] = data.draw(st.integers(0, 255))
    name = data.draw(st.sampled_from(["greyscale", "half-size", "mirror", "edges", "blur", "frame-rate"]))
    assert outcome(lambda: WasmHandler("x", bytes(octets), export=name, parameter=3, own=True)) in OUTCOMES


@settings(max_examples=8)
@given(st.one_of(st.binary(max_size=64), st.just(b"\0" * 13), st.just(b"\1" * 13)))
def test_a_forged_reply_is_a_frame_or_a_fault(reply: bytes) -> None:
    """Whatever a handler writes to its parent, it is a frame of its own making, nothing, or a fault."""
    source = f"import os\ndef handle(number, pixels):\n    os.write(1, {reply!r})\n    raise SystemExit"
    assert outcome(lambda: PythonHandler("x", source)) in OUTCOMES


class Picky:
    """Fails on some frames, drops some, and numbers what it lets through; only the frame decides."""

    name = "picky"
    spent = 0.0

    def prepare(self) -> None:
        """Need nothing."""

    def run(self, frames: list[Frame], budget: HandlerBudget) -> list[Frame | None]:
        """Handle frames."""
        if any(frame.number % 7 == 5 for frame in frames):
            raise HandlerFaultError("a bad frame", code="HANDLER_CRASHED")
        return [None if frame.number % 3 == 1 else frame for frame in frames]


@given(st.integers(0, 60), st.lists(st.integers(1, 20), max_size=20), st.integers(1, 12), st.booleans())
def test_a_stream_is_handled_alike_however_it_is_cut(count: int, cuts: list[int], strikes: int, forced: bool) -> None:
    """Batches or single frames: the same frames come out, the same are dead, and each is accounted for once."""
    frames = [Frame(number=n, height=1, width=1, channels=1, pixels=b"x") for n in range(count)]
    told = []
    for sizes in ([1] * count, [*cuts, count]):
        dead: list[DeadFrame] = []
        post = HandlerPost(Picky(), forced=forced)
        line, left, out = HandlerLine([post], strikes=strikes), list(frames), []
        for size in sizes:
            out += line.handle(left[:size], dead.append)
            left = left[size:]
        told.append(([frame.number for frame in out], [(item.number, item.reason) for item in dead], post.off))
    assert told[0] == told[1]
    out, dead, _ = told[0]
    assert len({*out, *(number for number, _ in dead)}) == len(out) + len(dead) <= count


@settings(max_examples=15)
@given(st.sampled_from(["greyscale", "mirror", "edges", "blur:left-half", "frame-rate:2"]), st.integers(1, 5))
def test_frames_together_are_as_frames_alone(name: str, count: int) -> None:
    """A handler of Maia makes of each frame the same, in whatever company."""
    handler: FrameHandler = open_handler(name)
    frames = [Frame(number=n, height=3, width=2, channels=3, pixels=bytes([n * 7 % 256] * 18)) for n in range(count)]
    assert handler.run(frames, SMALL) == [handler.run([frame], SMALL)[0] for frame in frames]
