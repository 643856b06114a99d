"""From batches to parcels: sealing what may leave. What may be opened again is said in `opening`.

A broker whose domain may set some attributes only is in no key group of the others. Their columns are null and travel
without a block: no key is needed that it cannot have. A value without a key still refuses the whole batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from maia.encoding import encode
from maia.encryption import (
    WHOLE_EVENT,
    Compression,
    EpochId,
    KeyGroupId,
    KeyProvider,
    Keyring,
    Parcel,
    ParcelHeader,
    seal,
)
from maia.errors import SealError, UsageError
from maia.events import EncryptionMode, TypeId
from maia.kernel.descent import Descent
from maia.kernel.rows import kind_of
from maia.principals import Signer

MAX_EVENTS = 1 << 20
"""Most events of a parcel unless the caller says otherwise; how many a small one may hold is said in `room`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """How events of one type leave this broker, at most ``max_events`` at a time.

    ``key_type`` is the type whose key groups seal, when ``type_id`` is a keyed one (see `maia.encryption.TypeIds`);
    ``descent`` says which attributes are sealed by those of other types, from which they are inherited.
    """

    type_id: TypeId
    mode: EncryptionMode
    evidence: bytes
    padding: int = 0
    compression: Compression = Compression.NONE
    network: bytes | None = None
    max_events: int = MAX_EVENTS
    key_type: TypeId | None = None
    descent: Descent | None = None

    def group(self, label: bytes) -> KeyGroupId:
        """Name the key group of a block.

        Raises:
            SealError: The attribute belongs to two types at once: ``UID_OF_TWO_TYPES``.
        """
        if self.descent is None:
            return KeyGroupId(self.type_id if self.key_type is None else self.key_type, label)
        group = self.descent.group(label)
        if group is None:
            raise SealError("an attribute that known versions inherit from two types", code="UID_OF_TWO_TYPES")
        return group


def seal_batch(
    batch: pa.RecordBatch,
    sealing: Sealing,
    signer: Signer,
    keys: Keyring | KeyProvider,
    *,
    stamp: int,
    parcel_id: bytes,
    event_base: bytes,
) -> Parcel:
    """Seal admitted events into one parcel.

    Args:
        batch: In transit form, at least one row.
        sealing: Type, mode and evidence.
        signer: This broker.
        keys: Keys of the attributes; one that is missing for a column with a value refuses the whole batch.
        stamp: Reserved for this parcel; its epoch is the one current then.
        parcel_id: Fresh random octets, never used before.
        event_base: Names the events.

    Raises:
        SealError: A key is missing or exhausted.
        UsageError: There is no row, or more than fit.
    """
    if not 1 <= batch.num_rows <= sealing.max_events:
        raise UsageError(f"a parcel holds 1 to {sealing.max_events} events", code="BATCH_ROWS")
    columns = {
        name.encode(): (kind_of(column), column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if not _is_beyond(column, name.encode(), sealing, keys)
    }
    labels = (WHOLE_EVENT,) if sealing.mode is EncryptionMode.EVENT else tuple(columns)
    if not labels and batch.num_columns:
        raise SealError("no key of any attribute is held here", code="NO_KEY")
    epochs = _sealing_epochs(keys, sealing, labels, stamp)
    header = ParcelHeader(
        type_id=sealing.type_id,
        origin=signer.public_key.key_id,
        parcel_id=parcel_id,
        event_base=event_base,
        stamp=stamp,
        count=batch.num_rows,
        epoch=max(epochs.values(), default=EpochId(0)),
        mode=sealing.mode,
        evidence=sealing.evidence,
        labels=labels,
        network=sealing.network,
    )

    def key_of(label: bytes) -> bytes | None:
        return keys.key(sealing.group(label), epochs[label])

    return seal(columns, header, signer, key_of, compression=sealing.compression, padding=sealing.padding)


def _is_beyond(column: pa.Array, uid: bytes, sealing: Sealing, keys: KeyProvider) -> bool:
    """Tell whether a column is null throughout and of a key group that this broker was never in."""
    if sealing.mode is not EncryptionMode.ATTRIBUTE or column.null_count < len(column):
        return False
    return not keys.epochs(sealing.group(uid))


def _sealing_epochs(
    keys: Keyring | KeyProvider, sealing: Sealing, labels: tuple[bytes, ...], stamp: int
) -> dict[bytes, EpochId]:
    """Choose each group's epoch by the stamp; the header names the latest, which all readers can find again."""
    if sealing.mode is EncryptionMode.PLAIN:
        return {}
    out: dict[bytes, EpochId] = {}
    for label in labels:
        group = sealing.group(label)
        if isinstance(keys, Keyring):
            out[label] = keys.sealing_epoch(group, stamp)
        else:
            known = [epoch for epoch in keys.epochs(group) if epoch <= stamp]
            if not known:
                raise SealError("no key for this stamp", code="NO_KEY")
            out[label] = known[-1]
    return out


def event_name(origin: bytes, event_base: bytes) -> bytes:
    """Name the events of a parcel by the broker that sealed it and what that broker calls them.

    A broker chooses its ``event_base`` freely, so it could call its events what another calls its own; with the origin,
    which the signature proves, nobody's events can be taken for another's.

    >>> event_name(bytes(32), b"same").hex()[:8], event_name(bytes([1]) * 32, b"same").hex()[:8]
    ('d82535bf', 'ebf52a68')
    """
    return hashlib.sha256(encode((b"maia/1 event", origin, event_base))).digest()[:16]


def event_ids(name: bytes, rows: Iterable[int]) -> list[str]:
    """Name events of a parcel by the parcel's name and their positions in it.

    An id does not show the position: whoever sees some events of a parcel does not learn from their names how many lie
    before, between or behind them that are closed to it.

    >>> event_ids(bytes(16), [0, 2]) == [event_ids(bytes(16), [0])[0], event_ids(bytes(16), [2])[0]]
    True
    """
    begun = hashlib.sha256(b"maia/1 event id" + name)
    found = []
    for row in rows:
        one = begun.copy()
        one.update(b"%d" % row)
        found.append(one.hexdigest()[:32])
    return found
