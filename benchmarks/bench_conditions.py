"""What conditions cost where events are published: each as a ratio to the same batch without a condition.

    python benchmarks/bench_conditions.py [--rows 16384] [--rounds 15] [--output docs/reference/benchmarks]

Writes ``conditions.md`` into the output folder. The alternative, in the same run on the same rows, is to evaluate the
condition for every row by itself. Times are medians of processor time, taken in turns so that all of them meet the same
machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from maia.authority import Action, CertificatePool, Verifier, type_right, verify_event_type
from maia.encryption import EpochId, KeyGroupId, Keyring
from maia.events import EncryptionMode, EventType, TypeName, Version, attribute, sign_event_type
from maia.home.providers import HomePlace
from maia.home.rates import RateLedger
from maia.kernel import Clause, Sealing, Sessions, enforce_publication, seal_batch
from maia.policy import Environment, Occasion, compile_condition
from maia.principals import KeySigner
from maia.testing import People, at, grant

PEOPLE = People("owner", "cam")
BROKER = KeySigner(bytes([9]) * 32)
NOW = at("2026-06-03T12:30")
TYPE = EventType(
    name=TypeName(PEOPLE.owner.public_key, "bench.Sighting", Version("1")),
    attributes=(
        attribute("plate", 1, "string"), attribute("camera", 2, "string"), attribute("speed", 3, "integer"),
        attribute("seen", 4, "timestamp"),
    ),
)  # fmt: skip
CASES = {
    "none": (),
    "the moment: nine to five": ("now.hour('Europe/London') >= 9 && now.hour('Europe/London') < 17",),
    "the moment: four conditions": (
        "now.weekday('Europe/London') <= 5", "now.hour('Europe/London') < 17", "action == 'publish'",
        "event_type == 'bench.Sighting'",
    ),
    "a rate": ("rate(1000000, '1s')",),
    "the event: one of 50 cameras": ("event['2'] != 'camera 7'",),
    "the event: 50 cameras, 100 speeds": ("event['2'] != 'camera 7' || event['3'] < 90",),
    "the event: every plate another": ("event['1'] != 'P7'",),
    "the event: a pattern, 50 cameras": ("event['2'].matches('^camera [0-9]+$')",),
    "the event: a pattern, every plate another": ("event['1'].matches('^P[0-9]+$')",),
}  # fmt: skip
PATTERNS = ["(a+)+$", "(a*)*b$", "(a|aa)+$", *("(" * n + "a" + "+)" * n + "$" for n in range(2, 22)),
            *(f"(a?){{{n}}}a{{{n}}}" for n in range(5, 32))]  # fmt: skip


def rows_of(count: int) -> pa.RecordBatch:
    """Make sightings: every plate another, 50 cameras, 100 speeds."""
    return pa.RecordBatch.from_pydict(
        {
            "plate": [f"P{number}" for number in range(count)],
            "camera": [f"camera {number % 50}" for number in range(count)],
            "speed": [number * 7 % 100 for number in range(count)],
            "seen": pa.array([NOW] * count, type=pa.timestamp("us", tz="UTC")),
        }
    )


def clauses_under(conditions: tuple[str, ...], ledger: Path) -> tuple[Clause, ...]:
    """Give the camera a right with these conditions, through a session."""
    place = HomePlace(Environment(), RateLedger(ledger))
    sessions = Sessions(Verifier(), surroundings=lambda: place)
    sessions.install(verify_event_type(sign_event_type(TYPE, PEOPLE.owner), verifier=sessions.verifier, at=NOW))
    right = type_right(PEOPLE.owner.public_key, TYPE.name.name, actions=[Action.PUBLISH])
    pool = CertificatePool([grant(PEOPLE.owner, PEOPLE.cam, right, conditions=conditions)])
    return sessions.clauses(PEOPLE.cam.public_key, Action.PUBLISH, TYPE, pool, at=NOW)


def sealer() -> Callable[[pa.RecordBatch], object]:
    """Seal batches as a broker does, attribute by attribute."""
    ring = Keyring()
    for item in TYPE.attributes:
        ring.add(KeyGroupId(TYPE.type_id, item.uid.encode()), EpochId(0), os.urandom(32))
    sealing = Sealing(type_id=TYPE.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    return lambda batch: seal_batch(
        batch, sealing, BROKER, ring, stamp=1, parcel_id=os.urandom(16), event_base=os.urandom(16)
    )


def row_by_row(source: str, batch: pa.RecordBatch) -> float:
    """Evaluate a condition for every row by itself; return the seconds."""
    condition = compile_condition(source)
    occasion = Occasion(action="publish", at=NOW, principal=PEOPLE.cam.public_key.key_id.hex(), event_type="x")
    uids = {item.name: item.uid for item in TYPE.attributes if item.name != "seen"}
    events = [{uids[name]: row[name] for name in uids} for row in batch.to_pylist()]
    start = time.process_time()
    for event in events:
        condition.holds(occasion, event=event)
    return time.process_time() - start


def slowest_pattern() -> float:
    """Evaluate patterns that blow up elsewhere against 5,001 letters; return the seconds of the slowest."""
    slowest = 0.0
    occasion = Occasion(action="publish", at=NOW, principal="p")
    for pattern in PATTERNS:
        condition = compile_condition(f"event['1'].matches(r'{pattern}')")
        start = time.process_time()
        condition.holds(occasion, event={"1": "a" * 5_000 + "!"})
        slowest = max(slowest, time.process_time() - start)
    return slowest


def measure(rows: int, rounds: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Measure each case, enforcement alone and with sealing, in turns."""
    batch, seal = rows_of(rows), sealer()
    held = {name: clauses_under(conditions, folder / "rates.db") for name, conditions in CASES.items()}
    spent: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in CASES}
    instant = NOW
    for number in range(rounds + 1):
        for name, clauses in held.items():
            instant = at(int(NOW.timestamp()) + number * 2)
            start = time.process_time()
            enforced = enforce_publication(TYPE, batch, clauses, at=instant, reservation=b"%d" % number)
            middle = time.process_time()
            seal(enforced.batch)
            end = time.process_time()
            if name == "none" and len(enforced.rows) != rows:
                raise SystemExit("rows were refused without a condition")
            if number:  # the first round fills caches
                spent[name][0].append(middle - start)
                spent[name][1].append(end - start)
    return {name: (statistics.median(one), statistics.median(both)) for name, (one, both) in spent.items()}


