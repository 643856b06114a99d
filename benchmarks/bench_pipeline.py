"""What protection costs on Spark: the same rows through plain Parquet, through Maia, and sealed value by value.

    python benchmarks/bench_pipeline.py [--events 200000] [--attributes 1,10,25] [--runs 3] [--output FOLDER]

In one run, on the same rows: (a) a plain Parquet log, written and read with the same filter and projection; (b) Maia in
plain mode; (c) Maia in attribute mode, with signatures, matching, screening, translation and audit; (d) Maia in event
mode; (e) Spark's own `aes_encrypt` and `aes_decrypt`, value by value. Variants take turns, the best of the runs counts,
and what matters are the ratios: the machine is shared.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.authority import Action, type_right
from maia.events import EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.pipeline import session
from maia.principals import Authorisation, KeySigner, issue
from maia.stores import Home, HomeConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPE = "bench.Event"
THESIS = {1: 0.46, 10: 0.117}


@dataclass(slots=True)
class Timings:
    """Best times of one variant, in seconds."""

    write: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Write and read together, each at its best."""
        return min(self.write) + min(self.read)


def frame_of(spark: SparkSession, events: int, attributes: int) -> DataFrame:
    """Make rows of 30-character strings, spread over the cores."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = [
        F.rpad(F.concat(F.lit(f"v{i}-"), F.col("id").cast("string")), 30, "x").alias(f"a{i}") for i in range(attributes)
    ]
    frame = spark.range(0, events, 1, 2).select(*names).cache()
    frame.count()
    return frame


def make_home(root: Path, attributes: int, mode: str) -> Home:
    """Make a home with one type, a publisher and a reader with real certificates."""
    home = Home.create(root, HomeConfig(name=f"bench-{mode}"))
    owner, writer, reader = KeySigner.generate(), home.new_key("writer"), home.new_key("reader")
    definition = EventType(
        name=TypeName(owner.public_key, TYPE, parse_version(0)),
        attributes=tuple(attribute(f"a{i}", i, "string") for i in range(attributes)),
        options=Options(encryption=mode),  # type: ignore[arg-type]
    )
    home.types.put(sign_event_type(definition, owner).raw, at=datetime.now(UTC))
    for who, action in ((writer, Action.PUBLISH), (reader, Action.SUBSCRIBE), (home.broker, Action.PUBLISH)):
        right = type_right(owner.public_key, TYPE, actions=[action])
        body = Authorisation(issuer=owner.public_key, subject=who.public_key, delegate=False, tag=right.to_sexp())
        home.certificates.add(issue(body, owner))
    return home


def timed(work: Callable[[], object]) -> float:
    """Run once and return the seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(events: int, attributes: int, runs: int, folder: Path) -> dict[str, Timings]:
    """Measure all variants on the same rows, taking turns."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    spark = session()
    frame = frame_of(spark, events, attributes)
    homes = {
        mode: make_home(folder / f"{attributes}-{mode}", attributes, mode) for mode in ("plain", "attribute", "event")
    }
    found: dict[str, Timings] = {name: Timings() for name in ("parquet", "plain", "attribute", "event", "per value")}
    key = F.expr("unhex('000102030405060708090a0b0c0d0e0f')")

    closed = [F.aes_encrypt(name, key).alias(name) for name in frame.columns]
    opened = [F.aes_decrypt(name, key).cast("string").alias(name) for name in frame.columns]

    def drain(seen: DataFrame) -> None:
        seen.write.format("noop").mode("overwrite").save()

    for number in range(runs + 1):
        laps: dict[str, tuple[float, float]] = {}
        plain = folder / f"parquet-{attributes}-{number}"
        laps["parquet"] = (
            timed(lambda path=plain: frame.write.parquet(str(path))),
            timed(lambda path=plain: drain(spark.read.parquet(str(path)).where("a0 is not null"))),
        )
        for mode, home in homes.items():
            shutil.rmtree(home.log_path, ignore_errors=True)
            laps[mode] = (
                timed(lambda home=home: home.publish(frame, TYPE, as_="writer")),
                timed(lambda home=home: drain(home.read(TYPE, as_="reader", where="a0 any"))),
            )
        sealed = folder / f"per-value-{attributes}-{number}"
        laps["per value"] = (
            timed(lambda path=sealed: frame.select(*closed).write.parquet(str(path))),
            timed(lambda path=sealed: drain(spark.read.parquet(str(path)).select(*opened).where("a0 is not null"))),
        )
        if number:  # the first round warms up workers and compilers
            for name, (write, read) in laps.items():
                found[name].write.append(write)
                found[name].read.append(read)
        for path in (plain, sealed):
            shutil.rmtree(path, ignore_errors=True)
    frame.unpersist()
    return found


def report(results: dict[int, dict[str, Timings]], events: int, output: Path) -> None:
    """Write the table and the plot."""
    lines = [
        "# Pipeline",
        "",
        (
            f"{events:,} events of 30-character strings, written and read; best of the runs, in one process; "
            f"{os.cpu_count()} cores, Python {platform.python_version()}. Regenerate with `make bench`."
        ),
        "",
        "| attributes | variant | write s | read s | events/s | ratio to plain Parquet | thesis |",
        "|---|---|---|---|---|---|---|",
    ]
    for attributes, variants in results.items():
        base = variants["parquet"].total
        for name, timings in variants.items():
            thesis = f"{THESIS[attributes]:.3f}" if name == "attribute" and attributes in THESIS else ""
            lines.append(
                f"| {attributes} | {name} | {min(timings.write):.2f} | {min(timings.read):.2f} "
                f"| {events / timings.total:,.0f} | {base / timings.total:.2f} | {thesis} |"
            )
    output.mkdir(parents=True, exist_ok=True)
    (output / "pipeline.md").write_text("\n".join([*lines, "", "![ratios](pipeline.svg)", ""]), encoding="utf-8")
    _plot(results, output / "pipeline.svg")
    print("\n".join(lines[4:]))


def _plot(results: dict[int, dict[str, Timings]], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6, 3.5))
    sizes = sorted(results)
    for name in ("plain", "attribute", "event", "per value"):
        ratios = [results[size]["parquet"].total / results[size][name].total for size in sizes]
        axes.plot(sizes, ratios, marker="o", label=f"Maia, {name}" if name != "per value" else "value by value")
    axes.plot(list(THESIS), list(THESIS.values()), marker="x", linestyle="--", label="thesis, attribute level")
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set_xlabel("attributes")
    axes.set_ylabel("throughput / plain Parquet")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--attributes", default="1,10,25")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maia-bench-") as folder:
        sizes = [int(size) for size in asked.attributes.split(",")]
        results = {size: run(asked.events, size, asked.runs, Path(folder)) for size in sizes}
    report(results, asked.events, asked.output)


if __name__ == "__main__":
    main()
