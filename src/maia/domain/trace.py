"""The trace of a home: which steps events went through here, one line of JSON each, for whoever looks for a fault.

It is off unless ``maia.toml`` says ``trace = "on"``. Rules kept here:

- a line has the time, the operation, the step and a count; nothing of a value, a filter or a key;
- the lines of one parcel stand together, whatever other processes write;
- the file stops growing at `MAX_TRACE`; `maia trace --clear` begins anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from maia.errors import MalformedError, NotFoundError
from maia.home import PRIVATE_FILE, Home, read_file

TRACE_FILE = "trace"
MAX_TRACE = 16 << 20


@dataclass(slots=True, kw_only=True)
class Trace:
    """Gathers the steps of one parcel and writes them together; it goes to workers as it is.

    Attributes:
        path: The file; nothing is written without one.
        operation: What is done: ``publish``, ``read``, ``deliver``.
        name: The publication, or the segment.
    """

    path: Path | None
    operation: str
    name: str = ""
    _steps: list[tuple[str, int]] = field(default_factory=list)

    def tell(self, step: str, count: int) -> None:
        """Hear of a step."""
        if self.path is not None:
            self._steps.append((step, count))

    def write(self, *, at: datetime) -> None:
        """Write what was heard since the last time."""
        if self.path is None or not self._steps:
            return
        lines = [
            {"at": at.isoformat(), "operation": self.operation, "name": self.name, "step": step, "count": count}
            for step, count in self._steps
        ]
        self._steps.clear()
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        place = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            if os.fstat(place).st_size + len(data) <= MAX_TRACE:
                os.write(place, data)
        finally:
            os.close(place)


def trace_of(home: Home, operation: str, name: str = "") -> Trace:
    """Give the trace of a home, which is silent unless its settings turn it on."""
    path = home.path.resolve() / TRACE_FILE if home.config.trace == "on" else None
    return Trace(path=path, operation=operation, name=name)


def read_trace(home: Path) -> Iterator[dict[str, object]]:
    """Read the lines of a home's trace, oldest first; none when there is no trace.

    Raises:
        MalformedError: It is damaged: ``TRACE``.
    """
    try:
        data = read_file(home / TRACE_FILE, limit=MAX_TRACE)
    except NotFoundError:
        return
    try:
        for line in data.decode().splitlines():
            yield json.loads(line)
    except ValueError as error:
        raise MalformedError("the trace is damaged; `maia trace --clear` begins anew", code="TRACE") from error
