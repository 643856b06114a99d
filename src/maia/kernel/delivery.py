"""What each subscriber gets of a batch: the second half of the enforcement kernel.

For every subscription (rows 7.06, 5.11, 5.12; design 4.2):

1. the client's filter is matched, all subscriptions at once, through the index;
2. a row is delivered when some clause admits it, and the filter matches on the cells visible *in that row*: since a
   filter is a conjunction and a hidden cell matches nothing, that is the match on the true values, provided that every
   attribute the filter names is visible there;
3. a cell is visible when some clause holds its attribute and that clause's constraint and conditions are true for the
   row; others are null. Rights on types that the event inherits from open what is inherited, and admit no row by
   themselves;
4. uids become the names of the subscriber's version.

What 1 and 2 ask about is looked at first, and nothing else where no row is delivered: `DeliveryPlan.demanded` are the
attributes for that, `DeliveryPlan.shown` those of which some cell may be seen.

The clauses see true values; the client's filter never does. Nothing here decides who holds which clause: that what a
clause asks of a row was asked by somebody who holds it is the law of speech, kept where chains are reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.events import Attribute, EventType, TypeName, ValueType, to_arrow_schema
from maia.filters import SubscriptionIndex, TypedFilter, select
from maia.kernel import steps
from maia.kernel.clauses import Clause
from maia.kernel.demands import Demand, asked_by, demand_of
from maia.kernel.rows import Mask, Positions, batch_of, column_of, mask_of, take_visible
from maia.kernel.steps import Tell, untold

SubscriptionId = str
MAX_PAIRS = 50_000_000
_FEW = 4


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as the kernel sees it.

    Attributes:
        identity: Names it in deliveries.
        event_type: The subscriber's version.
        filter: The client's filter, over uids.
        clauses: The client's clauses at this moment; what their conditions say of events is asked row by row.
        until: The first instant at which a right behind it may be over; ``None`` when none ends.
        decision: What the audit is told of how it was decided.
    """

    identity: SubscriptionId
    event_type: EventType
    filter: TypedFilter
    clauses: tuple[Clause, ...]
    until: datetime | None = None
    decision: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one subscription gets of one batch.

    Attributes:
        subscription: For whom.
        rows: Positions of the events in the batch.
        batch: The events in the subscriber's version, closed cells null.
        clauses: The clauses that admitted at least one of the rows.
        closed: The attributes, by name, that no clause of the subscriber opens in any row.
    """

    subscription: SubscriptionId
    rows: Positions
    batch: pa.RecordBatch
    clauses: tuple[Clause, ...]
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A subscription with everything that does not depend on the batch worked out.

    Attributes:
        demands: For each clause the number of its constraint in the plan.
        admitting: Those of them that are on the type itself, of which one must hold.
        openers: By uid, the numbers of the constraints of the clauses that open it.
        items: The attributes that are shown, of the subscriber's version.
        together: Positions of those that the same clauses open, which are seen and hidden together.
        schema: Of those that are shown.
    """

    subscription: Subscription
    demands: tuple[int, ...]
    admitting: tuple[int, ...]
    openers: dict[str, tuple[int, ...]]
    items: tuple[Attribute, ...]
    together: dict[tuple[int, ...], list[int]]
    schema: pa.Schema


