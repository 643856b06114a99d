"""Attacks on the sandboxes of handlers: what a stranger's code tries, and what it gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from frames_world import install, picture, read_frames, write_frames

QUIET = {
    # files
    "open a file": "open('/etc/passwd').read()",
    "open a file by the system": "os.open('/etc/hostname', 0) >= 0",
    "write a file": "open('pwned', 'w').write('x')",
    "call open": "call(2, b'/etc/passwd', 0) >= 0",
    "call openat": "call(257, -100, b'/etc/passwd', 0) >= 0",
    "call openat2": "call(437, -100, b'/etc/passwd', bytes(24), 24) >= 0",
    "call creat": "call(85, b'/var/tmp/pwned', 0o600) >= 0",
    "read its environment in /proc": "open('/proc/self/environ', 'rb').read()",
    "read its parent's memory in /proc": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "look whether a file is there": "os.stat('/etc/passwd')",
    "call newfstatat": "call(262, -100, b'/etc/passwd', ctypes.create_string_buffer(256), 0) == 0",
    "call statx": "call(332, -100, b'/etc/passwd', 0, 0xfff, ctypes.create_string_buffer(256)) == 0",
    "list a directory": "os.listdir('/')",
    "make a symbolic link": "os.symlink('/etc/passwd', '/var/tmp/pwned-link') is None",
    "follow a symbolic link": "os.readlink('/proc/self/exe')",
    "make a directory": "os.mkdir('/var/tmp/pwned-folder') is None",
    "remove a file": "os.remove('/etc/hostname') is None",
    "change a mode": "os.chmod('/tmp', 0o777) is None",
    "change the directory": "os.chdir('/') is None",
    "change the root": "os.chroot('/') is None",
    "import a module that is not loaded": "__import__('sqlite3')",
    # network
    "make a socket": "__import__('_socket').socket(2, 1, 0)",
    "call socket": "call(41, 2, 1, 0) >= 0",
    "call socket for a local one": "call(41, 1, 1, 0) >= 0",
    "call socketpair": "call(53, 1, 1, 0, ctypes.create_string_buffer(8)) == 0",
    # processes
    "fork": "os.fork() >= 0",
    "call vfork": "call(58) > 0",
    "call clone": "call(56, 17, 0, 0, 0, 0) > 0",
    "call clone3": "call(435, bytes(88), 88) > 0",
    "run a program": "os.execv('/bin/true', ['true'])",
    "run a shell": "os.system('true') == 0",
    "call execveat": "call(322, -100, b'/bin/true', 0, 0, 0) == 0",
    "start a thread": "_thread.start_new_thread(lambda: None, ()) > 0",
    "ask whether its parent lives": "os.kill(os.getppid(), 0) is None",
    "signal its own group": "os.kill(0, 0) is None",
    "call tgkill": "call(234, os.getppid(), os.getppid(), 0) == 0",
    "open a handle on its parent": "call(434, os.getppid(), 0) >= 0",
    "trace its parent": "call(101, 16, os.getppid(), 0, 0) == 0",
    "read another process's memory": "call(310, os.getppid(), 0, 0, 0, 0, 0) >= 0",
    # walls
    "raise a limit": "resource.setrlimit(resource.RLIMIT_CPU, (999, 999)) is None",
    "call prlimit64": "call(302, 0, 9, 0, ctypes.create_string_buffer(16)) == 0",
    "call prctl": "call(157, 15, b'x', 0, 0, 0) == 0",
    "call seccomp": "call(317, 0, 0, 0) == 0",
    "make a user namespace": "call(272, 0x10000000) == 0",
    "join a namespace": "call(308, 0, 0) == 0",
    "mount": "call(165, b'none', b'/tmp', b'tmpfs', 0, 0) == 0",
    "move its control group": "open('/sys/fs/cgroup/cgroup.procs', 'w').write('0')",
    "change its personality": "call(135, 0x0040000) >= 0",
    # memory and devices outside
    "make a file in memory": "call(319, b'x', 0) >= 0",
    "make an io_uring": "call(425, 1, ctypes.create_string_buffer(120)) >= 0",
    "load a program into the kernel": "call(321, 0, bytes(48), 48) >= 0",
    "watch performance": "call(298, bytes(112), 0, -1, -1, 0) >= 0",
    "handle page faults": "call(323, 0) >= 0",
    "share memory": "call(29, 0x1234, 4096, 0o1600) >= 0",
    "make a queue of messages": "call(68, 0x1234, 0o1600) >= 0",
    "take keys of the kernel": "call(250, 0, -3, 0) >= 0",
    "type on the terminal": "call(16, 0, 0x5412, b'x') == 0",
    "make a pipe": "os.pipe()",
    "copy a descriptor": "os.dup(1) > 2",
    "find a descriptor that it inherited": "any(is_open(number) for number in range(3, 256))",
    "find a secret in its environment": "set(os.environ) - {'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'LC_CTYPE'}",
}
HARNESS = """
import ctypes, os, resource, _thread
system = ctypes.CDLL(None, use_errno=True)

def call(*arguments):
    return system.syscall(*arguments)

def is_open(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False

ATTACKS = {attacks!r}

def handle(number, pixels):
    made = np.zeros((1, len(ATTACKS), 1), np.uint8)
    for place, attack in enumerate(ATTACKS):
        try:
            made[0, place, 0] = 1 if eval(attack) else 0
        except BaseException:
            pass
    return made
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with two small frames."""
    made = tmp_path_factory.mktemp("attacks")
    write_frames(made / "frames.parquet", picture(1, 16, 16), picture(2, 16, 16))
    return made


@pytest.mark.requirement("19.17")
def test_a_python_handler_reaches_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no network, no process, no other limit, nothing of its parent: not one of these succeeds."""
    monkeypatch.setenv("MAIA_SECRET", "of the parent")
    held = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        told = install(folder, "reach.py", HARNESS.replace("{attacks!r}", repr(list(QUIET.values()))))
    finally:
        os.close(held)
    assert told["dead"] == []
    found = read_frames(folder / "out.parquet")[0].reshape(-1)
    assert [name for name, done in zip(QUIET, found, strict=True) if done] == []
    assert len(QUIET) >= 60
    for left in ("/var/tmp/pwned", "/var/tmp/pwned-link", "/var/tmp/pwned-folder"):  # noqa: S108 - where an attack would leave it
        assert not Path(left).exists()


def test_the_attacks_are_attacks() -> None:
    """Without walls many of them succeed, so that a hole would be seen: those that harm nobody are tried here."""
    harmless = (
        "open a file", "call openat", "look whether a file is there", "list a directory", "make a socket",
        "call socket", "make a pipe", "copy a descriptor", "make a file in memory", "ask whether its parent lives",
        "call prctl", "start a thread",
    )  # fmt: skip
    code = HARNESS.replace("{attacks!r}", repr([QUIET[name] for name in harmless]))
    code = f"import numpy as np\n{code}\nprint(handle(0, None).reshape(-1).tolist())"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == str([1] * len(harmless))
