"""What the measurements of the pipeline stand on: rows of 30-character strings, and homes with real certificates."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import maia
from maia.authority import Action, type_right
from maia.domain import Domain
from maia.events import (
    Attribute,
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    attribute,
    parse_version,
    sign_event_type,
)
from maia.home import Home, HomeConfig
from maia.kernel import DeliverPlan
from maia.principals import Authorisation, KeySigner, issue
from maia.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TYPE = "bench.Event"
WRITER, READER = "writer", "reader"
GROUPS = 100
"""How many subscriptions share out the events: the first attribute begins with the number of one of them."""

_WIDTH = 30


def now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


def prefix(group: int) -> str:
    """Return how the first attribute of a group's events begins."""
    return f"v0-{group:02d}-"


def rows_of(events: int, attributes: int) -> DataFrame:
    """Make rows of distinct strings when they are asked for, in two partitions."""
    first = f"rpad(concat('v0-', lpad(cast(id % {GROUPS} as string), 2, '0'), '-', id), {_WIDTH}, 'x') as a0"
    rest = [f"rpad(concat('v{at}-', id), {_WIDTH}, 'x') as a{at}" for at in range(1, attributes)]
    return session().range(0, events, 1, 2).selectExpr(first, *rest)


def frame_of(events: int, attributes: int) -> DataFrame:
    """Make the rows and keep them in the memory of Spark, so that making them is not measured."""
    frame = rows_of(events, attributes).cache()
    frame.count()
    return frame


def batch_of(events: int, attributes: int) -> pa.RecordBatch:
    """Make the same rows as one Arrow batch."""
    columns = [[f"{prefix(row % GROUPS)}{row}".ljust(_WIDTH, "x") for row in range(events)]]
    columns += [[f"v{at}-{row}".ljust(_WIDTH, "x") for row in range(events)] for at in range(1, attributes)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column) for column in columns], names=[f"a{at}" for at in range(attributes)]
    )


def make_domain(root: Path, attributes: int | tuple[Attribute, ...], mode: EncryptionMode) -> Domain:
    """Make a domain with one signed type of these attributes, or of so many strings, and a publisher and a reader."""
    if isinstance(attributes, int):
        attributes = tuple(attribute(f"a{at}", at, "string") for at in range(attributes))
    home = Home.create(root, HomeConfig(name=f"bench-{mode.value}"))
    owner, writer, reader = KeySigner.generate(), home.new_key(WRITER), home.new_key(READER)
    definition = EventType(
        name=TypeName(owner.public_key, TYPE, parse_version(0)),
        attributes=attributes,
        options=Options(encryption=mode),
    )
    home.types.put(sign_event_type(definition, owner).raw, at=now())
    for who, action in ((writer, Action.PUBLISH), (reader, Action.SUBSCRIBE), (home.broker, Action.PUBLISH)):
        right = type_right(owner.public_key, TYPE, actions=[action])
        body = Authorisation(issuer=owner.public_key, subject=who.public_key, delegate=False, tag=right.to_sexp())
        home.certificates.add(issue(body, owner))
    return maia.open(root)


def plan_of(domain: Domain, subscriptions: int) -> DeliverPlan:
    """Compile so many subscriptions over all that the log holds; with one it is for every event."""
    at = now()
    plan = domain.deliver_plan(
        TYPE, client=domain.prove(READER), where="a0 any", commits=list(domain.log.commits()), at=at
    )
    if subscriptions == 1:
        return plan
    name, known, client = domain.find_type(TYPE), domain.known(at=at), domain.home.key(READER)
    found = [
        domain.planner.subscription(
            known, name, client, holder=READER, identity=f"s{group:02d}", where=f"a0 prefix '{prefix(group)}'", at=at
        )
        for group in range(subscriptions)
    ]
    return replace(plan, subscriptions=tuple(found))
