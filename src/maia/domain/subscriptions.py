"""The subscriptions of a domain, and its delivery job: they, its keys and its broker's outbox, put together.

Subscriptions are given, or read anew for each micro-batch from the home's ``subscriptions.toml``, so that a change is
in force at the next one:

    [[subscription]]
    name = "billing"
    as = "BO"
    type = "uk.gov.pito.Numberplate"
    where = "numberplate != ''"
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from maia.domain.delivery import DeliveryJob, Planned
from maia.domain.domain import Domain
from maia.domain.keys import HomeKeys
from maia.domain.operations import audit_of, note_session, without_values
from maia.domain.parked import keep_parked, read_parked
from maia.domain.possession import ProvenClient
from maia.domain.stretches import Stretch, next_stretch, wire_types
from maia.domain.trace import trace_of
from maia.domain.types import find_type
from maia.domain.waiting import Whom, everybody
from maia.domain.wanted import (
    SUBSCRIPTIONS_FILE,
    Wanted,
    check_client,
    check_file,
    entry_lines,
    read_subscriptions,
    read_wanted,
    to_toml,
)
from maia.encoding import did_you_mean
from maia.encryption import groups_of
from maia.errors import (
    DeniedError,
    FilterSyntaxError,
    FilterTypeError,
    MaiaError,
    MalformedError,
    NotFoundError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import EncryptionMode, TypeId
from maia.home import Home, locked, write_file
from maia.kernel import FILTER_CONTRADICTS_RIGHT, DeliverPlan, Subscription, VolumeWatch, contradicts_right
from maia.log import OK, AuditRow, Commit, Outbox, Places, outbox_secret

_log = logging.getLogger(__name__)
JOB = "delivery job"
_MAX_NAME = 200
# A statement is late, a type, a key or a certificate of this home is missing or damaged, or another owner's type has
# come to have the name: a doubt, and no denial, of this subscription alone.
_DOUBTS = (UncheckedError, NotFoundError, MalformedError, UsageError)


@dataclass(frozen=True, slots=True)
class HomeSecret:
    """A reference to the secret of a home's outbox: derives it where it is called, and carries no key."""

    path: str

    def __call__(self) -> bytes:
        """Derive the secret here."""
        return outbox_secret(Home.open(self.path).broker.export_seed())


class DomainPlans:
    """Compiles a domain's subscriptions for each micro-batch; those without a right get nothing, and it is said."""

    def __init__(self, domain: Domain, wanted: tuple[Wanted, ...] | None = None) -> None:
        """Compile these subscriptions; without any, those that the home keeps at each micro-batch."""
        self._domain = domain
        self._wanted = wanted

    def __call__(self, commits: Sequence[Commit] | None, at: datetime, whom: Whom = everybody) -> Planned:
        """Compile one plan per type that the commits hold and somebody subscribes to.

        Args:
            commits: The stretch of the log; nothing asks who can be judged, whatever the log holds.
            at: Now.
            whom: Which subscriptions.
        """
        domain, home = self._domain, self._domain.home
        at = domain.follow(at=at)
        known = domain.known(at=at)
        present = None if commits is None else {commit.type_id for commit in commits}
        found: dict[TypeId, list[Subscription]] = {}
        waits: dict[str, str] = {}
        for item in filter(lambda item: whom(item.name), self._kept()):
            try:
                name = find_type(home, item.type, item.version, among=known.names)
                if present is not None and present.isdisjoint(known.read_as(name.type_id, home)):
                    continue
                key = home.key(item.as_)
                if item.key and not item.is_of(key):
                    # SECURITY: nothing is delivered to another key; whether a file was exchanged is not known here.
                    raise UncheckedError(f"the key of `{item.as_}` is another one", code="CLIENT_KEY_CHANGED")
                made = domain.planner.subscription(
                    known, name, key, holder=item.as_, identity=item.name, where=item.where, at=at
                )  # fmt: skip
            except _DOUBTS as error:
                waits[item.name] = error.code
            except (VerificationError, DeniedError, FilterSyntaxError, FilterTypeError) as error:
                if known.failed:  # a definition does not verify, so nobody knows what it would have allowed
                    waits[item.name] = error.code
                elif commits is not None:
                    _refuse(home, item, error, at)
            else:
                found.setdefault(name.type_id, []).append(made)
        plans = []
        for subscriptions in found.values():
            plan = domain.planner.deliver(known, tuple(subscriptions), commits or (), at=at)
            if _has_keys(home, plan):
                plans.append(plan)
            else:  # rather than to deliver a sealed type as nulls, for ever
                waits |= {item.identity: "NO_KEYS" for item in subscriptions}
        if commits is not None:
            self._tell(waits, [item.identity for plan in plans for item in plan.subscriptions], at)
        return Planned(plans=tuple(plans), waits=waits)

    def _tell(self, waits: dict[str, str], served: list[str], at: datetime) -> None:
        """Say who waits and for what, and who waits no longer."""
        home = self._domain.home
        waited = {item.reader for item in read_parked(home.path)}
        for name in [*waits, *(name for name in served if _reader(name) in waited)]:
            keep_parked(home, _reader(name), [("/", waits[name])] if name in waits else [], at=at)

    def _kept(self) -> tuple[Wanted, ...]:
        return read_subscriptions(self._domain.path) if self._wanted is None else self._wanted


