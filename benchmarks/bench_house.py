"""Two trees of Maia side by side: does a change of the house cost time?

    python benchmarks/bench_house.py --against ../other/src [--times FILE] [--output docs/reference/benchmarks]

Each lap is a process of its own with the sources of one tree, in turns, on the same rows: publish and read, batch and
stream, through `format("maia")`, which both trees speak. Reported are medians, and the ratio of throughputs (above 1 is
faster than the other tree). Then plans are made for a micro-batch of unchanged rights, in this tree. ``--times`` keeps
what was measured in a file and adds to it, so that several short runs make one page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
WHAT = ("publish batch", "read batch", "publish stream", "read stream")
PLANS = ("publish", "deliver")
RATIO_AIM, PLAN_AIM = 0.97, 2.0
LAP = r"""
import json, sys, time
from datetime import UTC, datetime
from pathlib import Path
from pyspark.sql import SparkSession
from maia.authority import Action, type_right
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.principals import Authorisation, KeySigner, issue
try:
    from maia.home import Home, HomeConfig
    from maia.spark import session
except ImportError:
    from maia.stores import Home, HomeConfig
    from maia.pipeline import session

root, events, laps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
home = Home.create(root / "home", HomeConfig(name="house"))
owner, writer, reader = KeySigner.generate(), home.new_key("writer"), home.new_key("reader")
columns = 10
definition = EventType(
    name=TypeName(owner.public_key, "bench.Event", parse_version(0)),
    attributes=tuple(attribute(f"a{at}", at, "string") for at in range(columns)),
    options=Options(encryption=EncryptionMode.ATTRIBUTE),
)
home.types.put(sign_event_type(definition, owner).raw, at=datetime.now(UTC))
for who, action in ((writer, Action.PUBLISH), (reader, Action.SUBSCRIBE), (home.broker, Action.PUBLISH)):
    right = type_right(owner.public_key, "bench.Event", actions=[action])
    body = Authorisation(issuer=owner.public_key, subject=who.public_key, delegate=False, tag=right.to_sexp())
    home.certificates.add(issue(body, owner))
spark = session()
options = {"home": str(home.path), "type": "bench.Event"}
made = [f"rpad(concat('v{at}-', id), 30, 'x') as a{at}" for at in range(columns)]
rows = spark.range(0, events, 1, 2).selectExpr(*made).cache()
rows.count()
rows.limit(100).write.format("maia").options(**options, **{"as": "writer"}).mode("append").save()
spark.read.format("maia").options(**options, **{"as": "reader"}).load().write.format("noop").mode("overwrite").save()
took = {}

def timed(name, work):
    start = time.perf_counter()
    work()
    took.setdefault(name, []).append(time.perf_counter() - start)

def publish_batch():
    rows.write.format("maia").options(**options, **{"as": "writer"}).mode("append").save()

def read_batch():
    seen = spark.read.format("maia").options(**options, **{"as": "reader"}).load()
    seen.write.format("noop").mode("overwrite").save()

rows.repartition(6).write.parquet(str(root / "input"))

def publish_stream(lap):
    given = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", "2").parquet(str(root / "input"))
    writer = given.writeStream.format("maia").options(**options, **{"as": "writer", "publication": f"s{lap}"})
    query = writer.option("checkpointLocation", str(root / f"in-{lap}")).trigger(availableNow=True).start()
    query.awaitTermination()

def read_stream(lap):
    seen = spark.readStream.format("maia").options(**options, **{"as": "reader", "maxCommitsPerTrigger": "2"}).load()
    sink = seen.writeStream.format("noop").option("checkpointLocation", str(root / f"out-{lap}"))
    sink.trigger(availableNow=True).start().awaitTermination()

for lap in range(laps):
    timed("publish batch", publish_batch)
    timed("read batch", read_batch)
    timed("publish stream", lambda: publish_stream(lap))
    timed("read stream", lambda: read_stream(lap))
print(json.dumps(took))
"""

PLANNING = r"""
import json, sys, time
from pathlib import Path
from maia.bench import make_domain
from maia.events import EncryptionMode

