"""The processes of a network: started together, started again within a bound when they die, and ended together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from maia.cli.network.description import NetworkDescription

WINDOW = 60.0
"""Seconds within which the times are counted that a process was started again."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_PATIENCE = 15.0
_SAID = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPart:
    """One process of a network: for which domain, what it does, and its command line."""

    domain: str
    what: str
    arguments: tuple[str, ...]
    address: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.domain} {self.what}"

    @property
    def stem(self) -> str:
        """How its files begin."""
        return self.name.replace(" ", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """What became of a process: ``started``, ``died``, ``again``, ``failed``, ``ended`` or ``killed``."""

    part: NetworkPart
    what: str
    code: int | None = None
    restarts: int = 0
    said: str = ""


def parts_of(network: NetworkDescription) -> tuple[NetworkPart, ...]:
    """Name the processes that a network takes: each service and each link is one."""
    found = []
    for domain in network.domains:
        tls = () if domain.tls is None else ("--tls-cert", str(domain.tls[0]), "--tls-key", str(domain.tls[1]))
        found += [
            NetworkPart(
                domain=domain.name, what=service, address=domain.address(service),
                arguments=("serve", service, "--home", str(domain.home), "--port", str(port), *tls),
            )
            for service, port in domain.ports
        ]  # fmt: skip
    found += [
        NetworkPart(
            domain=link.target, what=f"link {link.source}",
            arguments=("link", "pull", link.source, "--follow", "--every", str(link.every), "--json",
                       "--home", str(network.domain(link.target).home)),
        )
        for link in network.links
    ]  # fmt: skip
    return tuple(found)


@dataclass(slots=True)
class NetworkChild:
    """One process and its past."""

    part: NetworkPart
    process: subprocess.Popen[bytes] | None = None
    state: str = "down"
    begun: list[float] = field(default_factory=list)
    due: float = 0.0
    restarts: int = 0
    code: int | None = None
    said: str = ""


class Children:
    """All processes of a network, for the one that started them."""

    def __init__(
        self, parts: Iterable[NetworkPart], folder: Path, *, restarts: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Know what is to run; nothing does yet.

        Args:
            parts: What is to run.
            folder: Where output goes; it exists.
            restarts: How often one process is started again within `WINDOW`.
            clock: Gives seconds.
        """
        self.all = [NetworkChild(part) for part in parts]
        self._folder, self._most, self._clock = folder, restarts, clock

    def start(self) -> list[PartChange]:
        """Start all of them."""
        for child in self.all:
            for ending in ("log", "jsonl"):
                (self._folder / f"{child.part.stem}.{ending}").unlink(missing_ok=True)
        return [self._start(child, "started") for child in self.all]

    def look(self) -> list[PartChange]:
        """See who died, and start again what is due; who dies too often stays down."""
        found, now = [], self._clock()
        for child in self.all:
            if child.process is not None and (code := child.process.poll()) is not None:
                found.append(self._bury(child, code, now))
            elif child.state == "waiting" and now >= child.due:
                child.restarts += 1
                found.append(self._start(child, "again"))
        return found

    def end(self) -> list[PartChange]:
        """Tell all to stop, and wait; who does not within its time is killed."""
        for child in self.all:
            if child.process is not None and child.process.stdin is not None:
                with suppress(OSError):
                    child.process.stdin.close()
        found, until = [], time.monotonic() + _PATIENCE
        for child in self.all:
            if child.process is None:
                continue
            what = "ended"
            try:
                code = child.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                what = "killed"
                child.process.send_signal(signal.SIGKILL)
                code = child.process.wait()
            child.process, child.state, child.code = None, "down", code
            found.append(PartChange(part=child.part, what=what, code=code, restarts=child.restarts))
        return found

    def _start(self, child: NetworkChild, what: str) -> PartChange:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        out, err = (os.open(self._folder / f"{child.part.stem}.{ending}", flags, 0o600) for ending in ("jsonl", "log"))
        try:
            # SECURITY: a session of its own, so that Ctrl-C reaches the network's process alone, which ends the others.
            child.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "maia.cli.network.child", *child.part.arguments],
                stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(out)
            os.close(err)
        child.state = "runs"
        child.begun.append(self._clock())
        return PartChange(part=child.part, what=what, restarts=child.restarts)

    def _bury(self, child: NetworkChild, code: int, now: float) -> PartChange:
        if child.process is not None and child.process.stdin is not None:
            child.process.stdin.close()
        child.process, child.code, child.said = None, code, last_words(self._folder / f"{child.part.stem}.log")
        child.begun = [moment for moment in child.begun if now - moment < WINDOW]
        # INVARIANT: a process that cannot run is not started for ever; the others go on.
        if len(child.begun) > self._most:
            child.state = "failed"
            return PartChange(part=child.part, what="failed", code=code, restarts=child.restarts, said=child.said)
        child.state, child.due = "waiting", now + min(_FIRST_WAIT * 2 ** (len(child.begun) - 1), _LONGEST_WAIT)
        return PartChange(part=child.part, what="died", code=code, restarts=child.restarts, said=child.said)


def last_words(file: Path) -> str:
    """Give the last line of an output that says something."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _SAID))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip() and not line.startswith("hint: ")]
    return said[-1] if said else ""
