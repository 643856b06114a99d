"""Attribute security emulated with one sub-event per group of readers, for comparison (row 15.16).

Where whole events are sealed under one key, readers with different rights can only be served by sending each group an
event of its own: a sub-type that holds the group's attributes and nothing else, sealed under the group's key. The
client still publishes once. It costs one event per group on the wire and up to 2^n key groups for n attributes, where
sealing by attribute costs one event and n key groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from maia.encryption import KeyProvider, Keyring, Parcel
from maia.errors import UsageError
from maia.events import TYPE_ID_KEY, EncryptionMode, TypeId
from maia.kernel.parcels import Sealing, seal_batch
from maia.kernel.rows import batch_of
from maia.principals import Signer

MAX_GROUPS = 1024
_CONTEXT = b"maia/1 emulated sub-type"


@dataclass(frozen=True, slots=True)
class SubType:
    """The attributes of one group of readers, under a type id of their own."""

    type_id: TypeId
    uids: frozenset[str]


def sub_types(type_id: TypeId, groups: Iterable[Collection[str]]) -> tuple[SubType, ...]:
    """Name one sub-type for each distinct group of attributes, in an order of their own.

    Raises:
        UsageError: There are no groups, or more than one publication is split into.

    >>> tuple(len(found.uids) for found in sub_types(TypeId(bytes(32)), [{"1"}, {"1", "2"}, {"1"}]))
    (1, 2)
    """
    distinct = sorted({frozenset(group) for group in groups}, key=lambda group: (len(group), sorted(group)))
    if not 1 <= len(distinct) <= MAX_GROUPS:
        raise UsageError(f"emulation splits a publication into 1 to {MAX_GROUPS} sub-events")
    return tuple(SubType(_sub_type_id(type_id, group), group) for group in distinct)


def emulate(
    batch: pa.RecordBatch,
    subs: Iterable[SubType],
    sealing: Sealing,
    signer: Signer,
    keys: Keyring | KeyProvider,
    *,
    stamp: int,
    fresh_id: Callable[[], bytes],
    event_base: bytes,
) -> tuple[Parcel, ...]:
    """Seal one publication as one parcel per sub-type, each under the key of that sub-type.

    Args:
        batch: Admitted events in transit form.
        subs: As `sub_types` made them.
        sealing: Of the type itself; mode and type id are replaced, and no key of the type seals.
        signer: This broker.
        keys: Keys by sub-type.
        stamp: The first of as many reserved stamps as there are sub-types.
        fresh_id: Gives a parcel id that was never used.
        event_base: Names the events: the same in every sub-event.
    """
    sealed = []
    for number, sub in enumerate(subs):
        names = [name for name in batch.schema.names if name in sub.uids]
        schema = pa.schema([batch.schema.field(name) for name in names], metadata={TYPE_ID_KEY: sub.type_id.hex()})
        part = batch_of([batch.column(name) for name in names], schema, batch.num_rows)
        own = replace(sealing, type_id=sub.type_id, mode=EncryptionMode.EVENT, key_type=None, descent=None)
        sealed.append(
            seal_batch(part, own, signer, keys, stamp=stamp + number, parcel_id=fresh_id(), event_base=event_base)
        )
    return tuple(sealed)


def key_groups_needed(attributes: int, *, emulated: bool) -> int:
    """Count the key groups that every combination of rights over so many attributes may need.

    >>> key_groups_needed(5, emulated=True), key_groups_needed(5, emulated=False)
    (32, 5)
    """
    return 2**attributes if emulated else attributes


def _sub_type_id(type_id: TypeId, uids: frozenset[str]) -> TypeId:
    digest = hashlib.sha256(_CONTEXT + type_id)
    for uid in sorted(uids):
        digest.update(len(uid).to_bytes(2, "big") + uid.encode())
    return TypeId(digest.digest())
