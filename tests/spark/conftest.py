"""One Spark session for all tests of this folder, and the small network of the fault tests."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from java_here import runs

FAULTS = str(Path(__file__).parent.parent / "faults")
sys.path.insert(0, FAULTS)

from network import Network, build  # noqa: E402 - the folder must be on the path first


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Keep the session of this folder, and end it with the tests."""
    kept: dict[str, Any] = {"folder": str(tmp_path_factory.mktemp("spark-local"))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its launcher's pipes open
        yield kept
        if runs(kept.get("session")):
            kept["session"].stop()
        gc.collect()


@pytest.fixture
def spark(sessions: dict[str, Any]) -> Any:
    """Give the session: two workers, a task may fail three times, slow tasks are run twice.

    Tests of other folders in the same process may have ended it; then it is started anew.
    """
    from pyspark.sql import SparkSession

    from maia.spark.session import forget_dead_java, session

    if not runs(sessions.get("session")):
        forget_dead_java()
        # Another file's session in this process would be taken up as it is.
        left = SparkSession.getActiveSession()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            if left is not None:
                left.stop()
            sessions["session"] = session(
                spark_master="local[2,3]",
                spark_speculation="true",
                spark_local_dir=sessions["folder"],
                spark_driver_memory="1g",
                spark_executorEnv_PYTHONPATH=FAULTS,  # workers find the functions that the tests send them by name
            )
    return sessions["session"]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")
