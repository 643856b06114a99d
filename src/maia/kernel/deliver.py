"""Delivering on executors: parcels in, each subscriber's view out, every event accounted for.

The plan is made on the driver for one micro-batch and travels to the workers; it holds no key. A right that ended since
the last micro-batch is not in it any more, and a plan that is over delivers nothing (`plan_term`).

An origin's right is judged at the stamps of its parcels, with the statements that speak of that time (choice C43): a
certificate that expired or was revoked later leaves in force what was published under it. Conditions and rates of its
chain were asked where it published, at that moment, and are not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from maia.encryption import KeyProvider, ParcelHeader, Tolerance
from maia.errors import DamagedError, DeniedError, MaiaError
from maia.events import EncryptionMode, TypeId, ValueType
from maia.kernel.clauses import Clause
from maia.kernel.delivery import Delivery, DeliveryPlan, Subscription
from maia.kernel.descent import Descent
from maia.kernel.logged import LoggedParcel
from maia.kernel.opening import Opened, begin_opening
from maia.kernel.plan_html import delivery_html
from maia.kernel.plan_term import Clock, PlanTerm
from maia.kernel.steps import Tell, untold

MakeKeys = Callable[[], KeyProvider]
FOREVER = 1 << 50
"""A grace without an end, in milliseconds."""
Origin = tuple[bytes, bytes]
"""A broker and the hash of the evidence for its right to publish."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """What an origin may set in parcels stamped from ``first`` up to, but not including, ``end``."""

    first: int
    end: int
    clauses: tuple[Clause, ...]

    def meets(self, first: int, last: int) -> bool:
        """Tell whether some stamp from ``first`` to ``last`` lies in it."""
        return self.first <= last and first < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverPlan:
    """All that a worker needs to open and screen, but the keys.

    Attributes:
        type_id: The type whose parcels are read.
        kinds: Attribute types by uid over all known versions.
        subscriptions: With the clauses they have now.
        term: From when to when it may be worked by.
        origins: Brokers whose right to publish was proven, by the evidence that proved it, with the times for which it
            was and the clauses of each; ``None`` is a broker that may always set everything.
        arrives: The time of the micro-batch, in milliseconds.
        tolerance: Grace of old keys and skew of clocks. History is read with a grace that has no end.
        modes: How the versions of the type let their events be sealed; a parcel sealed otherwise is refused.
        horizon: The stamp before which parcels are refused, see `repeats`.
        aliases: Keyed ids under which the type travels too.
        descent: From which types its attributes come, when some are inherited.
        children: By the ids that types which extend it have in the log, what of their events is the type's.
        window: The first stamp that is wanted, and the first that is not any more; all are when there is none.
    """

    type_id: TypeId
    kinds: dict[str, ValueType]
    subscriptions: tuple[Subscription, ...]
    term: PlanTerm
    origins: Mapping[Origin, tuple[Tenure, ...] | None]
    arrives: int
    tolerance: Tolerance
    modes: frozenset[EncryptionMode] = frozenset(EncryptionMode)
    horizon: int = 0
    aliases: frozenset[TypeId] = frozenset()
    descent: Descent | None = None
    children: Mapping[TypeId, Descent] = field(default_factory=dict)
    window: tuple[int, int] | None = None

    def wants(self, first: int, last: int) -> bool:
        """Tell whether some stamp from ``first`` to ``last`` is wanted."""
        return self.window is None or (self.window[0] <= last and first < self.window[1])

    def type_ids(self) -> frozenset[str]:
        """Name all ids of the type and of its children, in hex, as commits have them."""
        return frozenset(identity.hex() for identity in (self.type_id, *self.aliases, *self.children))

    def reads_child(self, type_id: str) -> bool:
        """Tell whether an id, in hex, is that of a type that extends the one that is read."""
        return bytes.fromhex(type_id) in self.children

    def find_descent(self, header: ParcelHeader) -> Descent:
        """Tell from which types the attributes of a parcel come."""
        own = Descent(type_id=self.type_id) if self.descent is None else self.descent
        return self.children.get(header.type_id, own)

    def compiled(self, attributes: Collection[str] | None = None) -> DeliveryPlan:
        """Build the index over the subscriptions, which are shown these attributes, or all."""
        plan = DeliveryPlan(self.kinds, attributes)
        for subscription in self.subscriptions:
            plan.add(subscription)
        return plan

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        return delivery_html(self.type_id, self.subscriptions)

    def check_origin(self, header: ParcelHeader) -> tuple[Clause, ...] | None:
        """Refuse a parcel of another type, or of a broker without a right at its stamp; say what that one may set."""
        if header.type_id != self.type_id and header.type_id not in self.aliases | self.children.keys():
            raise DeniedError("a parcel of another type", code="PARCEL_OTHER_TYPE")
        tenures = self._tenures((header.origin, header.evidence))
        if tenures is None:
            return None
        for tenure in tenures:
            if tenure.meets(header.stamp, header.stamp):
                return tenure.clauses
        raise DeniedError("the origin's right to publish is not proven", code="ORIGIN_NOT_PROVEN")

    def admits(self, origin: Origin, first: int, last: int) -> bool:
        """Tell whether an origin's right is proven for some stamp from ``first`` to ``last``."""
        tenures = self._tenures(origin)
        return tenures is None or any(tenure.meets(first, last) for tenure in tenures)

    def _tenures(self, origin: Origin) -> tuple[Tenure, ...] | None:
        """Give the times for which an origin's right was proven; none for one of which nothing was."""
        return self.origins.get(origin, ())


