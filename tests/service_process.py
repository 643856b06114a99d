"""A service of a home as a real process: `maia serve`, asked over HTTP, stopped or killed by the test."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import httpx2

from echo_service import free_port
from maia.clients import AddressPolicy, Rest


class Process:
    """One running service."""

    def __init__(self, what: str, home: Path, database: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "maia.cli", "serve", what, "--port", str(self.port)]
        self.running = subprocess.Popen([*command, "--home", str(home), "--database", database], stderr=subprocess.PIPE)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def state(self, path: str) -> int:
        """Ask for its health, or 0 while it does not listen."""
        with suppress(httpx2.TransportError):
            return httpx2.get(self.url + path).status_code
        assert self.running.poll() is None, self.running.stderr and self.running.stderr.read().decode()
        return 0

    def wait_for(self, path: str, status: int) -> None:
        """Wait until it answers so; the test's own limit of time ends an endless wait."""
        while self.state(path) != status:
            time.sleep(0.05)

    def end(self, how: signal.Signals) -> int:
        """End it and give its exit code."""
        self.running.send_signal(how)
        return self.running.wait()


@contextmanager
def serving(what: str, home: Path, database: str, *, ready: bool = True) -> Iterator[Process]:
    """Run a service until the block ends, if it still runs then."""
    process = Process(what, home, database)
    try:
        process.wait_for("/healthz", 200)
        if ready:
            process.wait_for("/readyz", 200)
        yield process
    finally:
        if process.running.poll() is None:
            process.end(signal.SIGKILL)
        if process.running.stderr:
            process.running.stderr.close()


LOOPBACK = AddressPolicy(loopback=True)


def restless() -> Rest:
    """Give a rest that is over at each question: tests ask when they want to."""
    ticks: Callable[[], int] = count(0, 60).__next__
    return Rest(monotonic=lambda: float(ticks()))
