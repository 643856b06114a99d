"""Publishing on executors: rows in, sealed parcels out, every refused row accounted for.

The plan is made on the driver from verified definitions and proven rights and travels to the workers; it holds no key.
Workers build the signer and the key provider from references, where they run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from maia.encoding import encode
from maia.encryption import KeyProvider, Parcel
from maia.events import EncryptionMode, EventType, inherit, parse_event_type
from maia.kernel import steps
from maia.kernel.clauses import Clause
from maia.kernel.descent import Descent
from maia.kernel.origin_right import keep_to_right
from maia.kernel.parcels import Sealing, seal_batch
from maia.kernel.plan_html import publishing_html
from maia.kernel.plan_term import PlanTerm
from maia.kernel.publication import Enforced, enforce_publication
from maia.kernel.rows import pick
from maia.kernel.steps import Tell, untold
from maia.kernel.type_check import Refusal
from maia.principals import Kind, Signer

BEYOND_BROKER = "BEYOND_BROKER"
"""A row that a client may publish and its broker may not."""
MakeSigner = Callable[[], Signer]
MakeKeys = Callable[[], KeyProvider]
NextStamp = Callable[[], int]
"""Gives the next stamp of this broker; strictly increasing, also across processes and restarts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPlan:
    """All that a worker needs to enforce and seal, but the keys.

    Attributes:
        publication: Names the publication; a retry has the same name.
        principal: Fingerprint of the publisher, for the audit.
        definition: The signed definition of the advertised version.
        parents: Those that it extends, the nearest first.
        clauses: The publisher's clauses; their conditions are asked again for each parcel, when it is made.
        sealing: Mode, evidence, padding.
        own: The clauses of the broker that seals, which readers will hold it to; ``None`` leaves them unasked.
        max_events: Most events in one parcel.
        term: From when to when events may be stamped by it.
        decision: What the audit is told of how it was decided.
    """

    publication: str
    principal: str
    definition: bytes
    clauses: tuple[Clause, ...]
    sealing: Sealing
    term: PlanTerm
    own: tuple[Clause, ...] | None = None
    max_events: int = 16_384
    parents: tuple[bytes, ...] = ()
    decision: str = field(default="", compare=False, repr=False)

    def event_type(self) -> EventType:
        """Read the version back, with what it inherits; it was verified when the plan was made."""
        own, *extended = (parse_event_type(raw).definition for raw in (self.definition, *self.parents))
        parent: EventType | None = None
        for ancestor in reversed(extended):
            parent = ancestor if parent is None else inherit(ancestor, parent)
        return own if parent is None else inherit(own, parent)

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        return publishing_html(self.event_type(), self.clauses)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What became of one input batch: perhaps a parcel, and the refusals by code.

    ``letters`` are the refused rows one by one, each by its position in the partition.
    """

    parcel: Parcel | None
    refused: dict[str, int]
    nulled: int
    forced: int
    letters: tuple[Refusal, ...] = ()


def publish_batches(
    plan: PublishPlan,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    signer: Signer,
    keys: KeyProvider,
    next_stamp: NextStamp,
    *,
    tell: Tell = untold,
) -> Iterator[Sealed]:
    """Enforce and seal the batches of one partition, in order.

    Args:
        plan: What to enforce.
        partition: Which part of the publication this is; names its events.
        batches: Rows of the advertised version, columns by attribute name.
        signer: This broker.
        keys: This broker's keys.
        next_stamp: Reserves a stamp, durably, before it is used.
        tell: Hears of the steps.

    Raises:
        PlanOverError: The plan is over; nothing more is sealed by it.
    """
    event_type = plan.event_type()
    index = done = 0
    for batch in batches:
        for start in range(0, batch.num_rows, plan.max_events):
            name = event_base(signer, plan.publication, partition, index)
            part = batch.slice(start, plan.max_events)
            descent = plan.sealing.descent
            enforced = enforce_publication(
                event_type, part, plan.clauses, reservation=name, descent=descent, tell=tell
            )  # fmt: skip
            if plan.own is not None:
                enforced = _within_own(enforced, plan.own, name, descent)
            refused: dict[str, int] = {}
            for refusal in enforced.refusals:
                refused[refusal.code] = refused.get(refusal.code, 0) + 1
            parcel = None
            if enforced.batch.num_rows:
                stamp = next_stamp()
                tell(steps.STAMP, 1)
                plan.term.check_stamp(stamp)  # INVARIANT: readers judge it at this stamp, and so does this broker
                parcel = seal_batch(
                    enforced.batch,
                    plan.sealing,
                    signer,
                    keys,
                    stamp=stamp,
                    parcel_id=secrets.token_bytes(16),
                    event_base=name,
                )
                tell(steps.ENCRYPT, 0 if plan.sealing.mode is EncryptionMode.PLAIN else len(parcel.header.labels))
            index += 1
            letters = tuple(Refusal(done + start + item.row, item.code, item.column) for item in enforced.refusals)
            yield Sealed(parcel, refused, enforced.nulled, enforced.forced, letters)
        done += batch.num_rows


def _within_own(enforced: Enforced, own: tuple[Clause, ...], reservation: bytes, descent: Descent | None) -> Enforced:
    """Keep what a client may publish within what its broker may, which readers check."""
    batch, met = keep_to_right(enforced.batch, own, reservation=reservation, descent=descent)
    refusals = tuple(Refusal(int(row), BEYOND_BROKER) for row in enforced.rows[~met].tolist())
    before = enforced.batch if met.all() else enforced.batch.filter(pa.array(met))
    nulled = enforced.nulled + _nulls(batch) - _nulls(pick(before, batch.schema.names))
    return Enforced(batch, enforced.rows[met], (*enforced.refusals, *refusals), nulled, enforced.forced)


def _nulls(batch: pa.RecordBatch) -> int:
    return sum(column.null_count for column in batch.columns)


def event_base(signer: Signer, publication: str, partition: int, index: int) -> bytes:
    """Name the events of one parcel; the same after every retry of the same publication of the same broker.

    The name is a hash of the broker's signature, which is the same each time and which nobody else can make: a reader
    that guesses a publication's name and counts positions does not find the ids of events that are closed to it.
    """
    name = encode((b"events", publication.encode(), b"%d" % partition, b"%d" % index))
    return hashlib.sha256(b"maia/1 events" + signer.sign(Kind.EVENT_NAME, name)).digest()[:16]
