"""From parcels to batches: opening what may be opened, and of that what is needed.

Opening follows one order, and every refusal has a code that tells nothing about the values: the parcel's signature; its
origin's right to publish the type; the epoch chosen by the stamp; then the blocks whose keys this broker holds; then
whether what they hold is within the origin's right (`origin_right`).

Whoever needs some attributes opens some blocks (`Opening`). What is refused does not depend on it: for every block the
epoch is chosen before the first is opened, and the attributes that the origin's right asks about are opened always.

A publisher that somebody keeps from hearing of a new epoch seals under the one before, and says so in the header. That
is opened too, by whoever holds the keys of both and of all between, when the stamp lies within the time for which a
publisher may be deaf (`Tolerance`). An evicted broker does not hold the later one, so it opens nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from maia.encryption import (
    KeyGroupId,
    KeyProvider,
    Parcel,
    ParcelHeader,
    Room,
    Tolerance,
    VerifiedParcel,
    fits,
    most_events,
    most_octets,
    open_parcel,
    parse_parcel,
    replaced_epochs,
    select_epoch,
    verify_parcel,
)
from maia.errors import DeniedError, EncodingError, MalformedError, SealError, UncheckedError
from maia.events import TYPE_ID_KEY, EncryptionMode, TypeId, ValueType, arrow_type
from maia.kernel import steps
from maia.kernel.clauses import Clause
from maia.kernel.descent import Descent
from maia.kernel.origin_right import within_rights
from maia.kernel.parcels import MAX_EVENTS, event_ids, event_name
from maia.kernel.rows import batch_of
from maia.kernel.steps import Tell, untold

FindDescent = Callable[[ParcelHeader], Descent]
"""Tells from which types the attributes of a parcel come."""
OriginCheck = Callable[[ParcelHeader], Iterable[Clause] | None]
"""Raises a `MaiaError` unless the origin of a parcel may publish its type; returns its clauses, or ``None`` for all."""


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


@dataclass(slots=True, kw_only=True)
class Opening:
    """A parcel that may be opened, and what of it was opened so far."""

    header: ParcelHeader
    verified: VerifiedParcel = field(repr=False)
    type_id: TypeId
    kinds: Mapping[str, ValueType]
    descent: Descent
    clauses: tuple[Clause, ...] | None
    room: Room
    keys: Mapping[bytes, bytes | None] = field(repr=False)
    foreign: bool = False
    tell: Tell = untold
    _opened: dict[bytes, pa.Array] = field(default_factory=dict, repr=False)

    def batch(self, uids: Collection[str] | None = None) -> pa.RecordBatch:
        """Give the events in transit form, with these attributes, or with all that are known here.

        Returns:
            No events when they are a child's and carry nothing of the type that is read.

        Raises:
            MaiaError: A block does not open, or holds what its origin may not set.
        """
        kinds = {uid: kind for uid, kind in self.kinds.items() if uids is None or uid in uids}
        if self.foreign:
            return _transit(self.header, self.type_id, {}, kinds).slice(0, 0)
        columns = self._columns(None if uids is None else {uid.encode() for uid in kinds})
        if self.clauses is not None:
            columns = within_rights(
                columns, self.clauses, self.header.count, labels=_carried(self.header), closed=self._closed(),
                descent=self.descent,
            )  # fmt: skip
        return _transit(self.header, self.type_id, columns, kinds)

    def opened(self, uids: Collection[str] | None = None) -> Opened:
        """Give the header with `batch`."""
        return Opened(self.header, self.batch(uids))

    def _columns(self, wanted: set[bytes] | None) -> dict[bytes, pa.Array]:
        """Open what is wanted and was not opened yet, with all that the origin's right asks about."""
        demanded = set() if self.clauses is None else _demanded(self.clauses)
        labels = set(self.header.labels)
        if wanted is not None and demanded is not None:
            labels &= wanted | demanded
        if self.header.mode is EncryptionMode.EVENT:
            labels = set() if self._opened else set(self.header.labels)
        # SECURITY: what is not sealed opens without a key, the own attributes of a child among them.
        labels = {label for label in labels - self._opened.keys() if self._is_ours(label)}
        if labels:
            columns = open_parcel(self.verified, self.keys.get, labels=labels, room=self.room)
            sealed = {EncryptionMode.PLAIN: 0, EncryptionMode.EVENT: min(1, len(columns))}
            self.tell(steps.DECRYPT, sealed.get(self.header.mode, len(columns)))
            self._opened |= columns
        return {label: column for label, column in self._opened.items() if self._is_ours(label)}

    def _is_ours(self, label: bytes) -> bool:
        return self.descent.group(label) is not None

    def _closed(self) -> tuple[bytes, ...]:
        """List the blocks that cannot be opened here."""
        if self.header.mode is EncryptionMode.PLAIN:
            return tuple(label for label in self.header.labels if not self._is_ours(label))
        held = {label for label, key in self.keys.items() if key is not None and self._is_ours(label)}
        return tuple(label for label in _carried(self.header) if label not in held) if held else self.header.labels


