"""A whole Spark job killed again and again: exactly once in the end, and no plaintext anywhere it wrote."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hunting
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS, Network, build, delivered
from progress import TORTURE, say
from tasks import CANARY_TIME

from maia.domain import Domain, delivery_job
from maia.encryption import parse_parcel

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not TORTURE, reason="kills whole Spark jobs for many minutes; run by `make torture`"),
]
EVENTS = 40
FILES = 4


class Job:
    """The job under test, its folder and its canary."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.word = f"canary{secrets.token_hex(6)}"
        self.network: Network = build(root / "net", free_camera=True)
        (root / "in").mkdir()
        for number in range(FILES):
            rows = list(range(number * EVENTS // FILES, (number + 1) * EVENTS // FILES))
            pq.write_table(pa.table({"number": pa.array(rows, pa.int64())}), root / "in" / f"{number}.parquet")
        self.hits: set[str] = set()
        self.run_number = 0

    @property
    def needles(self) -> list[bytes]:
        """What may be found nowhere: the canary of each attribute."""
        return [*hunting.forms(self.word), *hunting.times(CANARY_TIME, EVENTS), b"2031-03-07"]

    def run(self, *, kill_at: int = 0, when: str | None = None, settings: tuple[str, ...] = ()) -> int:
        """Run the job once; kill it at a step of Maia, or when a file of Spark's appears."""
        with self.started(kill_at=kill_at, settings=settings) as process:
            while process.poll() is None:
                self.hits |= hunting.hunt_processes(process.pid, self.needles)
                if when is not None and list(self.root.glob(when)):
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.05 if when else 0.5)
        return int(process.returncode)

    @contextlib.contextmanager
    def started(self, *, kill_at: int = 0, settings: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
        """Start the job; at the end nothing of it runs any more."""
        self.run_number += 1
        counter = self.root / "steps" / str(self.run_number)
        counter.parent.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(HERE / "steps"), str(HERE))),
            "MAIA_STEPS": str(counter),
            "MAIA_STEPS_ROOT": str(self.root),
            "MAIA_KILL_AT": str(kill_at),
        }
        command = [sys.executable, str(HERE / "spark_driver.py"), str(self.root), "@", *settings]
        command[3] = self.word[::-1]  # the arguments of a process are open to all, so the word goes in reversed
        with (self.root / f"output-{self.run_number}.txt").open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                if process.wait():
                    with_group_gone(process.pid)


def with_group_gone(group: int) -> None:
    """Wait until nothing of a killed job runs any more."""
    for _ in range(200):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.1)


def check_exactly_once(job: Job) -> None:
    """Compare with the ledger: every number once in each of the views."""
    ccs = delivery_job(Domain.open(job.network.ccs), CCS_SUBSCRIPTIONS)
    met = delivery_job(Domain.open(job.network.met), MET_SUBSCRIPTIONS)
    word = job.word
    once = Counter(f"{word}-plate-{number}" for number in range(EVENTS))
    assert Counter(row["numberplate"] for row in delivered(ccs, "billing")) == once
    places = Counter(f"{word}-place-{number}" for number in range(EVENTS))
    assert Counter(row["location"] for row in delivered(ccs, "statistics")) == places
    assert not list(delivered(met, "detective"))
    assert not list(ccs.outbox.dead_letters())


def check_parcels(job: Job) -> None:
    """No parcel id twice, orphans included: no block key met two plaintexts."""
    headers: list[Any] = []
    for path in job.network.log.path.glob("type=*/origin=*/date=*/*.parquet"):
        try:
            column = pq.read_table(path).column("parcel")
        except (OSError, ValueError):
            continue  # cut off by a kill
        headers += [parse_parcel(parcel).header for parcel in column.to_pylist()]
    assert len({header.parcel_id for header in headers}) == len(headers) >= FILES // 2


def check_hunt(job: Job) -> None:
    """Nothing found, and what is planted is found."""
    assert hunting.hunt(job.root, job.needles) == []
    assert job.hits == set()
    planted = job.root / "planted"
    planted.mkdir()
    word = f"some {job.word}-plate-7 text"
    (planted / "raw").write_text(word, "utf-8")
    (planted / "wide").write_text(word, "utf-16-le")
    (planted / "gzip").write_bytes(gzip.compress(word.encode()))
    (planted / "zstd").write_bytes(pa.compress(word.encode() * 9, codec="zstd", asbytes=True))
    (planted / "base64").write_bytes(b64encode(b"x" + word.encode()))
    pq.write_table(pa.table({"a": [word] * 5}), planted / "snappy.parquet", compression="snappy")
    pq.write_table(pa.table({"t": pa.array([CANARY_TIME])}), planted / "time.parquet", compression="zstd")
    names = {"raw", "wide", "gzip", "zstd", "base64", "snappy.parquet", "time.parquet"}
    assert set(hunting.hunt(planted, job.needles)) == names


