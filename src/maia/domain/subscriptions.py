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

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from maia.domain.delivery import DeliveryJob, Planned
from maia.domain.domain import Domain
from maia.domain.keys import HomeKeys
from maia.domain.operations import audit_of
from maia.domain.parked import keep_parked, read_parked
from maia.domain.possession import ProvenClient
from maia.domain.stretches import Stretch, next_stretch, wire_types
from maia.domain.types import find_type
from maia.domain.waiting import Whom, everybody
from maia.domain.wanted import SUBSCRIPTIONS_FILE, Wanted, read_subscriptions
from maia.encryption import groups_of
from maia.errors import (
    DeniedError,
    FilterSyntaxError,
    FilterTypeError,
    MalformedError,
    NotFoundError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.events import EncryptionMode, TypeId
from maia.home import Home, locked, write_file
from maia.kernel import DeliverPlan, Subscription, VolumeWatch
from maia.log import AuditRow, Commit, Outbox, Places, outbox_secret

JOB = "delivery job"
_MAX_NAME = 200
# A statement is late, or a type, a key or a certificate of this home is missing or damaged: a doubt, and no denial.
_DOUBTS = (UncheckedError, NotFoundError, MalformedError)


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
                made = domain.planner.subscription(
                    known, name, home.key(item.as_), holder=item.as_, identity=item.name, where=item.where, at=at
                )  # fmt: skip
            except _DOUBTS as error:
                waits[item.name] = error.code
            except (VerificationError, DeniedError, FilterSyntaxError, FilterTypeError) as error:
                if known.failed:  # a definition does not verify, so nobody knows what it would have allowed
                    waits[item.name] = error.code
                elif commits is not None:
                    _refuse(home, item, error.code, at)
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
    )


def add_subscription(domain: Domain, wanted: Wanted, *, client: ProvenClient) -> None:
    """Keep another subscription in a home, after its client's key and right and its filter were proven.

    Raises:
        UsageError: There is one of this name: ``SUBSCRIPTION_EXISTS``.
        MaiaError: The client has no right, the filter is refused, or something is unknown.
    """
    if not wanted.name.isprintable() or not 0 < len(wanted.name) <= _MAX_NAME:
        raise UsageError("a subscription's name is one line of at most 200 characters", code="SUBSCRIPTIONS")
    if client.name != wanted.as_:
        raise DeniedError(f"the proof is `{client.name}`'s, not `{wanted.as_}`'s", code="NOT_A_CLIENT")
    path = domain.path / SUBSCRIPTIONS_FILE
    with locked(path):
        if any(item.name == wanted.name for item in read_subscriptions(domain.path)):
            raise UsageError(f"there is a subscription `{wanted.name}` already", code="SUBSCRIPTION_EXISTS")
        domain.deliver_plan(
            wanted.type, client=client, where=wanted.where, version=wanted.version, commits=()
        )  # fmt: skip
        fields = {"name": wanted.name, "as": wanted.as_, "type": wanted.type, "where": wanted.where}
        lines = [f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in fields.items() if text]
        if wanted.version is not None:
            lines.append(f"version = {json.dumps(wanted.version, ensure_ascii=False)}")
        before = path.read_text("utf-8") if path.exists() else "format = 1"
        text = "\n".join(["[[subscription]]", *lines, ""])
        write_file(path, (f"{before.rstrip()}\n\n{text}" if before.strip() else text).encode(), mode=0o644)


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


def _refuse(home: Home, item: Wanted, code: str, at: datetime) -> None:
    row = AuditRow(
        at=at, kind="refuse", principal=item.as_, type_id="", source=item.type, subject=item.name, code=code, events=0
    )
    audit_of(home).note([row])
