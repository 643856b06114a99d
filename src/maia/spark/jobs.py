"""The delivery job as a streaming query: Spark follows the log and runs the groups of a micro-batch as tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from maia.domain import DeliveryJob, Group, Report, Work, write_wanted
from maia.spark.connect import refuse_connect
from maia.spark.errors import spark_errors
from maia.spark.guard import check_start, places_in, query_id
from maia.spark.log_stream import LogSource


def start_job(
    job: DeliveryJob, spark: SparkSession, checkpoint: Path, *, once: bool = False, every: str = "1 second"
) -> StreamingQuery:
    """Start the streaming query of a delivery job.

    Args:
        job: What to deliver, and to whom.
        spark: The session.
        checkpoint: Spark's checkpoint; it belongs to this outbox for ever.
        once: Deliver what there is and end, instead of following.
        every: How often to look.

    Raises:
        UsageError: Checkpoint, outbox and log do not belong together, see `guard`.
    """
    refuse_connect(spark, "a delivery job", "run `maia deliver` where the home is, with a session of its own")
    check_start(checkpoint, job.outbox, job.log)
    spark.dataSource.register(LogSource)
    source = spark.readStream.format(LogSource.name()).option("home", str(job.home))
    source = source.option("outbox", str(job.outbox.path.resolve())).option("first", json.dumps(job.begin()))
    frame = (source if job.wanted is None else source.option("wanted", write_wanted(job.wanted))).load()

    def each(rows: DataFrame, batch: int) -> None:
        upto = places_in({row[0]: row[1] for row in rows.collect()})
        job.step(batch, upto, partial(_run_on, rows.sparkSession), query=query_id(checkpoint))

    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)).start()


def _run_on(spark: SparkSession, work: Work, groups: Sequence[Group]) -> list[Report]:
    """Run each group as a task of its own."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = [work.deliver(groups[number]).to_json() for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(texts, type=pa.string())], names=["report"])

    frame = spark.range(0, len(groups), 1, len(groups)).mapInArrow(task, "report string")
    with spark_errors():
        return [Report.from_json(row[0]) for row in frame.collect()]
