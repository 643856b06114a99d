"""Stages: DataFrame in, DataFrame out, static or streaming, with the kernel inside and no key in the plan.

`publish` turns rows into parcel rows and refusals; `deliver` and `history` turn parcel rows into what subscriptions get
and refusals. What goes in is accounted for: events delivered or sealed, and refusals that say how many they stand for.

Keys, signers and stamps are given as callables that build them where they are called (`maia.domain.HomeKeys`); what
travels to the workers is the callable. Nothing shuffles after opening: `deliver` and `history` are for the last step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from maia.encryption import Tolerance
from maia.errors import UsageError
from maia.events import ClosedAttributes, EventType, to_arrow_schema, to_spark_json
from maia.kernel import (
    DeliverPlan,
    MakeKeys,
    MakeSigner,
    NextStamp,
    PublishPlan,
    deliver_parcels,
    parcel_row,
    publish_batches,
)
from maia.log import COUNT, EVENT, PARCEL_SCHEMA, REFUSED, STAMP, SUBSCRIPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, types

MakeStamps = Callable[[], NextStamp]
FOREVER = 1 << 50
_PUBLISHED = pa.schema(
    [
        *(field.with_nullable(True) for field in PARCEL_SCHEMA),
        pa.field(REFUSED, pa.string()),
        pa.field(COUNT, pa.int64()),
    ]
)
_PUBLISHED_DDL = (
    "type_id binary, origin binary, stamp bigint, events int, evidence binary, parcel binary, "
    f"{REFUSED} string, {COUNT} bigint"
)
_ADDED = (
    pa.field(SUBSCRIPTION, pa.string()),
    pa.field(EVENT, pa.string()),
    pa.field(STAMP, pa.int64()),
    pa.field(REFUSED, pa.string()),
    pa.field(COUNT, pa.int64()),
)


def publish(
    frame: DataFrame, plan: PublishPlan, make_signer: MakeSigner, make_keys: MakeKeys, make_stamps: MakeStamps
) -> DataFrame:
    """Enforce and seal rows.

    Args:
        frame: Rows of the advertised version, columns by attribute name.
        plan: What to enforce.
        make_signer: Builds this broker's signer on a worker.
        make_keys: Builds this broker's keys on a worker.
        make_stamps: Builds this broker's stamps on a worker.

    Returns:
        One row per parcel (the columns of the log), and one per reason why rows of an input batch were refused
        (``_refused``, ``_count``).
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, named = _place(plan)
        for sealed in publish_batches(named, partition, batches, make_signer(), make_keys(), make_stamps()):
            rows: list[dict[str, object]] = [{REFUSED: code, COUNT: count} for code, count in sealed.refused.items()]
            if sealed.parcel is not None:
                rows.append(parcel_row(sealed.parcel))
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=_PUBLISHED)

    return frame.mapInArrow(task, _PUBLISHED_DDL)


def deliver(frame: DataFrame, plan: DeliverPlan, make_keys: MakeKeys) -> DataFrame:
    """Open, match and screen parcel rows.

    Args:
        frame: Rows with the columns of the log, as plain Spark reads them, or as `publish` gives them.
        plan: The subscriptions, all in one version of the type.
        make_keys: Builds this broker's keys on a worker.

    Returns:
        The attributes of the version (for a type that leaves no trace of closed attributes, those that are open to one
        of the subscriptions), with ``_subscription``, ``_event`` and ``_stamp``; and one row per refused parcel
        with ``_refused`` and ``_count``.

    Raises:
        UsageError: There is no subscription, or they differ in version: ``MIXED_VERSIONS``.
    """
    version = _one_version(plan)
    shown = _shown(plan, version)
    schema = pa.schema(
        [*(field.with_nullable(True) for field in to_arrow_schema(version) if field.name in shown), *_ADDED]
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sealed = (batch.filter(batch.column("parcel").is_valid()) for batch in batches)
        for outcome in deliver_parcels(plan, sealed, make_keys()):
            if outcome.opened is None or outcome.refused is not None:
                refusal = {REFUSED: outcome.refused, COUNT: outcome.events}
                yield pa.RecordBatch.from_pylist([refusal], schema=schema)
                continue
            header = outcome.opened.header
            for delivery in outcome.deliveries:
                size = len(delivery.rows)
                events = outcome.opened.event_ids(delivery.rows.tolist())
                added = [
                    pa.array([delivery.subscription] * size, type=pa.string()),
                    pa.array(events, type=pa.string()),
                    pa.array(np.full(size, header.stamp, dtype=np.int64)),
                    pa.nulls(size, pa.string()),
                    pa.nulls(size, pa.int64()),
                ]
                cells = delivery.batch.select(shown).columns
                yield pa.RecordBatch.from_arrays([*cells, *added], schema=schema)

    columns = ["type_id", "origin", "stamp", "events", "evidence", "parcel"]
    return frame.select(*columns).mapInArrow(task, _with_added(version, shown))


def history(frame: DataFrame, plan: DeliverPlan, make_keys: MakeKeys) -> DataFrame:
    """Do as `deliver` does for parcels of long ago: every key that is still held opens, whenever it was replaced."""
    tolerance = Tolerance(grace=FOREVER, skew=plan.tolerance.skew)
    return deliver(frame, replace(plan, tolerance=tolerance), make_keys)


def _place(plan: PublishPlan) -> tuple[int, PublishPlan]:
    """Tell which part of the publication this task is; in a stream each micro-batch is a publication of its own."""
    from pyspark import TaskContext  # noqa: PLC0415 - runs on a worker

    context = TaskContext.get()
    if context is None:
        return 0, plan
    batch = context.getLocalProperty("streaming.sql.batchId")
    named = plan if batch is None else replace(plan, publication=f"{plan.publication}/{batch}")
    return context.partitionId(), named


def _one_version(plan: DeliverPlan) -> EventType:
    versions = {item.event_type.name: item.event_type for item in plan.subscriptions}
    if len(versions) != 1:
        raise UsageError("a frame shows one version of a type: deliver each version by itself", code="MIXED_VERSIONS")
    return next(iter(versions.values()))


def _shown(plan: DeliverPlan, version: EventType) -> list[str]:
    """Name the columns of a view: all of the version; where a type leaves no trace, those that are open to someone."""
    if version.options.closed is not ClosedAttributes.OMIT:
        return [item.name for item in version.attributes]
    clauses = [clause for item in plan.subscriptions for clause in item.clauses]
    return [item.name for item in version.attributes if any(clause.opens(item.uid) for clause in clauses)]


def _with_added(version: EventType, shown: list[str]) -> types.StructType:
    from pyspark.sql.types import LongType, StringType, StructField, StructType  # noqa: PLC0415 - only with Spark

    kinds = {pa.string(): StringType(), pa.int64(): LongType()}
    attributes = [item for item in StructType.fromJson(json.loads(to_spark_json(version))).fields if item.name in shown]
    return StructType([*attributes, *(StructField(item.name, kinds[item.type]) for item in _ADDED)])
