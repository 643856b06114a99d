"""One Spark session for all tests of this folder, and the small network of the fault tests."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FAULTS = str(Path(__file__).parent.parent / "faults")
sys.path.insert(0, FAULTS)

from network import Network, build  # noqa: E402 - the folder must be on the path first


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give the session: two workers, a task may fail three times, slow tasks are run twice."""
    from pyspark.sql import SparkSession

    from maia.spark import session

    # Another file's session in this process would be taken up as it is.
    left = SparkSession.getActiveSession()
    if left is not None:
        left.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its launcher's pipes open
        made = session(
            spark_master="local[2,3]",
            spark_speculation="true",
            spark_local_dir=str(tmp_path_factory.mktemp("spark-local")),
            spark_driver_memory="1g",
            spark_executorEnv_PYTHONPATH=FAULTS,  # workers find the functions that the tests send them by name
        )
        yield made
        made.stop()
        gc.collect()


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")
