"""Spark over a log in Kafka: `format("maia")`, batch and streaming, whose workers read and write the topics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import environment

from maia.testing import numberplate_homes

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_spark_reads_follows_and_publishes_over_kafka(tmp_path: Path, kafka: Any) -> None:
    """Every event once, by batch and by stream, over a restart and a compaction between two runs."""
    homes = numberplate_homes(tmp_path)
    settings = homes.ccs / "maia.toml"
    settings.write_text(settings.read_text("utf-8").replace('"../log"', f'"{kafka.new_log()}"'), "utf-8")
    program = Path(__file__).with_name("bucket_stream.py")
    ran = subprocess.run(
        [sys.executable, program, homes.ccs, tmp_path], capture_output=True, text=True, check=False, timeout=800,
        env=environment(),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    all_ = ["ONE", "THREE", "TWO"]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said.pop("compacted") > 1
    assert said == {
        "published": 1, "read": all_, "filtered": ["TWO"], "followed": all_, "followed on": ["FOUR"],
        "read on": ["FOUR", *all_],
    }  # fmt: skip
    assert not (tmp_path / "log").exists()
