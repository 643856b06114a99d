"""Handlers that fail: what each kind of failure is called, and that it costs one frame."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames_world import busy_module, install, picture, read_frames, write_frames

from maia.testing import Command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with two small frames."""
    made = tmp_path_factory.mktemp("faults")
    write_frames(made / "frames.parquet", picture(1, 16, 16), picture(2, 16, 16))
    return made


LOUD = {
    "loop for ever": ("def handle(n, p):\n    while True: pass", "HANDLER_TIME"),
    "loop for ever before the first frame": ("while True: pass", "HANDLER_TIME"),
    "sleep": ("import time\ndef handle(n, p):\n    time.sleep(4)", "HANDLER_TIME"),
    "take memory": ("def handle(n, p):\n    x = []\n    while True: x.append(bytearray(1 << 24))", "HANDLER_CRASHED"),
    "take much memory at once": ("def handle(n, p):\n    return np.ones(12_500_000_000)", "HANDLER_CRASHED"),
    "crash": ("import ctypes\ndef handle(n, p):\n    ctypes.string_at(0)", "HANDLER_CRASHED"),
    "abort": ("import os\ndef handle(n, p):\n    os.abort()", "HANDLER_CRASHED"),
    "leave": ("import os\ndef handle(n, p):\n    os._exit(0)", "HANDLER_CRASHED"),
    "raise an exit": ("def handle(n, p):\n    raise SystemExit(0)", "HANDLER_CRASHED"),
    "nest without end": ("def handle(n, p):\n    return handle(n, p)", "HANDLER_CRASHED"),
    "call for another machine": (
        "import ctypes\ndef handle(n, p):\n    ctypes.CDLL(None).syscall(0x40000000 + 39)", "HANDLER_CRASHED",
    ),
    "reply with nonsense": ("import os\ndef handle(n, p):\n    os.write(1, b'\\xff' * 64)", "HANDLER_REPLY"),
    "claim a huge frame": (
        "import os, struct\ndef handle(n, p):\n    os.write(1, struct.pack('<B3i', 0, 16384, 16384, 4))",
        "HANDLER_REPLY",
    ),
    "claim a frame of no size": (
        "import os, struct\ndef handle(n, p):\n    os.write(1, struct.pack('<B3i', 0, -1, -1, 3))", "HANDLER_REPLY",
    ),
    "promise more than it gives": (
        "import os, struct, time\ndef handle(n, p):\n    os.write(1, struct.pack('<B3i', 0, 9, 9, 3)); time.sleep(9)",
        "HANDLER_TIME",
    ),
    "close its output": ("import os\ndef handle(n, p):\n    os.close(1)\n    return p", "HANDLER_CRASHED"),
    "stop reading": ("import os, time\nos.read = lambda *_: time.sleep(9)\ndef handle(n, p): return p", "HANDLER_TIME"),
    "reply with no image": ("def handle(n, p):\n    return 'image'", "HANDLER_CRASHED"),
    "reply with another shape": ("def handle(n, p):\n    return np.zeros((2, 2, 2, 2))", "HANDLER_CRASHED"),
    "reply with five channels": ("def handle(n, p):\n    return np.zeros((2, 2, 5))", "HANDLER_REPLY"),
    "define no handler": ("x = 1", "HANDLER_CRASHED"),
    "be no Python": ("def handle(:", "HANDLER_CRASHED"),
    "nest its text without end": ("x = " + "-" * 200_000 + "1", "HANDLER_CRASHED"),
}  # fmt: skip


@pytest.mark.requirement("19.17")
@pytest.mark.parametrize("name", LOUD)
def test_a_python_handler_that_fails_costs_its_frame(folder: Path, name: str) -> None:
    """Whatever it does, it ends within its budget, with a reason; the next frame goes on without it."""
    code, reason = LOUD[name]
    seconds = "0.3" if reason == "HANDLER_TIME" else "20"  # a busy machine must not turn a crash into a late one
    told = install(folder, "loud.py", code, "--seconds", seconds, "--memory", "64")
    assert [(item["frame"], item["reason"]) for item in told["dead"]] == [(0, reason)]
    assert list(read_frames(folder / "out.parquet")) == [1]


@pytest.mark.requirement("19.17")
def test_nothing_is_carried_from_batch_to_batch(tmp_path: Path) -> None:
    """A handler that counts its frames begins anew with each batch; one in WebAssembly with each frame."""
    write_frames(tmp_path / "frames.parquet", *(picture(0, 2, 2) for _ in range(20)))
    install(tmp_path, "count.py", "seen = []\ndef handle(n, p):\n    seen.append(n)\n    return p * 0 + len(seen)")
    counts = [int(image[0, 0, 0]) for image in read_frames(tmp_path / "out.parquet").values()]
    assert counts == [*range(1, 17), *range(1, 5)]
    install(tmp_path, "count.wat", module(
        "(global.set $n (i32.add (global.get $n) (i32.const 1)))"
        "(i32.store (i32.const 64) (i32.const 1)) (i32.store (i32.const 68) (i32.const 1))"
        "(i32.store (i32.const 72) (i32.const 1)) (i32.store8 (i32.const 76) (global.get $n)) (i32.const 64)"
    ))  # fmt: skip
    assert {int(image[0, 0, 0]) for image in read_frames(tmp_path / "out.parquet").values()} == {1}


def module(body: str, *, before: str = "", pages: str = "2", alloc: str = "(i32.const 1024)") -> str:
    """Write a module around the body of a handler."""
    return (
        f'(module {before} (memory (export "memory") {pages}) (global $n (mut i32) (i32.const 0)) '
        f'(func (export "alloc") (param i32) (result i32) {alloc}) '
        f'(func $handle (export "handle") (param $r i32) (result i32) {body}))'
    )


