"""Single bits flipped in files of every kind: the job stops by name, or delivers exactly what was published."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from network import CCS_SUBSCRIPTIONS, Network, ahead, build, delivered, publish_here, sightings
from progress import TORTURE, say

from maia.domain import Domain, delivery_job, read_parked
from maia.errors import MaiaError
from maia.home import Home
from maia.log import LogDirectory, Outbox, read_audit
from maia.spark import check_start

pytestmark = pytest.mark.slow
FLIPS = 10_000 if TORTURE else 120
BEFORE, AFTER, LAST = ["P1", "P2"], ["P3"], ["P4"]
KINDS = {
    "log": ("log/type=*/origin=*/date=*/*.parquet", "log/type=*/origin=*/*.record", "log/_evidence/*"),
    "outbox": ("ccs/outbox/*/*.parquet", "ccs/outbox/_commits/*.json", "ccs/outbox/_identity.json"),
    "key store": ("ccs/keyring", "ccs/keys/CB.key", "ccs/key-uses"),
    "audit": ("ccs/audit/journal/*.jsonl", "ccs/audit-head"),
    "stamps": ("ccs/stamps",),
    "checkpoint": ("checkpoint/metadata", "checkpoint/_identity.json", "checkpoint/offsets/*", "checkpoint/commits/*"),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a network in the middle of its work: one micro-batch delivered by a query, one publication waiting."""
    root = tmp_path_factory.mktemp("flips") / "net"
    network = build(root)
    publish_here(network, "before", [sightings(BEFORE)])
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    checkpoint = root / "checkpoint"
    check_start(checkpoint, job.outbox, network.log)
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir()
    (checkpoint / "metadata").write_text('{"id":"query-1"}', "utf-8")
    offset = json.dumps(ahead(job))
    (checkpoint / "offsets" / "0").write_text(f'v1\n{{"conf":{{}}}}\n{offset}', "utf-8")
    (checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}', "utf-8")
    job.step(0, ahead(job), lambda work, groups: [work.deliver(group) for group in groups], query="query-1")
    publish_here(network, "after", [sightings(AFTER)])
    return root


def files(root: Path, kind: str) -> list[Path]:
    """List the files of one kind."""
    return sorted(path for pattern in KINDS[kind] for path in root.glob(pattern) if path.is_file())


def go_on(root: Path) -> list[object]:
    """Start the job as a query would, deliver what waits, publish and deliver more; give what was delivered."""
    network = Network(root, None, root / "ccs", root / "met")  # type: ignore[arg-type]
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    check_start(root / "checkpoint", Outbox(job.outbox.path), LogDirectory(network.log.path))
    job.step(1, ahead(job), lambda work, groups: [work.deliver(group) for group in groups], query="query-1")
    publish_here(network, "last", [sightings(LAST)])
    job.step(2, ahead(job, 9), lambda work, groups: [work.deliver(group) for group in groups], query="query-1")
    assert not list(job.outbox.dead_letters())
    return [row["numberplate"] for row in delivered(job, "billing")]


@pytest.mark.fault("F08")
def test_flipped_bits_in_any_file_are_detected_or_harmless(template: Path, tmp_path: Path) -> None:
    """One bit in one file a run, over every kind of file in turn; never a wrong, missing or repeated delivery."""
    seed = int(os.environ.get("MAIA_SEED", "8"))
    chosen = random.Random(seed)
    stopped: Counter[str] = Counter()
    kinds = list(KINDS)
    for number in range(FLIPS):
        kind = kinds[number % len(kinds)]
        root = tmp_path / "net"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)
        path = chosen.choice(files(root, kind))
        data = bytearray(path.read_bytes())
        bit = chosen.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(data))
        where = f"MAIA_SEED={seed}, flip {number}: bit {bit} of {path.relative_to(root)}"
        try:
            got = go_on(root)
        except MaiaError:
            stopped[kind] += 1
        else:
            wanted = BEFORE + AFTER + LAST
            if got != wanted:  # a lane whose segment is damaged waits, and says so
                assert got == wanted[: len(got)], where
                assert read_parked(root / "ccs"), where
                stopped[kind] += 1
        say("flips", number + 1, FLIPS)
    assert stopped["log"] >= FLIPS // 12  # digests cover every octet that is read again
    assert stopped["outbox"] > 0
    assert stopped["stamps"] >= FLIPS // 7
    assert stopped["audit"] == 0


def test_work_goes_on_when_nothing_is_flipped(template: Path, tmp_path: Path) -> None:
    """The control: the same steps over the same files, unhurt; every kind has files."""
    root = tmp_path / "net"
    shutil.copytree(template, root)
    assert all(files(root, kind) for kind in KINDS)
    assert go_on(root) == BEFORE + AFTER + LAST
    assert any(read_audit(root / "ccs" / "audit"))
    assert Home.open(root / "ccs").next_stamp() <= int(datetime.now(UTC).timestamp() * 1000) + 10
