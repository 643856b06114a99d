"""A key manager that does what it is told over and over, and is killed at a chosen durable step each time.

Run as a program it reads commands, one JSON object a line, does each in a forked child and answers with one line:

    {"root": …, "url": …, "work": [[what, seconds, request, evidence]…], "kill": step or null, "after": bool}

A step is a commit of the database, or a call that makes something in the log durable. The answer says how many steps
there were, what was answered to each piece of work that was finished, and how the child ended. Brokers live in the
test, in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "key_manager"))

from key_manager_world import GROUPS, PLATE, World, moment
from killing import Steps


def work(world: World, what: str, seconds: float, request: str, evidence: list[str]) -> bytes:
    """Do one piece of work."""
    manager, at = world.manager, moment(seconds)
    if what == "join":
        return manager.join(bytes.fromhex(request), [bytes.fromhex(item) for item in evidence], at=at)
    if what == "leave":
        manager.leave(bytes.fromhex(request), at=at)
    elif what == "revoke":
        manager.revoke([bytes.fromhex(request)], at=at)
    elif what == "refresh":
        manager.refresh(PLATE, at=at)
    elif what == "repair":
        for group in GROUPS:
            manager.repair(group, at=at)
    else:
        manager.tick(at=at)
    return b""


def child(command: dict[str, Any], report: int) -> None:
    """Do one command; what is written to ``report`` before the end is what became known outside."""
    steps = Steps(command["kill"], after=command["after"])
    world = World(Path(command["root"]), command["url"], migrate=False)
    steps.install()
    world.engine.dialect.do_commit = steps.wrap(world.engine.dialect.do_commit)
    world.manager.start(at=moment(0))
    for what, seconds, request, evidence in command["work"]:
        answer = work(world, what, seconds, request, evidence)
        os.write(report, f"+{answer.hex()}\n".encode())
    os.write(report, f"={steps.count}\n".encode())


def serve() -> None:
    """Fork a child for each command."""
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
            lines = pipe.read().split("\n")
        _, status = os.waitpid(pid, 0)
        steps = next((int(text[1:]) for text in lines if text.startswith("=")), None)
        answers = [text[1:] for text in lines if text.startswith("+")]
        answer = {"ended": os.waitstatus_to_exitcode(status), "steps": steps, "answers": answers}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class KeyWorker:
    """The other end of `serve`."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> KeyWorker:
        """Start the process."""
        command = [sys.executable, str(Path(__file__))]
        return cls(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    def run(self, root: Path, url: str, todo: list[Any], *, kill: int | None = None, after: bool = False) -> Any:
        """Do the work in a child, perhaps to be killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = {"root": str(root), "url": url, "work": todo, "kill": kill, "after": after}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()


if __name__ == "__main__":
    if len(sys.argv) > 1:  # once, in this very process, to be killed from outside
        child(json.loads(sys.argv[1]), 1)
    else:
        serve()
