"""Loaded by every Python of a Spark job under test: kills the job at its n-th durable step, wherever that happens.

Driver, sink and workers share one counter, a file that grows by an octet a step. The step that reaches ``MAIA_KILL_AT``
ends the driver's process group and itself. Steps of Python outside the folder under test are not counted.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from typing import Any

COUNTER = os.environ.get("MAIA_STEPS")
KILL_AT = int(os.environ.get("MAIA_KILL_AT", "0"))
ROOT = os.environ.get("MAIA_STEPS_ROOT", "")


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    """Count the calls of one function that touch the folder under test."""

    @functools.wraps(call)
    def wrapped(*args: Any, **named: Any) -> Any:
        path = os.readlink(f"/proc/self/fd/{args[0]}") if isinstance(args[0], int) else os.fspath(args[-1])  # noqa: PTH115
        result = call(*args, **named)
        if isinstance(path, str) and path.startswith(ROOT):
            step()
        return result

    return wrapped


def step() -> None:
    """Take a step, perhaps the last."""
    descriptor = os.open(str(COUNTER), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, b".")
    reached = os.fstat(descriptor).st_size
    os.close(descriptor)
    if reached == KILL_AT:
        os.killpg(int(os.environ["MAIA_KILL_GROUP"]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


if COUNTER and ROOT:
    for name in ("fsync", "link", "replace"):
        setattr(os, name, counted(getattr(os, name)))
