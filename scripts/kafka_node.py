"""Run one Kafka node on this machine, for tests and for trying: real, from its published jars, on loopback alone.

    make kafka                        fetch the jars once, run a node until Ctrl-C, and say its address

The jars are named by their coordinates and fetched by `mvn` into ``.build/kafka/jars``; ``MAIA_KAFKA_JARS`` names
another folder that holds them. A node keeps what it is told in a folder of its own, which ends with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COORDINATES = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
FETCHED = ROOT / ".build" / "kafka"
HEAP = "-Xmx384m"
FAST = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
PATIENCE = 120
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.backoff.ms": "1000",
}
LOGGING = """Configuration:
  Appenders:
    Console: {name: STDOUT, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDOUT}]}
"""


def jars() -> Path:
    """Say where the jars are, or would be."""
    named = os.environ.get("MAIA_KAFKA_JARS")
    return Path(named) if named else FETCHED / "jars"


def fetch(mvn: str) -> Path:
    """Fetch the jars by their coordinates; nothing happens when they are there."""
    target = jars()
    if any(target.glob("kafka_*.jar")):
        return target
    FETCHED.mkdir(parents=True, exist_ok=True)
    tag = ("groupId", "artifactId", "version")
    wanted = "".join(
        "<dependency>" + "".join(f"<{a}>{b}</{a}>" for a, b in zip(tag, item.split(":"), strict=True)) + "</dependency>"
        for item in COORDINATES
    )
    (FETCHED / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>maia</groupId><artifactId>node</artifactId>"
        f"<version>1</version><dependencies>{wanted}</dependencies></project>\n", "utf-8",
    )  # fmt: skip
    part = target.with_name(f"{target.name}.part")
    command = [mvn, "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
    subprocess.run(command, cwd=FETCHED, check=True, timeout=900, stdin=subprocess.DEVNULL)
    part.rename(target)
    return target


class KafkaNode:
    """A node that runs until it is stopped, or whoever started it ends."""

    def __init__(self, java: str, where: Path) -> None:
        """Lay it out in a folder of its own; nothing runs yet.

        Args:
            java: The program.
            where: The folder of the jars.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="maia-kafka-"))
        self.port, self._control = free_port(), free_port()
        self._java = [java, *FAST, "-cp", f"{where}/*", f"-Dlog4j2.configurationFile={self.folder}/log4j2.yaml"]
        self._process: subprocess.Popen[bytes] | None = None
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._control}"
        settings = {
            **SETTINGS, "log.dirs": f"{self.folder}/data", "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self._control}",
        }  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(text, "utf-8")
        (self.folder / "log4j2.yaml").write_text(LOGGING, "utf-8")

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, the first time with an empty log, and wait until it listens."""
        properties = self.folder / "server.properties"
        if not (self.folder / "data").exists():
            form = [*self._java, "kafka.tools.StorageTool", "format", "-t", "bWFpYS1tYWlhLW1haWEtbQ", "-c", properties]
            subprocess.run(form, check=True, capture_output=True, timeout=PATIENCE)
        with (self.folder / "output").open("ab") as output:
            command = [*self._java[:1], HEAP, *self._java[1:], "kafka.Kafka", properties]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        said = (self.folder / "output").read_text("utf-8", "replace")[-2000:]
        raise RuntimeError(f"the node did not come up: {said}")

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End its process; what it was told stays."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def stop(self) -> None:
        """End it, and what it kept."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    """Find a port of the loopback address that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> int:
    """Fetch what is missing (``--fetch`` does no more), run a node, and wait for Ctrl-C."""
    java, mvn = shutil.which("java"), shutil.which("mvn")
    if java is None or (mvn is None and not jars().is_dir()):
        print("Kafka's node needs Java, and Maven to fetch its jars (Debian: maven)", file=sys.stderr)
        return 1
    where = fetch(mvn) if mvn is not None else jars()
    if "--fetch" in sys.argv[1:]:
        return 0
    node = KafkaNode(java, where)
    try:
        node.start()
        print(f"a Kafka node listens on {node.address}; Ctrl-C ends it and what it keeps", flush=True)
        print(f"  export KAFKA_SECURITY_PROTOCOL=PLAINTEXT\n  maia domain init met --log kafka://{node.address}/met")
        signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        node.stop()


if __name__ == "__main__":
    sys.exit(main())
