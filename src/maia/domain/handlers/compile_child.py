"""The program in which a stranger's WebAssembly is compiled: limits first, then the compiler.

It is started by `maia.domain.handlers.wasm` with an empty environment, imports nothing of Maia, reads a module from its
standard input and writes what the compiler made of it to its standard output.

Rules kept here:

- what a compiler takes of time and memory is not told by the length of a module: the limits of the kernel are set
  before an octet of it is read, and a limit that cannot be set ends the program;
- nothing of the module runs here.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import wasmtime

COMPILED, NO_MODULE = b"C", b"N"
MAX_COMPILED = 64 << 20
_MAX_STACK = 512 << 10
_MEMORY = 384 << 20
_SECONDS = 5


def handler_engine() -> wasmtime.Engine:
    """Make an engine for handlers, the same one in this program and in its parent."""
    config = wasmtime.Config()
    config.consume_fuel = True
    config.epoch_interruption = True
    config.max_wasm_stack = _MAX_STACK
    config.wasm_threads = False
    config.wasm_memory64 = False
    config.wasm_multi_memory = False
    config.parallel_compilation = False
    return wasmtime.Engine(config)


def compile_module(engine: wasmtime.Engine, code: bytes) -> wasmtime.Module:
    """Compile a module, from octets or from text.

    Raises:
        wasmtime.WasmtimeError: It is none.
    """
    return wasmtime.Module(engine, code if code.startswith(b"\0asm") else bytes(wasmtime.wat2wasm(code)))


def main() -> None:
    """Set the limits, read the module, compile it and write it out."""
    engine = handler_engine()
    _limit()
    try:
        made = COMPILED + bytes(compile_module(engine, sys.stdin.buffer.read()).serialize())
    except wasmtime.WasmtimeError as error:
        made = NO_MODULE + str(error).splitlines()[0].encode("utf-8")
    sys.stdout.buffer.write(made[: MAX_COMPILED + 1])


def _limit() -> None:
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_AS: used + _MEMORY, resource.RLIMIT_CPU: _SECONDS, resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }  # fmt: skip
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
