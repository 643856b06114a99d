"""One Spark session for all tests of this folder, and the small network of the fault tests."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))

from network import Network, build  # noqa: E402 - the folder must be on the path first


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give the session: two workers, a task may fail three times, slow tasks are run twice."""
    from maia.pipeline import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its launcher's pipes open
        made = session(
            spark_master="local[2,3]",
            spark_speculation="true",
            spark_local_dir=str(tmp_path_factory.mktemp("spark-local")),
            spark_driver_memory="1g",
        )
        yield made
        made.stop()


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")


@pytest.fixture(autouse=True)
def _no_leftover_environment() -> Iterator[None]:
    """Keep what a test sets for its workers out of the next one."""
    before = dict(os.environ)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
