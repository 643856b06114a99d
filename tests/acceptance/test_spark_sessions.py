"""A session that does not seal what leaves its memory is refused at every door, or said to be protected otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment

from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes

DOORS = """
import json, sys
from pathlib import Path
import maia
from maia.testing import spark_session

home, name, ways = sys.argv[1:]
spark = spark_session(Path("spark"), spark_io_encryption_enabled="false")
domain = maia.open(home)
options = {"home": home, "type": name, "as": "BO"}
publishing = spark.createDataFrame([("AE05 XYZ",)], "numberplate string").write.format("maia").mode("append")
doors = {
    "prepare": lambda: maia.prepare(spark, home=home),
    "read": lambda: domain.client("BO").read(name),
    "subscribe": lambda: domain.client("BO").subscribe(name),
    "format": lambda: spark.read.format("maia").options(**options).load().count(),
    "write": lambda: publishing.options(**{**options, "as": "CCTV"}).save(),
}
for way in ways.split():
    try:
        doors[way]()
        said = "open"
    except Exception as error:
        said = "SPARK_SETTING" if "SPARK_SETTING" in str(error) else repr(error)
    print(json.dumps([way, said]))
"""
EARLY, LATE = ("prepare", "read", "subscribe"), ("write", "format")
"""The doors of Python look before Spark is asked; where Spark itself leads in, its tasks do."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes of the network once."""
    return numberplate_homes(tmp_path_factory.mktemp("sessions"), network=True)


def told(folder: Path, home: Path, *doors: str) -> dict[str, str]:
    """Knock at doors in a session of another process, which leaves spills and shuffles in the clear."""
    command = [sys.executable, "-c", DOORS, str(home), TYPE_NAME, " ".join(doors)]
    ran = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))


@pytest.mark.slow
@pytest.mark.threat("T75")
def test_a_session_that_spills_in_the_clear_is_refused_unless_its_disks_are_trusted(
    world: NumberplateHomes, tmp_path: Path
) -> None:
    """Without IO encryption every door says so; where ``maia.toml`` says that the disks are trusted, all are open."""
    doors = (*EARLY, *LATE)
    assert told(tmp_path, world.ccs, *doors) == dict.fromkeys(doors, "SPARK_SETTING")
    settings = world.ccs / "maia.toml"
    settings.write_text(f'spill = "trusted"\n{settings.read_text("utf-8")}', "utf-8")
    assert told(tmp_path, world.ccs, *doors) == dict.fromkeys(doors, "open")
