"""The verb of whole scenarios: types, rights, subscriptions and events through the real kernel, or through Spark.

The rights of each event's instant are compiled to the plans that the pipeline uses; then every event is published,
sealed, opened and delivered by the pipeline's functions, in this process or in Spark's workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa

from maia.authority import (
    Action,
    CertificatePool,
    Tag,
    Verifier,
    ask_type,
    intersect,
    is_nothing,
    verify_event_type,
)
from maia.conformance.certificates import Kinds, evidence_of, key_of, principal_of, signer_of, version_of
from maia.conformance.fields import Json, instant, objects, wrong
from maia.conformance.fields import field as take
from maia.conformance.parcels import events_batch, full_keyring
from maia.conformance.trust import receive
from maia.conformance.types import version_type, write_value
from maia.encryption import EpochId, Tolerance
from maia.errors import MaiaError, MalformedError
from maia.events import AttributeType, EventType, TypeId, type_id
from maia.kernel import (
    DeliverPlan,
    LoggedParcel,
    NoSurroundings,
    PlanTerm,
    PublishPlan,
    Sealing,
    Sessions,
    deliver_parcels,
    milliseconds,
    publish_batches,
    reserve_stamps,
)
from maia.principals import CertificateId, PublicKey

_BROKER = "the scenario's broker"
_EVIDENCE = hashlib.sha256(b"own parcels need no evidence").digest()


@dataclass(frozen=True, slots=True)
class _Moment(NoSurroundings):
    """A place whose clock stands at the instant of one event, and that knows nothing else."""

    now: datetime | None = None

    def clock(self) -> datetime | None:
        """Tell the instant of the event."""
        return self.now


@dataclass(frozen=True, slots=True)
class Task:
    """One event on its way: what is sent, and the plans of its instant."""

    index: int
    stamp: int
    batch: pa.RecordBatch
    publish: PublishPlan
    deliver: DeliverPlan


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What became of an event: a refusal, or one row per subscription that gets it."""

    index: int
    refused: str | None
    rows: tuple[tuple[str, pa.RecordBatch], ...]


def run_task(task: Task) -> TaskResult:
    """Publish, seal, open and deliver one event; the same function in both engines."""
    signer = signer_of(_BROKER)
    event_type = task.publish.event_type()
    keys = full_keyring(event_type, [EpochId(0)])
    [sealed] = publish_batches(task.publish, task.index, iter([task.batch]), signer, keys, lambda: task.stamp)
    if sealed.parcel is None:
        return TaskResult(task.index, next(iter(sealed.refused)), ())
    logged = LoggedParcel.whole(sealed.parcel.header.count, sealed.parcel.to_bytes())
    [outcome] = deliver_parcels(task.deliver, [logged], keys, clock=lambda: task.deliver.term.made)
    found = [(delivery.subscription, delivery.batch) for delivery in outcome.deliveries]
    return TaskResult(task.index, outcome.refused, tuple(found))


def run_scenario(request: Json) -> dict[str, object]:
    """``broker.run``: who gets what, and what is refused why."""
    scenario = take(request, "scenario", dict)
    engine = request.get("engine", "kernel")
    if engine not in ("kernel", "spark"):
        raise wrong("engine", "kernel or spark")
    run = _Run.of(scenario)
    run.subscribe(objects(scenario, "subscriptions"))
    tasks = run.plan(objects(scenario, "events"))
    if engine == "spark":
        from maia.conformance.spark_engine import run_in_spark  # starting Spark takes seconds

        results = run_in_spark(tasks)
    else:
        results = [run_task(task) for task in tasks]
    run.collect(results)
    return {"deliveries": run.sorted_deliveries(), "refusals": run.refusals}


