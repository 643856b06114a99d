"""Who may advertise and who subscribes: sessions checked once, and ended when their right ends.

A session's right is proven when it is made (rows 6.09, 7.02); without proof no state remains. Who has advertised is
remembered by whoever asks (`advertisements`). A session's clauses are derived from the same evidence at the time of
each batch, and anew only when a statement arrived or the time of a certificate or statement came, so a right that ends
takes the session's view with it, mid-stream (choice C38).

A clause with conditions counts only while all of them hold. Those that depend on the moment are asked here at each
request; the clause then carries a guard that asks the others when data meets it. What they may ask beyond the moment is
the caller's to provide.

A session has a broker, whose clients it serves and no others, and only with what the broker may read (`serving`). That
is asked where a session is made and wherever rights are looked at (`Sessions.granted`).

A session of a type that extends another one has clauses of each type of the lineage, each on that type's attributes
(`descent`). It stands on a right on the type itself; without a right on a parent what is inherited stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from maia.authority import Action, CertificatePool
from maia.errors import DeniedError, NotFoundError, VerificationError
from maia.events import EventType, TypeId
from maia.filters import Side, TypedFilter, compile_filter
from maia.kernel.bounds import announce, require_bounds, within_bounds
from maia.kernel.clauses import Clause
from maia.kernel.client_filter import check_readable, uid_filter
from maia.kernel.delivery import DeliveryPlan, Subscription
from maia.kernel.serving import Serving
from maia.kernel.session_rights import Challenges, SessionRights
from maia.kernel.session_states import Advertisement, LiveSubscription
from maia.principals import KeyHash, KeyId, PublicKey


@dataclass(slots=True)
class Sessions(SessionRights):
    """The advertisements and subscriptions of one broker, and the rights behind them.

    Attributes:
        domain: Whose broker it is by what its own home says; it may name its own broker, whoever gives the rights.
        broker: Who serves these sessions; without one, nobody asks whose clients they are, nor what it may read.
    """

    domain: KeyId | None = None
    broker: PublicKey | None = None
    _subscriptions: dict[str, LiveSubscription] = field(default_factory=dict)
    _filters: dict[tuple[EventType, str], TypedFilter] = field(default_factory=dict)
    serving: Serving | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Serve for the broker, when there is one."""
        if self.broker is not None:
            self.serving = Serving(self, self.broker)

    def advertise(
        self,
        principal: PublicKey,
        type_id: TypeId,
        version: str,
        evidence: CertificatePool,
        *,
        at: datetime,
        filter_text: str | None = None,
        challenge: Challenges | None = None,
    ) -> Advertisement:
        """Check a client's right to publish once, before any state exists; with a challenge, on its answers too.

        A client may say what it will publish: alternatives for the values of attributes. Without a word each row is
        held to the bounds of the right by itself.

        Raises:
            MaiaError: The type is unknown, the right is not proven, or what is announced is out of its bounds.
        """
        event_type = self.event_type(type_id, version, at=at)
        clauses = self.granted(principal, Action.PUBLISH, event_type, evidence, at=at, challenge=challenge)
        if filter_text is not None:
            parts = self.descent(type_id).parts(item.uid for item in event_type.attributes)
            clauses = announce(clauses, self._compiled(event_type, filter_text), parts)
        return Advertisement(principal, event_type, tuple(clause.chain for clause in clauses), clauses)

    def subscribe(
        self,
        identity: str,
        principal: PublicKey,
        type_id: TypeId,
        version: str,
        filter_text: str,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> LiveSubscription:
        """Check a client's right to subscribe and its filter, then remember it; with a challenge, on its answers too.

        Raises:
            MaiaError: The type is unknown, the right is not proven, the filter is ill-typed, out of bounds or reads a
                closed attribute, or somebody else's subscription has this identity.
        """
        held = self._subscriptions.get(identity)
        if held is not None and held.principal != principal:
            raise DeniedError("the subscription is somebody else's", code="NOT_YOUR_SUBSCRIPTION")
        event_type = self.event_type(type_id, version, at=at)
        clauses = self.granted(principal, Action.SUBSCRIBE, event_type, evidence, at=at, challenge=challenge)
        filter_ = self._compiled(event_type, filter_text)
        clauses = require_bounds(clauses, filter_, Side.SUBSCRIBE)
        check_readable(filter_, clauses, event_type)
        chains = tuple(clause.chain for clause in clauses)
        made = LiveSubscription(identity, principal, event_type, filter_, chains, clauses)
        self._subscriptions[identity] = made
        return made

    def _compiled(self, event_type: EventType, text: str) -> TypedFilter:
        """Give a filter over uids, compiled once for a version."""
        found = self._filters.get((event_type, text))
        if found is None:
            typed = compile_filter(text, {item.name: item.type.value for item in event_type.attributes})
            found = uid_filter(event_type, typed)
            if len(self._filters) > 10_000:
                self._filters.clear()
            self._filters[event_type, text] = found
        return found

    def unsubscribe(self, identity: str) -> None:
        """Withdraw a subscription, if there is one."""
        self._subscriptions.pop(identity, None)

    def subscriptions(self, type_id: TypeId | None = None) -> tuple[LiveSubscription, ...]:
        """List the subscriptions, of one type or of all."""
        found = sorted(self._subscriptions.values(), key=lambda item: item.identity)
        return tuple(item for item in found if type_id is None or item.event_type.type_id == type_id)

    def live(self, type_id: TypeId, evidence: CertificatePool, *, at: datetime) -> tuple[Subscription, ...]:
        """Return the subscriptions of a type with the rights they have now; those without any are left out."""
        found = []
        for item in self.subscriptions(type_id):
            clauses = self._session_clauses(item, evidence, at=at)
            if clauses:
                ends = self.ends(item.principal, item.event_type, clauses, evidence, at=at)
                found.append(Subscription(item.identity, item.event_type, item.filter, clauses, ends))
        return tuple(found)

    def plan(self, type_id: TypeId, evidence: CertificatePool, *, at: datetime) -> DeliveryPlan:
        """Compile the live subscriptions of a type into an index."""
        plan = DeliveryPlan(self.kinds(type_id))
        for subscription in self.live(type_id, evidence, at=at):
            plan.add(subscription)
        return plan

    def ends(
        self,
        principal: PublicKey | KeyHash,
        event_type: EventType,
        clauses: Iterable[Clause],
        evidence: CertificatePool,
        *,
        at: datetime,
    ) -> datetime | None:
        """Tell the first instant at which a session's clauses, its type or its connection may be over.

        Statements are taken as they are: one that is heard later may end them earlier.
        """
        name = event_type.name
        found = [clause.until for clause in clauses]
        found += [grant.ends for grant in self._types[name.type_id, name.version.text].grants]
        found.append(self.check_connected(principal, evidence, at=at))
        return min((end for end in found if end is not None), default=None)

    def granted(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Decide what a principal may see or set of a version here: the question that every door asks.

        It must be let into the network, hold a right whose conditions hold, and be a client of this broker, which shows
        it no more than it may open itself.

        Raises:
            UncheckedError: It cannot be told.
            MaiaError: Nothing, and why.
        """
        clauses = self.held(principal, action, event_type, evidence, at=at, challenge=challenge)
        if self.serving is None:
            return clauses
        if action is Action.SUBSCRIBE:
            return self.serving.served(principal, event_type, clauses, evidence, at=at)
        self.serving.check_local(principal, action, event_type, clauses, evidence, at=at)
        return clauses

    def _session_clauses(
        self, item: LiveSubscription, evidence: CertificatePool, *, at: datetime
    ) -> tuple[Clause, ...]:
        try:
            self.event_type(item.event_type.type_id, item.event_type.name.version.text, at=at)
            self.check_connected(item.principal, evidence, at=at)
        except (VerificationError, NotFoundError):
            return ()
        clauses = self.clauses(item.principal, Action.SUBSCRIBE, item.event_type, evidence, at=at)
        if clauses and self.serving is not None:
            try:
                clauses = self.serving.served(item.principal, item.event_type, clauses, evidence, at=at)
            except (VerificationError, DeniedError):
                return ()
        return within_bounds(clauses, item.filter, Side.SUBSCRIBE)
