"""The driver of a domain on a cluster, run as a process: publishes, reads and follows while executors are killed."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from cluster_world import Cluster, hides, in_files, in_memory, kill, processes_below, wait_for
from pyspark.sql import functions as sql

import maia
from maia.domain import take_results
from maia.errors import MaiaError
from maia.log import read_audit
from maia.spark import session, spark_errors

ROWS = 60
MORE = 20
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def held(signals: str, name: str) -> Any:
    """Make a stage in which the first task that comes says who it is, and waits for its end."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            mark = Path(signals) / name
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            with Path(f"{mark}.new").open("w") as said:
                said.write(str(os.getpid()))
            Path(f"{mark}.new").rename(f"{mark}.pid")
            while not Path(f"{mark}.done").exists():
                time.sleep(0.05)
            yield batch

    return stage


class Killer(threading.Thread):
    """Waits until a held task says who it is, looks into its memory, and kills its executor."""

    def __init__(self, signals: Path, name: str, needles: list[bytes]) -> None:
        """Wait for a name."""
        super().__init__(daemon=True)
        self.mark, self.needles = signals / name, needles
        self.seen: set[bytes] = set()
        self.killed = 0
        self.start()

    def run(self) -> None:
        """Do it."""
        said = Path(f"{self.mark}.pid")
        wait_for(said.exists)
        number = int(said.read_text())
        while "java" not in Path(f"/proc/{number}/comm").read_text():
            number = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        below = processes_below(number)
        if self.needles:
            self.seen = set().union(*(in_memory(one, self.needles) for one in (number, *below)))
        for one in (number, *below):
            kill(one)
        self.killed = number
        Path(f"{self.mark}.done").touch()


def names_of(frame: Any) -> Counter[str]:
    """Count the rows of a frame by patient."""
    return Counter(row[0] for row in frame.select("patient").collect())


def main(home: str, folder: str, keys: str) -> None:
    """Run the cluster; tell what came of it."""
    place, signals, said = Path(folder), Path(folder) / "signals", dict[str, Any]()
    signals.mkdir()
    cluster = Cluster(place / "cluster", Path(home))
    try:
        cluster.start_master()
        for name in ("w1", "w2"):
            cluster.start_worker(name, Path(keys) / f"{name}.worker")
        spark = session(
            spark_master=cluster.master, spark_authenticate_secret=cluster.secret, spark_executor_memory="512m",
            spark_executor_extraJavaOptions=QUICK, spark_driver_extraJavaOptions=QUICK, spark_driver_memory="1g",
            spark_local_dir=str(place / "driver"),
        )  # fmt: skip
        run(spark, home, place, signals, said)
        refuse(spark, cluster, home, Path(keys), said)
        spark.stop()
    finally:
        cluster.stop()
    print(json.dumps(said))  # noqa: T201 - what the test reads


def rows(spark: Any, first: int, end: int) -> Any:
    """Make rows whose values nobody writes down: each is computed where it is needed."""
    return spark.range(first, end, 1, 4).select(
        sql.sha2(sql.col("id").cast("string"), 256).alias("patient"), sql.col("id").alias("value")
    )


def plain(number: int) -> bytes:
    """Give the value of a row."""
    return hashlib.sha256(str(number).encode()).hexdigest().encode()


def run(spark: Any, home: str, place: Path, signals: Path, said: dict[str, Any]) -> None:
    """Publish, read and follow on workers of the group, an executor killed in the middle of each."""
    domain = maia.open(home)
    lab, ward = domain.client("lab"), domain.client("ward")
    path = f"{home}/maia.toml"

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"there": [Path(path).exists()], "by": [os.environ["MAIA_WORKER_KEY"]]})

    seen = spark.range(0, 8, 1, 8).mapInArrow(look, "there boolean, by string").collect()
    said["home seen"], said["hidden"] = any(row.there for row in seen), bool(hides())

    killer = Killer(signals, "publish", [])
    frame = rows(spark, 0, ROWS)
    done = lab.publish(frame.mapInArrow(held(str(signals), "publish"), frame.schema), "Result", publication="first")
    said["published"] = done.events
    said["again"] = lab.publish(rows(spark, 0, ROWS), "Result", publication="first").repeated

    ring = domain.home.keyring()
    secrets = [ring.key(group, epoch) for group in ring.groups() for epoch in ring.epochs(group)]
    needles = [*(key for key in secrets if key), plain(0), plain(ROWS - 1)]
    reader = Killer(signals, "read", needles)
    read = ward.read("Result")
    found = names_of(read.mapInArrow(held(str(signals), "read"), read.schema))
    said["read"], said["read twice"] = len(found), max(found.values())
    said["reader saw"] = sorted({"key" if one in secrets else "value" for one in reader.seen})

    more = {"home": home, "type": "Result", "as": "lab"}
    rows(spark, ROWS, ROWS + MORE).write.format("maia").mode("append").options(**more).save()

    follower = Killer(signals, "follow", [])
    stream = spark.readStream.format("maia").options(
        home=home, type="Result", maxCommitsPerTrigger="1", **{"as": "ward"}
    ).load()  # fmt: skip
    query = (
        stream.mapInArrow(held(str(signals), "follow"), stream.schema)
        .writeStream.format("maia")
        .options(home=home, type="Copy", publication="copies", **{"as": "lab"})
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    copies = names_of(ward.read("Copy"))
    said["followed"], said["followed twice"] = len(copies), max(copies.values())
    said["right"] = set(copies) == {plain(number).decode() for number in range(ROWS + MORE)}
    said["killed"] = len({killer.killed, reader.killed, follower.killed} - {0})
    take_results(domain.home)
    told = [row for row in read_audit(domain.home.audit_path) if row.operation is not None]
    ended = Counter(row.operation for row in told if row.kind == "result" and row.code == "OK")
    intents = [row for row in told if row.kind == "intent"]
    said["ended"] = all(ended[row.operation] for row in intents)
    said["intents"] = len(intents)


def refuse(spark: Any, cluster: Cluster, home: str, keys: Path, said: dict[str, Any]) -> None:
    """Let a worker that is not in the group try, and look at all that it has."""
    cluster.stop("w1", "w2")
    cluster.start_worker("w3", keys / "w3.worker")
    domain = maia.open(home)
    ring = domain.home.keyring()
    secrets = [ring.key(group, epoch) for group in ring.groups() for epoch in ring.epochs(group)]
    needles = [*(key for key in secrets if key), plain(0), plain(ROWS - 1), plain(ROWS)]
    try:
        with spark_errors():
            domain.client("ward").read("Result").collect()
    except MaiaError as error:
        said["refused"] = error.code
    below = processes_below(cluster.processes["w3"].pid)
    said["looked at"] = len(below)
    said["held"] = len(set().union(*(in_memory(number, needles) for number in below)))
    said["kept"] = len(in_files(cluster.folder / "w3", needles))


if __name__ == "__main__":
    main(*sys.argv[1:])
