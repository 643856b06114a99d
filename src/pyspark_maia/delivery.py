"""The delivery job of a home: all its subscriptions, its keys and its broker's outbox, put together.

Subscriptions are given, or read anew for each micro-batch from the home's ``subscriptions.toml``, so that a change is
in force at the next one:

    [[subscription]]
    name = "billing"
    as = "BO"
    type = "uk.gov.pito.Numberplate"
    where = "numberplate != ''"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from maia.authority import Action
from maia.broker import Subscription, VolumeWatch, milliseconds
from maia.encryption import Tolerance, groups_of
from maia.errors import (
    DeniedError,
    FilterSyntaxError,
    FilterTypeError,
    MalformedError,
    NotFoundError,
    UnavailableError,
    VerificationError,
)
from maia.events import EncryptionMode
from maia.pipeline import AuditRow, Commit, DeliverPlan, DeliveryJob, LogDirectory, Outbox, outbox_secret, write_audit
from maia.stores import Home, HomeKeys, follow, proven_origins

_FILE = "subscriptions.toml"
_MAX_FILE = 16 << 20
_MAX_SUBSCRIPTIONS = 100_000
_FOREVER = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A subscription as a home keeps it: a name, the client's key name, the type, a filter and a version."""

    name: str
    as_: str
    type: str
    where: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class HomeSecret:
    """A reference to the secret of a home's outbox: derives it where it is called, and carries no key."""

    path: str

    def __call__(self) -> bytes:
        """Derive the secret here."""
        return outbox_secret(Home.open(self.path).broker.export_seed())


@dataclass(frozen=True, slots=True)
class HomePlans:
    """Compiles the subscriptions of a home for each micro-batch; those without a right get nothing, and it is said."""

    path: str
    wanted: tuple[Wanted, ...] | None = None

    def __call__(self, commits: Sequence[Commit], at: datetime) -> Iterator[DeliverPlan]:
        """Compile one plan per type that the commits hold and somebody subscribes to."""
        home = Home.open(self.path)
        at = follow(home, at=at)
        sessions = home.sessions(at=at)
        pool = home.pool()
        plans: dict[str, DeliverPlan] = {}
        present = {commit.type_id for commit in commits}
        for item in read_subscriptions(home.path) if self.wanted is None else self.wanted:
            try:
                name = home.find_type(item.type, item.version)
                if present.isdisjoint(identity.hex() for identity in home.wire_ids(name.type_id)):
                    continue
                client = home.key(item.as_)
                made = sessions.subscribe(item.name, client, name.type_id, name.version.text, item.where, pool, at=at)
                clauses = sessions.clauses(client, Action.SUBSCRIBE, made.event_type, pool, at=at)
            except (VerificationError, DeniedError, NotFoundError, FilterSyntaxError, FilterTypeError) as error:
                _refuse(home, item, error.code, at)
                continue
            subscription = Subscription(made.identity, made.event_type, made.filter, clauses)
            known = plans.get(name.type_id.hex())
            if known is None:
                known = DeliverPlan(
                    type_id=name.type_id,
                    kinds=sessions.kinds(name.type_id),
                    subscriptions=(),
                    origins=proven_origins(home, made.event_type, commits, verifier=sessions.verifier, at=at),
                    arrives=milliseconds(at),
                    tolerance=Tolerance(grace=_FOREVER, skew=home.tolerance.skew),
                    modes=sessions.modes(name.type_id),
                    aliases=home.wire_ids(name.type_id) - {name.type_id},
                )
            plans[name.type_id.hex()] = replace(known, subscriptions=(*known.subscriptions, subscription))
        for plan in plans.values():
            _check_keys(home, plan)
            yield plan


def delivery_job(
    home: Path | str, subscriptions: Sequence[Wanted] | None = None, *, outbox: Path | str | None = None
) -> DeliveryJob:
    """Put a home's delivery job together.

    Args:
        home: The home's directory.
        subscriptions: Whom to deliver to; ``None`` reads them from the home each time.
        outbox: Where to; the home's ``outbox`` by default.
    """
    opened = Home.open(home)
    path = str(opened.path.resolve())
    alarm = opened.config.alarm
    return DeliveryJob(
        log=LogDirectory(opened.log_path),
        outbox=Outbox(opened.path / "outbox" if outbox is None else outbox),
        make_plans=HomePlans(path, None if subscriptions is None else tuple(subscriptions)),
        make_keys=HomeKeys(path),
        make_secret=HomeSecret(path),
        principal=opened.broker.public_key.fingerprint,
        audit=opened.path / "audit",
        volume=None if alarm is None else VolumeWatch(events=alarm, period=timedelta(hours=1)),
    )


def read_subscriptions(home: Path) -> tuple[Wanted, ...]:
    """Read the subscriptions that a home keeps; none when it keeps none.

    Raises:
        MalformedError: The file is not what it should be: ``SUBSCRIPTIONS``.
    """
    path = home / _FILE
    if not path.exists():
        return ()
    with path.open("rb") as file:
        data = file.read(_MAX_FILE + 1)
    try:
        items = tomllib.loads(data.decode("utf-8")).pop("subscription", [])
        found = tuple(Wanted(as_=item.pop("as"), **item) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedError(f"`{_FILE}` is not a list of subscriptions", code="SUBSCRIPTIONS") from error
    if len(data) > _MAX_FILE or len(found) > _MAX_SUBSCRIPTIONS or len({item.name for item in found}) != len(found):
        raise MalformedError(f"`{_FILE}` has too many subscriptions, or a name twice", code="SUBSCRIPTIONS")
    return found


def _check_keys(home: Home, plan: DeliverPlan) -> None:
    """Stop rather than deliver a sealed type as nulls, for ever, because the keyring is gone or has not come yet."""
    modes = {item.event_type.options.encryption for item in plan.subscriptions}
    if EncryptionMode.PLAIN in modes:
        return
    ring = home.keyring()
    labels = [uid.encode() for uid in plan.kinds]
    groups = {group for mode in modes for group in groups_of(plan.type_id, labels, mode)}
    if not any(ring.epochs(group) for group in groups):
        raise UnavailableError("this home holds no key of the type that it is to deliver", code="NO_KEYS")


def _refuse(home: Home, item: Wanted, code: str, at: datetime) -> None:
    row = AuditRow(
        at=at, kind="refuse", principal=item.as_, type_id="", source=item.type, subject=item.name, code=code, events=0
    )
    write_audit(home.path / "audit", [row])
