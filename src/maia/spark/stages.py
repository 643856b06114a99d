"""Parcel rows in, deliveries out: a stage over frames, static or streaming; the kernel inside, no key in the plan.

What goes in is accounted for: events delivered, and refusals that say how many they stand for. Keys are given as a
callable that builds them where it is called (`maia.domain.HomeKeys`); what travels to the workers is the callable.
Nothing shuffles after opening: this is for the last step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from maia.errors import UsageError
from maia.events import ClosedAttributes, EventType, to_arrow_schema, to_spark_json
from maia.home import now
from maia.kernel import (
    Clock,
    DeliverPlan,
    MakeKeys,
    deliver_parcels,
    logged_rows,
)
from maia.log import COUNT, EVENT, REFUSED, STAMP, SUBSCRIPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, types

_ADDED = (
    pa.field(SUBSCRIPTION, pa.string()),
    pa.field(EVENT, pa.string()),
    pa.field(STAMP, pa.int64()),
    pa.field(REFUSED, pa.string()),
    pa.field(COUNT, pa.int64()),
)


def deliver(frame: DataFrame, plan: DeliverPlan, make_keys: MakeKeys, *, clock: Clock = now) -> DataFrame:
    """Open, match and screen parcel rows.

    Args:
        frame: Rows with the columns of the log, as plain Spark reads them, or as `publish` gives them.
        plan: The subscriptions, all in one version of the type.
        make_keys: Builds this broker's keys on a worker.
        clock: Tells the time on a worker; a plan that is over by it delivers nothing (``PLAN_OVER``).

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
        for outcome in deliver_parcels(plan, logged_rows(batches), make_keys(), clock=clock):
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

    return frame.mapInArrow(task, _with_added(version, shown))


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
