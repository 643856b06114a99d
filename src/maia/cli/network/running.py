"""What a running network leaves for whoever asks: a lock that says that it runs, and the state of its processes.

NAME.running/lock             held while `maia network up` runs
NAME.running/state.json       who runs, since when, and how often it was started again
NAME.running/DOMAIN.WHAT.log  what a process said; .jsonl what it wrote
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from maia.cli.network.children import NetworkChild
from maia.errors import UsageError
from maia.home import PRIVATE_FILE, make_folder, write_file

_STATE, _LOCK = "state.json", "lock"


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Be the one process that runs a network.

    Raises:
        UsageError: Another does: ``NETWORK_RUNS``.
    """
    make_folder(folder, mode=0o700)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        if not _take(descriptor):
            raise UsageError("this network runs already: `maia network status FILE` shows it", code="NETWORK_RUNS")
        yield
    finally:
        os.close(descriptor)


def runs(folder: Path) -> bool:
    """Tell whether somebody runs the network."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not _take(descriptor)
    finally:
        os.close(descriptor)


def write_state(folder: Path, children: Iterable[NetworkChild], *, since: datetime) -> None:
    """Leave who runs, for whoever asks."""
    parts = {
        child.part.name: {
            "state": child.state, "pid": None if child.process is None else child.process.pid,
            "restarts": child.restarts, "code": child.code, "said": child.said,
        }
        for child in children
    }  # fmt: skip
    raw = json.dumps({"since": since.isoformat(), "parts": parts}).encode()
    write_file(folder / _STATE, raw, mode=PRIVATE_FILE)


def read_state(folder: Path) -> dict[str, Any]:
    """Read who runs; nobody when nobody ever did."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / _STATE).read_bytes())
        if isinstance(found, dict):
            return found
    return {}


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
