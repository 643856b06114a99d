"""The verbs of parcels: real sealing, deliberate damage, real opening."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from maia.conformance.certificates import signer_of, uid_of
from maia.conformance.fields import Json, VerbAnswer, field, instant, objects, wrong
from maia.conformance.keys import epochs_of, tolerance_of
from maia.conformance.types import read_value, version_type, write_value
from maia.encryption import EpochId, KeyGroupId, Keyring, Parcel, ParcelHeader, parse_parcel, seal, sign_parcel
from maia.errors import MaiaError, MalformedError
from maia.events import (
    EncryptionMode,
    EventType,
    TypeId,
    batch_from_transit,
    batch_to_transit,
    check_batch,
    to_arrow_schema,
    verify_type_signature,
)
from maia.kernel import Opened, Sealing, milliseconds, open_batch, seal_batch

_EVIDENCE = hashlib.sha256(b"maia conformance evidence").digest()


def seal_parcel(request: Json) -> str:
    """``parcel.seal``: one parcel in base64."""
    event_type = _type_of(request.get("type"))
    parcels = objects(request, "parcels")
    if len(parcels) != 1:
        raise wrong("parcels", "a list of one parcel")
    epochs = epochs_of(request)
    sealed = _seal(parcels[0], 0, event_type, epochs)
    return base64.b64encode(sealed.to_bytes()).decode("ascii")


def open_one(request: Json) -> list[dict[str, object]] | VerbAnswer:
    """``parcel.open``: the events of one parcel after the edits, or refused."""
    event_type = _type_of(request.get("type"))
    epochs = epochs_of(request)
    asked = objects(request, "parcels")
    index = field(request, "open", int)
    if not 0 <= index < len(asked):
        raise wrong("open", "the index of a parcel")
    try:
        sealed = [_seal(parcel, number, event_type, epochs).to_bytes() for number, parcel in enumerate(asked)]
        _apply_edits(sealed, asked, objects(request, "edits", required=False))
        opened = _open(sealed[index], request, event_type, epochs)
    except MalformedError as error:
        if error.code == "REQUEST_FIELD":
            raise
        return VerbAnswer("refused", error.code)
    except MaiaError as error:
        return VerbAnswer("refused", error.code)
    seen = batch_from_transit(event_type, opened.batch)
    return [
        {item.name: write_value(item, row[item.name]) for item in event_type.attributes} for row in seen.to_pylist()
    ]


def _type_of(value: object) -> EventType:
    if not isinstance(value, dict):
        raise wrong("type", "a version")
    return verify_type_signature(version_type(value)).definition


def group_key(group: KeyGroupId, epoch: EpochId) -> bytes:
    """Derive the key of a group and epoch, the same wherever it is asked."""
    return hashlib.sha256(b"maia conformance group key" + group.type_id + group.label + b"%d" % epoch).digest()


def full_keyring(event_type: EventType, epochs: list[EpochId]) -> Keyring:
    """Make a keyring with every key of a type."""
    ring = Keyring()
    for label in (*(uid.encode() for uid in event_type.uids), b"*"):
        group = KeyGroupId(event_type.type_id, label)
        for epoch in epochs:
            ring.add(group, epoch, group_key(group, epoch))
    return ring


def events_batch(event_type: EventType, events: list[Json]) -> pa.RecordBatch:
    """Turn events in JSON into a batch of their version."""
    rows = [{name: read_value(event_type.by_name(name), value) for name, value in event.items()} for event in events]
    schema = to_arrow_schema(event_type)
    try:
        batch = pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise MalformedError("an event does not fit its type", code="VALUE_TYPE") from error
    return check_batch(event_type, batch)


def _seal(parcel: Json, number: int, event_type: EventType, epochs: list[EpochId]) -> Parcel:
    own = event_type if parcel.get("type") is None else _type_of(parcel["type"])
    batch = batch_to_transit(own, events_batch(own, objects(parcel, "events")))
    signer = signer_of(field(parcel, "by", str))
    stamp = milliseconds(instant(parcel.get("at")))
    options = own.options
    parcel_id, event_base = (hashlib.sha256(b"%b %d" % (what, number)).digest()[:16] for what in (b"parcel", b"events"))
    if parcel.get("epoch") is None:
        sealing = Sealing(type_id=own.type_id, mode=options.encryption, evidence=_EVIDENCE, padding=options.padding)
        ring = full_keyring(own, epochs)
        return seal_batch(batch, sealing, signer, ring, stamp=stamp, parcel_id=parcel_id, event_base=event_base)
    # A case may want an epoch that the stamp does not lie in; the broker itself would never seal so.
    chosen = field(parcel, "epoch", int)
    if not 0 <= chosen < len(epochs):
        raise wrong("epoch", "the index of an epoch")
    kinds = {item.uid: item.type for item in own.attributes}
    columns = {name.encode(): (kinds[name], batch.column(name)) for name in batch.schema.names}
    header = ParcelHeader(
        type_id=own.type_id, origin=signer.public_key.key_id, parcel_id=parcel_id, event_base=event_base, stamp=stamp,
        count=batch.num_rows, epoch=epochs[chosen], mode=options.encryption, evidence=_EVIDENCE,
        labels=(b"*",) if options.encryption is EncryptionMode.EVENT else tuple(columns),
    )  # fmt: skip

    def key_of(label: bytes) -> bytes:
        return group_key(KeyGroupId(own.type_id, label), epochs[chosen])

    return seal(columns, header, signer, key_of, padding=options.padding)


def _open(data: bytes, request: Json, event_type: EventType, epochs: list[EpochId]) -> Opened:
    holds = field(request, "holds", dict)
    held_by_label: dict[bytes, list[int]] = {}
    for uid, indexes in holds.items():
        if not isinstance(indexes, list) or not all(type(i) is int and 0 <= i < len(epochs) for i in indexes):
            raise wrong("holds", "epoch indexes by uid")
        held_by_label[uid_of(uid).encode()] = indexes
    provider = _Partial(epochs, held_by_label)
    return open_batch(
        data,
        {item.uid: item.type for item in event_type.attributes},
        provider,
        arrives=milliseconds(instant(request.get("arrives"), "arrives")),
        tolerance=tolerance_of(request),
        check_origin=lambda header: _check_type(header, event_type.type_id),
    )


def _check_type(header: ParcelHeader, type_id: TypeId) -> None:
    if header.type_id != type_id:
        raise MalformedError("a parcel of another type", code="OTHER_TYPE")


class _Partial:
    """A key provider that knows all epochs but holds only some of their keys."""

    def __init__(self, epochs: list[EpochId], held: Mapping[bytes, list[int]]) -> None:
        self._epochs = tuple(epochs)
        self._held = held

    def epochs(self, group: KeyGroupId) -> tuple[EpochId, ...]:  # noqa: ARG002 - all groups turn together here
        return self._epochs

    def key(self, group: KeyGroupId, epoch: EpochId) -> bytes | None:
        held = self._held.get(group.label, [])
        return group_key(group, epoch) if self._epochs.index(epoch) in held else None


_FIELDS = {
    "type": "type_id", "type_id": "type_id", "origin": "origin", "origin_broker": "origin", "by": "origin",
    "id": "parcel_id", "parcel_id": "parcel_id", "events": "event_base", "event_base": "event_base",
    "stamp": "stamp", "first_stamp": "stamp", "at": "stamp", "count": "count", "epoch": "epoch", "key_epoch": "epoch",
    "mode": "mode", "evidence": "evidence", "network": "network",
}  # fmt: skip


def _apply_edits(sealed: list[bytes], asked: list[Json], edits: list[Json]) -> None:
    for edit in edits:
        if len(edit) != 1:
            raise wrong("edits", "one edit an object")
        [(kind, arguments)] = edit.items()
        if not isinstance(arguments, list):
            raise wrong("edits", "an edit with a list")
        if kind == "swap":
            _swap(sealed, arguments)
        elif kind == "set":
            _set(sealed, arguments)
        elif kind == "flip":
            at, bit = _index(arguments[0], sealed), arguments[1]
            octets = bytearray(sealed[at])
            if type(bit) is not int or not 0 <= bit < 8 * len(octets):
                raise wrong("edits", "a bit of the parcel")
            octets[bit // 8] ^= 1 << (bit % 8)
            sealed[at] = bytes(octets)
        elif kind == "resign":
            at = _index(arguments[0], sealed)
            by = arguments[1] if len(arguments) > 1 else asked[at].get("by")
            parcel = parse_parcel(sealed[at])
            sealed[at] = sign_parcel(parcel.header, parcel.blocks, signer_of(str(by))).to_bytes()
        else:
            raise wrong("edits", "a known edit")


def _index(value: object, sealed: list[bytes]) -> int:
    if type(value) is not int or not 0 <= value < len(sealed):
        raise wrong("edits", "the index of a parcel")
    return value


def _swap(sealed: list[bytes], arguments: list[object]) -> None:
    places = []
    for place in arguments:
        if not isinstance(place, list) or len(place) != 2:
            raise wrong("edits", "parcel and uid")
        at = _index(place[0], sealed)
        labels = parse_parcel(sealed[at]).header.labels
        label = uid_of(place[1]).encode()
        if label not in labels:
            raise wrong("edits", "a uid of the parcel")
        places.append((at, labels.index(label)))
    (first, i), (second, j) = places
    one, two = parse_parcel(sealed[first]), parse_parcel(sealed[second])
    mine, theirs = one.blocks[i], two.blocks[j]
    sealed[first] = _with_block(parse_parcel(sealed[first]), i, theirs)
    sealed[second] = _with_block(parse_parcel(sealed[second]), j, mine)


def _with_block(parcel: Parcel, at: int, block: bytes | memoryview) -> bytes:
    blocks = (*parcel.blocks[:at], block, *parcel.blocks[at + 1 :])
    return replace(parcel, blocks=blocks).to_bytes()


def _set(sealed: list[bytes], arguments: list[object]) -> None:
    if len(arguments) != 3 or not isinstance(arguments[1], str):
        raise wrong("edits", "parcel, field and value")
    at = _index(arguments[0], sealed)
    name = _FIELDS.get(arguments[1])
    if name is None:
        raise MalformedError("a parcel has no such header field", code="PARCEL_HEADER")
    parcel = parse_parcel(sealed[at])
    header = replace(parcel.header, **{name: _header_value(name, arguments[2])})  # type: ignore[arg-type]
    sealed[at] = replace(parcel, header=header).to_bytes()


def _header_value(name: str, value: object) -> object:
    if name in ("stamp", "epoch"):
        return milliseconds(instant(value, name))
    if name == "count":
        if type(value) is not int:
            raise wrong(name, "a number")
        return value
    if name == "mode":
        if value not in set(EncryptionMode):
            raise MalformedError("a parcel has no such mode", code="PARCEL_HEADER")
        return EncryptionMode(str(value))
    if name == "origin":
        return signer_of(str(value)).public_key.key_id
    length = 16 if name in ("parcel_id", "event_base") else 32
    return hashlib.sha256(str(value).encode()).digest()[:length]


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"parcel.seal": seal_parcel, "parcel.open": open_one}
