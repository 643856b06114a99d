"""What columnar segments cost and save on realistic rows: twelve mixed columns through plain Parquet and through Maia.

    python benchmarks/bench_columns.py [--events 1000000] [--runs 3] [--modes attribute,plain]

Arms take turns in one Spark session, and the first round warms up and is not counted. Shown are medians in seconds, and
the throughput of each mode as a share of plain Parquet's: 1.0 is as fast, more is faster; of sizes less is smaller.
Reading one column, the average and one percent name their projection, which is how Maia is told what to open.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql.functions import avg

import maia
from maia.bench.homes import READER, TYPE, WRITER, make_domain
from maia.events import EncryptionMode, attribute
from maia.spark import session

COLUMNS = {
    "id": ("integer", "id"),
    "patient": ("string", "concat('NHS', lpad(cast(pmod(hash(id), 50000) as string), 7, '0'))"),
    "ward": ("string", "element_at(array('A', 'B', 'C', 'D', 'E', 'F'), cast(id % 6 + 1 as int))"),
    "test": (
        "string",
        "element_at(array('glucose', 'sodium', 'potassium', 'lactate', 'urea'), cast(pmod(hash(id, 1), 5) + 1 as int))",
    ),
    "value": ("float", "round(rand(7) * 200, 2)"),
    "unit": ("string", "element_at(array('mmol/l', 'g/dl', 'mg/l'), cast(id % 3 + 1 as int))"),
    "taken": ("timestamp", "timestamp_seconds(1790000000 + id)"),
    "born": ("date", "date_add(date'1970-01-01', cast(rand(8) * 30000 - 14000 as int))"),
    "urgent": ("boolean", "id % 10 = 0"),
    "dose": ("integer", "if(id % 4 = 0, null, cast(rand(9) * 1000 as bigint))"),
    "site": ("string", "concat('site-', cast(pmod(hash(id, 2), 200) as string))"),
    "note": ("string", "if(id % 5 = 0, concat('sample ', id, ' haemolysed, repeat advised'), null)"),
}
READS = ("all", "one", "average", "percent")


def rows(events: int) -> DataFrame:
    """Make the rows and keep them in the memory of Spark, so that making them is not measured."""
    frame = session().range(0, events, 1, 2).selectExpr(*[f"{text} as {name}" for name, (_, text) in COLUMNS.items()])
    frame = frame.cache()
    frame.count()
    return frame


class Arm:
    """One way to keep the rows."""

    def __init__(self, name: str, frame: DataFrame, folder: Path) -> None:
        """Prepare what is not measured."""
        self.name, self._frame, self._path = name, frame, folder / name
        if name != "parquet":
            kinds = tuple(attribute(one, at, kind) for at, (one, (kind, _)) in enumerate(COLUMNS.items()))
            make_domain(self._path, kinds, EncryptionMode(name))

    def clear(self) -> None:
        """Throw away what was written before."""
        if self.name == "parquet":
            shutil.rmtree(self._path, ignore_errors=True)
        else:
            for part in ("log", "lanes"):
                shutil.rmtree(self._path / part, ignore_errors=True)

    def write(self) -> None:
        """Write all rows."""
        if self.name == "parquet":
            self._frame.write.parquet(str(self._path))
        else:
            maia.open(self._path).client(WRITER).publish(self._frame, TYPE)

    def read(self, what: str) -> None:
        """Read what is named, and let Spark throw it away."""
        columns = {"one": ["value"], "average": ["ward", "value"]}.get(what)
        if self.name == "parquet":
            frame = session().read.parquet(str(self._path))
            frame = frame if columns is None else frame.select(*columns)
        else:
            options = {"home": str(self._path), "as": READER, "type": TYPE}
            if columns is not None:
                options["attributes"] = ",".join(columns)
            frame = session().read.format("maia").options(**options).load()
        if what == "percent":
            frame = frame.where("patient < 'NHS0000500'")
        if what == "average":
            frame = frame.groupBy("ward").agg(avg("value"))
        frame.write.format("noop").mode("overwrite").save()

    def size(self) -> int:
        """Count the octets of the files that hold rows."""
        return sum(path.stat().st_size for path in self._path.rglob("*.parquet"))


def timed(work: Callable[[], None]) -> float:
    """Tell how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure, and show a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--modes", default="attribute,plain")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        frame = rows(asked.events)
        arms = [Arm(name, frame, Path(folder)) for name in ("parquet", *asked.modes.split(","))]
        laps: dict[tuple[str, str], list[float]] = {}
        for number in range(asked.runs + 1):
            for arm in arms:
                arm.clear()
                took = {"write": timed(arm.write)}
                took |= {what: timed(lambda arm=arm, what=what: arm.read(what)) for what in READS}  # type: ignore[misc]
                if number:
                    for what, lap in took.items():
                        laps.setdefault((arm.name, what), []).append(lap)
        print(f"{asked.events:,} rows, {asked.runs} runs; seconds, and throughput as a share of plain Parquet's")
        for what in ("write", *READS):
            plain = median(laps["parquet", what])
            shown = [f"{arm.name} {median(laps[arm.name, what]):.2f} ({plain / median(laps[arm.name, what]):.2f})"
                     for arm in arms]  # fmt: skip
            print(f"{what:8s} {'   '.join(shown)}")
        plain_size = arms[0].size()
        print(
            "size     "
            + "   ".join(f"{arm.name} {arm.size() / 2**20:.1f} MiB ({arm.size() / plain_size:.2f})" for arm in arms)
        )


if __name__ == "__main__":
    main()