domain = make_domain(Path(sys.argv[1]) / "home", 10, EncryptionMode.ATTRIBUTE)
writer, reader = domain.prove("writer"), domain.prove("reader")
makers = {
    "publish": lambda: domain.publish_plan("bench.Event", client=writer, publication="house"),
    "deliver": lambda: domain.deliver_plan("bench.Event", client=reader, where="a0 any", commits=()),
}
took = {}
for name, make in makers.items():
    make()
    for _ in range(500):
        start = time.process_time()
        make()
        took.setdefault(name, []).append(time.process_time() - start)
print(json.dumps(took))
"""

Times = dict[str, dict[str, list[float]]]


def run(program: str, source: Path, *arguments: object) -> dict[str, list[float]]:
    """Run a program in a process of its own with the sources of a tree."""
    with tempfile.TemporaryDirectory(prefix="maia-house-") as folder:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, "-c", program, folder, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{source}: {done.stderr[-2000:]}")
        found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
        return found


def page(times: Times, against: str, events: int) -> str:
    """Write what was measured, and which aims it meets."""
    laps = min(len(found) for found in times["this"].values())
    lines = [
        "# Benchmark: the house",
        "",
        f"Made by `python benchmarks/bench_house.py`: this tree against {against}, on the same machine in turns.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}. {events:,} events of 10",
        f'attributes through `format("maia")`, at least {laps} laps of each tree; medians in seconds. A ratio',
        "above 1 is faster than the other tree.",
        "",
        f"| | other tree | this tree | ratio | aim: at least {RATIO_AIM} |",
        "|---|---:|---:|---:|---|",
    ]
    for what in WHAT:
        other, this = (statistics.median(times[name][what]) for name in ("other", "this"))
        lines.append(f"| {what} | {other:.2f} | {this:.2f} | {other / this:.2f} | {_met(other / this >= RATIO_AIM)} |")
    lines += [
        "",
        "## Planning",
        "",
        "A plan says what a micro-batch may do: types, chains, clauses, filters. While no file and no notice changed,",
        "it is made of what the `Domain` holds already. Milliseconds of processor time for one plan:",
        "",
        f"| plan | median | 99 of 100 below | aim: at most {PLAN_AIM:.0f} ms in the median |",
        "|---|---:|---:|---|",
    ]
    for what in PLANS:
        found = [1000 * seconds for seconds in times["plans"][what]]
        middle, high = statistics.median(found), statistics.quantiles(found, n=100)[-1]
        lines.append(f"| {what} | {middle:.2f} | {high:.2f} | {_met(middle <= PLAN_AIM)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure both trees in turns and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, required=True, help="the `src` folder of the other tree")
    parser.add_argument("--called", default="another tree", help="what the page calls it")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--times", type=Path, help="a file that keeps what was measured, for further rounds")
    parser.add_argument("--output", type=Path, help="the folder of the page; printed when left out")
    asked = parser.parse_args()
    times: Times = {"this": {}, "other": {}, "plans": {}}
    if asked.times is not None and asked.times.exists():
        times = json.loads(asked.times.read_text("utf-8"))
    for number in range(asked.rounds):
        trees = [("other", asked.against.resolve()), ("this", HERE)]
        for name, source in trees if number % 2 else trees[::-1]:
            _add(times[name], run(LAP, source, asked.events, asked.laps))
    _add(times["plans"], run(PLANNING, HERE))
    if asked.times is not None:
        asked.times.write_text(json.dumps(times), "utf-8")
    text = page(times, asked.called, asked.events)
    print(text)
    if asked.output is not None:
        (asked.output / "house.md").write_text(text, "utf-8")


def _add(kept: dict[str, list[float]], found: dict[str, list[float]]) -> None:
    for what, laps in found.items():
        kept.setdefault(what, []).extend(laps)


def _met(fulfilled: bool) -> str:  # noqa: FBT001 - the one thing it is about
    return "met" if fulfilled else "**missed**"


if __name__ == "__main__":
    main()
