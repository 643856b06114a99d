"""The program in which a Python handler runs: imports first, then walls, then the handler's code.

It is started by `maia.domain.handlers.child` with an empty environment, imports nothing of Maia, and talks on its
standard input and output only.

Rules kept here:

- every wall is up before a letter of the handler's code is compiled, and a wall that cannot be raised ends the program;
- limits of the kernel on memory, time of the processor, files, processes and cores;
- Landlock: no path at all, no port, no signal to and no socket of anybody outside;
- seccomp: an allow-list of calls that touch memory, clocks and open descriptors; every other call fails, those of
  another architecture kill;
- what is already open are three descriptors: frames come in, frames go out, errors go nowhere.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from typing import Any

FRAME_HEAD = struct.Struct("<q3i")
REPLY_HEAD = struct.Struct("<B3i")
WALLED, READY, NO_WALLS, NO_CODE = b"U", b"R", b"W", b"C"
REPLIED, DROPPED, FAILED = 0, 1, 2
_PIECE = 1 << 20
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT, _SECCOMP = 444, 446, 317
_NO_NEW_PRIVILEGES, _NOT_DUMPABLE, _DIE_WITH_PARENT = 38, 4, 1
_X86_64, _X32_BIT = 0xC000003E, 0x40000000
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000
_TSYNC = 1
# read write close fstat lseek mmap mprotect munmap brk sigaction sigprocmask sigreturn sched_yield mremap madvise
# nanosleep getpid exit gettimeofday getrusage gettid futex sched_getaffinity set_tid_address clock_gettime
# clock_nanosleep exit_group set_robust_list getrandom rseq
_CALLS = (
    0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 35, 39, 60, 96, 98, 186, 202, 204, 218, 228, 230, 231, 273,
    318, 334,
)  # fmt: skip


def main() -> None:
    """Read the limits and the code, raise the walls, and handle frames until there are no more."""
    import numpy as np  # noqa: PLC0415 - before the walls, and in this program alone

    np.ones(4) @ np.ones(4)  # whatever it loads late, it loads now
    memory, seconds, length = struct.unpack("<QII", _read(16))
    source = _read(length).decode("utf-8")
    if not _raise_walls(memory, seconds):
        _write(NO_WALLS)
        return
    _write(WALLED)
    names: dict[str, Any] = {"np": np, "__name__": "handler"}
    try:
        exec(compile(source, "handler", "exec"), names)  # noqa: S102 - what the walls are for
        handle = names["handle"]
    except BaseException:  # noqa: BLE001 - whatever a stranger's code raises
        _write(NO_CODE)
        return
    _write(READY)
    while (head := _read(FRAME_HEAD.size)) != b"":
        number, height, width, channels = FRAME_HEAD.unpack(head)
        pixels = np.frombuffer(_read(height * width * channels), np.uint8).reshape(height, width, channels)
        try:
            made = handle(number, pixels)
            if made is None:
                _write(REPLY_HEAD.pack(DROPPED, 0, 0, 0))
                continue
            shaped = np.ascontiguousarray(made, np.uint8)
            shaped = shaped.reshape(*shaped.shape, 1) if shaped.ndim == 2 else shaped
            _write(REPLY_HEAD.pack(REPLIED, *shaped.shape) + shaped.tobytes())
        except BaseException:  # noqa: BLE001 - as above
            _write(REPLY_HEAD.pack(FAILED, 0, 0, 0))


def _read(octets: int) -> bytes:
    """Read so many octets; nothing at the end."""
    found = bytearray()
    while len(found) < octets:
        piece = os.read(0, min(octets - len(found), _PIECE))
        if not piece:
            return b""
        found += piece
    return bytes(found)


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left[:_PIECE]) :]


def _raise_walls(memory: int, seconds: int) -> bool:
    if platform.machine() != "x86_64":
        return False
    system = ctypes.CDLL(None, use_errno=True)
    prepared = [
        system.prctl(kind, value, 0, 0, 0) == 0
        for kind, value in ((_NO_NEW_PRIVILEGES, 1), (_NOT_DUMPABLE, 0), (_DIE_WITH_PARENT, 9))
    ]
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - one small file
            used = int(file.read().split()[0]) * resource.getpagesize()
        return all(prepared) and _landlock(system) and _limited(used + memory, seconds) and _seccomp(system)
    except (OSError, ValueError):
        return False


def _limited(memory: int, seconds: int) -> bool:
    limits = {
        resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_NOFILE: 3,
        resource.RLIMIT_CORE: 0, resource.RLIMIT_NPROC: 0,
    }  # fmt: skip
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))
    return all(resource.getrlimit(kind) == (value, value) for kind, value in limits.items())


def _landlock(system: ctypes.CDLL) -> bool:
    """Allow no path; where the kernel knows how, no port, and no signal or socket outside of this domain."""
    version = system.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    files = (1 << 13) - 1
    for since, right in ((2, 13), (3, 14), (5, 15)):
        files |= (1 << right) if version >= since else 0
    rules = struct.pack("<QQQ", files, 3, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    handle = system.syscall(_LANDLOCK_CREATE, rules, len(rules), 0)
    if handle < 0:
        return False
    done = bool(system.syscall(_LANDLOCK_RESTRICT, handle, 0) == 0)
    os.close(handle)
    return done


def _seccomp(system: ctypes.CDLL) -> bool:
    """Let the calls of the list through, on all threads."""

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    load, equal, greater, end = 0x20, 0x15, 0x35, 0x06
    steps = [step(load, 4), step(equal, _X86_64, 1, 0), step(end, _KILL), step(load, 0)]
    steps += [step(greater, _X32_BIT, 0, 1), step(end, _KILL)]
    steps += [step(equal, call, len(_CALLS) - place, 0) for place, call in enumerate(_CALLS)]
    steps += [step(end, _REFUSE), step(end, _ALLOW)]
    text = ctypes.create_string_buffer(b"".join(steps), 8 * len(steps))
    program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(text))
    return bool(system.syscall(_SECCOMP, 1, _TSYNC, ctypes.create_string_buffer(program, len(program))) == 0)


if __name__ == "__main__":
    main()
