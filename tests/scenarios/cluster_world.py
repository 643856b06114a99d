"""A real standalone Spark cluster on this machine, from the pyspark wheel: a master and workers as processes.

A worker sees nothing of the home where the system lets mounts be hidden (`unshare`): an empty folder lies over it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from maia.spark.java import find_java

_READ = 1 << 24


def wait_for(ready: Callable[[], bool]) -> None:
    """Wait until something is so, however slow the machine is; the test's own limit of time ends an endless wait."""
    while not ready():
        time.sleep(0.1)


def hides() -> list[str]:
    """Give the command that lets a process have mounts of its own; nothing where the system refuses."""
    tool = shutil.which("unshare")
    for how in (["-m"], ["-rm"]):
        if tool and subprocess.run([tool, *how, "true"], capture_output=True, check=False).returncode == 0:
            return [tool, *how]
    return []


@dataclass
class Cluster:
    """A master, and workers that are started and killed one by one.

    Attributes:
        folder: Where all of it lies, one folder for each process.
        hidden: The folder that workers do not see.
        secret: What the processes prove to each other.
    """

    folder: Path
    hidden: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    port: int = 0

    @property
    def master(self) -> str:
        """Where the master listens."""
        return f"spark://127.0.0.1:{self.port}"

    def start_master(self) -> None:
        """Start the master and wait until it listens."""
        conf = self.folder / "conf"
        conf.mkdir(mode=0o700, parents=True)
        (conf / "spark-defaults.conf").write_text(
            f"spark.authenticate true\nspark.authenticate.secret {self.secret}\nspark.network.crypto.enabled true\n"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._start("master", ["master.Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"])
        wait_for(lambda: "ALIVE" in self.log("master"))

    def start_worker(self, name: str, key: Path | None) -> None:
        """Start a worker that has a key file, or none, and wait until the master knows it."""
        more = {"SPARK_LOCAL_DIRS": str(self.folder / name / "local"), "SPARK_WORKER_DIR": str(self.folder / name)}
        if key is not None:
            more["MAIA_WORKER_KEY"] = str(key)
        before = self.log("master").count("Registering worker")
        self._start(
            name,
            ["worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", self.master],
            hide=True, **more,
        )  # fmt: skip
        wait_for(lambda: self.log("master").count("Registering worker") > before)

    def stop(self, *names: str) -> None:
        """Kill processes that were started here, and what they started."""
        for name in names or tuple(self.processes):
            process = self.processes.pop(name)
            for number in (*processes_below(process.pid), process.pid):
                kill(number)
            process.wait()

    def log(self, name: str) -> str:
        """Read what a process said."""
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def _start(self, name: str, words: list[str], *, hide: bool = False, **more: str) -> None:
        place = self.folder / name
        place.mkdir(parents=True)
        home = str(Path(pyspark.__file__).parent)
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{words[0]}", *words[1:]]
        if hide and (hiding := hides()):
            empty = self.folder / "empty"
            empty.mkdir(exist_ok=True)
            script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
            command = [*hiding, "sh", "-c", script, "sh", str(empty), str(self.hidden), *command]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MAIA_")}
        java = find_java().home
        if java is not None:
            kept["JAVA_HOME"] = str(java)
        environment = {
            **kept, "SPARK_HOME": home, "SPARK_CONF_DIR": str(self.folder / "conf"), "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1", **more,
        }  # fmt: skip
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=place, env=environment, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )


def children(number: int) -> list[int]:
    """List the processes that one started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                above = int((entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if above == number:
                found.append(int(entry.name))
    return found


def processes_below(number: int) -> list[int]:
    """List the processes below one, the deepest last."""
    found = [number]
    for one in found:
        found += children(one)
    return found[1:]


def kill(number: int) -> None:
    """End a process without asking it."""
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)


def in_memory(number: int, needles: Collection[bytes]) -> set[bytes]:
    """Tell which octets a process holds in memory that it may write to."""
    found: set[bytes] = set()
    longest = max(map(len, needles))
    try:
        maps = Path(f"/proc/{number}/maps").read_text("utf-8", "replace")
        with Path(f"/proc/{number}/mem").open("rb", buffering=0) as memory:
            for start, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", maps, re.MULTILINE):
                place, last = int(start, 16), int(end, 16)
                rest = b""
                while place < last:
                    try:
                        memory.seek(place)
                        data = memory.read(min(_READ, last - place))
                    except (OSError, ValueError, OverflowError):
                        break
                    if not data:
                        break
                    found |= {needle for needle in needles if needle in rest + data}
                    rest, place = data[-longest:], place + len(data)
    except OSError:
        pass
    return found


def in_files(folder: Path, needles: Collection[bytes]) -> set[bytes]:
    """Tell which octets the files below a folder hold."""
    found: set[bytes] = set()
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found |= {needle for needle in needles if needle in data}
    return found
