"""One Spark session for many tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maia.spark import session


def spark_session(folder: Path, **conf: str) -> Any:  # noqa: ANN401 - a session of Spark, which this floor does not import
    """Return the session that runs, or start a small one with Maia's settings; the caller never stops it.

    Args:
        folder: Where Spark puts what leaves memory.
        conf: Further settings, with underscores for dots.
    """
    settings = {"spark_master": "local[2,4]", "spark_driver_memory": "1g", "spark_local_dir": str(folder)}
    return session(**{**settings, **conf})