@dataclass(frozen=True, slots=True)
class Staged:
    """The types, certificates and statements of a scenario, as they are known at an instant.

    Attributes:
        sessions: Knows the types that verify, and the statements that arrived.
        pool: The certificates.
        pending: The statements that arrive later, in their order.
        identities: Of the certificates, as they are listed; nothing for what is none.
        definitions: The octets of the types.
    """

    sessions: Sessions
    pool: CertificatePool
    pending: list[Json]
    identities: list[CertificateId | None]
    definitions: dict[tuple[TypeId, str], bytes]


def stage(scenario: Json, at: datetime) -> Staged:
    """Make what a scenario lists, and let its statements arrive up to an instant."""
    versions = objects(scenario, "types")
    evidence, identities, _ = evidence_of(objects(scenario, "certificates"), kinds_of(versions))
    statements = objects(scenario, "statements", required=False)
    network = scenario.get("network")
    if network is not None and (not isinstance(network, list) or len(network) != 2):
        raise wrong("network", "owner and name")
    owned = None if network is None else (principal_of(network[0]), str(network[1]))
    pending = sorted(statements, key=lambda item: instant(item.get("received"), "received"))
    sessions = Sessions(Verifier(), network=owned, surroundings=partial(_Moment, now=at))
    receive(sessions.verifier.statements, pending, identities, until=at)
    definitions: dict[tuple[TypeId, str], bytes] = {}
    for value in versions:
        try:
            made = version_type(value)
            verified = verify_event_type(made, verifier=sessions.verifier, at=at, network=owned)
        except MaiaError as error:
            _reraise_request_errors(error)
            continue
        sessions.install(verified)
        name = verified.event_type.name
        definitions.setdefault((name.type_id, name.version.text), verified.raw)  # the first one counts
    return Staged(sessions, CertificatePool(evidence), pending, identities, definitions)


