"""Secrets stay where they are needed: no process that Maia starts gets one, and none stands in a command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import MAIA, environment

from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes

HUSH = "hush-hush-hush"
SESSION = """
from pathlib import Path
from maia.testing import spark_session
spark_session(Path("spark"), spark_master="{master}"{more})
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Give the numberplate homes."""
    return numberplate_homes(tmp_path_factory.mktemp("homes"))


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """Make a Java that writes down how it was started, and ends."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n{{ env; echo "ARGUMENTS $@"; }} >> "{tmp_path}/started"\nexit 1\n', "utf-8")
    program.chmod(0o755)
    return program.parent.parent


def started(tmp_path: Path, java: Path, *command: str) -> str:
    """Run a command that starts Java, and give what Java was told."""
    secret = {"MAIA_PASSPHRASE": HUSH, "MAIA_DATABASE_URL": f"postgresql://maia:{HUSH}@/maia"}
    ran = subprocess.run(
        command, env=environment(JAVA_HOME=str(java), **secret), cwd=tmp_path, capture_output=True, check=False
    )
    assert ran.returncode != 0
    assert HUSH.encode() not in ran.stdout + ran.stderr
    return (tmp_path / "started").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.threat("T75")
def test_the_java_machine_of_a_command_gets_no_passphrase(homes: NumberplateHomes, java: Path, tmp_path: Path) -> None:
    """`maia publish` takes the passphrase out of the environment before it starts anything."""
    rows = tmp_path / "rows.json"
    rows.write_text('{"numberplate": "AE05 XYZ", "timestamp": "2026-06-01T09:00:00Z", "location": "Euston"}\n', "utf-8")
    told = started(
        tmp_path, java, *MAIA, "publish", str(rows), "--type", TYPE_NAME, "--as", "CCTV", "--home", str(homes.ccs)
    )
    assert "spark.master=local[*,4]" in told  # a task whose worker is killed is tried again
    assert HUSH not in told


@pytest.mark.slow
@pytest.mark.threat("T75")
@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:1"])
def test_the_java_machine_of_a_notebook_gets_no_secret(master: str, java: Path, tmp_path: Path) -> None:
    """Nor does a session from Python; the secret of a cluster stands in no command line, the other settings do."""
    more = f', spark_authenticate_secret="{HUSH}"'
    told = started(tmp_path, java, sys.executable, "-c", SESSION.format(master=master, more=more))
    assert f"spark.master={master}" in told
    assert HUSH not in told
