"""The verb of whole scenarios: types, rights, subscriptions and events through the real kernel, or through Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from maia.authority import Action, CertificatePool, Verifier, verify_event_type
from maia.broker import (
    Sealing,
    Sessions,
    enforce_publication,
    milliseconds,
    open_batch,
    reserve_stamps,
    seal_batch,
)
from maia.cli.conformance.certificates import evidence_of, key_of, principal_of, signer_of, version_of
from maia.cli.conformance.fields import Json, instant, objects, wrong
from maia.cli.conformance.fields import field as take
from maia.cli.conformance.parcels import events_batch, full_keyring
from maia.cli.conformance.trust import receive
from maia.cli.conformance.types import version_type, write_value
from maia.encryption import EpochId, ParcelHeader, Tolerance
from maia.errors import DeniedError, MaiaError, MalformedError, UsageError
from maia.events import AttributeType, EventType, TypeId, type_id
from maia.principals import CertificateId, KeySigner, PublicKey

_BROKER = "the scenario's broker"
_EVIDENCE = hashlib.sha256(b"own parcels need no evidence").digest()


def run_scenario(request: Json) -> dict[str, object]:
    """``broker.run``: who gets what, and what is refused why."""
    scenario = take(request, "scenario", dict)
    engine = request.get("engine", "kernel")
    if engine not in ("kernel", "spark"):
        raise wrong("engine", "kernel or spark")
    if engine == "spark":
        raise UsageError("this build has no Spark engine", code="ENGINE")
    run = _Run.of(scenario)
    run.subscribe(objects(scenario, "subscriptions"))
    run.publish(objects(scenario, "events"))
    return {"result": {"deliveries": run.sorted_deliveries(), "refusals": run.refusals}}


@dataclass(slots=True)
class _Run:
    """One scenario in progress: one broker that trusts itself and nobody else."""

    sessions: Sessions
    pool: CertificatePool
    pending: list[Json]
    identities: list[CertificateId | None]
    at: datetime
    signer: KeySigner
    names: dict[str, str] = field(default_factory=dict)
    deliveries: list[dict[str, object]] = field(default_factory=list)
    refusals: list[dict[str, object]] = field(default_factory=list)
    high_water: int = -1

    @classmethod
    def of(cls, scenario: Json) -> _Run:
        at = instant(scenario.get("at"))
        versions = objects(scenario, "types")
        evidence, identities, _ = evidence_of(objects(scenario, "certificates"), _kinds(versions))
        statements = objects(scenario, "statements", required=False)
        network = scenario.get("network")
        if network is not None and (not isinstance(network, list) or len(network) != 2):
            raise wrong("network", "owner and name")
        owned = None if network is None else (principal_of(network[0]), str(network[1]))
        sessions = Sessions(Verifier(), network=owned)
        run = cls(
            sessions, CertificatePool(evidence),
            sorted(statements, key=lambda item: instant(item.get("received"), "received")),
            identities, at, signer_of(_BROKER),
        )  # fmt: skip
        receive(sessions.verifier.statements, run.pending, identities, until=at)
        for value in versions:
            try:
                verified = verify_event_type(version_type(value), verifier=sessions.verifier, at=at, network=owned)
                sessions.install(verified)
            except MaiaError as error:
                if isinstance(error, MalformedError) and error.code == "REQUEST_FIELD":
                    raise
        return run

    def subscribe(self, subscriptions: list[Json]) -> None:
        for index, value in enumerate(subscriptions):
            identity = f"{index:06d}"
            try:
                self.sessions.subscribe(
                    identity, _client(value), _type(value), version_of(value.get("version")),
                    take(value, "filter", str, default=""), self.pool, at=self.at,
                )  # fmt: skip
                self.names[identity] = take(value, "as", str)
            except MaiaError as error:
                if isinstance(error, MalformedError) and error.code == "REQUEST_FIELD":
                    raise
                self.refusals.append({"subscription": index, "reason": error.code})

    def publish(self, events: list[Json]) -> None:
        order = sorted(range(len(events)), key=lambda index: instant(events[index].get("at")))
        for index in order:
            value = events[index]
            at = instant(value.get("at"))
            receive(self.sessions.verifier.statements, self.pending, self.identities, until=at)
            try:
                parcel, event_type = self._seal(value, at)
            except MaiaError as error:
                if isinstance(error, MalformedError) and error.code == "REQUEST_FIELD":
                    raise
                self.refusals.append({"event": index, "reason": error.code})
                continue
            self._deliver(index, value, parcel, event_type, at)

    def _seal(self, value: Json, at: datetime) -> tuple[bytes, EventType]:
        client = _client(value)
        advertised = self.sessions.advertise(client, _type(value), version_of(value.get("version")), self.pool, at=at)
        event_type = advertised.event_type
        clauses = self.sessions.clauses(client, Action.PUBLISH, event_type, self.pool, at=at)
        enforced = enforce_publication(event_type, events_batch(event_type, [take(value, "values", dict)]), clauses)
        if enforced.refusals:
            raise DeniedError("the publication was dropped", code=enforced.refusals[0].code)
        stamps = reserve_stamps(self.high_water, now=milliseconds(at), count=1)
        self.high_water = stamps.end - 1
        sealing = Sealing(type_id=event_type.type_id, mode=event_type.options.encryption, evidence=_EVIDENCE)
        serial = hashlib.sha256(b"%d" % stamps.first).digest()
        parcel = seal_batch(
            enforced.batch, sealing, self.signer, full_keyring(event_type, [EpochId(0)]),
            stamp=stamps.first, parcel_id=serial[:16], event_base=serial[16:],
        )  # fmt: skip
        return parcel.to_bytes(), event_type

    def _deliver(self, index: int, value: Json, parcel: bytes, event_type: EventType, at: datetime) -> None:
        opened = open_batch(
            parcel,
            self.sessions.kinds(event_type.type_id),
            full_keyring(event_type, [EpochId(0)]),
            arrives=self.high_water,
            tolerance=Tolerance(),
            check_origin=self._own,
        )
        plan = self.sessions.plan(event_type.type_id, self.pool, at=at)
        forms = {event_type.by_name(name).uid: form for name, form in take(value, "values", dict).items()}
        for delivery in plan.deliver(opened.batch):
            seen = {item.name: item for item in _version(self.sessions, delivery.subscription).attributes}
            [row] = delivery.batch.to_pylist()
            self.deliveries.append(
                {
                    "to": self.names[delivery.subscription],
                    "event": index,
                    "values": {
                        name: write_value(seen[name], cell, forms.get(seen[name].uid)) for name, cell in row.items()
                    },
                }
            )

    def _own(self, header: ParcelHeader) -> None:
        if header.origin != self.signer.public_key.key_id:
            raise DeniedError("a parcel of a broker that is not this one", code="WRONG_ORIGIN")

    def sorted_deliveries(self) -> list[dict[str, object]]:
        return sorted(self.deliveries, key=lambda item: (str(item["to"]), item["event"]))


def _version(sessions: Sessions, identity: str) -> EventType:
    return next(item.event_type for item in sessions.subscriptions() if item.identity == identity)


def _client(value: Json) -> PublicKey:
    return key_of(value.get("as"))


def _type(value: Json) -> TypeId:
    name = value.get("type")
    if not isinstance(name, list) or len(name) != 2 or not isinstance(name[1], str):
        raise wrong("type", "owner and name")
    return type_id(principal_of(name[0]), name[1])


def _kinds(versions: list[Json]) -> dict[str, AttributeType]:
    """Collect the attribute types that constraints in rights may refer to."""
    found: dict[str, AttributeType] = {}
    for version in versions:
        for item in objects(version, "attributes"):
            try:
                found[str(item.get("uid"))] = AttributeType(str(item.get("type")))
            except ValueError:
                continue
    return found


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"broker.run": run_scenario}
