"""The numberplate scenario as the thesis emulates it: one sub-event for each group of readers, against one parcel.

The camera publishes two sightings once. Sealed attribute by attribute they are one parcel, of which each broker opens
what it has keys for. Emulated they are one parcel for each group of readers, under a key of the group's own. Either way
the readers' rights are then enforced by the same code, and what they see is compared.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from maia.cli import screen
from maia.demo.stream import PLATE, READERS, numberplate_domains
from maia.domain import Domain
from maia.encryption import EpochId, KeyGroupId, KeyProvider, Keyring, Parcel, Tolerance
from maia.events import EventType, ValueType, to_arrow_schema
from maia.kernel import (
    DeliverPlan,
    SubType,
    emulate,
    enforce_publication,
    key_groups_needed,
    milliseconds,
    open_batch,
    publish_batches,
    sub_types,
)
from maia.testing import TYPE_NAME, NumberplateNetwork

_OTHER = "BX51 ABC"
_ATTRIBUTES = 5  # of the example of the thesis, 32 groups against 5

View = list[dict[str, object]]


@dataclass(slots=True)
class Emulation:
    """What came of it.

    Attributes:
        sightings: How many were published, once.
        sub_events: How many events emulation makes of them.
        octets: Of the parcels, by the way they were sealed.
        groups: The attributes that each reader's own sub-event holds, by name.
        views: What each reader sees when it is emulated.
        direct: What it sees of the one parcel.
        foreign: How many parcels of other groups each reader's key opened.
        key_groups: What every combination of rights over so many attributes may need, emulated and by attribute.
    """

    sightings: int
    sub_events: int = 0
    octets: dict[str, int] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    direct: dict[str, View] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    key_groups: dict[int, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {**asdict(self), "same_views": self.views == self.direct}


def play_emulated(network: NumberplateNetwork, folder: Path) -> Emulation:
    """Publish two sightings in both ways, and let the three readers see them."""
    domains = numberplate_domains(network, folder)
    ccs, at = domains["ccs"], network.now
    plan = ccs.publish_plan(TYPE_NAME, client=ccs.prove("CCTV"), publication="sightings", at=at)
    event_type = plan.event_type()
    rows = [
        {"numberplate": plate, "timestamp": at - timedelta(minutes=minutes), "location": place}
        for plate, minutes, place in ((PLATE, 10, "Paddington"), (_OTHER, 5, None))
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(event_type))
    stamp = milliseconds(at)
    [sealed] = publish_batches(plan, 0, iter([batch]), ccs.home.broker, ccs.home.keyring(), lambda: stamp)
    if sealed.parcel is None:
        raise AssertionError(sealed.refused)  # the camera may publish both
    plans = {who: _plan(domains[domain], who) for who, domain, _ in READERS}
    groups = {who: _opened(event_type, found) for who, found in plans.items()}
    subs = sub_types(event_type.type_id, groups.values())
    secret = {sub: secrets.token_bytes(32) for sub in subs}
    parcels = emulate(
        enforce_publication(event_type, batch, plan.clauses, at=at).batch, subs, plan.sealing, ccs.home.broker,
        _ring(secret), stamp=stamp, fresh_id=lambda: secrets.token_bytes(16), event_base=secrets.token_bytes(16),
    )  # fmt: skip
    found = Emulation(sightings=len(rows), sub_events=sum(parcel.header.count for parcel in parcels))
    found.octets = {
        "by attribute": len(sealed.parcel.to_bytes()),
        "emulated": sum(len(parcel.to_bytes()) for parcel in parcels),
    }
    names = {item.uid: item.name for item in event_type.attributes}
    for who, reading in plans.items():
        own = next(sub for sub in subs if sub.uids == groups[who])
        keys = _ring({own: secret[own]})
        opened = {sub: _open(event_type, parcel, keys) for sub, parcel in zip(subs, parcels, strict=True)}
        found.groups[who] = [name for uid, name in names.items() if uid in _filled(opened[own])]
        found.views[who] = _show(reading, opened[own])
        found.foreign[who] = sum(bool(_filled(batch)) for sub, batch in opened.items() if sub != own)
        found.direct[who] = _show(reading, _open(event_type, sealed.parcel, ccs.home.keyring()))
    for count in (len(names), _ATTRIBUTES):
        found.key_groups[count] = (key_groups_needed(count, emulated=True), key_groups_needed(count, emulated=False))
    return found


def _plan(domain: Domain, who: str) -> DeliverPlan:
    return domain.deliver_plan(TYPE_NAME, client=domain.prove(who), commits=())


def _opened(event_type: EventType, plan: DeliverPlan) -> frozenset[str]:
    """List what some clause of a reader opens, or needs to choose rows by."""
    [subscription] = plan.subscriptions
    demanded = {uid for clause in subscription.clauses for uid, _ in clause.constraints}
    opened = {
        item.uid for item in event_type.attributes if any(clause.opens(item.uid) for clause in subscription.clauses)
    }
    return frozenset(opened | demanded)


def _ring(keys: Mapping[SubType, bytes]) -> Keyring:
    """Hold the keys of groups: of one, as its readers' broker does, or of all, as the one does that publishes."""
    ring = Keyring()
    for sub, key in keys.items():
        ring.add(KeyGroupId(sub.type_id, b"*"), EpochId(0), key)
    return ring


def _open(event_type: EventType, parcel: Parcel, keys: KeyProvider) -> pa.RecordBatch:
    """Open a parcel as a broker does that has these keys; what it has no key for is null."""
    kinds: dict[str, ValueType] = {item.uid: item.type for item in event_type.attributes}
    return open_batch(
        parcel.to_bytes(), kinds, keys, arrives=parcel.header.stamp, tolerance=Tolerance(), check_origin=lambda _: None
    ).batch


def _filled(batch: pa.RecordBatch) -> frozenset[str]:
    """Name the attributes, by uid, of which something can be seen."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return frozenset(uid for uid, column in columns if column.null_count < len(column))


def _show(plan: DeliverPlan, batch: pa.RecordBatch) -> View:
    """Enforce a reader's right on what its broker opened."""
    return [
        {name: value if value is None or isinstance(value, str) else str(value) for name, value in row.items()}
        for delivery in plan.compiled().deliver(batch)
        for row in delivery.batch.to_pylist()
    ]


def draw_emulation(found: Emulation) -> None:
    """Draw the comparison."""
    from rich.table import Table

    out = screen()
    out.print(f"\n{found.sightings} sightings, published once; emulated they are {found.sub_events} events")
    table = Table("reader", "its sub-event holds", "rows", "same as by attribute", "opened of others", box=None)
    for who, names in found.groups.items():
        same = "yes" if found.views[who] == found.direct[who] else "no"
        table.add_row(who, ", ".join(names), str(len(found.views[who])), same, str(found.foreign[who]))
    out.print(table)
    for way, octets in found.octets.items():
        out.print(f"  {octets:>7,} octets  {way}")
    for attributes, (emulated, direct) in found.key_groups.items():
        out.print(f"  {attributes} attributes: up to {emulated} key groups when it is emulated, {direct} by attribute")
