"""Who advertises and who subscribes: sessions checked once, and ended when their right ends.

A session's right is proven when it is made (rows 6.09, 7.02, 7.03); without proof no state remains. Its clauses are
derived from the same evidence at the time of each batch, and derived anew only when a statement arrived or the time of
a certificate or statement came, so a right that ends takes the session's view with it, mid-stream (choice C38).

A clause with conditions counts only while all of them hold. Those that depend on the moment are asked here at each
request; the clause then carries a guard that asks the others when data meets it. What they may ask beyond the moment is
the caller's to provide.

A session of a type that extends another one has clauses of each type of the lineage, each on that type's attributes
(`descent`). It stands on a right on the type itself; without a right on a parent what is inherited stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from maia.authority import (
    SPEAKS_OF_CLOSED,
    Action,
    CertificatePool,
    Challenge,
    Verifier,
    ask_network,
    first_end,
)
from maia.errors import ChainError, DeniedError, NotFoundError, UncheckedError, VerificationError
from maia.events import EventType, TypeId, TypeName
from maia.filters import Side, TypedFilter, compile_filter
from maia.kernel.bounds import announce, require_bounds, within_bounds
from maia.kernel.clauses import Clause
from maia.kernel.conditions import CONDITION_FALSE, MakeSurroundings, NoSurroundings, make_guard
from maia.kernel.delivery import DeliveryPlan, Subscription, check_readable, uid_filter
from maia.kernel.descent import confined
from maia.kernel.known_types import KnownTypes
from maia.kernel.topics import clauses_for, requests_for
from maia.principals import CertificateId, Principal, PublicKey

Network = tuple[Principal, str]
Challenges = Mapping[TypeName, Challenge]
"""What was asked for one decision, by the version that the right is on: that of the session, and those it extends."""


@dataclass(frozen=True, slots=True)
class Advertisement:
    """A client's announced intention to publish one version of a type, and the chains that allow it."""

    principal: PublicKey
    event_type: EventType
    chains: tuple[tuple[CertificateId, ...], ...] = ()
    clauses: tuple[Clause, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LiveSubscription:
    """A client's subscription as it was made, and the chains that allowed it."""

    identity: str
    principal: PublicKey
    event_type: EventType
    filter: TypedFilter
    chains: tuple[tuple[CertificateId, ...], ...] = ()
    clauses: tuple[Clause, ...] = field(default=(), compare=False, repr=False)


@dataclass(slots=True)
class Sessions(KnownTypes):
    """The advertisements and subscriptions of one broker, and the rights behind them.

    Attributes:
        verifier: Proves rights.
        network: Whose members alone are served, when there is one.
        surroundings: Builds what conditions may ask here; it travels with the clauses to wherever data meets them.
    """

    verifier: Verifier
    network: Network | None = None
    surroundings: MakeSurroundings = NoSurroundings
    _advertisements: dict[tuple[PublicKey, TypeId], Advertisement] = field(default_factory=dict)
    _subscriptions: dict[str, LiveSubscription] = field(default_factory=dict)
    _clauses: dict[tuple[object, ...], tuple[Clause, ...]] = field(default_factory=dict)
    _filters: dict[tuple[EventType, str], TypedFilter] = field(default_factory=dict)

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
        self.check_connected(principal, evidence, at=at)
        clauses = self.require_clauses(principal, Action.PUBLISH, event_type, evidence, at=at, challenge=challenge)
        if filter_text is not None:
            parts = self.descent(type_id).parts(item.uid for item in event_type.attributes)
            clauses = announce(clauses, self._compiled(event_type, filter_text), parts)
        made = Advertisement(principal, event_type, tuple(clause.chain for clause in clauses), clauses)
        self._advertisements[principal, type_id] = made
        return made

    def unadvertise(self, principal: PublicKey, type_id: TypeId) -> None:
        """Withdraw an advertisement, if there is one."""
        self._advertisements.pop((principal, type_id), None)

    def advertisement(self, principal: PublicKey, type_id: TypeId) -> Advertisement:
        """Return a client's advertisement.

        Raises:
            DeniedError: There is none: ``NOT_ADVERTISED``.
        """
        found = self._advertisements.get((principal, type_id))
        if found is None:
            raise DeniedError("publishing needs an advertisement of the type", code="NOT_ADVERTISED")
        return found

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
        self.check_connected(principal, evidence, at=at)
        clauses = self.require_clauses(principal, Action.SUBSCRIBE, event_type, evidence, at=at, challenge=challenge)
        filter_ = self._compiled(event_type, filter_text)
        clauses = require_bounds(clauses, filter_, Side.SUBSCRIBE)
        check_readable(filter_, clauses)
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

    def check_connected(self, principal: PublicKey, evidence: CertificatePool, *, at: datetime) -> datetime | None:
        """Refuse a client that may not connect to this broker's network, when it belongs to one.

        Returns:
            The first instant at which what proves it carries no longer, statements being as they are.
        """
        if self.network is None:
            return None
        owner, name = self.network
        request = ask_network(Action.CONNECT, owner, name)
        grant = self.verifier.verify(request, principal=principal, evidence=evidence, at=at)
        if not grant.conditions:
            return grant.ends
        for right in self.verifier.clauses(request, principal=principal, evidence=evidence, at=at):
            guard = make_guard(
                right.conditions, right.proof.certificate_ids(), action=Action.CONNECT, principal=principal.key_id,
                event_type="", evidence=evidence, make=self.surroundings, at=at,
            )  # fmt: skip
            if guard is not None and not guard.conditions:  # nothing is left that would need an event
                return first_end(right.period, right.until)
        raise ChainError("the conditions of the right do not hold", code=CONDITION_FALSE)

    def ends(
        self,
        principal: PublicKey,
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

    def require_clauses(
        self,
        principal: PublicKey,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Return a principal's clauses, or raise what the verifier says when there are none."""
        clauses = self.clauses(principal, action, event_type, evidence, at=at, challenge=challenge)
        asked = challenge or {}
        own, *extended = self.lineage(event_type)
        if not clauses:
            question, requests = asked.get(own.name), requests_for(action, own)
            for request in requests:
                self.verifier.verify(request, principal=principal, evidence=evidence, at=at, challenge=question)
            held = self._derived(principal, action, own, evidence, at=at, challenge=question)
            if extended and held and not confined(held, own.uids, holder=None):
                raise ChainError(
                    f"the right on `{own.name.name}` opens none of its own attributes, or speaks of inherited ones",
                    code=SPEAKS_OF_CLOSED,
                )
            if len(requests) > 1:  # each holds alone
                raise ChainError("the rights on the topic and its super-topics leave nothing", code=CONDITION_FALSE)
            raise ChainError("the conditions of the right do not hold", code=CONDITION_FALSE)
        for parent in extended:
            if all(clause.holder != parent.type_id for clause in clauses):
                self._check_doubt(principal, action, parent, evidence, at=at, challenge=asked.get(parent.name))
        return clauses

    def _check_doubt(
        self,
        principal: PublicKey,
        action: Action,
        definition: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenge | None,
    ) -> None:
        """Raise when a right on a parent is in doubt: to show nulls for what comes later would be to lose it."""
        try:
            for request in requests_for(action, definition):
                self.verifier.verify(request, principal=principal, evidence=evidence, at=at, challenge=challenge)
        except UncheckedError:
            raise
        except VerificationError:
            return  # no right, and what is inherited stays closed

    def clauses(
        self,
        principal: PublicKey,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Return a principal's clauses for an action at an instant, those whose conditions hold.

        With challenges, clauses that rest on their answers count as well, this once.
        """
        lineage = self.lineage(event_type)
        found: list[Clause] = []
        for definition in lineage:
            question = None if challenge is None else challenge.get(definition.name)
            part = self._derived(principal, action, definition, evidence, at=at, challenge=question)
            if len(lineage) > 1:
                holder = None if definition is lineage[0] else definition.type_id
                part = confined(part, definition.uids, holder=holder)
            part = self.guarded(part, principal, action, definition.name.name, evidence, at=at)
            if not part and definition is lineage[0]:
                return ()
            found += part
        return tuple(found)

    def _derived(
        self,
        principal: PublicKey,
        action: Action,
        definition: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenge | None,
    ) -> tuple[Clause, ...]:
        """Derive a principal's clauses on one type, conditions unasked."""
        book = self.verifier.statements
        moment = (evidence.phase(at), book.phase(at), book.revision)
        key = (principal, action, definition.name, evidence.token, moment)
        found = self._clauses.get(key) if challenge is None else None
        if found is None:
            rights = (
                self.verifier.clauses(request, principal=principal, evidence=evidence, at=at, challenge=challenge)
                for request in requests_for(action, definition)
            )
            found = clauses_for(action, definition, rights)
            if challenge is None:
                if len(self._clauses) > 10_000:
                    self._clauses.clear()
                self._clauses[key] = found
        return found

    def guarded(
        self,
        clauses: Iterable[Clause],
        principal: PublicKey,
        action: Action,
        type_name: str,
        evidence: CertificatePool,
        *,
        at: datetime,
    ) -> tuple[Clause, ...]:
        """Put clauses with conditions under guards, and leave out those whose conditions do not hold now."""
        found = (self._guarded(clause, principal, action, type_name, evidence, at) for clause in clauses)
        return tuple(clause for clause in found if clause is not None)

    def _guarded(
        self,
        clause: Clause,
        principal: PublicKey,
        action: Action,
        type_name: str,
        evidence: CertificatePool,
        at: datetime,
    ) -> Clause | None:
        """Put a clause with conditions under a guard; nothing when they do not hold now."""
        if not clause.conditions:
            return clause
        guard = make_guard(
            clause.conditions, clause.chain, action=action, principal=principal.key_id, event_type=type_name,
            evidence=evidence, make=self.surroundings, at=at,
        )  # fmt: skip
        return None if guard is None else replace(clause, guard=guard)

    def _session_clauses(
        self, item: LiveSubscription, evidence: CertificatePool, *, at: datetime
    ) -> tuple[Clause, ...]:
        try:
            self.event_type(item.event_type.type_id, item.event_type.name.version.text, at=at)
            self.check_connected(item.principal, evidence, at=at)
        except (VerificationError, NotFoundError):
            return ()
        clauses = self.clauses(item.principal, Action.SUBSCRIBE, item.event_type, evidence, at=at)
        return within_bounds(clauses, item.filter, Side.SUBSCRIBE)
