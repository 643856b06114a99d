"""How far something is, on a terminal: a bar on standard error with rows and their rate, and a Ctrl-C that waits.

Nothing appears elsewhere: not in a file, not in a pipe, not when somebody asked for quiet.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from maia.spark import Progress

_log = logging.getLogger(__name__)
_EVERY = 0.2
_T = TypeVar("_T")


@dataclass(slots=True)
class Watch:
    """Shows how far Spark is, on a terminal; silent elsewhere."""

    bar: Bar | None = None
    task: int = 0
    text: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    taken: int = 0

    def counting(self, rows: Iterator[_T]) -> Iterator[_T]:
        """Let rows pass that this process takes from Spark, and count them."""
        for row in rows:
            self.taken += 1
            yield row

    def follow(self, look: Callable[[], Progress]) -> None:
        """Show the tasks and rows of whatever runs, as ``look`` tells them."""
        if self.bar is not None and self.thread is None:
            self.thread = threading.Thread(target=self._poll, args=(look,), daemon=True)
            self.thread.start()

    def say(self, text: str, *, rows: int | None = None, rate: float = 0.0) -> None:
        """Show another text, perhaps with rows and how many came a second."""
        self.text = text if rows is None else self.text
        if self.bar is not None:
            more = "" if rows is None else f": {rows:,} rows, {rate:,.0f}/s"
            self.bar.update(self.task, description=f"{text}{more}")  # type: ignore[arg-type]

    def _poll(self, look: Callable[[], Progress]) -> None:
        begun, finished, seen = time.monotonic(), 0, 0
        while not self.ended.wait(_EVERY):
            found = look()
            # A stage that ended is not looked at any more; what it read stays read.
            finished, seen = (finished + seen, found.rows) if found.rows < seen else (finished, found.rows)
            rows = max(finished + seen, self.taken)
            if self.bar is not None and found.tasks:
                self.bar.update(self.task, completed=found.done, total=found.tasks)  # type: ignore[arg-type]
            if rows:
                self.say(self.text, rows=rows, rate=rows / max(time.monotonic() - begun, _EVERY))


@contextmanager
def watching(text: str) -> Iterator[Watch]:
    """Show a bar on standard error while something runs, when that is a terminal and nobody asked for quiet."""
    if not sys.stderr.isatty() or not _log.isEnabledFor(logging.INFO):
        yield Watch()
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    # A stream of its own: standard error is turned away while Java starts.
    with open(os.dup(2), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, console=Console(file=stream, force_terminal=True), transient=True) as bar:
            watch = Watch(bar, bar.add_task(text, total=None), text)
            try:
                yield watch
            finally:
                watch.ended.set()
                if watch.thread is not None:
                    watch.thread.join(timeout=5)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn Ctrl-C into an event while something waits, so that it never breaks a conversation with Java half-way."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
