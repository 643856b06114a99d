"""The homes of the number plates with a log in a real Kafka, and a publisher that is killed or stopped on its way.

Run as a program it publishes one plate, ``kafka_world.py publish HOME PLATE``, or creates objects in the home's log,
``… create HOME NAME,…``, when somebody has put ``go`` there. With ``NAME WHEN SIGNAL`` behind, it sends itself a signal
when the object whose name ends with NAME is about to be written: WHEN its parts are there and nothing names them
(``act``), its transaction is open (``commit``), or it is committed and nobody knows (``answer``).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import confluent_kafka
from processes import environment

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME, Command, NumberplateHomes, numberplate_homes, publish_here, read_here


class World:
    """The homes; their log lies in Kafka, and nothing of it on this machine's disk but the node's."""

    def __init__(self, root: Path, kafka: Any) -> None:
        """Make them."""
        self.kafka, self.place = kafka, kafka.new_log()
        self.prefix = self.place.rpartition("/")[2]
        self.homes: NumberplateHomes = numberplate_homes(root, since=timedelta(minutes=50))
        shutil.rmtree(root / "log", ignore_errors=True)
        for home in (self.homes.ccs, self.homes.met):
            settings = home / "maia.toml"
            text = settings.read_text("utf-8")
            settings.write_text(text.replace('log = "../log"', f'log = "{self.place}"'), "utf-8")
        self.root, self.command = root, Command(self.homes.ccs)
        self.ago, self.at = timedelta(0), datetime.now(UTC)

    def publish(self, *plates: str) -> int:
        """Publish as a camera of the congestion charge service."""
        self.at = max(self.at + timedelta(milliseconds=1), datetime.now(UTC) - self.ago)
        return publish(self.homes.ccs, *plates, at=self.at)

    def read(self, *, lenient: bool = False) -> list[str]:
        """Read as the billing office."""
        home = maia.open(self.homes.ccs).home
        rows = read_here(home, TYPE_NAME, as_="BO", attributes=["numberplate"], lenient=lenient)
        return [str(row["numberplate"]) for row in rows]

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """Read both topics as any consumer does."""
        return [record for kind in ("names", "data") for record in self.kafka.records(f"{self.prefix}.{kind}")]

    def start(self, plate: str, *stop: str) -> subprocess.Popen[str]:
        """Publish in a process of its own."""
        return start("publish", self.homes.ccs, plate, *stop)

    @property
    def store(self) -> Any:
        """The store of the log, opened anew."""
        return maia.open(self.homes.ccs).log.store

    def move(self, place: str) -> None:
        """Let the home's log lie elsewhere."""
        settings = self.homes.ccs / "maia.toml"
        settings.write_text(settings.read_text("utf-8").replace(self.place, place), "utf-8")
        self.place = place

    def findings(self) -> list[tuple[str, str, str]]:
        """Ask `maia doctor` about the store: status, detail, hint."""
        found = self.command("doctor", "--json").data["findings"]
        return [(item["status"], item["detail"], item.get("hint", "")) for item in found if item["name"] == "store"]


def start(what: str, home: Path, *words: str) -> subprocess.Popen[str]:
    """Run this program."""
    return subprocess.Popen(
        [sys.executable, __file__, what, str(home), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(PYTHONPATH=os.pathsep.join(sys.path)),
    )  # fmt: skip


def publish(home: Path, *plates: str, at: datetime) -> int:
    """Publish plates."""
    rows = [{"numberplate": plate, "timestamp": at, "location": "Victoria"} for plate in plates]
    return publish_here(maia.open(home).home, TYPE_NAME, rows, as_="CCTV", at=at)


def stop_at(name: str, when: str, how: str) -> None:
    """Let this process send itself a signal on its way."""

    class Stopping(confluent_kafka.Producer):  # type: ignore[misc]
        hit = False

        def produce(self, topic: str, value: bytes | None, *, key: bytes, **more: Any) -> None:
            self.hit = topic.endswith(".names") and key.endswith(name.encode())
            if when == "act":
                self._stop()
            super().produce(topic, value, key=key, **more)

        def commit_transaction(self, *args: Any) -> None:
            self.flush(10)
            if when == "commit":
                self._stop()
            super().commit_transaction(*args)
            if when == "answer":
                self._stop()

        def _stop(self) -> None:
            if self.hit:
                os.kill(os.getpid(), getattr(signal, how))

    confluent_kafka.Producer = Stopping  # type: ignore[misc]


def create(home: Path, names: list[str]) -> list[str]:
    """Create objects when somebody says so; tell which names were won."""
    store = maia.open(home).log.store
    for _ in range(2000):
        if store.list_after("", "", limit=1) == ["go"]:
            break
        time.sleep(0.01)
    return [name for name in names if store.put_new(name, str(os.getpid()).encode())]


def main(what: str, home: str, words: str, *stop: str) -> None:
    """Publish one plate, or create objects, and say how it went."""
    if stop:
        stop_at(*stop)
    said: Any = None
    for _ in range(20):
        try:
            if what == "create":
                said = create(Path(home), words.split(","))
            else:
                said = publish(Path(home), words, at=datetime.now(UTC))
        except MaiaError as error:
            said = error.code
        if said != "STAMP_BEHIND":  # another process of the home was first; its stamp is later than ours
            break
    print(json.dumps(said))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(*sys.argv[1:])