@dataclass(slots=True)
class Outcome:
    """What became of one parcel: its deliveries, or why it was refused."""

    events: int
    opened: Opened | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    refused: str | None = None

    @property
    def delivered(self) -> int:
        """Count the events that reached at least one subscription."""
        rows: set[int] = set()
        for delivery in self.deliveries:
            rows.update(delivery.rows.tolist())
        return len(rows)


def deliver_parcels(
    plan: DeliverPlan,
    parcels: Iterable[LoggedParcel],
    keys: KeyProvider,
    *,
    clock: Clock,
    compiled: DeliveryPlan | None = None,
    tell: Tell = untold,
) -> Iterator[Outcome]:
    """Open parcels and screen them for all subscriptions of the plan, parcel by parcel.

    What filters and clauses ask about is opened first; what is shown, only where some row is. A parcel that is refused
    is an outcome with a code, never an exception: one bad parcel stops nobody's stream.

    Args:
        plan: By which to open and screen.
        parcels: As the log gives them.
        keys: This broker's keys.
        clock: Tells what time it is where this runs.
        compiled: The plan's index, for who goes through many files with one plan.
        tell: Hears of the steps.

    Raises:
        PlanOverError: The plan is over; nothing more is opened by it.
        MaiaError: What lies in the log is not what was committed: nobody knows what it held.
    """
    plan.term.check(clock())
    compiled = plan.compiled() if compiled is None else compiled
    for logged in parcels:
        outcome = Outcome(logged.events)
        # SECURITY: before each parcel, and not among its refusals: it is the plan that is over, not the parcel.
        plan.term.check(clock())
        try:
            _deliver(plan, logged, keys, compiled, outcome, tell)
        except DamagedError as error:
            if logged.blame is not None:
                logged.blame()
            outcome.refused = error.code
        except MaiaError as error:
            outcome.refused = error.code
        yield outcome


def _deliver(
    plan: DeliverPlan, logged: LoggedParcel, keys: KeyProvider, compiled: DeliveryPlan, outcome: Outcome, tell: Tell
) -> None:
    opening = begin_opening(
        logged.parse(),
        plan.kinds,
        keys,
        arrives=plan.arrives,
        tolerance=plan.tolerance,
        check_origin=plan.check_origin,
        modes=plan.modes,
        horizon=plan.horizon,
        type_id=plan.type_id,
        find_descent=plan.find_descent,
        tell=tell,
    )
    if not plan.wants(opening.header.stamp, opening.header.stamp):
        outcome.opened = Opened(opening.header, pa.record_batch([], schema=pa.schema([])))
        return
    chosen = compiled.demanded
    outcome.opened = opening.opened(chosen)
    outcome.deliveries = compiled.deliver(
        outcome.opened.batch,
        stamp=opening.header.stamp,
        rest=lambda: opening.batch(chosen | compiled.shown),
        tell=tell,
    )