@dataclass(slots=True)
class _Run:
    """One scenario in progress: one broker that trusts itself and nobody else."""

    sessions: Sessions
    pool: CertificatePool
    pending: list[Json]
    identities: list[CertificateId | None]
    at: datetime
    definitions: dict[tuple[TypeId, str], bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    versions: dict[str, EventType] = field(default_factory=dict)
    forms: dict[int, dict[str, object]] = field(default_factory=dict)
    deliveries: list[dict[str, object]] = field(default_factory=list)
    refusals: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def of(cls, scenario: Json) -> _Run:
        at = instant(scenario.get("at"))
        staged = stage(scenario, at)
        return cls(staged.sessions, staged.pool, staged.pending, staged.identities, at, definitions=staged.definitions)

    def subscribe(self, subscriptions: list[Json]) -> None:
        """Make the subscriptions at the scenario's instant."""
        for index, value in enumerate(subscriptions):
            identity = f"{index:06d}"
            try:
                made = self.sessions.subscribe(
                    identity,
                    _client(value),
                    _type(value),
                    version_of(value.get("version")),
                    take(value, "filter", str, default=""),
                    self.pool,
                    at=self.at,
                )
            except MaiaError as error:
                _reraise_request_errors(error)
                self.refusals.append({"subscription": index, "reason": error.code})
                continue
            self.names[identity] = take(value, "as", str)
            self.versions[identity] = made.event_type

    def plan(self, events: list[Json]) -> list[Task]:
        """Compile each event's plans at its own instant, in the order of time."""
        tasks: list[Task] = []
        high = -1
        for index in sorted(range(len(events)), key=lambda number: instant(events[number].get("at"))):
            value = events[index]
            at = instant(value.get("at"))
            receive(self.sessions.verifier.statements, self.pending, self.identities, until=at)
            high = reserve_stamps(high, now=milliseconds(at), count=1).first
            try:
                tasks.append(self._task(index, value, at, high))
            except MaiaError as error:
                _reraise_request_errors(error)
                self.refusals.append({"event": index, "reason": error.code})
        return tasks

    def _task(self, index: int, value: Json, at: datetime, stamp: int) -> Task:
        client = _client(value)
        self.sessions.surroundings = partial(_Moment, now=at)
        advertised = self.sessions.advertise(client, _type(value), version_of(value.get("version")), self.pool, at=at)
        event_type = advertised.event_type
        values = take(value, "values", dict)
        batch = events_batch(event_type, [values])
        self.forms[index] = {event_type.by_name(name).uid: form for name, form in values.items()}
        name = event_type.name
        term = PlanTerm.of((), made=at, age=timedelta(days=1), skew=timedelta(0))
        publish = PublishPlan(
            publication=f"event {index}",
            principal=client.fingerprint,
            definition=self.definitions[name.type_id, name.version.text],
            clauses=self.sessions.clauses(client, Action.PUBLISH, event_type, self.pool, at=at),
            sealing=Sealing(type_id=name.type_id, mode=event_type.options.encryption, evidence=_EVIDENCE),
            term=term,
        )
        deliver = DeliverPlan(
            type_id=name.type_id,
            kinds=self.sessions.kinds(name.type_id),
            subscriptions=self.sessions.live(name.type_id, self.pool, at=at),
            term=term,
            origins={(signer_of(_BROKER).public_key.key_id, _EVIDENCE): None},
            arrives=stamp,
            tolerance=Tolerance(),
        )
        return Task(index, stamp, batch, publish, deliver)

    def collect(self, results: list[TaskResult]) -> None:
        """Turn results into the answer's shape."""
        for result in results:
            if result.refused is not None:
                self.refusals.append({"event": result.index, "reason": result.refused})
            for identity, batch in result.rows:
                [row] = batch.to_pylist()
                seen = {item.name: item for item in self.versions[identity].attributes}
                forms = self.forms[result.index]
                values = {name: write_value(seen[name], cell, forms.get(seen[name].uid)) for name, cell in row.items()}
                self.deliveries.append({"to": self.names[identity], "event": result.index, "values": values})

    def sorted_deliveries(self) -> list[dict[str, object]]:
        """Order deliveries by subscriber, then event."""
        return sorted(self.deliveries, key=lambda item: (str(item["to"]), item["event"]))


def _reraise_request_errors(error: MaiaError) -> None:
    """A malformed request is the sender's fault; everything else is the scenario's."""
    if isinstance(error, MalformedError) and error.code == "REQUEST_FIELD":
        raise error


def _client(value: Json) -> PublicKey:
    return key_of(value.get("as"))


def _type(value: Json) -> TypeId:
    name = value.get("type")
    if not isinstance(name, list) or len(name) != 2 or not isinstance(name[1], str):
        raise wrong("type", "owner and name")
    return type_id(principal_of(name[0]), name[1])


def kinds_of(versions: list[Json]) -> Kinds:
    """Collect the attribute types of versions, for the constraints of rights on them."""
    found: dict[tuple[TypeId, str], tuple[Tag, dict[str, AttributeType]]] = {}
    for value in versions:
        try:
            owner, name = principal_of(value.get("owner")), take(value, "name", str)
            asked = ask_type(Action.SUBSCRIBE, owner, name, version_of(value.get("version"))).wanted
            place = type_id(owner, name), version_of(value.get("version"))
        except MaiaError as error:
            _reraise_request_errors(error)
            continue  # no definition that could be verified
        known = {item.value: item for item in AttributeType}
        given = ((str(item.get("uid")), known.get(str(item.get("type")))) for item in objects(value, "attributes"))
        found.setdefault(place, (asked, {uid: kind for uid, kind in given if kind is not None}))

    def kinds(right: Tag) -> dict[str, tuple[AttributeType, ...]]:
        named: dict[str, dict[AttributeType, None]] = {}
        for asked, attributes in found.values():
            if not is_nothing(intersect(right, asked)):
                for uid, kind in attributes.items():
                    named.setdefault(uid, {})[kind] = None
        return {uid: tuple(several) for uid, several in named.items()}

    return kinds


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"broker.run": run_scenario}