@dataclass(frozen=True, slots=True)
class JobStretches:
    """Finds the next stretch of the log for a domain's delivery job, over all types that the domain knows."""

    domain: Domain

    def __call__(self, after: Places, upto: Places | None, most: int | None, at: datetime) -> Stretch:
        """Find it with what is known at an instant, and remember which lanes wait."""
        at = self.domain.follow(at=at)
        types = wire_types(self.domain, self.domain.known(at=at))
        found = next_stretch(self.domain, types, after=after, upto=upto, most=most, at=at)
        if upto is None and most != 0:
            keep_parked(self.domain.home, JOB, found.alarms, at=at)
        return found


def delivery_job(
    domain: Domain, subscriptions: Sequence[Wanted] | None = None, *, outbox: Path | str | None = None
) -> DeliveryJob:
    """Put a domain's delivery job together.

    Args:
        domain: The domain.
        subscriptions: Whom to deliver to; ``None`` reads them from the home each time.
        outbox: Where to; the home's ``outbox`` by default.
    """
    home = domain.home
    path = str(home.path.resolve())
    alarm = home.config.alarm
    wanted = None if subscriptions is None else tuple(subscriptions)
    return DeliveryJob(
        log=domain.log,
        outbox=Outbox(home.path / "outbox" if outbox is None else outbox),
        next_stretch=JobStretches(domain),
        home=home.path.resolve(),
        make_plans=DomainPlans(domain, wanted),
        wanted=wanted,
        make_keys=HomeKeys(path),
        make_secret=HomeSecret(path),
        principal=home.broker.public_key.fingerprint,
        audit=audit_of(home),
        volume=None if alarm is None else VolumeWatch(events=alarm, period=timedelta(hours=1)),
        clock=domain.clock,
        trace=trace_of(home, "deliver").path,
    )


def add_subscription(domain: Domain, wanted: Wanted, *, client: ProvenClient, bounded: bool = False) -> None:
    """Keep another subscription in a home, after its client's key and right and its filter were proven.

    Args:
        domain: Whose home.
        wanted: The subscription.
        client: Whose key was proven.
        bounded: Whether the client has only so many: one that asks over a network.

    Raises:
        UsageError: There is one of this name: ``SUBSCRIPTION_EXISTS``; or no room for it: ``TOO_MANY_SUBSCRIPTIONS``.
        MaiaError: The client has no right, the filter is refused, or something is unknown.
    """
    if not wanted.name.isprintable() or not 0 < len(wanted.name) <= _MAX_NAME:
        raise UsageError("a subscription's name is one line of at most 200 characters", code="SUBSCRIPTIONS")
    if client.name != wanted.as_:
        raise DeniedError(f"the proof is `{client.name}`'s, not `{wanted.as_}`'s", code="NOT_A_CLIENT")
    wanted = replace(wanted, key=client.key.key_id.hex())
    path = domain.path / SUBSCRIPTIONS_FILE
    with locked(path):
        kept, ended = read_wanted(domain.path)
        if any(item.name == wanted.name for item in kept):
            raise UsageError(f"there is a subscription `{wanted.name}` already", code="SUBSCRIPTION_EXISTS")
        # SECURITY: the outbox still holds, under this name, what its client of then was delivered by that filter.
        if any(item.name == wanted.name and item != wanted for item in ended):
            raise UsageError(
                f"there was a subscription `{wanted.name}`, of another client, type or filter",
                code="SUBSCRIPTION_EXISTS",
            )
        plan = domain.deliver_plan(
            wanted.type, client=client, where=wanted.where, version=wanted.version, commits=()
        )  # fmt: skip
        held = plan.subscriptions[0]
        if bounded:
            check_client(wanted, (*kept, *ended))
        back = [item for item in ended if item.name != wanted.name]
        if len(back) < len(ended):
            data = to_toml((*kept, wanted), back)
        else:
            before = path.read_text("utf-8") if path.exists() else "format = 1"
            text = "\n".join(["[[subscription]]", *entry_lines(wanted), ""])
            data = (f"{before.rstrip()}\n\n{text}" if before.strip() else text).encode()
        check_file(data, len(kept) + len(back) + 1)
        _note(domain, "subscribe", wanted, client, held)
        if contradicts_right(held):
            _note(domain, "notice", wanted, client, held, code=FILTER_CONTRADICTS_RIGHT)
            _log.warning("`%s` asks for what the right of `%s` never shows", wanted.name, client.name)
        write_file(path, data, mode=0o644)


