"""Spark behind a domain: frames in, frames out, through the one data source and the one kernel."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from maia.domain import (
    Asked,
    Client,
    Domain,
    LabelledRead,
    Look,
    Published,
    Written,
    commit_publication,
    nothing_published,
    order_to_publish,
    plan_parts,
    publication_operation,
    published_before,
    reader_of,
    sight_of,
    take_results,
    take_up,
    write_partition,
)
from maia.errors import UsageError
from maia.events import EventType
from maia.home import now
from maia.kernel import PublishPlan, contradicts_right
from maia.policy import release
from maia.spark.audit import audit_table
from maia.spark.cells import plain_rows
from maia.spark.connect import refuse_connect
from maia.spark.errors import spark_errors
from maia.spark.labelled import LabelledFrame
from maia.spark.labelled_read import label_frame
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.pandas_rows import from_pandas, with_zones
from maia.spark.release import release_frame
from maia.spark.session import check_task, is_local, is_local_task, prepare_session, session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


_logger = logging.getLogger(__name__)
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
        frame, client = self._frame(rows, plan.event_type(), asked.naive_timestamps), asked.client.name
        operation = publication_operation(domain.home, plan, client=client, at=domain.clock())
        with operation.failing():
            order = order_to_publish(domain, plan, client, operation=operation.number, at=domain.clock())
            written = self._run(frame, plan if order is None else None, order, asked.naive_timestamps)
            refused: Counter[tuple[str, str]] = Counter()
            for item in written:
                refused.update(item.refused)
            if strict and refused:
                raise nothing_published(Published(publication=publication, commit=None, events=0, refused=refused))
        return commit_publication(
            domain.home, domain.lanes, plan, written, client=client, operation=operation.number, at=domain.clock(),
            # SECURITY: beyond this machine, what tasks say of themselves does not count.
            ordered=order is not None and (not is_local(frame.sparkSession) or any(item.by_task for item in written)),
        )  # fmt: skip

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

    def look(self, asked: Asked, *, limit: int) -> Look:
        """Read the first rows, and tell what was closed, refused and not read."""
        domain, since = self._domain, self._domain.clock()
        parts = plan_parts(domain, asked.events, client=asked.client, where=asked.where)
        frame = self.read(asked)
        rows = tuple(plain_rows(frame, limit=limit))
        take_results(domain.home)
        sight = sight_of(
            domain.home, [part.plan for part in parts if part.plan is not None], client=asked.client.name, since=since,
            reader=reader_of(asked.client.name, asked.events.text, batch=True), attributes=asked.attributes,
            refused_types=[part.name.type_id for part in parts if part.plan is None],
        )  # fmt: skip
        return Look(tuple(frame.columns), rows, sight)

    def labelled(self, asked: Asked, client: Client, read: LabelledRead) -> LabelledFrame:
        """Read what the log holds now, into a frame that carries labels."""
        source = asked.events.event_type(self._domain)
        refuse_connect(session(), "a labelled frame", "it needs Spark's own analysis; use a session of this process")
        frame = self.read(replace(asked, labelled=read))
        return label_frame(frame, client, self._domain, source, read.labels, filter_text=asked.where)

    def subscribe(self, asked: Asked, *, starting: str) -> DataFrame:
        """Follow the log."""
        self._check(asked)
        options = self._options(asked, starting=starting)
        with spark_errors():
            return self._session().readStream.format("maia").options(**options.to_spark()).load()

    def audit(self) -> DataFrame:
        """Give the audit as a table."""
        take_results(self._domain.home)
        return audit_table(self._session(), self._domain.home, at=self._domain.clock())

    def release(self, frame: DataFrame, tree: release.ReleaseTree) -> DataFrame:
        """Give what a tree of release rules makes of the rows of a frame."""
        prepare_session(frame.sparkSession, trusted=self._domain.home.trusts_disks)
        return release_frame(frame, tree)

    def _options(self, asked: Asked, *, publication: str | None = None, starting: str = "earliest") -> SourceOptions:
        return SourceOptions(
            home=str(self._domain.home.path.resolve()), type=asked.events.type, topic=asked.events.topic,
            version=asked.events.version, as_=asked.client.name, where=asked.where, attributes=asked.attributes,
            with_event_id=asked.with_event_id, publication=publication, starting_offsets=starting, agent=asked.agent,
            advertise=asked.advertise, naive_timestamps=asked.naive_timestamps,
            labelled=None if asked.labelled is None else asked.labelled.ticket,
        )  # fmt: skip

    def _check(self, asked: Asked) -> None:
        """Refuse here, before Spark is asked, a client without the right and a filter that it may not use."""
        frames = None if asked.labelled is None else asked.labelled.labels
        parts = plan_parts(self._domain, asked.events, client=asked.client, where=asked.where, frames=frames)
        plans = [part.plan for part in parts if part.plan is not None]
        if plans and all(contradicts_right(plan.subscriptions[0]) for plan in plans):
            _logger.warning("the filter of `%s` asks for what its right never shows", asked.client.name)

    def _session(self) -> SparkSession:
        spark = session()
        prepare_session(spark, trusted=self._domain.home.trusts_disks)
        return spark

    def _frame(self, rows: Rows, event_type: EventType, naive: str | None) -> DataFrame:
        """Make a DataFrame of whatever rows are.

        Raises:
            UsageError: They are nothing that holds rows: ``NO_ROWS``.
            MalformedError: They have times without a zone, and nobody says which: ``TIME_WITHOUT_ZONE``.
        """
        if isinstance(rows, DataFrame):
            prepare_session(rows.sparkSession, trusted=self._domain.home.trusts_disks)
            return rows
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if isinstance(rows, pd.DataFrame):
            rows = from_pandas(rows, event_type)
        if isinstance(rows, pa.Table):
            return self._session().createDataFrame(with_zones(rows, naive))
        raise UsageError(
            f"rows come as a DataFrame of Spark or pandas, or as an Arrow table, not as `{type(rows).__name__}`",
            code="NO_ROWS",
        )

    def _run(self, frame: DataFrame, plan: PublishPlan | None, order: bytes | None, naive: str | None) -> list[Written]:
        """Run the tasks of a publication. What they send back are names, counts and positions, no values."""
        home = str(self._domain.home.path.resolve())

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            with in_one_line():
                place, made = take_up(home, order, plan, local=is_local_task())
                check_task(trusted=place.trusts_disks)
                assert isinstance(made, PublishPlan)  # noqa: S101 - that is what was ordered
                partition = 0 if context is None else context.partitionId()
                written = write_partition(place, made, partition, batches, at=now(), naive_timestamps=naive)
            yield pa.RecordBatch.from_arrays([pa.array([written.to_json()], type=pa.string())], names=["written"])

        with spark_errors():
            found = frame.mapInArrow(task, "written string").collect()
        return [Written.from_json(row[0]) for row in found]
