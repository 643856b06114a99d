"""A reader's stream that runs through a scenario, step by step: publish, let it take what there is, look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.spark import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class Live:
    """What one client's streaming query brings."""

    def __init__(self, home: Path, who: str, type_name: str, checkpoint: Path) -> None:
        """Follow what comes from now on.

        Raises:
            MaiaError: The client has no right to begin with.
        """
        self._rows: list[dict[str, Any]] = []
        frame = maia.open(home).client(who).subscribe(type_name, starting="latest")
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint / who))
        with spark_errors():
            self._query: StreamingQuery = writer.trigger(processingTime="500 milliseconds").start()
            self._query.processAllAvailable()

    def settle(self) -> list[dict[str, Any]]:
        """Let the stream take what there is; return what it brought since the last time."""
        with spark_errors():
            self._query.processAllAvailable()
        found, self._rows = self._rows, []
        return found

    def stop(self) -> None:
        """End it."""
        self._query.stop()

    def _take(self, rows: DataFrame, _number: int) -> None:
        self._rows += [row.asDict() for row in rows.collect()]
