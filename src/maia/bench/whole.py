"""The whole benchmark of the pipeline, in one process on one machine, and its facts as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from maia.bench.arms import ARMS, PER_VALUE, Throughput, measure
from maia.bench.blocks import Hop, Types, Weight, hop, types, weigh
from maia.bench.latency import Latency, percentile, stream
from maia.bench.memory import Memory, peak
from maia.events import EncryptionMode

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Growth:
    """Mean seconds of publishing and reading in attribute mode, by number of events."""

    attributes: int
    seconds: dict[int, float]

    def fit(self) -> tuple[float, float, float]:
        """Fit a line: seconds at no events, seconds for a million more, and R²."""
        sizes, times = np.array(list(self.seconds)), np.array(list(self.seconds.values()))
        slope, start = np.polyfit(sizes, times, 1)
        rest = float(np.sum((times - (slope * sizes + start)) ** 2))
        spread = float(np.sum((times - times.mean()) ** 2))
        return float(start), float(slope) * 1e6, 1 - rest / spread if spread else 1.0


@dataclass(frozen=True, slots=True)
class PipelineResults:
    """All that was measured; parts that were not asked for are empty."""

    events: int
    runs: int
    cores: int
    python: str
    throughput: tuple[Throughput, ...]
    growth: Growth | None = None
    latency: Latency | None = None
    memory: tuple[Memory, ...] = ()
    weights: tuple[Weight, ...] = ()
    hops: tuple[Hop, ...] = ()
    signed_types: Types | None = None

    def to_json(self) -> dict[str, object]:
        """Return everything as plain values, with the ratios."""
        ratios = [
            {
                "attributes": found.attributes,
                "subscriptions": many,
                "arm": arm,
                "events_per_second": found.events / found.arms[arm].total(many),
                "to_parquet": found.ratio(arm, many),
                "to_per_value": found.ratio(arm, many, to=PER_VALUE) if PER_VALUE in found.arms else None,
            }
            for found in self.throughput
            for many in found.subscriptions
            for arm in found.arms
        ]
        more: dict[str, object] = {}
        if self.growth is not None:
            more["line"] = dict(zip(("start", "per_million", "r_squared"), self.growth.fit(), strict=True))
        if self.latency is not None:
            named = {"batch": self.latency.batches, "added": self.latency.added, **self.latency.stages}
            more["latency_ms"] = {
                name: {"p50": percentile(times, 50), "p99": percentile(times, 99)} for name, times in named.items()
            }
        return {"ratios": ratios, **more, **asdict(self)}


def quick(
    *,
    events: int,
    attributes: Sequence[int],
    subscriptions: Sequence[int],
    runs: int,
    arms: Sequence[str] = ARMS,
    say: Say = lambda _: None,
) -> PipelineResults:
    """Measure throughput alone."""
    with TemporaryDirectory(prefix="maia-bench-") as folder:
        found = tuple(
            measure(
                events, many, folder=Path(folder) / str(many), runs=runs, subscriptions=subscriptions,
                slow_runs=min(runs, 2), arms=arms, say=say,
            )
            for many in attributes
        )  # fmt: skip
    return _results(events, runs, found)


def full(
    *,
    events: int = 100_000,
    attributes: Sequence[int] = (1, 10, 25),
    subscriptions: Sequence[int] = (1, 100),
    runs: int = 5,
    batches: int = 30,
    say: Say = lambda _: None,
) -> PipelineResults:
    """Measure everything: throughput, growth, latency, memory, and what sealing and caching cost a parcel."""
    throughput = quick(events=events, attributes=attributes, subscriptions=subscriptions, runs=runs, say=say)
    with TemporaryDirectory(prefix="maia-bench-") as name:
        folder = Path(name)
        seconds = {}
        for size in (events // 2, events, 2 * events, 4 * events):
            one = measure(size, 10, folder=folder / f"size-{size}", runs=2, arms=("attribute",), say=say)
            seconds[size] = one.arms["attribute"].total(1)
        say("kernel")
        modes, ends = (EncryptionMode.PLAIN, EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE), (1, 10, 25)
        weights = tuple(weigh(folder / f"w{mode}{many}", many, mode, runs=runs) for many in ends for mode in modes)
        hops = tuple(hop(folder / f"h{mode}{many}", many, mode, runs=4 * runs) for many in ends for mode in modes)
        signed = types(folder / "types", runs=4 * runs)
        latency = stream(folder / "latency", batches=batches, say=say)
    memory = []
    for times in (1, 2, 4):
        say(f"memory with {times * events:,} events")
        memory.append(peak(times * events, 10))
    return PipelineResults(
        throughput.events, runs, throughput.cores, throughput.python, throughput.throughput, Growth(10, seconds),
        latency, tuple(memory), weights, hops, signed,
    )  # fmt: skip


def _results(events: int, runs: int, found: tuple[Throughput, ...]) -> PipelineResults:
    return PipelineResults(events, runs, os.cpu_count() or 1, platform.python_version(), found)