def take_up_subscription(domain: Domain, wanted: Wanted, *, client: ProvenClient, bounded: bool = False) -> bool:
    """Keep a subscription, or go on with one that its client has already, after the same proofs as for a new one.

    Args: as for `add_subscription`.

    Returns:
        Whether it was there.

    Raises:
        DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
        UsageError: It is to another type, or by another filter: ``SUBSCRIPTION_EXISTS``.
        MaiaError: As for `add_subscription`.
    """
    wanted = replace(wanted, key=client.key.key_id.hex())
    found = next((item for item in read_subscriptions(domain.path) if item.name == wanted.name), None)
    if found is None:
        add_subscription(domain, wanted, client=client, bounded=bounded)
        return False
    if not found.is_of(client.key):
        raise _not_yours()
    if found != wanted:
        raise UsageError(
            f"there is a subscription `{wanted.name}` to another type or by another filter", code="SUBSCRIPTION_EXISTS"
        )
    # SECURITY: whoever comes back may have lost its right meanwhile.
    domain.deliver_plan(wanted.type, client=client, where=wanted.where, version=wanted.version, commits=())
    return True


def end_subscription(domain: Domain, name: str, *, client: ProvenClient) -> Wanted:
    """Keep a client's subscription no longer: nothing more is delivered to it from the next micro-batch on.

    What it was delivered stays in the outbox, and its name stays its client's.

    Raises:
        NotFoundError: There is none: ``NO_SUBSCRIPTION``.
        DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
    """
    path = domain.path / SUBSCRIPTIONS_FILE
    with locked(path):
        kept, ended = read_wanted(domain.path)
        found = next((item for item in kept if item.name == name), None)
        if found is None:
            near = did_you_mean(name, [item.name for item in kept])
            raise NotFoundError(f"there is no subscription `{name}`{near}", code="NO_SUBSCRIPTION")
        if found.as_ != client.name or (found.key and not found.is_of(client.key)):
            raise _not_yours()
        data = to_toml([item for item in kept if item.name != name], (*ended, found))
        check_file(data, len(kept) + len(ended))
        _note(domain, "unsubscribe", found, client, None)
        write_file(path, data, mode=0o644)
    return found


def _not_yours() -> DeniedError:
    return DeniedError("the subscription is somebody else's", code="NOT_YOUR_SUBSCRIPTION")


def _note(
    domain: Domain, kind: str, wanted: Wanted, client: ProvenClient, held: Subscription | None, *, code: str = OK
) -> None:
    if held is None:
        try:
            type_id = domain.find_type(wanted.type, wanted.version).type_id
        except MaiaError:
            type_id = None  # one ends a subscription whatever became of its type
        note_session(domain.home, kind, client, type_id, source=wanted.name, at=domain.clock())
        return
    note_session(
        domain.home, kind, client, held.event_type.type_id, source=wanted.name, clauses=held.clauses,
        said=without_values(held.filter, held.event_type), code=code, at=domain.clock(), decision=held.decision,
    )  # fmt: skip


def _has_keys(home: Home, plan: DeliverPlan) -> bool:
    """Tell whether the home holds any key of a type, or needs none."""
    modes = {item.event_type.options.encryption for item in plan.subscriptions}
    if EncryptionMode.PLAIN in modes:
        return True
    ring = home.keyring()
    labels = [uid.encode() for uid in plan.kinds]
    inherited = () if plan.descent is None else plan.descent.holders.values()
    types = {plan.type_id, *(holder for holder in inherited if holder is not None)}
    groups = {group for mode in modes for type_id in types for group in groups_of(type_id, labels, mode)}
    return any(ring.epochs(group) for group in groups)


def _reader(name: str) -> str:
    """Name a subscription among those who wait."""
    return f"subscription {name}"


def _refuse(home: Home, item: Wanted, error: MaiaError, at: datetime) -> None:
    row = AuditRow(
        at=at, kind="refuse", principal=item.as_, type_id="", source=item.type, subject=item.name, code=error.code,
        events=0, decision=error.decision,
    )  # fmt: skip
    audit_of(home).note([row])
