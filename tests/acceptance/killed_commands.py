"""The `maia` command in a process of its own that is killed with -9 at a chosen durable step, or watched at each one.

Run as a program it reads commands, one JSON object a line. Those of the form ``{"home": …, "words": […]}`` are run in a
forked child, those of the form ``{"home": …, "type": …, "as": …}`` are read by the process itself. Each is answered
with one line. A step is a call that makes something durable or visible: fsync, link, rename, unlink, and making a file
or folder. A child that is watched says so before each step and waits for a line; so another process can look at what
lies there then.
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

import maia
from maia.errors import MaiaError
from maia.testing import Command, read_here

CALLS = ("fsync", "link", "replace", "rename", "unlink", "mkdir", "open")
_GO = b"\n"


class Steps:
    """Counts durable steps, and ends the process at one of them or tells of each."""

    def __init__(self, kill: int | None, *, after: bool, watched: bool) -> None:
        self.count, self.kill, self.after, self.watched = 0, kill, after, watched

    def install(self) -> None:
        """Count what this process does from now on."""
        for name in CALLS[:-1]:
            setattr(os, name, self._counted(getattr(os, name)))
        os.open = self._counted(os.open, lambda _path, flags, *_: bool(flags & os.O_CREAT))

    def _counted(self, call: Callable[..., Any], counts: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*args: Any, **named: Any) -> Any:
            if not counts(*args):
                return call(*args, **named)
            self.count += 1
            if self.watched:
                os.write(1, b'{"watched": true}\n')
                os.read(0, len(_GO))
            last = self.count == self.kill
            try:
                if last and not self.after:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args, **named)
            finally:
                if last:
                    os.kill(os.getpid(), signal.SIGKILL)

        return counted


def work(asked: dict[str, Any], report: int) -> int:
    """Run one command in a child, perhaps to its end."""
    steps = Steps(asked["kill"], after=asked["after"], watched=asked["watched"])
    command = Command(Path(asked["home"]))
    steps.install()
    ran = command(*asked["words"], "--json")
    os.write(report, json.dumps({"steps": steps.count, "said": ran.data}).encode())
    return ran.code


def forked(asked: dict[str, Any]) -> dict[str, Any]:
    """Run one command in a child; tell how it ended and what it said."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work(asked, writer)
        finally:
            if code == 70:
                sys.excepthook(*sys.exc_info())
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return {"ended": os.waitstatus_to_exitcode(status), **json.loads(said or "{}")}


def reading(asked: dict[str, Any]) -> dict[str, Any]:
    """Read a type as a client, and nothing but the first column of what it sees."""
    try:
        rows = read_here(maia.open(asked["home"]).home, asked["type"], as_=asked["as"])
    except MaiaError as error:
        return {"error": error.code}
    return {"rows": [str(row[asked["column"]]) for row in rows]}


def serve() -> None:
    """Answer one line after the other."""
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        sys.stdout.write(json.dumps(forked(asked) if "words" in asked else reading(asked)) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Worker:
    """The other end of `serve`."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> Worker:
        """Start the process."""
        command = [sys.executable, str(Path(__file__))]
        return cls(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))

    def run(
        self, home: Path, *words: str, kill: int | None = None, after: bool = False,
        look: Callable[[], None] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a command, perhaps killed at a step; where somebody looks, that happens before each step."""
        asked = {"home": str(home), "words": words, "kill": kill, "after": after, "watched": look is not None}
        answer = self._ask(asked)
        while look is not None and "watched" in answer:
            look()
            answer = self._ask(None)
        return answer

    def read(self, home: Path, type_name: str, *, as_: str, column: str) -> list[str] | str:
        """Read as a client; give what a column shows, or the code of the refusal."""
        answer = self._ask({"home": str(home), "type": type_name, "as": as_, "column": column})
        found: list[str] | str = answer.get("rows", answer.get("error", ""))
        return found

    def _ask(self, asked: dict[str, Any] | None) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n" if asked is None else json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()


if __name__ == "__main__":
    serve()
