"""Spark behind a domain: frames in, frames out, through the one data source and the one kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from maia.domain import (
    Asked,
    Domain,
    Published,
    Written,
    commit_publication,
    plan_parts,
    publication_operation,
    published_before,
    write_partition,
)
from maia.errors import UsageError
from maia.events import EventType
from maia.home import Home, now
from maia.kernel import PublishPlan
from maia.spark.audit import audit_table
from maia.spark.errors import spark_errors
from maia.spark.fitting import nothing_published
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.pandas_rows import from_pandas
from maia.spark.session import check_task, prepare_session, session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


Rows: TypeAlias = DataFrame | pa.Table | pa.RecordBatch | pd.DataFrame
"""What can be published."""


class SparkEngine:
    """Runs the plans of one domain on Spark."""

    def __init__(self, domain: Domain) -> None:
        """Serve a domain; no session is started yet."""
        self._domain = domain

    def is_stream(self, rows: object) -> bool:
        """Tell whether rows are a streaming DataFrame."""
        return isinstance(rows, DataFrame) and rows.isStreaming

    def publish(self, rows: Rows, asked: Asked, *, publication: str, strict: bool) -> Published:
        """Publish the rows of a batch: planned and committed here, enforced and sealed by the tasks."""
        domain = self._domain
        plan = domain.publish_plan(
            asked.events.published(domain), client=asked.client, publication=publication, advertise=asked.advertise
        )
        known = domain.lanes.find(publication)
        if known is not None and not known.query:
            return published_before(known)
        frame, client = self._frame(rows, plan.event_type()), asked.client.name
        operation = publication_operation(domain.home, plan, client=client, at=domain.clock())
        with operation.failing():
            written = self._run(frame, plan)
            refused: Counter[tuple[str, str]] = Counter()
            for item in written:
                refused.update(item.refused)
            if strict and refused:
                raise nothing_published(refused)
        return commit_publication(
            domain.home, domain.lanes, plan, written, client=client, operation=operation.number, at=domain.clock()
        )

    def publish_stream(self, frame: DataFrame, asked: Asked, *, publication: str, checkpoint: Path) -> StreamingQuery:
        """Publish a stream, each micro-batch once."""
        prepare_session(frame.sparkSession, trusted=self._domain.home.trusts_disks)
        options = self._options(asked, publication=publication)
        writer = frame.writeStream.format("maia").options(**options.to_spark())
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def read(self, asked: Asked) -> DataFrame:
        """Read what the log holds now."""
        self._check(asked)
        with spark_errors():
            return self._session().read.format("maia").options(**self._options(asked).to_spark()).load()

    def subscribe(self, asked: Asked, *, starting: str) -> DataFrame:
        """Follow the log."""
        self._check(asked)
        options = self._options(asked, starting=starting)
        with spark_errors():
            return self._session().readStream.format("maia").options(**options.to_spark()).load()

    def audit(self) -> DataFrame:
        """Give the audit as a table."""
        return audit_table(self._session(), self._domain.home, at=self._domain.clock())

    def _options(self, asked: Asked, *, publication: str | None = None, starting: str = "earliest") -> SourceOptions:
        return SourceOptions(
            home=str(self._domain.home.path.resolve()), type=asked.events.type, topic=asked.events.topic,
            version=asked.events.version, as_=asked.client.name, where=asked.where, attributes=asked.attributes,
            with_event_id=asked.with_event_id, publication=publication, starting_offsets=starting, agent=asked.agent,
            advertise=asked.advertise,
        )  # fmt: skip

    def _check(self, asked: Asked) -> None:
        """Refuse here, before Spark is asked, a client without the right and a filter that it may not use."""
        plan_parts(self._domain, asked.events, client=asked.client, where=asked.where)

    def _session(self) -> SparkSession:
        spark = session()
        prepare_session(spark, trusted=self._domain.home.trusts_disks)
        return spark

    def _frame(self, rows: Rows, event_type: EventType) -> DataFrame:
        """Make a DataFrame of whatever rows are.

        Raises:
            UsageError: They are nothing that holds rows: ``NO_ROWS``.
        """
        if isinstance(rows, DataFrame):
            prepare_session(rows.sparkSession, trusted=self._domain.home.trusts_disks)
            return rows
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if isinstance(rows, pd.DataFrame):
            rows = from_pandas(rows, event_type)
        if isinstance(rows, pa.Table):
            return self._session().createDataFrame(rows)
        raise UsageError(
            f"rows come as a DataFrame of Spark or pandas, or as an Arrow table, not as `{type(rows).__name__}`",
            code="NO_ROWS",
        )

    def _run(self, frame: DataFrame, plan: PublishPlan) -> list[Written]:
        """Run the tasks of a publication. What they send back are names, counts and positions, no values."""
        home = str(self._domain.home.path.resolve())

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            place = Home.open(home)
            with in_one_line():
                check_task(trusted=place.trusts_disks)
                partition = 0 if context is None else context.partitionId()
                written = write_partition(place, plan, partition, batches, at=now())
            yield pa.RecordBatch.from_arrays([pa.array([written.to_json()], type=pa.string())], names=["written"])

        with spark_errors():
            found = frame.mapInArrow(task, "written string").collect()
        return [Written.from_json(row[0]) for row in found]
