"""Publishing, reading, following and SQL go over Spark Connect to a real server, and what cannot is refused by name."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from maia.spark.java import find_java
from maia.spark.session import SETTINGS
from maia.testing import numberplate_homes

_WANTED = ("grpc", "grpc_status", "google.rpc", "zstandard")
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PATIENCE = 480


def _lacking() -> list[str]:
    def there(name: str) -> bool:
        with suppress(ModuleNotFoundError):
            return importlib.util.find_spec(name) is not None
        return False

    return [name for name in _WANTED if not there(name)]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(1000),
    pytest.mark.skipif(bool(_lacking()), reason=f"Spark Connect needs the extra `connect`: {', '.join(_lacking())}"),
]


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Start a Connect server with Maia's settings, as a process of its own; give its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    java = find_java()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    if java.home is not None:
        environment["JAVA_HOME"] = str(java.home)
    settings = {
        **SETTINGS,
        "spark.master": "local[2,4]",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(tmp_path / "spark"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    said = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = str(Path(sys.executable).parent / "spark-submit")
    with (tmp_path / "server.txt").open("wb") as output:
        server = subprocess.Popen(
            [submit, "--class", _SERVER, *said, "spark-internal"], env=environment, cwd=tmp_path, stdout=output,
            stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + _PATIENCE
        while not _answers(port):
            assert server.poll() is None, (tmp_path / "server.txt").read_text("utf-8")[-2000:]
            assert time.monotonic() < end, "the server did not answer"
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def test_everything_that_moves_rows_goes_over_spark_connect(address: str, tmp_path: Path) -> None:
    """Events are published, read, followed and asked for in SQL by one program; its refusals have their codes."""
    world = numberplate_homes(tmp_path / "world")
    client = Path(__file__).with_name("connect_client.py")
    ran = subprocess.run(
        [sys.executable, client, address, world.ccs, tmp_path], capture_output=True, text=True, check=False,
        timeout=_PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert (found["published"], found["read"]) == (3, ["P0", "P1", "P2"])
    assert found["followed"] == ["P0", "P1", "P2", "P9"]
    assert found["sql"] == 4
    # A camera may publish and not read; what is refused before Spark is asked is refused here as well.
    assert found["refused"] == found["by task"] == "NOT_PERMITTED"
    assert found["labelled"] == "SPARK_CONNECT"
    # The session says that it does not encrypt; the server was started so that it does, and that counts.
    assert (found["said"], found["believed"]) == ("false", "")
