"""Publishing without Spark, at an instant that the caller says; for tests and demonstrations."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from maia.domain import own_lanes
from maia.encryption import groups_of
from maia.errors import UsageError
from maia.events import to_arrow_schema
from maia.home import Home
from maia.kernel import PublishPlan, milliseconds, publish_batches
from maia.log import LogDirectory
from maia.testing.plans import publish_plan


def publish_here(
    home: Home,
    type_name: str,
    rows: Sequence[Mapping[str, object]],
    *,
    as_: str,
    at: datetime,
    publication: str | None = None,
    honest: bool = True,
    change: Callable[[PublishPlan], PublishPlan] | None = None,
    stamped: datetime | None = None,
    plan: PublishPlan | None = None,
) -> int:
    """Publish rows as a client, in one parcel stamped with ``at``; durable when this returns.

    Whoever planned while another process made the type's first keys stamps no earlier than those begin, as a broker
    does whose clock goes on. Stamps must increase: two calls of one broker need two instants, a millisecond apart. A
    broker that is not ``honest`` does not keep to its own right. One that is given a ``plan`` of earlier goes on by it.
    One that does worse seals by a plan it was never given (``change``), or stamps what it publishes with another time
    (``stamped``).

    Returns:
        How many events were admitted.

    Raises:
        MaiaError: The type is unknown, or the client or the broker has no right.
    """
    name = secrets.token_hex(8) if publication is None else publication
    if plan is None:
        plan = publish_plan(home, type_name, as_=as_, publication=name, at=at, max_events=max(len(rows), 1))
    if not honest:
        plan = replace(plan, own=None)
    log = LogDirectory(home.log_store)
    type_id = plan.sealing.type_id
    if change is not None:
        plan = change(plan)
    batch = pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=to_arrow_schema(plan.event_type()))
    stamp = _stamp(home, plan, at) if stamped is None else milliseconds(stamped)
    admitted = refused = 0
    with log.writer(name, type_id, 0, home.broker.public_key.key_id, at=at) as writer:
        for sealed in publish_batches(plan, 0, iter((batch,)), home.broker, home.keyring(), lambda: stamp):
            refused += len(sealed.letters)
            if sealed.parcel is not None:
                if admitted:
                    raise UsageError("one call publishes one parcel")
                admitted += sealed.parcel.header.count
                writer.add(sealed.parcel)
        file = writer.close()
    own_lanes(home, log).commit(
        name, type_id.hex(), () if file is None else (file,), evidence=plan.sealing.evidence.hex(), refused=refused,
        at=at,
    )  # fmt: skip
    return admitted


def _stamp(home: Home, plan: PublishPlan, at: datetime) -> int:
    """Give the stamp for an instant: that, or the beginning of keys that were made at the same time."""
    stamp, ring, event_type = milliseconds(at), home.keyring(), plan.event_type()
    uids = [item.uid.encode() for item in event_type.attributes]
    groups = groups_of(event_type.type_id, uids, event_type.options.encryption)
    first = max((ring.epochs(group)[0] for group in groups if ring.epochs(group)), default=stamp)
    return first if stamp < first <= stamp + home.tolerance.skew else stamp