@dataclass(slots=True)
class DeliveryPlan:
    """All subscriptions of one type, indexed. Adding and removing needs no rebuild.

    ``attributes`` are those that are shown, by name; all when there are none.
    """

    kinds: Mapping[str, ValueType]
    attributes: Collection[str] | None = None
    _index: SubscriptionIndex = field(init=False)
    _compiled: dict[SubscriptionId, _Compiled] = field(init=False, default_factory=dict)
    _demands: dict[Demand, int] = field(init=False, default_factory=dict)
    _needs: tuple[frozenset[str], frozenset[str]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Start without subscriptions, for these attribute types by uid."""
        self._index = SubscriptionIndex({uid: kind.value for uid, kind in self.kinds.items()})

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._compiled)

    def add(self, subscription: Subscription) -> None:
        """Take a subscription in, or replace the one of the same identity.

        Raises:
            FilterTypeError: Its filter has attributes that the plan does not know.
        """
        self.remove(subscription.identity)
        self._needs = None
        self._index.add(subscription.identity, subscription.filter)
        self._compiled[subscription.identity] = self._compile(subscription)

    def remove(self, identity: SubscriptionId) -> None:
        """Drop a subscription, if it is there."""
        if self._compiled.pop(identity, None) is not None:
            self._needs = None
            self._index.remove(identity)

    @property
    def demanded(self) -> frozenset[str]:
        """The attributes, by uid, by which rows are chosen: what filters and clauses ask about."""
        return self._uids()[0]

    @property
    def shown(self) -> frozenset[str]:
        """The attributes, by uid, of which some subscriber may be shown a cell."""
        return self._uids()[1]

    def _uids(self) -> tuple[frozenset[str], frozenset[str]]:
        if self._needs is None:
            demanded: set[str] = set()
            for demand in self._demands:
                demanded |= asked_by(demand, self.kinds)
            shown: set[str] = set()
            for compiled in self._compiled.values():
                demanded |= compiled.subscription.filter.attributes
                shown.update(str(item.uid) for item in compiled.items if compiled.openers[item.uid])
            self._needs = frozenset(demanded), frozenset(shown)
        return self._needs

    def deliver(
        self,
        batch: pa.RecordBatch,
        *,
        stamp: int | None = None,
        rest: Callable[[], pa.RecordBatch] | None = None,
        tell: Tell = untold,
    ) -> list[Delivery]:
        """Match and screen a transit batch for all subscriptions.

        Args:
            batch: Opened events, columns named by uid; what the broker may not open is absent or null.
            stamp: Of the batch; without one, clauses that are over for later events open nothing.
            rest: Gives the same events with what is `shown`, when ``batch`` has only what is `demanded`; asked when
                some row is delivered.
            tell: Hears of the steps.

        Returns:
            One delivery per subscription that gets at least one row, in the order of their identities.

        Raises:
            UsageError: More rows match than one batch may deliver; it must be split.
        """
        if not self._compiled or not batch.num_rows:
            return []
        views = _Views(batch, list(self._demands), tell, stamp)
        found: list[tuple[_Compiled, Positions]] = []
        matched = 0
        for identity, positions in self._matches(batch):
            compiled = self._compiled[identity]
            matched += len(positions)
            kept = views.admitted(compiled, positions)
            if len(kept):
                found.append((compiled, kept))
        tell(steps.MATCH, matched)
        if found and rest is not None:
            views.complete(rest())
        deliveries = [views.screen(compiled, kept) for compiled, kept in found]
        tell(steps.DELIVER, sum(len(item.rows) for item in deliveries))
        return sorted(deliveries, key=lambda delivery: delivery.subscription)

    def seen(self, identity: SubscriptionId, uid: str, batch: pa.RecordBatch) -> Mask:
        """Tell for each row of true values whether a subscription gets it with this cell open, whatever it holds."""
        compiled = self._compiled[identity]
        views = _Views(batch, list(self._demands), untold)
        rows = views.admitted(compiled, np.flatnonzero(np.asarray(select(compiled.subscription.filter, batch))))
        delivered = np.zeros(batch.num_rows, dtype=np.bool_)
        delivered[rows] = True
        return delivered & views._any(compiled.openers.get(uid, ()))  # noqa: SLF001 - of this module

    def _matches(self, batch: pa.RecordBatch) -> Iterable[tuple[SubscriptionId, Positions]]:
        """Find for each subscription the rows that its filter matches."""
        if len(self._compiled) > _FEW:
            return _by_subscription(*self._index.match(batch, max_pairs=MAX_PAIRS))
        # Of few filters each is evaluated on whole columns, which costs less than looking its values up.
        self._index.check(batch)
        filters = ((identity, compiled.subscription.filter) for identity, compiled in self._compiled.items())
        return [(identity, np.flatnonzero(np.asarray(select(filter_, batch)))) for identity, filter_ in filters]

    def _compile(self, subscription: Subscription) -> _Compiled:
        clauses = tuple(clause for clause in subscription.clauses if clause.counts)
        subscription = replace(subscription, clauses=clauses)
        demands = tuple(self._demands.setdefault(demand_of(clause), len(self._demands)) for clause in clauses)
        # SECURITY: who may see a parent's attributes has no right yet to see which events are the child's.
        admitting = tuple(sorted({n for n, clause in zip(demands, clauses, strict=True) if clause.holder is None}))
        uids = {item.uid for item in subscription.event_type.attributes} | subscription.filter.attributes
        openers = {
            uid: tuple(sorted({n for n, clause in zip(demands, clauses, strict=True) if clause.opens(uid)}))
            for uid in uids
        }
        asked = self.attributes
        items = tuple(item for item in subscription.event_type.attributes if asked is None or item.name in asked)
        together: dict[tuple[int, ...], list[int]] = {}
        for at, item in enumerate(items):
            together.setdefault(openers[item.uid], []).append(at)
        whole = to_arrow_schema(subscription.event_type)
        schema = pa.schema([whole.field(item.name) for item in items], metadata=whole.metadata)
        return _Compiled(subscription, demands, admitting, openers, items, together, schema)


class _Views:
    """Masks over one batch, each worked out once: by constraint, and by set of constraints of which one must hold."""

    def __init__(self, batch: pa.RecordBatch, demands: list[Demand], tell: Tell, stamp: int | None = None) -> None:
        self._stamp = stamp
        self._batch = self._whole = batch
        self._tell = tell
        self._demands = demands
        self._masks: dict[int, Mask] = {}
        self._unions: dict[tuple[int, ...], Mask] = {}
        self._versions: dict[TypeName, list[pa.Array | None]] = {}

    def admitted(self, compiled: _Compiled, rows: Positions) -> Positions:
        """Cut the matched rows down to those that the subscriber may see."""
        admitted = self._any(compiled.admitting)[rows]
        for uid in compiled.subscription.filter.attributes:
            admitted &= self._any(compiled.openers[uid])[rows]
        return rows if admitted.all() else rows[admitted]

    def complete(self, batch: pa.RecordBatch) -> None:
        """Take cells from a batch of the same events with more columns."""
        self._whole = batch

    def screen(self, compiled: _Compiled, kept: Positions) -> Delivery:
        """Show of admitted rows what the subscriber may see."""
        subscription = compiled.subscription
        batch = batch_of(self._cells(compiled, kept), compiled.schema, len(kept))
        used = tuple(
            clause
            for number, clause in zip(compiled.demands, subscription.clauses, strict=True)
            if self._mask(number)[kept].any()
        )
        closed = tuple(item.name for item in compiled.items if not compiled.openers[item.uid])
        return Delivery(subscription.identity, kept, batch, used, closed)

    def _cells(self, compiled: _Compiled, rows: Positions) -> list[pa.Array]:
        """Pick the columns of the subscriber's version, hidden cells null."""
        typed = self._typed(compiled)
        cells = [pa.nulls(0, field.type) for field in compiled.schema]
        picked = None if len(rows) == self._batch.num_rows else rows
        for openers, positions in compiled.together.items():
            there = [(at, column) for at in positions if (column := typed[at]) is not None]
            for at in positions:
                if typed[at] is None:
                    cells[at] = pa.nulls(len(rows), compiled.schema.field(at).type)
            if there:
                taken = take_visible([column for _, column in there], self._any(openers), picked)
                for (at, _), column in zip(there, taken, strict=True):
                    cells[at] = column
        return cells

    def _typed(self, compiled: _Compiled) -> list[pa.Array | None]:
        """Check the batch against a version, once for all subscribers that have it (row 7.04)."""
        name = compiled.subscription.event_type.name
        known = self._versions.get(name)
        if known is None:
            self._tell(steps.TYPE_CHECK, self._whole.num_rows)
            known = self._versions[name] = typed_columns(self._whole, compiled.items, compiled.schema)
        return known

    def _any(self, numbers: tuple[int, ...]) -> Mask:
        """Tell for each row whether one of these constraints holds; without any, none does."""
        known = self._unions.get(numbers)
        if known is None:
            known = np.zeros(self._batch.num_rows, dtype=np.bool_)
            for number in numbers:
                known |= self._mask(number)
            self._unions[numbers] = known
        return known

    def _mask(self, number: int) -> Mask:
        known = self._masks.get(number)
        if known is None:
            constraints, guard, before = self._demands[number]
            known = mask_of(self._batch, constraints)
            if before is not None and (self._stamp is None or self._stamp >= before):
                # SECURITY: what was published since, and what nobody knows the time of, is closed.
                known = np.zeros_like(known)
            if guard is not None and known.any():
                # Asked of the rows that the constraint admits alone: what others hold must not use up what is asked.
                rows = self._batch if known.all() else self._batch.filter(pa.array(known))
                known[known] = guard.mask(rows)
            self._masks[number] = known
        return known


def typed_columns(batch: pa.RecordBatch, attributes: Iterable[Attribute], schema: pa.Schema) -> list[pa.Array | None]:
    """Find the columns of attributes in a transit batch; ``None`` where there is none of the attribute's type.

    A uid has one type for ever, so a column of another type is no value of the attribute.
    """
    found = [column_of(batch, item.uid) for item in attributes]
    return [
        column if column is not None and column.type.equals(field.type) else None
        for column, field in zip(found, schema, strict=True)
    ]


def omit_closed(delivery: Delivery) -> pa.RecordBatch:
    """Leave out the attributes that no clause of the subscriber opens, for types whose owner wants no trace of them.

    A cell that is closed in some rows only stays as a null: columns have no holes.
    """
    return delivery.batch.drop_columns(list(delivery.closed)) if delivery.closed else delivery.batch


def _by_subscription(rows: Positions, names: npt.NDArray[np.object_]) -> Iterable[tuple[SubscriptionId, Positions]]:
    """Group matches by subscription, keeping the order of rows."""
    if len(names) and (names == names[0]).all():  # as with one subscription; comparing is cheaper than grouping
        yield names[0], rows
        return
    # Names are compared by Arrow: numpy's own texts end at their last character that is not null.
    encoded = pa.array(names, type=pa.string()).dictionary_encode()
    inverse = np.asarray(encoded.indices)
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse, minlength=len(encoded.dictionary)))
    start = 0
    for name, end in zip(encoded.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield name, rows[order[start:end]]
        start = end
