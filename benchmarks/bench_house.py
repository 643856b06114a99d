"""Two trees of Maia side by side: does a change of the house cost time?

    python benchmarks/bench_house.py --against ../other/src

Each lap is a process of its own with the sources of one tree, in turns, on the same rows: publish and read, batch and
stream, through `format("maia")`, which both trees speak. Reported are medians, and the ratio of throughputs (above 1 is
faster than the other tree).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
WHAT = ("publish batch", "read batch", "publish stream", "read stream")
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


def lap(source: Path, events: int, laps: int) -> dict[str, list[float]]:
    """Run one process with the sources of a tree."""
    with tempfile.TemporaryDirectory(prefix="maia-house-") as folder:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, "-c", LAP, folder, str(events), str(laps)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{source}: {done.stderr[-2000:]}")
        found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
        return found


def main() -> None:
    """Measure both trees in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, required=True, help="the `src` folder of the other tree")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--laps", type=int, default=3)
    asked = parser.parse_args()
    times: dict[str, dict[str, list[float]]] = {"this": {}, "other": {}}
    for number in range(asked.rounds):
        trees = [("other", asked.against.resolve()), ("this", HERE)]
        for name, source in trees if number % 2 else trees[::-1]:
            for what, found in lap(source, asked.events, asked.laps).items():
                times[name].setdefault(what, []).extend(found)
    print(f"{asked.events:,} events of 10 attributes, {asked.rounds} rounds of {asked.laps} laps, medians in seconds\n")
    print("| | other tree | this tree | ratio |\n|---|---|---|---|")
    for what in WHAT:
        other, this = (statistics.median(times[name][what]) for name in ("other", "this"))
        print(f"| {what} | {other:.2f} | {this:.2f} | {other / this:.2f} |")


if __name__ == "__main__":
    main()
