"""A process that does the work of two brokers over and over, and is killed at a chosen durable step each time.

Run as a program it reads commands, one JSON object a line, does each in a forked child and answers with one line:

    {"root": …, "publications": [[name, [plates…]]…], "kill": step or null, "after": whether the step still happens}

A step is a call that makes something durable or visible: fsync, link, rename, unlink, and making a file or folder. The
answer says how many steps there were, which publications were acknowledged, and how the child ended. The ledger of what
must arrive is kept by the test, in another process.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS, Network, publish_here, sightings

STEPS = ("fsync", "link", "replace", "rename", "unlink", "mkdir", "open")


def work(root: Path, publications: list[tuple[str, list[str]]], acknowledge: Callable[[str], None]) -> None:
    """Publish everything that is given, half of it before and half after a first round of deliveries."""
    from maia.domain import Domain, delivery_job
    from maia.testing import numberplate_network

    network = Network(root, numberplate_network(), root / "ccs", root / "met")
    half = (len(publications) + 1) // 2
    for part in (publications[:half], publications[half:]):
        for name, plates in part:
            publish_here(network, name, [sightings(plates)])
            acknowledge(name)
        delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS).run_here(max_commits=2)
        delivery_job(Domain.open(network.met), MET_SUBSCRIPTIONS).run_here(max_commits=2)


class Steps:
    """Counts durable steps and ends the process, without a chance to clean up, at one of them."""

    def __init__(self, kill: int | None, *, after: bool) -> None:
        self.count = 0
        self.kill = kill
        self.after = after

    def wrap(self, call: Callable[..., Any], *, counts: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
        """Count the calls of one function."""

        @functools.wraps(call)
        def wrapped(*args: Any, **named: Any) -> Any:
            if not counts(*args):
                return call(*args, **named)
            self.count += 1
            if self.count == self.kill and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            number = self.count
            try:
                return call(*args, **named)
            finally:
                if number == self.kill:
                    os.kill(os.getpid(), signal.SIGKILL)

        return wrapped

    def install(self) -> None:
        """Watch this process."""
        for name in STEPS[:-1]:
            setattr(os, name, self.wrap(getattr(os, name)))
        os.open = self.wrap(os.open, counts=lambda _path, flags, *_: bool(flags & os.O_CREAT))


def child(command: dict[str, Any], report: int) -> None:
    """Do one command; what is written to ``report`` before the end is what became known outside."""
    steps = Steps(command["kill"], after=command["after"])
    steps.install()
    work(
        Path(command["root"]),
        [(name, plates) for name, plates in command["publications"]],
        lambda name: os.write(report, f"{name}\n".encode()) and None,
    )
    os.write(report, f"={steps.count}\n".encode())


def serve() -> None:
    """Fork a child for each command."""
    import pyspark_maia  # noqa: F401 - loaded once, before the forks

    for line in sys.stdin:
        command = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            code = 1
            try:
                child(command, writer)
                code = 0
            finally:
                if code:
                    sys.excepthook(*sys.exc_info())
                os._exit(code)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            lines = pipe.read().split()
        _, status = os.waitpid(pid, 0)
        steps = next((int(text[1:]) for text in lines if text.startswith("=")), None)
        acknowledged = [text for text in lines if not text.startswith("=")]
        answer = {"ended": os.waitstatus_to_exitcode(status), "steps": steps, "acknowledged": acknowledged}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Worker:
    """The other end of `serve`."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> Worker:
        """Start the process."""
        command = [sys.executable, str(Path(__file__))]
        return cls(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    def run(
        self, root: Path, publications: list[tuple[str, list[str]]], *, kill: int | None = None, after: bool = False
    ) -> dict[str, Any]:
        """Do the work in a child, perhaps to be killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = {"root": str(root), "publications": publications, "kill": kill, "after": after}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()


def say(text: str) -> None:
    """Tell the test."""
    os.write(1, f"{text}\n".encode())


def once(root: Path, publications: list[tuple[str, list[str]]]) -> int:
    """Do the work in this process; say which error stopped it."""
    from maia.errors import MaiaError

    limit = os.environ.get("KILLING_FILE_SIZE")
    if limit:  # a disk that takes no more: writes past this size fail
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        work(root, publications, say)
    except MaiaError as error:
        say(f"={error.code}")
        return 3
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(once(Path(sys.argv[1]), [(name, plates) for name, plates in json.loads(sys.argv[2])]))
    serve()
