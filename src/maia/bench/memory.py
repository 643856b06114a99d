"""How much memory a run takes: the highest resident size of the driver, the JVM and the Python workers.

Every size is measured in a process of its own, with a JVM of its own, so that no run sees what an earlier one left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from maia.bench.arms import drain
from maia.bench.homes import READER, TYPE, WRITER, make_domain, rows_of
from maia.errors import UnavailableError
from maia.events import EncryptionMode
from maia.spark import session

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LIMIT = 600
_STEP = 0.05


@dataclass(frozen=True, slots=True)
class Memory:
    """The highest resident sizes of one run, in MiB.

    Attributes:
        events: How many were published and read.
        driver: Of the process that asks.
        workers: Of the largest Python worker, where Maia's kernel runs.
        jvm: Of Spark, which takes what its settings let it have.
    """

    events: int
    driver: float
    workers: float
    jvm: float


def peak(events: int, attributes: int) -> Memory:
    """Publish and read in a process of its own and return its highest sizes.

    Raises:
        UnavailableError: It did not end well.
    """
    command = [sys.executable, "-m", "maia.bench.memory", str(events), str(attributes)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_LIMIT)  # noqa: S603
    if done.returncode:
        raise UnavailableError("the run that measures memory failed", code="BENCH_FAILED")
    return Memory(**json.loads(done.stdout.splitlines()[-1]))


def run(events: int, attributes: int) -> Memory:
    """Publish and read here, watching the sizes."""
    found = {"driver": 0, "workers": 0, "jvm": 0}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_STEP):
            for pid, name, size in _family():
                kind = "driver" if pid == os.getpid() else "jvm" if name == "java" else "workers"
                found[kind] = max(found[kind], size)

    watcher = threading.Thread(target=watch, daemon=True)
    with TemporaryDirectory(prefix="maia-bench-") as folder:
        domain = make_domain(Path(folder) / "memory", attributes, EncryptionMode.ATTRIBUTE)
        rows = rows_of(events, attributes)
        watcher.start()
        domain.client(WRITER).publish(rows, TYPE)
        drain(domain.client(READER).read(TYPE, where="a0 any"))
        over.set()
        watcher.join()
        session().stop()
    return Memory(events, **{kind: size / (1 << 20) for kind, size in found.items()})


def _family() -> list[tuple[int, str, int]]:
    """List this process and all it started: number, name and resident octets."""
    known: dict[int, tuple[int, str, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                head, rest = (folder / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            fields = rest.split()
            known[int(folder.name)] = (int(fields[1]), head.split("(", 1)[1], int(fields[21]) * _PAGE)
    family = {os.getpid()}
    while more := {pid for pid, (parent, _, _) in known.items() if parent in family} - family:
        family |= more
    return [(pid, known[pid][1], known[pid][2]) for pid in family if pid in known]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(run(int(sys.argv[1]), int(sys.argv[2])))) + "\n")
