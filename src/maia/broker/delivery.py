"""What each subscriber gets of a batch: the second half of the enforcement kernel.

For every subscription (rows 7.06, 5.11, 5.12; design 4.2):

1. the client's filter is matched, all subscriptions at once, through the index;
2. a row is delivered when some clause admits it, and the filter matches on the cells visible *in that row*: since a
   filter is a conjunction and a hidden cell matches nothing, that is the match on the true values, provided that every
   attribute the filter names is visible there;
3. a cell is visible when some clause holds its attribute and that clause's constraint is true for the row; others are
   null;
4. uids become the names of the subscriber's version.

The clauses see true values; the client's filter never does. Nothing here decides who holds which clause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maia.broker.clauses import Clause
from maia.broker.rows import Mask, column_of, mask_of
from maia.errors import DeniedError, UsageError
from maia.events import ARROW_TYPES, AttributeType, EventType, to_arrow_schema
from maia.filters import SubscriptionIndex, TypedConstraint, TypedFilter

SubscriptionId = str
MAX_PAIRS = 50_000_000


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as the kernel sees it.

    Attributes:
        identity: Names it in deliveries.
        event_type: The subscriber's version.
        filter: The client's filter, over uids.
        clauses: The client's clauses at this moment, conditions already found true.
    """

    identity: SubscriptionId
    event_type: EventType
    filter: TypedFilter
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one subscription gets of one batch.

    Attributes:
        subscription: For whom.
        rows: Positions of the events in the batch.
        batch: The events in the subscriber's version, closed cells null.
        clauses: The clauses that admitted at least one of the rows.
    """

    subscription: SubscriptionId
    rows: npt.NDArray[np.int64]
    batch: pa.RecordBatch
    clauses: tuple[Clause, ...]


@dataclass(slots=True)
class DeliveryPlan:
    """All subscriptions of one type, indexed. Adding and removing needs no rebuild."""

    kinds: Mapping[str, AttributeType]
    _index: SubscriptionIndex = field(init=False)
    _subscriptions: dict[SubscriptionId, Subscription] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Start without subscriptions, for these attribute types by uid."""
        self._index = SubscriptionIndex({uid: kind.value for uid, kind in self.kinds.items()})

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._subscriptions)

    def add(self, subscription: Subscription) -> None:
        """Take a subscription in, or replace the one of the same identity."""
        if subscription.identity in self._subscriptions:
            self._index.remove(subscription.identity)
        self._subscriptions[subscription.identity] = subscription
        self._index.add(subscription.identity, subscription.filter)

    def remove(self, identity: SubscriptionId) -> None:
        """Drop a subscription, if it is there."""
        if self._subscriptions.pop(identity, None) is not None:
            self._index.remove(identity)

    def deliver(self, batch: pa.RecordBatch) -> list[Delivery]:
        """Match and screen a transit batch for all subscriptions.

        Args:
            batch: Opened events, columns named by uid; what the broker may not open is absent or null.

        Returns:
            One delivery per subscription that gets at least one row, in the order of their identities.
        """
        if not self._subscriptions or not batch.num_rows:
            return []
        rows, names = self._index.match(batch, max_pairs=MAX_PAIRS)
        views = _Views(batch)
        found: list[Delivery] = []
        for identity, positions in _by_subscription(rows, names):
            delivery = views.screen(self._subscriptions[identity], positions)
            if delivery is not None:
                found.append(delivery)
        return sorted(found, key=lambda delivery: delivery.subscription)


class _Views:
    """Masks of clauses over one batch, computed once per distinct constraint."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._masks: dict[object, Mask] = {}

    def screen(self, subscription: Subscription, rows: npt.NDArray[np.int64]) -> Delivery | None:
        """Cut the matched rows down to what the subscriber may see."""
        clauses = subscription.clauses
        masks = [self._mask(clause) for clause in clauses]
        admitted = _any(masks, self._batch.num_rows)[rows]
        for uid in subscription.filter.attributes:
            admitted &= self._visible(uid, clauses, masks)[rows]
        kept = rows if admitted.all() else rows[admitted]
        if not len(kept):
            return None
        whole = len(kept) == self._batch.num_rows
        columns = [
            self._cells(item.uid, item.type, clauses, masks, None if whole else kept)
            for item in subscription.event_type.attributes
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(subscription.event_type))
        used = tuple(clause for clause, mask in zip(clauses, masks, strict=True) if mask[kept].any())
        return Delivery(subscription.identity, kept, batch, used)

    def _cells(
        self,
        uid: str,
        kind: AttributeType,
        clauses: tuple[Clause, ...],
        masks: list[Mask],
        rows: npt.NDArray[np.int64] | None,
    ) -> pa.Array:
        wanted = ARROW_TYPES[kind]
        size = self._batch.num_rows if rows is None else len(rows)
        column = column_of(self._batch, uid)
        if column is None or not column.type.equals(wanted):
            # INVARIANT: a uid has one type for ever, so another one here is no value of this attribute.
            return pa.nulls(size, wanted)
        visible = self._visible(uid, clauses, masks)
        if rows is not None:
            column, visible = column.take(pa.array(rows)), visible[rows]
        if visible.all():
            return column
        if not visible.any():
            return pa.nulls(size, wanted)
        return pc.if_else(pa.array(visible), column, pa.scalar(None, type=wanted))

    def _visible(self, uid: str, clauses: tuple[Clause, ...], masks: list[Mask]) -> Mask:
        return _any(
            [mask for clause, mask in zip(clauses, masks, strict=True) if clause.opens(uid)], self._batch.num_rows
        )

    def _mask(self, clause: Clause) -> Mask:
        known = self._masks.get(clause.constraints)
        if known is None:
            known = self._masks[clause.constraints] = mask_of(self._batch, clause.constraints)
        return known


def uid_filter(event_type: EventType, typed: TypedFilter) -> TypedFilter:
    """Rewrite a client's filter from the names of its version to uids."""
    return TypedFilter(
        constraints=tuple(
            TypedConstraint(
                attribute=event_type.by_name(constraint.attribute).uid,
                type=constraint.type,
                operator=constraint.operator,
                values=constraint.values,
            )
            for constraint in typed.constraints
        )
    )


def check_readable(filter_: TypedFilter, clauses: Iterable[Clause]) -> None:
    """Refuse a filter over an attribute that no clause opens: its matches would tell the value (row 7.07).

    Raises:
        DeniedError: With the code ``FILTER_NOT_AUTHORISED``.
    """
    held = tuple(clauses)
    for uid in sorted(filter_.attributes):
        if not any(clause.opens(uid) for clause in held):
            raise DeniedError("a filter over an attribute that is closed to the client", code="FILTER_NOT_AUTHORISED")


def _any(masks: list[Mask], size: int) -> Mask:
    if not masks:
        return np.zeros(size, dtype=np.bool_)
    out = masks[0]
    for mask in masks[1:]:
        out = out | mask
    return out.copy()


def _by_subscription(
    rows: npt.NDArray[np.int64], names: npt.NDArray[np.object_]
) -> Iterable[tuple[SubscriptionId, npt.NDArray[np.int64]]]:
    """Group matches by subscription, keeping the order of rows."""
    if len(rows) != len(names):
        raise UsageError("matches come in pairs")
    if not len(rows):
        return
    unique, inverse = np.unique(names.astype(str), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse, minlength=len(unique)))
    start = 0
    for name, end in zip(unique.tolist(), ends.tolist(), strict=True):
        yield name, rows[order[start:end]]
        start = end