def open_batch(
    data: bytes | memoryview | Parcel,
    kinds: Mapping[str, ValueType],
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
    tell: Tell = untold,
) -> Opened:
    """Check a parcel and open all that this broker may open; see `begin_opening`.

    Returns:
        The events; none when they are a child's and carry nothing of the type that is read.

    Raises:
        MaiaError: As `begin_opening` and `Opening.batch` do.
    """
    return begin_opening(
        data, kinds, keys, arrives=arrives, tolerance=tolerance, check_origin=check_origin, modes=modes,
        max_events=max_events, horizon=horizon, type_id=type_id, find_descent=find_descent, tell=tell,
    ).opened()  # fmt: skip


def begin_opening(
    data: bytes | memoryview | Parcel,
    kinds: Mapping[str, ValueType],
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
    tell: Tell = untold,
) -> Opening:
    """Check a parcel, and open nothing of it yet.

    Args:
        data: The parcel as it came, or read already; what lies under a view must not change any more.
        kinds: The attribute types by uid that this broker knows; a block of another type is refused when it is opened.
        keys: This broker's keys.
        arrives: Now, in milliseconds.
        tolerance: Grace of old keys and skew of clocks.
        check_origin: Refuses parcels whose origin may not publish the type, and says what it may set.
        modes: How the owner of the type lets its events be sealed.
        max_events: The most events that this broker takes in one parcel.
        horizon: The stamp before which a parcel is refused: an older one could be a repetition that nobody knows again.
        type_id: The type that the parcel is of, when it bears a keyed id; that it is, ``check_origin`` has found.
        find_descent: Tells from which types the attributes of a parcel come, when some are inherited.
        tell: Hears of the steps.

    Raises:
        MalformedError: It is no parcel.
        VerificationError: Its signature or its origin's right is not proven.
        DeniedError: It is sealed in another mode than the type's.
        SealError: Its stamp is out of bounds, or no key of it is held here.
    """
    parcel = data if isinstance(data, Parcel) else parse_parcel(data)
    # SECURITY: a parcel with more events than its octets can tell is there to fill the memory.
    if parcel.header.count > min(max_events, most_events(parcel.octets)):
        raise EncodingError("a parcel with more events than are taken", code="PARCEL_COUNT")
    verified = verify_parcel(parcel)
    tell(steps.VERIFY, 1)
    header = verified.header
    clauses = check_origin(header)
    tell(steps.JUDGE, 1)
    if header.mode not in modes:
        raise DeniedError("a parcel sealed in another mode than its type's", code="MODE_REFUSED")
    if header.stamp > arrives + tolerance.skew:
        raise SealError("a stamp from the future", code="STAMP_AHEAD")
    if header.stamp < horizon:
        raise SealError("a stamp from before all that the log holds", code="STAMP_BEHIND")

    identity = header.type_id if type_id is None else type_id
    descent = Descent(type_id=identity) if find_descent is None else find_descent(header)
    groups = [group for label in header.labels if (group := descent.group(label)) is not None]
    foreign = descent.as_parent and not groups
    found: dict[bytes, bytes | None] = {}
    if header.mode is not EncryptionMode.PLAIN and not foreign:
        key_of = _keys_for(parcel, keys, descent, arrives=arrives, tolerance=tolerance)
        found = {label: key_of(label) for label in header.labels}
        if not any(found.values()) and any(keys.epochs(group) for group in groups):
            # SECURITY: of an epoch that this broker must not have; it is refused rather than shown as rows of nothing.
            raise SealError("no key of this parcel's epoch is held here", code="NO_KEY")
    return Opening(
        header=header, verified=verified, type_id=identity, kinds=kinds, descent=descent,
        clauses=None if clauses is None else tuple(clauses), room=Room(most_octets(parcel.octets)), keys=found,
        foreign=foreign, tell=tell,
    )  # fmt: skip


def _demanded(clauses: Iterable[Clause]) -> set[bytes] | None:
    """List the attributes that an origin's clauses ask about; ``None`` when they may ask about any."""
    found: set[bytes] = set()
    for clause in clauses:
        if clause.cells.bounds:
            return None
        found.update(uid.encode() for uid, _ in clause.constraints)
    return found


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


def require_heard_of(
    data: bytes | memoryview | Parcel, keys: KeyProvider, *, descent: Descent, tolerance: Tolerance
) -> None:
    """See that a parcel is of no epoch that this broker has not heard of yet.

    Its origin heard of a key before us, or somebody keeps the announcement from us: what cannot be opened now can be
    opened then, so it is a doubt. An epoch that is known and whose key does not fit is the origin's fault, and none.

    Raises:
        UncheckedError: A block can be of a later epoch than the last that is known of its group, whose key does not
            fit, nor that of one before which its publisher may take for current: ``EPOCH_UNHEARD``.
        MalformedError: It is no parcel.
    """
    parcel = data if isinstance(data, Parcel) else parse_parcel(data)
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
    header: ParcelHeader, type_id: TypeId, columns: Mapping[bytes, pa.Array], kinds: Mapping[str, ValueType]
) -> pa.RecordBatch:
    """Put opened columns beside nulls for the closed ones of known type."""
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for uid, kind in kinds.items():
        wanted = arrow_type(kind)
        column = columns.get(uid.encode())
        if column is not None and not column.type.equals(wanted):
            raise MalformedError("an attribute that travels with another type", code="UID_REUSED")
        fields.append(pa.field(uid, wanted))
        arrays.append(pa.nulls(header.count, wanted) if column is None else column)
    schema = pa.schema(fields, metadata={TYPE_ID_KEY: type_id.hex().encode()})
    return batch_of(arrays, schema, header.count)
