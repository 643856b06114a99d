"""How long a micro-batch takes, and how much of that is enforcement, stage by stage.

A publisher commits small publications; a subscriber follows the log, one commit a micro-batch, through Spark. Then the
same parcels go through the kernel again on one core, where each stage can be timed by itself:

- ``rights``: planning on the driver for one commit: the client's key, its chains and the origins' proven, types
  verified, clauses compiled; what did not change since the last micro-batch is known already;
- ``opening``: signature verified, blocks decrypted and decoded;
- ``matching``: rows against the subscription's filter, through the index;
- ``screening``: clauses cell by cell, and the subscriber's version.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from maia.bench.homes import READER, TYPE, WRITER, frame_of, make_domain
from maia.domain import Domain
from maia.events import EncryptionMode
from maia.filters import SubscriptionIndex
from maia.kernel import open_batch
from maia.spark import session

STAGES = ("rights", "opening", "matching", "screening")


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds, one number for each micro-batch.

    Attributes:
        events: Events of a micro-batch.
        attributes: How many.
        batches: From the trigger to the end of each micro-batch, as Spark reports it.
        stages: By stage, the time of the same parcels in the kernel.
    """

    events: int
    attributes: int
    batches: tuple[float, ...]
    stages: dict[str, tuple[float, ...]]

    def share(self, stage: str) -> float:
        """Return the median of a stage as a share of the median micro-batch."""
        return percentile(self.stages[stage], 50) / percentile(self.batches, 50)

    @property
    def added(self) -> tuple[float, ...]:
        """What all stages together take of each micro-batch."""
        return tuple(sum(times) for times in zip(*self.stages.values(), strict=True))


def percentile(times: tuple[float, ...], of: float) -> float:
    """Return a percentile, between the two nearest values where it falls between."""
    return float(np.percentile(times, of))


def stream(
    folder: Path, *, batches: int = 30, events: int = 1000, attributes: int = 10, say: Callable[[str], None]
) -> Latency:
    """Publish, follow, and take the stages apart. The first micro-batches warm up and are not counted."""
    warm = max(1, batches // 6)
    domain = make_domain(folder / "stream", attributes, EncryptionMode.ATTRIBUTE)
    rows, writer = frame_of(events, attributes), domain.client(WRITER)
    for number in range(warm + batches):
        say(f"publishing {number + 1} of {warm + batches} micro-batches")
        writer.publish(rows, TYPE)
    rows.unpersist()
    say("following the log")
    options = {"home": str(domain.path), "type": TYPE, "as": READER, "where": "a0 any", "maxCommitsPerTrigger": "1"}
    seen = session().readStream.format("maia").options(**options).load()
    sink = seen.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    found = [float(item["durationMs"]["triggerExecution"]) for item in query.recentProgress if item["numInputRows"]]
    return Latency(events, attributes, tuple(found[warm:]), take_apart(domain, warm=warm))


def take_apart(
    domain: Domain, *, warm: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, tuple[float, ...]]:
    """Send each commit of a domain's log through the kernel, timing the stages by a clock of seconds."""
    keys, log = domain.home.keyring(), domain.log
    times: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for commit in log.commits():
        laps = dict.fromkeys(STAGES, 0.0)
        start = clock()
        plan = domain.deliver_plan(TYPE, client=domain.prove(READER), where="a0 any", commits=[commit])
        laps["rights"] = clock() - start
        compiled, index = plan.compiled(), SubscriptionIndex({uid: kind.value for uid, kind in plan.kinds.items()})
        for item in plan.subscriptions:
            index.add(item.identity, item.filter)
        for file in commit.files:
            for logged in log.parcels(commit.lane, file):
                marks = [clock()]
                parcel = open_batch(
                    logged.parse(), plan.kinds, keys, arrives=plan.arrives,
                    tolerance=plan.tolerance, check_origin=plan.check_origin, modes=plan.modes,
                )  # fmt: skip
                marks.append(clock())
                index.match(parcel.batch)
                marks.append(clock())
                compiled.deliver(parcel.batch)
                marks.append(clock())
                opening, matching, both = (after - before for before, after in pairwise(marks))
                laps["opening"] += opening
                laps["matching"] += matching
                laps["screening"] += max(0.0, both - matching)
        for stage, took in laps.items():
            times[stage].append(took * 1000)
    return {stage: tuple(found[warm:]) for stage, found in times.items()}
