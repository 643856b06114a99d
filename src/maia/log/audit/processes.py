"""Which process an intent depends on, and whether it is gone: a machine, a start of it, a number and a beginning.

A number alone is used again; a process is known again by when it began. Of a process of another machine, or of another
space of process numbers, nobody here can tell: it counts as gone after a day.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

LONGEST = timedelta(days=1)
"""How long a process of which nothing can be known here is believed to run."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PARTS = 5


def process_name(pid: int | None = None) -> str:
    """Name a process of this machine, this one by default; empty where the system does not tell."""
    number = os.getpid() if pid is None else pid
    here, began = _here(), _began(number)
    return " ".join((*here, str(number), began)) if all(here) and began else ""


def is_gone(name: str, *, age: timedelta) -> bool:
    """Tell whether a process is no more, of which an intent of this age speaks."""
    parts = tuple(name.split(" "))
    host, boot, space = _here()
    if len(parts) == _PARTS and parts[0] == host and boot:
        if parts[1] != boot:
            return True  # another start of the machine ended all that ran before it
        if parts[2] == space and parts[3].isdigit():
            return _began(int(parts[3])) != parts[4]
    return age > LONGEST


def _here() -> tuple[str, str, str]:
    """Name this machine, its start, and the space of process numbers."""
    try:
        boot, space = _BOOT.read_text("ascii").strip(), str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "", "", ""
    return os.uname().nodename, boot, space


def _began(pid: int) -> str:
    """Tell when a process began, in the ticks of its machine; empty when there is none, or only its remains."""
    try:
        after = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after[0] in "ZX" else after[19]
