"""What acceptance tests share: the command, worlds that are built once, and one Spark session a worker.

Fixtures:
    maia_command: the `maia` command in this process, with an empty home.
    spark: the session; tests that ask for it, or for a fixture that does, are marked `spark`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from maia.testing import Command, spark_session

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Spark; pyspark leaves sockets to the garbage collector."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture
def maia_command(tmp_path: Path) -> Command:
    """Give the command with an empty home."""
    return Command(tmp_path / "home")


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which Spark works."""
    return tmp_path_factory.mktemp("spark-local")


@pytest.fixture
def spark(spark_folder: Path) -> Any:
    """Give the session that runs in this worker; other folders' tests may have replaced it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its launcher's pipes open
        return spark_session(spark_folder)