def page(rows: int, found: dict[str, tuple[float, float]], alone: dict[str, float], pattern: float) -> str:
    """Write the page."""
    kernel, whole = found["none"]
    lines = [
        f"| {name} | {one / rows * 1e6:.2f} | {one / kernel:.2f}× | {both / rows * 1e6:.2f} | {both / whole:.2f}× "
        f"| {f'{alone[name] / kernel:,.0f}×' if name in alone else ''} |"
        for name, (one, both) in found.items()
    ]
    table = "\n".join(lines)
    return f"""# Benchmark: conditions

Written by `benchmarks/bench_conditions.py`; run it again to renew it.

{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}. Processor time, medians of rounds
that take turns; {rows:,} events a batch.

*Enforced* is the kernel alone: type check, clauses, constraints and conditions. *Published* adds the sealing of the
admitted rows, attribute by attribute. The ratios are to the same batch under a right without conditions. *Row by row*
evaluates the condition for each row by itself, as a ratio to the kernel without conditions.

| condition | enforced, µs an event | ratio | published, µs an event | ratio | row by row |
|---|---:|---:|---:|---:|---:|
{table}

A condition on the moment is evaluated once a batch. A condition on the event that consists of plain comparisons is
evaluated for whole columns at once. Any other, with a pattern or with arithmetic, is evaluated once for each different
combination of the values that it looks at: cheap where values repeat, and a full evaluation for each row where every
value is another. A rate is one transaction on disk for each batch.

Of {len(PATTERNS)} regular expressions that blow up elsewhere the slowest took {pattern * 1e3:.1f} ms on 5,001 letters.
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16_384)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    batch = rows_of(asked.rows)
    alone = {name: row_by_row(sources[0], batch) for name, sources in CASES.items() if name.startswith("the event")}
    with tempfile.TemporaryDirectory() as folder:
        found = measure(asked.rows, asked.rounds, Path(folder))
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "conditions.md").write_text(page(asked.rows, found, alone, slowest_pattern()), "utf-8")


if __name__ == "__main__":
    main()
