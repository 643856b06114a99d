"""Streaming: rows that arrive as files become events, and a reader follows them; a restart repeats nothing."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import maia
from maia.spark import session


def run(home: Path, command: str) -> None:
    """Run a command of `maia` in a home."""
    subprocess.run([sys.executable, "-m", "maia.cli", "-q", *command.split(), "--home", home], check=True)


with tempfile.TemporaryDirectory() as folder:
    home, arrivals = Path(folder, "city"), Path(folder, "arrivals")
    arrivals.mkdir()
    subprocess.run([sys.executable, "-m", "maia.cli", "-q", "domain", "init", home], check=True)
    for name in ("owner", "camera", "planner"):
        run(home, f"key new {name} --no-passphrase")
    run(home, "type define owner/Sighting@1 --attribute plate:string:1 --attribute place:string:2")
    for name in ("broker", "camera"):
        run(home, f"grant --from owner --to {name} --type owner/Sighting --action publish")
    run(home, "grant --from owner --to planner --type owner/Sighting --action subscribe --attribute 2")

    city, spark = maia.open(home), session()
    camera, planner = city.client("camera"), city.client("planner")

    def arrive(name: str, *rows: tuple[str, str]) -> None:
        """Let a file of sightings arrive, and publish what is new."""
        lines = [json.dumps({"plate": plate, "place": place}) for plate, place in rows]
        (arrivals / f"{name}.json").write_text("\n".join(lines))
        frame = spark.readStream.schema("plate string, place string").json(str(arrivals))
        query = camera.publish(frame, "Sighting", publication="camera-1")  # goes on where it left off
        query.processAllAvailable()
        query.stop()

    def follow() -> list[tuple[str | None, ...]]:
        """Take up what came since the last time."""
        seen: list[tuple[str | None, ...]] = []
        writer = planner.subscribe("Sighting").writeStream.option("checkpointLocation", f"{folder}/place")
        writer = writer.foreachBatch(lambda frame, _: seen.extend(tuple(row) for row in frame.collect()))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(seen, key=str)

    arrive("one", ("AE05 XYZ", "Victoria"), ("BX51 ABC", "Euston"))
    print("first:", follow())
    arrive("two", ("AE05 XYZ", "Paddington"))
    print("then:", follow())
    print("nothing new:", follow())
