"""A session that does not seal what leaves its memory is refused at every door, or said to be protected otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from processes import environment

import maia
from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes, publish_here

DOORS = """
import json, sys
from pathlib import Path
import maia
from maia.testing import spark_session

home, name, ways = sys.argv[1:]
spark = spark_session(Path("spark"), spark_master="local[2]", spark_io_encryption_enabled="false")
domain = maia.open(home)
options = {"home": home, "type": name, "as": "BO"}
publishing = spark.createDataFrame([("AE05 XYZ",)], "numberplate string").write.format("maia").mode("append")
doors = {
    "prepare": lambda: maia.prepare(spark, home=home),
    "read": lambda: domain.client("BO").read(name),
    "said again": lambda: (spark.builder.config("spark.io.encryption.enabled", "true").getOrCreate(), doors["read"]()),
    "subscribe": lambda: domain.client("BO").subscribe(name),
    "format": lambda: spark.read.format("maia").options(**options).load().count(),
    "write": lambda: publishing.options(**{**options, "as": "CCTV"}).save(),
}
for way in ways.split(","):
    try:
        doors[way]()
        said = "open"
    except Exception as error:
        said = "SPARK_SETTING" if "SPARK_SETTING" in str(error) else repr(error)
    print(json.dumps([way, said]))
"""
WAYS = ("prepare", "read", "subscribe", "write", "format")
"""The first three are doors of Python, which look before Spark is asked; where Spark itself leads in, its tasks do."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes of the network once, with a sighting in their log."""
    made = numberplate_homes(tmp_path_factory.mktemp("sessions"), network=True)
    sighting = {"numberplate": "AE05 XYZ", "timestamp": datetime.now(UTC), "location": "Victoria"}
    publish_here(maia.open(made.ccs).home, TYPE_NAME, [sighting], as_="CCTV", at=datetime.now(UTC))
    return made


def told(folder: Path, home: Path, *doors: str) -> dict[str, str]:
    """Knock at doors in a session of another process, which leaves spills and shuffles in the clear."""
    command = [sys.executable, "-c", DOORS, str(home), TYPE_NAME, ",".join(doors)]
    ran = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))


@pytest.mark.slow
@pytest.mark.threat("T75")
def test_a_session_that_spills_in_the_clear_is_refused(world: NumberplateHomes, tmp_path: Path) -> None:
    """Without IO encryption every door says so, and what to do."""
    assert told(tmp_path, world.ccs, *WAYS) == dict.fromkeys(WAYS, "SPARK_SETTING")


@pytest.mark.slow
@pytest.mark.threat("T75")
def test_a_running_session_is_judged_by_what_it_was_started_with(world: NumberplateHomes, tmp_path: Path) -> None:
    """Words put on top of a context that spills in the clear change nothing at the doors of Python."""
    assert told(tmp_path, world.ccs, "said again", "prepare") == dict.fromkeys(
        ("said again", "prepare"), "SPARK_SETTING"
    )


@pytest.mark.slow
def test_a_domain_whose_disks_are_trusted_takes_any_session(world: NumberplateHomes, tmp_path: Path) -> None:
    """Where ``maia.toml`` says that the disks are protected otherwise, the same session is let in at all of them."""
    settings = world.ccs / "maia.toml"
    settings.write_text(f'spill = "trusted"\n{settings.read_text("utf-8")}', "utf-8")
    assert told(tmp_path, world.ccs, *WAYS) == dict.fromkeys(WAYS, "open")
