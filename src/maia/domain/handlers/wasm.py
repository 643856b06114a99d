"""Handlers in WebAssembly: no imports, a fresh instance for every frame, and walls of steps, memory and time.

Rules kept here:

- a stranger's module is compiled when it is to run and not before, so that rights are asked first, and in a process of
  its own with limits of memory and time (`maia.domain.handlers.compile_child`);
- a module imports nothing, so it reaches nothing but its own memory and the frame that is put there;
- every frame has an instance of its own: nothing is carried from one frame to the next;
- steps (fuel), memory, tables and time (an epoch that a clock ends) are bounded; what passes a bound ends in a trap;
- whatever address and size the reply claims, they are checked against the memory and the budget before it is read.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import wasmtime

from maia.domain.handlers import compile_child
from maia.errors import MaiaError, MalformedError
from maia.kernel import MAX_SIDE, Frame, HandlerBudget, HandlerFaultError

MAX_MODULE = 4 << 20
_RECORD = struct.Struct("<5i")
_REPLY = struct.Struct("<3i")
_PATIENCE = 30.0
"""How long a compiler may take on a machine that is busy; its time of the processor has a limit of its own."""
_HANDLE = wasmtime.FuncType([wasmtime.ValType.i32()], [wasmtime.ValType.i32()])


class WasmHandler:
    """One export of a module, as a handler.

    The module exports ``memory``, ``alloc(octets)`` and the handler itself: from the address of a record ``number,
    height, width, channels, parameter, pixels`` to that of ``height, width, channels, pixels``, or 0.
    """

    def __init__(
        self, name: str, code: bytes, *, export: str = "handle", parameter: int = 0, own: bool = False
    ) -> None:
        """Take a module, as octets or as text; nothing of it is looked at yet.

        Args:
            name: What people call it.
            code: The module.
            export: The export that is the handler.
            parameter: What it is told with every frame.
            own: Whether the module is Maia's, which needs no limits to be compiled.

        Raises:
            MalformedError: It is too large: ``HANDLER_CODE``.
        """
        if len(code) > MAX_MODULE:
            raise MalformedError(f"a module has at most {MAX_MODULE} octets", code="HANDLER_CODE")
        self.name = name
        self._code, self._own = code, own
        self._export = export
        self._parameter = parameter
        self._engine = compile_child.handler_engine()
        self._compiled: wasmtime.Module | None = None
        self.spent = 0.0

    def prepare(self) -> None:
        """Compile the module, once.

        Raises:
            MalformedError: It is none, takes more than the compiler may use, imports something, or does not export a
                handler: ``HANDLER_CODE``.
        """
        self._module()

    def _module(self) -> wasmtime.Module:
        if self._compiled is None:
            try:
                made = self._compile()
            except wasmtime.WasmtimeError as error:
                raise _no_module(self.name, str(error).splitlines()[0]) from error
            if made.imports:
                raise MalformedError(f"`{self.name}` imports something; a handler reaches nothing", code="HANDLER_CODE")
            self._check_exports(made)
            self._compiled = made
        return self._compiled

    def _compile(self) -> wasmtime.Module:
        if self._own:
            return compile_child.compile_module(self._engine, self._code)
        # SECURITY: a few octets can keep a compiler busy for minutes, in memory without end.
        return wasmtime.Module.deserialize(self._engine, _compiled_apart(self.name, self._code))

    def _check_exports(self, module: wasmtime.Module) -> None:
        found = {item.name: item.type for item in module.exports}
        functions = [found.get("alloc"), found.get(self._export)]
        good = all(
            isinstance(kind, wasmtime.FuncType) and _shape(kind) == _shape(_HANDLE) for kind in functions
        ) and isinstance(found.get("memory"), wasmtime.MemoryType)
        if not good:
            raise MalformedError(
                f"`{self.name}` exports no `memory`, `alloc` and `{self._export}` from one number to one",
                code="HANDLER_CODE",
            )

    def run(self, frames: Sequence[Frame], budget: HandlerBudget) -> list[Frame | None]:
        """Handle frames, each in an instance of its own."""
        self.prepare()
        made, ends = list[Frame | None](), self.spent + budget.turn
        for frame in frames:
            if self.spent >= ends:
                raise HandlerFaultError("a handler took too long for all frames", code="HANDLER_TIME")
            started = time.thread_time()  # of the processor, so that a busy machine is not the handler's fault
            try:
                made.append(self._one(frame, budget))
            finally:
                self.spent += time.thread_time() - started
        return made

    def _one(self, frame: Frame, budget: HandlerBudget) -> Frame | None:
        store = wasmtime.Store(self._engine)
        store.set_limits(memory_size=budget.memory, table_elements=10_000, instances=1, tables=4, memories=1)
        store.set_fuel(budget.steps)
        store.set_epoch_deadline(1)
        clock = threading.Timer(budget.seconds, self._engine.increment_epoch)
        clock.daemon = True
        clock.start()
        try:
            return self._called(store, frame, budget)
        except wasmtime.Trap as error:
            raise _fault(error) from error
        except wasmtime.WasmtimeError as error:
            spent = "fuel" in str(error)
            raise HandlerFaultError("a handler failed", code="HANDLER_STEPS" if spent else "HANDLER_CRASHED") from error
        except MaiaError as error:
            if isinstance(error, HandlerFaultError):
                raise
            raise HandlerFaultError("a handler replied with no frame", code="HANDLER_REPLY") from error
        finally:
            clock.cancel()
            clock.join()  # a clock that rings late would end the next frame

    def _called(self, store: wasmtime.Store, frame: Frame, budget: HandlerBudget) -> Frame | None:
        exports: Any = wasmtime.Instance(store, self._module(), []).exports(store)
        memory: wasmtime.Memory = exports["memory"]
        record = _RECORD.pack(
            frame.number & 0x7FFFFFFF, frame.height, frame.width, frame.channels, self._parameter
        )  # fmt: skip
        size = _RECORD.size + len(frame.pixels)
        place = exports["alloc"](store, size) & 0xFFFFFFFF
        if place + size > memory.data_len(store):
            raise HandlerFaultError("a handler gave no room for a frame", code="HANDLER_REPLY")
        memory.write(store, record + frame.pixels, place)
        reply = exports[self._export](store, place) & 0xFFFFFFFF
        if reply == 0:
            return None
        if reply + _REPLY.size > memory.data_len(store):
            raise HandlerFaultError("a handler replied outside of its memory", code="HANDLER_REPLY")
        height, width, channels = _REPLY.unpack(bytes(memory.read(store, reply, reply + _REPLY.size)))
        start, octets = reply + _REPLY.size, reply_octets(height, width, channels, budget)
        if start + octets > memory.data_len(store):
            raise HandlerFaultError("a handler replied outside of its memory", code="HANDLER_REPLY")
        pixels = bytes(memory.read(store, start, start + octets))
        return Frame(number=frame.number, height=height, width=width, channels=channels, pixels=pixels)


def reply_octets(height: int, width: int, channels: int, budget: HandlerBudget) -> int:
    """Say how many octets a reply of these sides has.

    Raises:
        HandlerFaultError: They are none, or more than the budget: ``HANDLER_REPLY``.
    """
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE and channels in (1, 3, 4)):
        raise HandlerFaultError("a handler replied with no frame", code="HANDLER_REPLY")
    octets = height * width * channels
    if octets > budget.octets:
        raise HandlerFaultError("a handler replied with more than its budget", code="HANDLER_REPLY")
    return octets


def _compiled_apart(name: str, code: bytes) -> bytes:
    """Let a process with limits compile a module."""
    try:
        ran = subprocess.run(  # noqa: S603 - our own program, by its path
            [sys.executable, "-I", compile_child.__file__], input=code, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd="/", env={}, start_new_session=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _no_module(name, "the compiler took too long") from error
    kind, made = ran.stdout[:1], ran.stdout[1:]
    if ran.returncode == 0 and kind == compile_child.NO_MODULE:
        raise _no_module(name, made.decode("utf-8", "replace"))
    if ran.returncode != 0 or kind != compile_child.COMPILED or len(ran.stdout) > compile_child.MAX_COMPILED:
        raise _no_module(name, "the compiler may not use what it takes")
    return made


def _no_module(name: str, told: str) -> MalformedError:
    return MalformedError(f"`{name}` is no module: {told}", code="HANDLER_CODE")


def _shape(kind: wasmtime.FuncType) -> tuple[list[str], list[str]]:
    return [str(item) for item in kind.params], [str(item) for item in kind.results]


def _fault(trap: wasmtime.Trap) -> HandlerFaultError:
    match trap.trap_code:
        case wasmtime.TrapCode.INTERRUPT:
            return HandlerFaultError("a handler took too long", code="HANDLER_TIME")
        case wasmtime.TrapCode.OUT_OF_FUEL:
            return HandlerFaultError("a handler took too many steps", code="HANDLER_STEPS")
        case _:
            return HandlerFaultError("a handler ended in a trap", code="HANDLER_CRASHED")