@pytest.mark.fault("F01")
@pytest.mark.fault("F02")
@pytest.mark.fault("F05")
@pytest.mark.fault("F20")
@pytest.mark.threat("T44")
def test_spark_job_killed_again_and_again_is_exact_and_leaves_no_plaintext(tmp_path: Path) -> None:
    """Killed at steps of workers, sink and driver, and at steps of Spark's own; each run recovers from the last."""
    job = Job(tmp_path / "job")
    kills: list[dict[str, Any]] = [
        {"kill_at": 5},  # a worker, while stamps are reserved and parcels written
        {"when": "checkpoint-publish/offsets/1"},  # Spark planned a micro-batch
        {"kill_at": 14},
        {"when": "checkpoint-ccs/offsets/0"},
        {"kill_at": 9},
    ]
    if TORTURE:
        kills += [{"kill_at": step} for step in range(1, 40, 3)]
    killed = 0
    for number, kill in enumerate(kills):
        killed += job.run(**kill) != 0
        say("kills of the job", number + 1, len(kills))
    assert killed >= 3
    assert job.run() == 0, (job.root / f"output-{job.run_number}.txt").read_text("utf-8", "replace")[-3000:]
    check_exactly_once(job)
    check_parcels(job)
    check_hunt(job)


def python_workers(group: int) -> list[int]:
    """List the Python workers of a job: children of Spark's daemon, and workers of its data sources."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                arguments = (folder / "cmdline").read_bytes()
                if int(fields[2]) == group and b"pyspark" in arguments and b"spark_driver" not in arguments:
                    found.append(int(folder.name))
    return sorted(found)


@pytest.mark.fault("F03")
@pytest.mark.threat("T44")
def test_workers_killed_every_200_milliseconds_for_five_minutes(tmp_path: Path) -> None:
    """Whatever worker runs is killed; tasks and jobs are tried again; in the end each event is there once."""
    job = Job(tmp_path / "job")
    settings = ("spark_master=local[2,200]", "spark_python_worker_reuse=false")
    chosen, killed = random.Random(3), 0
    deadline = time.monotonic() + 300
    finished = False
    while time.monotonic() < deadline and not finished:
        with job.started(settings=settings) as process:
            while process.poll() is None and time.monotonic() < deadline:
                workers = python_workers(process.pid)
                if workers:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chosen.choice(workers), signal.SIGKILL)
                        killed += 1
                time.sleep(0.2)
            finished = process.poll() == 0
        say("workers killed", killed, -1)
    assert killed >= 10
    assert job.run() == 0, (job.root / f"output-{job.run_number}.txt").read_text("utf-8", "replace")[-3000:]
    check_exactly_once(job)
    check_parcels(job)


@pytest.mark.fault("F21")
def test_no_plaintext_without_sparks_own_encryption_and_with_little_memory(tmp_path: Path) -> None:
    """Nothing shuffles after opening, so nothing lies open even where Spark seals nothing; poison tells nothing."""
    job = Job(tmp_path / "job")
    settings = ("spark_io_encryption_enabled=false", "spark_driver_memory=512m", "spark_io_compression_codec=lz4")
    assert job.run(settings=settings) == 0, (job.root / "output-1.txt").read_text("utf-8", "replace")[-3000:]
    # Poison: a parcel with a flipped octet, committed as if it were whole.
    commit = next(commit for commit in job.network.log.commits() if commit.files)
    table = pq.read_table(job.network.log.path / commit.files[0].path)
    damaged = bytearray(table.column("parcel")[0].as_py())
    damaged[len(damaged) // 2] ^= 1
    parcel = parse_parcel(bytes(damaged))
    later = replace(parcel, header=replace(parcel.header, stamp=parcel.header.stamp + 60_000_000))
    ccs = Domain.open(job.network.ccs)
    origin = ccs.home.broker.public_key.key_id
    writer = job.network.log.writer("poison", bytes.fromhex(commit.type_id), 0, origin, at=datetime.now(UTC))
    writer.add(later)
    file = writer.close()
    assert file is not None
    ccs.lanes.commit("poison", commit.type_id, (file,), evidence=commit.evidence, at=datetime.now(UTC))
    assert job.run(settings=settings) == 0
    ccs = delivery_job(Domain.open(job.network.ccs), CCS_SUBSCRIPTIONS)
    assert len(list(delivered(ccs, "billing"))) == EVENTS
    assert len(list(ccs.outbox.dead_letters())) == 1
    check_hunt(job)
