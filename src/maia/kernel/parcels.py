"""Between batches and parcels: sealing what may leave, and opening what may be opened.

Opening follows one order, and every refusal has a code that tells nothing about the values: the parcel's signature; its
origin's right to publish the type; the epoch chosen by the stamp; then the blocks whose keys this broker holds; then
whether what they hold is within the origin's right (`origin_right`).

A publisher that somebody keeps from hearing of a new epoch seals under the one before, and says so in the header. That
is opened too, by whoever holds the keys of both and of all between, when the stamp lies within the time for which a
publisher may be deaf (`Tolerance`). An evicted broker does not hold the later one, so it opens nothing by it.

A broker whose domain may set some attributes only is in no key group of the others. Their columns are null and travel
without a block: no key is needed that it cannot have. A value without a key still refuses the whole batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
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
    Tolerance,
    fits,
    open_parcel,
    parse_parcel,
    replaced_epochs,
    seal,
    select_epoch,
    verify_parcel,
)
from maia.errors import DeniedError, EncodingError, MalformedError, SealError, UncheckedError, UsageError
from maia.events import ARROW_TYPES, TYPE_ID_KEY, AttributeType, EncryptionMode, TypeId
from maia.kernel.clauses import Clause
from maia.kernel.descent import Descent
from maia.kernel.origin_right import within_rights
from maia.kernel.rows import batch_of, kind_of
from maia.principals import Signer

MAX_EVENTS = 1 << 20
_FREE_EVENTS, _EVENTS_PER_OCTET = 1024, 8
"""Most events of a parcel unless the caller says otherwise; bounds what a small parcel makes its reader allocate."""

FindDescent = Callable[[ParcelHeader], Descent]
"""Tells from which types the attributes of a parcel come."""
OriginCheck = Callable[[ParcelHeader], Iterable[Clause] | None]
"""Raises a `MaiaError` unless the origin of a parcel may publish its type; returns its clauses, or ``None`` for all."""


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
            SealError: The attribute belongs to two types at once: ``UID_REUSED``.
        """
        if self.descent is None:
            return KeyGroupId(self.type_id if self.key_type is None else self.key_type, label)
        group = self.descent.group(label)
        if group is None:
            raise SealError("an attribute that known versions inherit from two types", code="UID_REUSED")
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


@dataclass(frozen=True, slots=True)
class Opened:
    """A parcel that passed every check: its header and its events in transit form."""

    header: ParcelHeader
    batch: pa.RecordBatch

    @property
    def name(self) -> bytes:
        """The name of the parcel's events, see `event_name`."""
        return event_name(self.header.origin, self.header.event_base)

    def event_ids(self, rows: Iterable[int]) -> list[str]:
        """Name several events, see `event_ids`."""
        return event_ids(self.name, rows)


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


def open_batch(
    data: bytes | memoryview,
    kinds: Mapping[str, AttributeType],
    keys: KeyProvider,
    *,
    arrives: int,
    tolerance: Tolerance,
    check_origin: OriginCheck,
    modes: Collection[EncryptionMode] = tuple(EncryptionMode),
    max_events: int = MAX_EVENTS,
    horizon: int = 0,
    type_id: TypeId | None = None,
    find_descent: FindDescent | None = None,
) -> Opened:
    """Check a parcel and open what this broker may open.

    Args:
        data: The parcel as it came; what lies under a view must not change any more.
        kinds: The attribute types by uid that this broker knows; a block of another type is refused.
        keys: This broker's keys.
        arrives: Now, in milliseconds.
        tolerance: Grace of old keys and skew of clocks.
        check_origin: Refuses parcels whose origin may not publish the type, and says what it may set.
        modes: How the owner of the type lets its events be sealed.
        max_events: The most events that this broker takes in one parcel.
        horizon: The stamp before which a parcel is refused: an older one could be a repetition that nobody knows again.
        type_id: The type that the parcel is of, when it bears a keyed id; that it is, ``check_origin`` has found.
        find_descent: Tells from which types the attributes of a parcel come, when some are inherited.

    Returns:
        The events; none when they are a child's and carry nothing of the type that is read.

    Raises:
        MalformedError: It is no parcel, or its uids have other types.
        VerificationError: Its signature or its origin's right is not proven.
        DeniedError: It is sealed in another mode than the type's.
        SealError: Its stamp is out of bounds, or a block does not open.
    """
    parcel = parse_parcel(data)
    # SECURITY: a null takes a bit in each block, so a parcel with more events than that is there to fill the memory.
    if parcel.header.count > min(max_events, _FREE_EVENTS + _EVENTS_PER_OCTET * len(data)):
        raise EncodingError("a parcel with more events than are taken", code="PARCEL_COUNT")
    verified = verify_parcel(parcel)
    header = verified.header
    clauses = check_origin(header)
    if header.mode not in modes:
        raise DeniedError("a parcel sealed in another mode than its type's", code="MODE_REFUSED")
    if header.stamp > arrives + tolerance.skew:
        raise SealError("a stamp from the future", code="STAMP_AHEAD")
    if header.stamp < horizon:
        raise SealError("a stamp from before all that the log holds", code="STAMP_BEHIND")

    identity = header.type_id if type_id is None else type_id
    descent = Descent(type_id=identity) if find_descent is None else find_descent(header)
    if descent.as_parent and not any(descent.group(label) for label in header.labels):
        return Opened(header, _transit(header, identity, {}, kinds).slice(0, 0))
    columns = open_parcel(verified, _keys_for(parcel, keys, descent, arrives=arrives, tolerance=tolerance))
    groups = {label: group for label in (*header.labels, *columns) if (group := descent.group(label)) is not None}
    # SECURITY: what is not sealed opens without a key, the own attributes of a child among them.
    columns = {label: column for label, column in columns.items() if label in groups}
    if not columns and any(keys.epochs(group) for group in groups.values()):
        # SECURITY: of an epoch that this broker must not have; it is refused rather than shown as rows of nothing.
        raise SealError("no key of this parcel's epoch is held here", code="NO_KEY")
    if clauses is not None:
        closed = header.labels if not columns else tuple(label for label in _carried(header) if label not in columns)
        columns = within_rights(
            columns, tuple(clauses), header.count, labels=_carried(header), closed=closed, descent=descent
        )
    return Opened(header, _transit(header, identity, columns, kinds))


