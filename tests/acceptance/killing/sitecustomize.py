"""Ends the process at the first file that was put into its place, as a kill between two durable steps would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any


def _last(move: Callable[..., Any]) -> Callable[..., Any]:
    def moved(*args: Any, **named: Any) -> None:
        move(*args, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    return moved


if os.environ.get("MAIA_KILL_AT_FIRST"):
    os.replace = _last(os.replace)
    os.link = _last(os.link)
