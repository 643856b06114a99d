"""What matching, covering and translating cost: the index against evaluating every filter, translation against a copy.

    python benchmarks/bench_filters.py [--largest 1000000] [--output docs/reference/benchmarks]

Writes ``filters.md`` (tables) and ``filters.svg`` (plot) into the output folder. Every figure is the best of several
runs in one process. Within a workload, all sizes see the same batch of 10,000 events and have the same number of
matches (ranges: the same on average), so a growing cost is the price of more subscriptions and nothing else.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from maia.events import AttributeType, EventType, TypeName, attribute, check_batch, parse_version, translate_batch
from maia.filters import (
    Operator,
    Relation,
    SubscriptionIndex,
    TypedConstraint,
    TypedFilter,
    compile_filter,
    covers,
    matches,
    select,
)
from maia.principals import KeySigner

EVENTS = 10_000
HOT = 100
SPAN = 1_000_000_000
TYPES = {"symbol": "string", "price": "integer", "name": "string"}
SIZES = (100, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    workload: str
    size: int
    matches: int
    index: float
    batches: float
    single: float
    adding: float


def constraint(attribute: str, operator: Operator, value: int | str) -> TypedConstraint:
    """A constraint without going through text, which is not what is measured."""
    return TypedConstraint(
        attribute=attribute, type=AttributeType(TYPES[attribute]), operator=operator, values=(value,)
    )


def equality(number: int, size: int) -> TypedFilter:  # noqa: ARG001 - the same for every size
    """One symbol each; the first hundred occur in the batch, the others do not."""
    return TypedFilter(constraints=(constraint("symbol", Operator.EQUAL, f"S{number}"),))


def residual(number: int, size: int) -> TypedFilter:  # noqa: ARG001 - the same for every size
    """One symbol each and a bound on the price that half of the events pass."""
    return TypedFilter(
        constraints=(
            constraint("symbol", Operator.EQUAL, f"S{number}"),
            constraint("price", Operator.LESS, SPAN // 2),
        )
    )


def between(number: int, size: int) -> TypedFilter:
    """A range of prices as narrow as there are many, so that an event meets one on average."""
    low = number * (SPAN // size)
    return TypedFilter(
        constraints=(
            constraint("price", Operator.AT_LEAST, low),
            constraint("price", Operator.LESS, low + SPAN // size),
        )
    )


WORKLOADS: dict[str, Callable[[int, int], TypedFilter]] = {
    "equality": equality,
    "equality and a bound": residual,
    "range": between,
}


def make_batch() -> pa.RecordBatch:
    """One event in ten has one of the hot symbols; the other symbols occur once."""
    rng = np.random.default_rng(20260601)
    symbols = [f"S{row % HOT}" if row % 10 == 0 else f"N{row}" for row in range(EVENTS)]
    return pa.RecordBatch.from_pydict(
        {
            "symbol": symbols,
            "price": rng.integers(0, SPAN, EVENTS),
            "name": [f"name {row % 977}" for row in range(EVENTS)],
        }
    )


def best(action: Callable[[], object], *, runs: int = 9, seconds: float = 5.0) -> float:
    """The shortest of several runs, within a time budget."""
    times: list[float] = []
    while len(times) < runs and (len(times) < 3 or sum(times) < seconds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(workload: str, size: int, batch: pa.RecordBatch) -> Row:
    """Build an index of this size and match the batch against it and against the filters one by one."""
    make = WORKLOADS[workload]
    index = SubscriptionIndex(TYPES)
    filters = [make(number, size) for number in range(size)]
    start = time.perf_counter()
    for number, filter_ in enumerate(filters):
        index.add(number, filter_)
    adding = size / (time.perf_counter() - start)
    # What was built stays; the collector must not walk over a million filters inside a measurement.
    gc.collect()
    gc.freeze()
    seconds = best(lambda: index.match(batch))
    few = filters[:HOT]
    events = batch.slice(0, 50).to_pylist()
    whole = best(lambda: [select(filter_, batch) for filter_ in few], runs=5) / len(few) * size
    single = best(lambda: [matches(filter_, event) for filter_ in few for event in events], runs=5)
    found = len(index.match(batch).rows)
    gc.unfreeze()
    scale = 1e6 / EVENTS
    return Row(
        workload=workload,
        size=size,
        matches=found,
        index=seconds * scale,
        batches=whole * scale,
        single=single / (len(few) * len(events)) * size * 1e6,
        adding=adding,
    )


def covering_rates() -> dict[str, float]:
    """Covering checks per second on random pairs of filters of a few constraints."""
    rng = random.Random(7)
    shapes: dict[str, Callable[[], str]] = {
        "integers": lambda: f"price > {rng.randint(0, 50)} and price < {rng.randint(40, 99)} and price != 45",
        "texts": lambda: f"symbol prefix 'S{rng.randint(0, 20)}' and name = 'n{rng.randint(0, 3)}'",
        "patterns": lambda: f"name prefix 'a{rng.randint(0, 9)}' and name contains '{rng.randint(0, 9)}b'",
    }
    rates = {}
    for name, make in shapes.items():
        filters = [compile_filter(make(), TYPES) for _ in range(60)]
        pairs = [(first, second) for first in filters for second in filters]
        for relation in (Relation.SUBSCRIPTION, Relation.ADVERTISEMENT):
            seconds = best(lambda p=pairs, r=relation: [covers(a, b, r) for a, b in p], runs=5)
            rates[f"{name}, as {relation.value}s"] = len(pairs) / seconds
    return rates


def translation_costs() -> dict[str, float]:
    """Seconds to copy a batch of ten columns, and to see it as another version sees it."""
    rng = np.random.default_rng(11)
    kinds = ["integer", "float", "string", "boolean", "timestamp"] * 2
    owner = KeySigner(bytes(32)).public_key

    def version(number: str, attributes: list[tuple[str, str, str]]) -> EventType:
        items = tuple(attribute(*parts) for parts in attributes)
        return EventType(name=TypeName(owner, "Bench", parse_version(number)), attributes=items)

    first = [(f"a{place}", str(place), kind) for place, kind in enumerate(kinds)]
    # Two renamed, one removed, one added, the order turned round.
    later = [(f"b{uid}" if place < 2 else name, uid, kind) for place, (name, uid, kind) in enumerate(first[1:])]
    source, target = version("1", first), version("2", [*reversed(later), ("new", "77", "string")])
    columns = {
        "integer": pa.array(rng.integers(0, SPAN, EVENTS)),
        "float": pa.array(rng.random(EVENTS)),
        "string": pa.array([f"value {row:024d}" for row in range(EVENTS)]),
        "boolean": pa.array(rng.random(EVENTS) < 0.5),
        "timestamp": pa.array(rng.integers(0, 2**50, EVENTS)).cast(pa.timestamp("us", tz="UTC")),
    }
    batch = check_batch(source, pa.RecordBatch.from_pydict({name: columns[kind] for name, _, kind in first}))

    def copy() -> pa.RecordBatch:
        copied = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
        return pa.RecordBatch.from_arrays(copied, schema=batch.schema)

    return {
        "plain copy": best(copy, runs=200),
        "translate to another version": best(lambda: translate_batch(source, target, batch), runs=200),
        "check, then translate": best(lambda: translate_batch(source, target, check_batch(source, batch)), runs=200),
    }


def table(rows: list[Row], rates: dict[str, float], costs: dict[str, float]) -> str:
    """The page."""
    lines = [
        "# Benchmark: filters",
        "",
        "Written by `benchmarks/bench_filters.py`; run it again to renew it.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, pyarrow {pa.__version__}.",
        f"Best of several runs; batches of {EVENTS:,} events.",
        "",
        "## Matching a batch against many subscriptions",
        "",
        "Cost in microseconds per event. *Ratio* is the index's cost over its cost at 100 subscriptions of the same",
        "workload. *Each filter on the batch* is `select` (pyarrow compute) once per filter, *each filter on each",
        f"event* is `matches`; both are measured on {HOT} filters and multiplied up; nobody would wait for the rest.",
        "",
        "| workload | subscriptions | matches | index | ratio | on the batch | on each event | added per second |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    first = {row.workload: row.index for row in reversed(rows)}
    lines += [
        f"| {row.workload} | {row.size:,} | {row.matches:,} | {row.index:.2f} | {row.index / first[row.workload]:.2f} |"
        f" {row.batches:,.1f} | {row.single:,.0f} | {row.adding:,.0f} |"
        for row in rows
    ]
    target = next((row for row in rows if row.workload == "equality" and row.size == 100_000), None)
    if target is not None:
        ratio = target.index / first["equality"]
        lines += ["", f"Aim: at most 3 at 100,000 equality subscriptions with the same matches. Measured: {ratio:.2f}."]
    lines += ["", "![Cost per event by number of subscriptions](filters.svg)", "", "## Covering checks per second", ""]
    lines += ["| filters | checks per second |", "|---|---:|"]
    lines += [f"| {name} | {rate:,.0f} |" for name, rate in rates.items()]
    copy = costs["plain copy"]
    lines += ["", "## Translating a batch of ten columns", ""]
    lines += ["| what | microseconds a batch | ratio to a plain copy |", "|---|---:|---:|"]
    lines += [f"| {name} | {seconds * 1e6:,.1f} | {seconds / copy:.2f} |" for name, seconds in costs.items()]
    lines += ["", "Aim: translation at most 1.5 times a plain copy. It shares the columns and copies none."]
    return "\n".join(lines) + "\n"


def plot(rows: list[Row], path: Path) -> None:
    """Cost per event over the number of subscriptions, both logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415 - only the plot needs it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "maia"
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for workload in WORKLOADS:
        chosen = [row for row in rows if row.workload == workload]
        axes.plot([row.size for row in chosen], [row.index for row in chosen], marker="o", label=f"index, {workload}")
    chosen = [row for row in rows if row.workload == "equality"]
    axes.plot(
        [row.size for row in chosen], [row.batches for row in chosen], "--", label="each filter on the batch (equality)"
    )
    axes.set(xscale="log", yscale="log", xlabel="subscriptions", ylabel="microseconds per event")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Cost of matching and covering.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest number of subscriptions")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    arguments = parser.parse_args()
    batch = make_batch()
    rows = []
    for workload in WORKLOADS:
        for size in (size for size in SIZES if size <= arguments.largest):
            rows.append(measure(workload, size, batch))
            print(rows[-1], flush=True)
            gc.collect()
    page = table(rows, covering_rates(), translation_costs())
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "filters.md").write_text(page, encoding="utf-8")
    plot(rows, arguments.output / "filters.svg")
    print(page)


if __name__ == "__main__":
    main()
