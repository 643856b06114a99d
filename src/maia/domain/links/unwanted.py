"""What of a served log a neighbour does not want, by the filters that it sent.

Rules kept here:

- a filter that belongs to another broker than the one who asks is refused: nobody learns by another's filter what
  matches it. Whoever may not subscribe to the type is told nothing: all is served;
- who asks learns nothing that its own keys do not open: a block of a filter speaks of what was sealed under the very
  key that sealed it, whatever else the one who serves could open;
- a segment is unwanted when each of its events fails a constraint of every filter that could be read. Whoever has no
  key finds none of that, and all is served. What cannot be opened, or is damaged, is never unwanted;
- nothing is opened of an origin that has no right to publish the type;
- one question looks at so many records, segments, parcels and octets, and for so long; behind that nothing is said to
  be unwanted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from maia.domain.links.direct import may_read
from maia.domain.links.filters import MAX_FILTERS, find_type, open_with
from maia.encryption import (
    WHOLE_EVENT,
    EpochId,
    KeyGroupId,
    Keyring,
    OpenedFilter,
    Parcel,
    fits,
    may_match,
    open_parcel,
    parse_sealed_filter,
    verify_parcel,
)
from maia.errors import DeniedError, MaiaError, UsageError
from maia.events import EncryptionMode, EventType, TypeId
from maia.log import MAX_COMMIT, Commit, LaneId, LaneReader, LogFile, read_commit
from maia.principals import PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain

_MOST_RECORDS, _MOST_FILES, _MOST_PARCELS, _MOST_OCTETS, _MOST_SECONDS = 64, 512, 4096, 64 << 20, 5.0
_EPOCHS = 4


def unwanted_segments(
    domain: Domain,
    key: PublicKey,
    lane: LaneId,
    number: int,
    raws: Sequence[bytes],
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> tuple[list[str], int]:
    """Name the segments, from a record of a lane on, in which no event can match any of a neighbour's filters.

    Args:
        domain: Who serves.
        key: The neighbour's.
        lane: Which lane.
        number: From which record on.
        raws: Its sealed filters.
        monotonic: Says how long it takes.

    Returns:
        The segments, and the number of the last record that was looked at.

    Raises:
        DeniedError: A filter is another broker's: ``FILTER_ORIGIN``.
        UsageError: A filter is on another type than the lane: ``FILTER_TYPE``.
    """
    filters = [parse_sealed_filter(raw) for raw in raws[:MAX_FILTERS]]
    # SECURITY: whoever sends another's filter would learn from the answer which events match it.
    if any(item.origin != key.key_id for item in filters):
        raise DeniedError("a filter is sent by the broker that it belongs to", code="FILTER_ORIGIN")
    found, ring = find_type(domain, lane.topic), domain.home.keyring()
    names = {lane.topic} if found is None else {item.hex() for item in domain.home.wire_ids(found.type_id)}
    if any(item.type_id.hex() not in names for item in filters):
        raise UsageError("a filter is on the type whose events are asked for", code="FILTER_TYPE")
    opened = [open_with(domain, item, found, ring) for item in filters]
    if found is None or not opened or any(not item.read for item in opened):
        return [], number + _MOST_RECORDS - 1
    # SECURITY: a right to connect is none to the type; who lost the right to it may still hold a key.
    if not may_read(domain, key, found.type_id):
        return [], number + _MOST_RECORDS - 1
    budget = _Budget(monotonic)
    unwanted, last = list[str](), number - 1
    events = domain.log.lane(f"{lane.topic}/{lane.owner.hex()}")
    view = _View(found.type_id, ring, opened)
    for commit in _commits(domain, found, lane, number, budget):
        last = commit.sequence
        for file in commit.files:
            if not budget.takes(file):
                return unwanted, last
            try:
                if not any(budget.is_over() or view.wants(logged.parse()) for logged in events.parcels(file)):
                    unwanted.append(file.path)
            except MaiaError:
                continue  # whoever copies it is told what is wrong with it
    return unwanted, last


class _Budget:
    """What one question may cost."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._until = monotonic, monotonic() + _MOST_SECONDS
        self._files, self._parcels, self.octets = _MOST_FILES, _MOST_PARCELS, _MOST_OCTETS

    def is_over(self) -> bool:
        """Tell whether there is nothing left, or no time."""
        return min(self._files, self._parcels, self.octets) < 0 or self._monotonic() >= self._until

    def takes(self, file: LogFile) -> bool:
        """Count a segment; tell whether it may be opened."""
        # SECURITY: whoever signs a lane says what is in it, and who asks about it may be the same.
        self._files, self._parcels, self.octets = (
            self._files - 1,
            self._parcels - file.parcels,
            self.octets - file.size,
        )
        return not self.is_over()


def _commits(domain: Domain, found: EventType, lane: LaneId, number: int, budget: _Budget) -> Iterator[Commit]:
    """Go through the commits of a lane from a record on; what is none, or of no right, has no segments."""
    reader, known = LaneReader(domain.home.log_store, lane, limit=MAX_COMMIT), domain.known(at=domain.clock())
    for at in range(number, number + _MOST_RECORDS):
        record = None if at > number and budget.is_over() else reader.record(at)
        if record is None:
            return
        budget.octets -= len(record.raw)
        commit = read_commit(record, before=-1)
        # SECURITY: what somebody without a right signed is opened for nobody.
        if commit is None or commit.wrong or not domain.planner.origins.judge(known, found, commit).tenures:
            yield Commit(at, "", lane.topic, lane.owner.hex(), "", ())
        else:
            yield commit


class _View:
    """Looks into parcels of one type with the keys of this home; what may be told of them is `may_match`'s to say."""

    def __init__(self, type_id: TypeId, ring: Keyring, filters: Sequence[OpenedFilter]) -> None:
        self._type_id, self._ring, self._filters = type_id, ring, filters
        self._asked = frozenset(uid for item in filters for uid, _ in item.read)

    def wants(self, parcel: Parcel) -> bool:
        """Tell whether an event of a parcel may match one of the filters."""
        header, verified = parcel.header, verify_parcel(parcel)
        found = {label: self._find(parcel, label) for label in header.labels if label in (*self._asked, WHOLE_EVENT)}
        keys = {label: item[1] for label, item in found.items() if item is not None}
        under = {label: item[0] for label, item in found.items() if item is not None}
        columns = open_parcel(verified, keys.get, labels=self._asked)
        absent = frozenset[bytes]()
        if header.mode is EncryptionMode.EVENT:
            under = dict.fromkeys(self._asked, under[WHOLE_EVENT]) if WHOLE_EVENT in under else {}
        else:
            absent = self._asked - frozenset(header.labels)
        return any(
            # SECURITY: the key of one attribute speaks of no event that is sealed whole, and the other way round.
            item.mode is not header.mode or bool(np.any(may_match(item, columns, under, absent, header.count)))
            for item in self._filters
        )

    def _find(self, parcel: Parcel, label: bytes) -> tuple[EpochId, bytes] | None:
        """Find the epoch whose key sealed a block."""
        if parcel.header.mode is EncryptionMode.PLAIN:
            return None
        group = KeyGroupId(self._type_id, label)
        epochs = [epoch for epoch in self._ring.epochs(group) if epoch <= parcel.header.stamp][-_EPOCHS:]
        for epoch in reversed(epochs):
            key = self._ring.key(group, epoch)
            if key is not None and fits(parcel, label, key):
                return epoch, key
        return None
