"""What planning costs in a log that grew old: the same questions asked of lanes of a hundred and of very many commits.

    python benchmarks/bench_planning.py [--commits 100,10000,100000] [--runs 7] [--keep FOLDER]

Each lane ends in the same few commits with real segments; those before them are signed with the product's own
functions and have segments of which nothing is asked. Every figure is taken in a domain that was opened for it alone,
as a command or the first micro-batch of a query has it, and is a median; lanes take turns. The first look of a home
at a lane, which reads and verifies all of it, comes before that, and is not among the figures.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median

import maia
from maia.bench.homes import TYPE, WRITER, make_domain, now
from maia.domain import Domain, domain_status, own_lanes, type_stretch
from maia.events import EncryptionMode
from maia.kernel import milliseconds
from maia.log import START, Commit, LogFile, sign_record, write_commit
from maia.testing import publish_here, publish_plan

RECENT = 20
"""How many commits at the end have segments that are there; the questions are about them."""
_ROW = [{"a0": "x" * 30}]
_WHOLE = 10_000
"""The longest lane of which everything is asked, once: each commit is a segment to plan, so that grows with them."""


def make_lane(root: Path, commits: int) -> None:
    """Make a home whose lane has so many commits."""
    domain = make_domain(root, 1, EncryptionMode.ATTRIBUTE)
    home, end = domain.home, now()
    first = end - timedelta(milliseconds=commits + 1000)
    plan = publish_plan(home, TYPE, as_=WRITER, publication="old", at=first)
    lanes = own_lanes(home, domain.log)
    type_id = plan.sealing.type_id.hex()
    lane = lanes.writer(type_id).lane
    place, stamp = START, milliseconds(first)
    folders = [home.log_path / lane.folder, home.path / "lanes" / lane.folder]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(commits - RECENT):
        stamp += 1
        name = f"{lane.folder}/date=2026-01-01/{number:024d}.parquet"
        file = LogFile(name, 4096, secrets.token_hex(32), 1, 1, stamp, stamp, (secrets.token_hex(16),))
        made = Commit(0, f"old-{number}", type_id, "", plan.sealing.evidence.hex(), (file,))
        body = write_commit(made, lane.folder)
        record = sign_record(lane, place, stamp=stamp, body=body, signer=home.broker)
        name = os.path.basename(lane.record_name(number))  # noqa: PTH119 - a name of a store
        (folders[0] / name).write_bytes(record.raw)
        os.link(folders[0] / name, folders[1] / name)
        place = record.place
    for number in range(RECENT):
        publish_here(home, TYPE, _ROW, as_=WRITER, at=end + timedelta(milliseconds=number))


def asked(root: Path) -> dict[str, Callable[[Domain], object]]:
    """Give the questions, each about the recent commits but the last."""
    at, opened = now() + timedelta(seconds=1), maia.open(root)
    [lane] = opened.log.lanes()
    newest = lane.newest()
    assert newest is not None
    window = (newest.stamp - RECENT + 1, milliseconds(at))
    *_, (place, _) = lane.walk(lane.before(window[0]), lane.count - 1 - RECENT)
    name, after = opened.find_type(TYPE), {lane.name: place}
    return {
        "status": lambda domain: domain_status(domain, at=at),
        "a time range": lambda domain: type_stretch(domain, name, after={}, at=at, deep=False, window=window),
        "a micro-batch": lambda domain: type_stretch(domain, name, after=after, at=at),
        "everything": lambda domain: type_stretch(domain, name, after={}, at=at, deep=False),
    }


@dataclass
class Figures:
    """What one question cost of one lane: seconds, seconds of the processor, objects read from the store."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    objects: int = 0

    def ask(self, root: Path, question: Callable[[Domain], object]) -> None:
        """Ask a domain just opened, once to be measured and once to be counted."""
        domain = maia.open(root)
        began, busy = time.perf_counter(), time.process_time()
        question(domain)
        self.wall.append(time.perf_counter() - began)
        self.processor.append(time.process_time() - busy)
        if not self.objects:
            domain = maia.open(root)
            store, get = domain.log.store, domain.log.store.get
            counted: Counter[str] = Counter()

            def noted(name: str, *, limit: int) -> bytes:
                counted["get"] += 1
                return get(name, limit=limit)

            store.get = noted  # type: ignore[method-assign]
            question(domain)
            self.objects = counted["get"]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", default="100,10000", help="sizes of lanes, the smallest first")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the lanes in this folder, and use those that are there")
    chosen = parser.parse_args()
    sizes = [int(text) for text in chosen.commits.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        roots = {size: (chosen.keep or Path(folder)) / str(size) for size in sizes}
        for size, root in roots.items():
            if not root.exists():
                make_lane(root, size)
            began = time.perf_counter()
            maia.open(root).log.lanes()
            print(f"{size} commits: looked at in {time.perf_counter() - began:.2f} s", flush=True)
        questions = {size: asked(root) for size, root in roots.items()}
        found = {
            (name, size): Figures()
            for name in next(iter(questions.values()))
            for size in sizes
            if name != "everything" or size <= _WHOLE
        }
        for run in range(chosen.runs):
            for (name, size), figures in found.items():
                if name != "everything" or not run:
                    figures.ask(roots[size], questions[size][name])
    print("| question | commits | ms | ms of the processor | objects read | against the smallest |")
    print("|---|---|---|---|---|---|")
    for (name, size), figures in found.items():
        wall, busy = median(figures.wall), median(figures.processor)
        ratio = busy / median(found[name, sizes[0]].processor)
        print(f"| {name} | {size} | {wall * 1000:.1f} | {busy * 1000:.1f} | {figures.objects or ''} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