def replies(height: int, width: int, channels: int, at: int = 64) -> str:
    """Write the body of a handler that claims a reply."""
    words = "".join(
        f"(i32.store (i32.const {at + 4 * place}) (i32.const {value}))"
        for place, value in enumerate((height, width, channels))
    )
    return f"{words} (i32.const {at})"


TRAPS = {
    "loop for ever": (module("(loop $l (br $l)) (unreachable)"), "HANDLER_STEPS"),
    "loop for ever in its allocator": (
        module("(i32.const 0)", alloc="(loop $l (br $l)) (unreachable)"), "HANDLER_STEPS",
    ),
    "nest without end": (module("(call $handle (local.get $r))"), "HANDLER_CRASHED"),
    "divide by zero": (module("(i32.div_u (i32.const 1) (i32.const 0))"), "HANDLER_CRASHED"),
    "read outside of its memory": (module("(i32.load (i32.const -16))"), "HANDLER_CRASHED"),
    "write outside of its memory": (
        module("(i32.store (i32.const 0x7ffffff0) (i32.const 1)) (i32.const 0)"), "HANDLER_CRASHED",
    ),
    "take more memory than it may": (module("(i32.const 0)", pages="65536"), "HANDLER_CRASHED"),
    "grow until it cannot, and believe it": (
        module("(block (loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))) (unreachable)"),
        "HANDLER_CRASHED",
    ),
    "make a huge table": (module("(i32.const 0)", before="(table 100000000 funcref)"), "HANDLER_CRASHED"),
    "give no room for the frame": (module("(i32.const 0)", alloc="(i32.const -4)"), "HANDLER_REPLY"),
    "reply outside of its memory": (module("(i32.const -8)"), "HANDLER_REPLY"),
    "reply at the very end of its memory": (module("(i32.const 131068)"), "HANDLER_REPLY"),
    "claim a huge frame": (module(replies(16_384, 16_384, 4)), "HANDLER_REPLY"),
    "claim more than its memory": (module(replies(1_000, 1_000, 3)), "HANDLER_REPLY"),
    "claim a frame of no size": (module(replies(0, 5, 3)), "HANDLER_REPLY"),
    "claim a negative frame": (module(replies(-2, -2, 3)), "HANDLER_REPLY"),
    "claim two channels": (module(replies(2, 2, 2)), "HANDLER_REPLY"),
    "begin with an endless start": (
        module("(i32.const 0)", before="(func $s (loop $l (br $l))) (start $s)"), "HANDLER_STEPS",
    ),
}  # fmt: skip


@pytest.mark.requirement("19.17")
@pytest.mark.parametrize("name", TRAPS)
def test_a_module_that_fails_costs_its_frame(folder: Path, name: str) -> None:
    """Steps, memory, stack and replies are bounded, and the next frame goes on without it."""
    code, reason = TRAPS[name]
    told = install(folder, "trap.wat", code, "--steps", "5000000", "--memory", "64", "--seconds", "20")
    assert [(item["frame"], item["reason"]) for item in told["dead"]] == [(0, reason)]
    assert list(read_frames(folder / "out.parquet")) == [1]


@pytest.mark.requirement("19.17")
def test_a_clock_stops_what_steps_do_not(folder: Path) -> None:
    """With steps without end, the epoch ends it."""
    code = module("(loop $l (br $l)) (unreachable)")
    told = install(folder, "clock.wat", code, "--steps", str(1 << 60), "--seconds", "0.3")
    assert [item["reason"] for item in told["dead"]] == ["HANDLER_TIME"]


NO_MODULES = {
    "a function of its host": module("(i32.const 0)", before='(import "env" "f" (func))'),
    "the system interface": module(
        "(i32.const 0)",
        before='(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))',
    ),
    "a memory of its host": (
        '(module (import "env" "m" (memory 1)) (export "memory" (memory 0)) (func (export "alloc") (param i32) '
        '(result i32) (i32.const 0)) (func (export "handle") (param i32) (result i32) (i32.const 0)))'
    ),
    "no handler": '(module (memory (export "memory") 1))',
    "a handler of another shape": (
        '(module (memory (export "memory") 1) (func (export "alloc") (param i32) (result i32) (i32.const 0)) '
        '(func (export "handle") (param i64) (result i32) (i32.const 0)))'
    ),
    "two memories": module("(i32.const 0)", before="(memory 1)"),
    "shared memory": module("(i32.const 0)", pages="1 2 shared"),
    "nonsense": "\0asm\1\0\0\0garbage",
    "a text that ends early": "(module (memory",
    "nothing": "",
    "too much": b"\0asm\1\0\0\0" + bytes(4 << 20),
}


@pytest.mark.requirement("19.17")
def test_what_is_no_module_on_its_own_is_refused(folder: Path) -> None:
    """A handler imports nothing, has one memory of its own, and is of the one shape."""
    command, path = Command(folder), folder / "none.wat"
    for name, code in NO_MODULES.items():
        path.write_bytes(code.encode() if isinstance(code, str) else code)
        assert (name, command.refused("handler", "check", str(path))) == (name, (1, "HANDLER_CODE"))


def test_what_keeps_a_compiler_busy_is_no_handler(tmp_path: Path) -> None:
    """A small module that takes minutes and gigabytes to compile is refused within the compiler's own limits."""
    path = tmp_path / "busy.wasm"
    path.write_bytes(busy_module(ifs=6_000, variables=1_600))
    assert path.stat().st_size < 100_000
    assert Command(tmp_path).refused("handler", "check", str(path)) == (1, "HANDLER_CODE")
    path.write_bytes(busy_module(ifs=60, variables=16))
    assert Command(tmp_path).do("handler", "check", str(path))["reply"] == "drops it"