def _keys_for(
    parcel: Parcel, keys: KeyProvider, descent: Descent, *, arrives: int, tolerance: Tolerance
) -> Callable[[bytes], bytes | None]:
    """Give the function that finds the key of a block, by the epoch that was current at the stamp."""
    header = parcel.header

    def key_of(label: bytes) -> bytes | None:
        group = descent.group(label)
        if group is None:
            return None
        epochs = keys.epochs(group)
        if not epochs or epochs[0] > header.stamp:
            return None
        epoch = select_epoch(epochs, stamp=header.stamp, arrives=arrives, tolerance=tolerance)
        key = keys.key(group, epoch)
        replaced = _replaced_key(parcel, label, keys, group, key, arrives=arrives, tolerance=tolerance)
        if replaced is not None:
            return replaced
        if epoch > header.epoch:
            raise SealError("the parcel cannot be opened")
        return key

    return key_of


def _replaced_key(
    parcel: Parcel,
    label: bytes,
    keys: KeyProvider,
    group: KeyGroupId,
    key: bytes | None,
    *,
    arrives: int,
    tolerance: Tolerance,
) -> bytes | None:
    """Find the key that a block was sealed under whose publisher had not heard that the key was replaced.

    ``None`` unless all keys from that one to ``key``, which was current at the stamp, are held here.
    """
    older = replaced_epochs(keys.epochs(group), stamp=parcel.header.stamp, arrives=arrives, tolerance=tolerance)
    if key is None or not older or fits(parcel, label, key):
        return None
    for replaced in older:
        # SECURITY: a key that is missing between them is of a time in which this broker was not to read.
        key = keys.key(group, replaced)
        if key is None or fits(parcel, label, key):
            return key
    return None


def require_heard_of(data: bytes | memoryview, keys: KeyProvider, *, descent: Descent, tolerance: Tolerance) -> None:
    """See that a parcel is of no epoch that this broker has not heard of yet.

    Its origin heard of a key before us, or somebody keeps the announcement from us: what cannot be opened now can be
    opened then, so it is a doubt. An epoch that is known and whose key does not fit is the origin's fault, and none.

    Raises:
        UncheckedError: A block can be of a later epoch than the last that is known of its group, whose key does not
            fit, nor that of one before which its publisher may take for current: ``EPOCH_UNHEARD``.
        MalformedError: It is no parcel.
    """
    parcel = parse_parcel(data)
    header = parcel.header
    for label in header.labels:
        group = descent.group(label)
        if group is None:
            continue
        epochs = keys.epochs(group)
        key = keys.key(group, epochs[-1]) if epochs and epochs[-1] < header.epoch <= header.stamp else None
        if (
            key is not None
            and not fits(parcel, label, key)
            and _replaced_key(parcel, label, keys, group, key, arrives=header.stamp, tolerance=tolerance) is None
        ):
            raise UncheckedError("sealed in an epoch that was not heard of here", code="EPOCH_UNHEARD")


def _carried(header: ParcelHeader) -> tuple[bytes, ...]:
    """List the attributes that a parcel has blocks of; one that was opened as a whole holds no other."""
    return () if header.mode is EncryptionMode.EVENT else header.labels


def _transit(
    header: ParcelHeader, type_id: TypeId, columns: Mapping[bytes, pa.Array], kinds: Mapping[str, AttributeType]
) -> pa.RecordBatch:
    """Put opened columns beside nulls for the closed ones of known type."""
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for uid, kind in kinds.items():
        wanted = ARROW_TYPES[kind]
        column = columns.get(uid.encode())
        if column is not None and not column.type.equals(wanted):
            raise MalformedError("an attribute that travels with another type", code="UID_REUSED")
        fields.append(pa.field(uid, wanted))
        arrays.append(pa.nulls(header.count, wanted) if column is None else column)
    schema = pa.schema(fields, metadata={TYPE_ID_KEY: type_id.hex().encode()})
    return batch_of(arrays, schema, header.count)
