"""Workers are principals: tasks on a real cluster, whose machines have a key file and nothing of the home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster_program import MORE, ROWS

from maia.errors import UnavailableError
from maia.spark.java import find_java
from maia.testing import Command

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def clinic(folder: Path, log: str) -> Path:
    """Make a home whose log lies elsewhere, with two workers in the group and a third that was revoked."""
    home = folder / "home"
    command = Command(home)
    command.do("domain", "init", str(home), "--log", log)
    home.chmod(0o700)
    for name in ("owner", "lab", "ward"):
        command.do("key", "new", name, "--no-passphrase")
    for kind in ("Result", "Copy"):
        command.do("type", "define", f"owner/{kind}@1", "--attribute", "patient:string", "--attribute", "value:integer")
        for name in ("broker", "lab"):
            command.do("grant", "--from", "owner", "--to", name, "--type", f"owner/{kind}", "--action", "publish")
        command.do("grant", "--from", "owner", "--to", "ward", "--type", f"owner/{kind}", "--action", "subscribe")
    for name in ("w1", "w2", "w3"):
        command.do("worker", "new", name, "--out", str(folder / f"{name}.worker"))
    command.do("worker", "revoke", "w3", "--yes")
    return home


def test_a_cluster_does_the_work_of_a_domain_with_key_files_alone(tmp_path: Path, s3: Any) -> None:
    """Batch and stream, executors killed in the middle: every event once. A worker that was revoked gets nothing."""
    try:
        find_java()
    except UnavailableError as error:
        pytest.skip(error.message)
    home = clinic(tmp_path, f"s3://{s3.new_bucket()}/log")
    program = Path(__file__).with_name("cluster_program.py")
    running = subprocess.Popen(
        [sys.executable, program, home, tmp_path, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = running.communicate(timeout=850)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)  # the master and the workers with it
            running.wait()
    assert running.returncode == 0, err[-3000:]
    said = json.loads(out.splitlines()[-1])
    assert said.pop("looked at") > 1
    assert said.pop("intents") > 1
    assert said.pop("home seen") is not said.pop("hidden")
    assert said == {
        "published": ROWS, "again": True, "read": ROWS, "read twice": 1, "reader saw": ["key", "value"],
        "followed": ROWS + MORE, "followed twice": 1, "right": True, "killed": 3, "ended": True,
        "refused": "NOT_A_WORKER", "held": 0, "kept": 0,
    }  # fmt: skip
