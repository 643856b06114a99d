"""The locked program of Python handlers does not start where one of its walls cannot be raised."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from maia.domain.handlers import locked_child

SOURCE = b"import os\nos.write(1, b'ran')\ndef handle(number, pixels):\n    return pixels\n"
START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec)
spec.loader.exec_module(child)
{broken}
child.main()
"""
BROKEN = {
    "another machine": "child.platform.machine = lambda: 'aarch64'",
    "a kernel without Landlock": "child._LANDLOCK_CREATE = 9_999",
    "Landlock that does not restrict": "child._LANDLOCK_RESTRICT = 9_999",
    "a kernel without seccomp": "child._SECCOMP = 9_999",
    "a limit that cannot be set": "child.resource.setrlimit = lambda *_: child.os.close(-1)",
    "a limit that is not kept": "child.resource.setrlimit = lambda *_: None",
    "privileges that stay": "child._NO_NEW_PRIVILEGES = 9_999",
}


def started(broken: str) -> bytes:
    """Start the program with something broken, give it code, and return what it says."""
    given = struct.pack("<QII", 64 << 20, 5, len(SOURCE)) + SOURCE
    code = START.replace("{broken}", broken)
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, locked_child.__file__], input=given, capture_output=True, check=False,
        timeout=120, env={"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return ran.stdout


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_without_a_wall_no_code_runs(broken: str) -> None:
    """It says so, and ends; not a letter of the handler was run."""
    assert started(broken) == locked_child.NO_WALLS


def test_behind_its_walls_the_code_runs() -> None:
    """Nothing broken: the walls are up, the code runs, and the program is ready."""
    assert started("") == locked_child.WALLED + b"ran" + locked_child.READY
