"""Writing a lane: one owner, its own record of what it signed, and a store that others can write to.

    <own record>/<folder of the lane>/<number>.record     what was signed, octet for octet
    <own record>/<folder of the lane>/head                the newest head, with the floor

The own record is a private store at the owner's home. It decides; the shared store is told.

Rules kept here:

- a record counts from the moment it is durable in the own record. There `put_new` decides which of several processes
  gets a number; who loses takes the next one;
- then the store is told. What somebody else put under that name gives way; when the store refuses, the record still
  counts (``LANE_PENDING``) and goes out before the next one;
- the owner re-asserts: whenever it writes, and at each round, the newest records and the head are put again where the
  store lost or exchanged them. No object of others can stop that;
- a store that holds records of this owner beyond its own record, or others under the same numbers, means that the home
  was restored from the past, or that its key is used elsewhere: nothing is signed (``LANE_AHEAD``) until `adopt` took
  over what the store says;
- stamps grow: the next one is now, or one more than the last.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from maia.errors import EncodingError, KeyFormatError, NotFoundError, SignatureError, UnavailableError, UsageError
from maia.kernel import milliseconds
from maia.log.lane import LaneReader
from maia.log.lane_objects import (
    HEAD_OCTETS,
    MAX_RECORD,
    START,
    LaneHead,
    LaneId,
    LaneRecord,
    Place,
    parse_head,
    parse_record,
    sign_head,
    sign_record,
    stamp_of,
)
from maia.log.store import Store
from maia.principals import Signer

_TRIES = 10_000
_PAGE = 1 << 20
_DEPTH = 16
_SUFFIX = ".record"


class LaneWriter:
    """Writes one lane."""

    def __init__(self, store: Store, lane: LaneId, signer: Signer, own: Store, *, limit: int = MAX_RECORD) -> None:
        """Write to a store as its owner.

        Args:
            store: Where others read it, and may write what they like.
            lane: Which lane.
            signer: Holds the owner's key.
            own: The owner's own record, which nobody else can write to; several lanes may share it.
            limit: The octets of a record at most.
        """
        if signer.public_key.key_id != lane.owner:
            raise UsageError("a lane is signed by its owner", code="WRONG_SIGNER")
        self.lane = lane
        self._store = store
        self._signer = signer
        self._own = own
        self._limit = limit
        self._last: LaneRecord | None = None
        self._compared = False

    def newest(self, *, known: int = 0) -> LaneRecord | None:
        """Return the newest record that was signed, by the own record; ``None`` before the first.

        Args:
            known: The number of a record that was there; names before it are not looked at.

        Raises:
            EncodingError: The own record is damaged: ``LANE_OWN_DAMAGED``.
        """
        if self._last is None:
            after = self.lane.record_name(known - 1).rpartition("/")[2] if known else ""
            names = self._own.list_after(self.lane.folder, after, limit=_PAGE)
            numbers = [int(name.removesuffix(_SUFFIX)) for name in names if name.endswith(_SUFFIX)]
            if not numbers:
                return None
            self._last = self._kept(max(numbers))
        while True:
            try:
                self._last = self._kept(self._last.number + 1)
            except NotFoundError:
                return self._last

    def kept(self, number: int) -> LaneRecord:
        """Return a record as it was signed, from the own record.

        Raises:
            NotFoundError: There is none, or it lies below the floor.
            EncodingError: The own record is damaged: ``LANE_OWN_DAMAGED``.
        """
        return self._last if self._last is not None and self._last.number == number else self._kept(number)

    def floor(self) -> Place:
        """Return the place up to which records were let go."""
        try:
            return parse_head(self.lane, self._own.get(self.lane.head_name, limit=HEAD_OCTETS)).floor
        except NotFoundError:
            return START

    def append(self, body: bytes, *, at: datetime, stamp: int | None = None) -> LaneRecord:
        """Sign the next record. It counts when this returns, and is in the store.

        Args:
            body: What it says.
            at: Now.
            stamp: Its stamp, above that of the record before; now, or one more than the last, unless given.

        Raises:
            UsageError: The body is too large (``LANE_SIZE``), or the stamp does not grow (``LANE_STAMP``).
            UnavailableError: ``LANE_AHEAD``: the home was restored from the past, nothing was signed. ``LANE_PENDING``:
                the record counts, and the store does not have it yet. Otherwise nothing counts that did not before.
        """
        if len(body) + 1024 > self._limit:
            raise UsageError(f"a lane record of more than {self._limit} octets", code="LANE_SIZE")
        for _ in range(_TRIES):
            last = self.newest()
            self._compare(last)
            before = -1 if last is None else last.stamp
            if stamp is not None and stamp <= before:
                raise UsageError(f"lane {self.lane}: stamps grow, and the last is {before}", code="LANE_STAMP")
            record = sign_record(
                self.lane,
                START if last is None else last.place,
                stamp=stamp_of(at, after=before) if stamp is None else stamp,
                body=body,
                signer=self._signer,
            )
            if self._keep(record):
                self._last = record
                self._tell(record)
                return record
        raise UnavailableError(f"lane {self.lane}: others keep writing to it", code="LANE_BUSY")

    def reassert(self, *, at: datetime, depth: int | None = _DEPTH, rhythm: timedelta = timedelta(0)) -> int:
        """Compare the store with the own record and put again what it lost or exchanged; then assert the head.

        Args:
            at: Now, for the head.
            depth: How many of the newest records are compared; all of them when ``None``.
            rhythm: Within which time the head will be asserted again.

        Returns:
            How many records had to be put again.

        Raises:
            UnavailableError: ``LANE_AHEAD``, or the store did not answer.
        """
        last = self.newest()
        put = self.restore(depth=depth)
        self._compared = False
        self._compare(last)
        self.assert_head(at=at, rhythm=rhythm)
        return put

    def restore(self, *, depth: int | None = None) -> int:
        """Put again the records that the store lost or exchanged, the newest so many or all; return how many.

        Raises:
            UnavailableError: ``LANE_AHEAD``, or the store did not answer.
        """
        last, put = self.newest(), 0
        if last is not None:
            first = self.floor().number + 1
            for number in range(first if depth is None else max(first, last.number - depth + 1), last.number + 1):
                put += self._assert(self._kept(number))
        return put

    def assert_head(self, *, at: datetime, floor: Place | None = None, rhythm: timedelta = timedelta(0)) -> LaneHead:
        """Sign what the newest record is, now, and tell the store.

        Args:
            at: Now.
            floor: Up to which record everything may be let go from now on; as before unless given.
            rhythm: Within which time it will be said again.

        Raises:
            UnavailableError: The store did not answer.
        """
        last = self.newest()
        head = LaneHead(
            place=START if last is None else last.place,
            asserted=milliseconds(at),
            due=milliseconds(at + rhythm),
            floor=self.floor() if floor is None else floor,
        )
        raw = sign_head(self.lane, head, self._signer)
        if floor is not None or not self._has_head():
            self._own.put(self.lane.head_name, raw)
        self._store.put(self.lane.head_name, raw)
        return head

    def forget(self, upto: int, *, at: datetime, keep_own: bool = False) -> None:
        """Let go of the records up to a number, which is below the newest; the signed floor says so first.

        Args:
            upto: The last that goes.
            at: Now.
            keep_own: Keep them in the own record.

        Raises:
            UsageError: The newest record, or one that does not exist, would go: ``LANE_RANGE``.
        """
        last, floor = self.newest(), self.floor()
        if last is None or upto >= last.number:
            raise UsageError("the newest record of a lane stays", code="LANE_RANGE")
        told = LaneReader(self._store, self.lane, limit=self._limit).head()
        if upto <= floor.number and told is not None and told.floor.number >= upto:
            return
        # A floor that this home signed before it was killed may be unknown to the store: nothing goes before it is.
        self.assert_head(at=at, floor=self._kept(upto).place if upto > floor.number else floor)
        first = min(upto, floor.number) + 1
        while first > 0 and self._shows(first - 1):
            first -= 1  # left by a run that was killed on its way up to the floor
        for number in range(first, upto + 1):
            self._store.delete(self.lane.record_name(number))
            if not keep_own:
                self._own.delete(self.lane.record_name(number))

    def _shows(self, number: int) -> bool:
        try:
            self._store.get(self.lane.record_name(number), limit=self._limit)
        except (NotFoundError, EncodingError):
            return False
        return True

    def adopt(self) -> int:
        """Take over what the store says beyond the own record, when it continues it; return how many records.

        Raises:
            UnavailableError: The store's lane does not continue the own record: ``LANE_FORKED``, or has a gap.
        """
        adopted = 0
        while True:
            last = self.newest()
            place, stamp = (START, -1) if last is None else (last.place, last.stamp)
            reader = LaneReader(self._store, self.lane, limit=self._limit)
            found = reader.since(place, stamp=stamp)
            if last is None and found.alarm is not None and found.alarm.code == "LANE_EXPIRED" and found.head:
                self._own.put(self.lane.head_name, sign_head(self.lane, found.head, self._signer))
                found = reader.since(found.head.floor)
            for record in found.records:
                self._keep(record)
                self._last = None
            adopted += len(found.records)
            if found.alarm is not None:
                raise UnavailableError(found.alarm.message, code=found.alarm.code)
            if not found.records:
                return adopted

    def _compare(self, last: LaneRecord | None) -> None:
        """See that the store has the newest record, and nothing of ours beyond it."""
        number = -1 if last is None else last.number
        reader = LaneReader(self._store, self.lane, limit=self._limit)
        if last is not None:
            self._assert(last)
        ahead = reader.record(number + 1) is not None
        if not ahead and not self._compared:
            # The first time a little further, so that one object that was removed hides nothing.
            head = reader.head()
            ahead = any(reader.record(further) is not None for further in range(number + 2, number + 10)) or (
                head is not None and head.place.number > number
            )
        if ahead:
            fresh = self.newest()  # another process of this home may have written since
            if fresh is not None and fresh.number > number:
                self._compare(fresh)
                return
            raise _ahead(self.lane, number)
        self._compared = True

    def _tell(self, record: LaneRecord) -> None:
        try:
            self._assert(record)
        except UnavailableError as error:
            if error.code == "LANE_AHEAD":
                raise
            raise UnavailableError(
                f"lane {self.lane}: record {record.number} counts, and the store does not have it yet; it is told "
                f"whenever this home is opened, or by `maia log reassert`: {error.message}",
                code="LANE_PENDING",
            ) from error

    def _assert(self, record: LaneRecord) -> bool:
        return assert_record(self._store, record, limit=self._limit)

    def _keep(self, record: LaneRecord) -> bool:
        """Make a record count; false when another process of this home took its number."""
        name = self.lane.record_name(record.number)
        try:
            return self._own.put_new(name, record.raw) or self._own.get(name, limit=self._limit) == record.raw
        except UnavailableError:
            # A refusal that came last left the record whole; then it counts, and saying otherwise would sign it twice.
            try:
                if self._own.get(name, limit=self._limit) == record.raw:
                    return True
            except (UnavailableError, EncodingError):
                pass
            raise

    def _kept(self, number: int) -> LaneRecord:
        raw = self._own.get(self.lane.record_name(number), limit=self._limit)
        try:
            return parse_record(self.lane, number, raw, limit=self._limit)
        except (EncodingError, SignatureError, KeyFormatError) as error:
            raise EncodingError(
                f"lane {self.lane}: the home's own copy of record {number} is damaged", code="LANE_OWN_DAMAGED"
            ) from error

    def _has_head(self) -> bool:
        try:
            self._own.get(self.lane.head_name, limit=HEAD_OCTETS)
        except NotFoundError:
            return False
        return True


def assert_record(store: Store, record: LaneRecord, *, limit: int = MAX_RECORD) -> bool:
    """Put a record where the store does not have it; true when it had to be put.

    Raises:
        UnavailableError: The owner signed another record of this number (``LANE_AHEAD``), or the store did not answer.
    """
    name = record.lane.record_name(record.number)
    for _ in range(2):
        try:
            there = store.get(name, limit=limit)
        except NotFoundError:
            if store.put_new(name, record.raw):
                return True
            continue
        except EncodingError:
            break  # unfit, so nobody's
        if there == record.raw:
            return False
        if _is_record(record.lane, record.number, there, limit):
            raise _ahead(record.lane, record.number - 1)
        break
    # SECURITY: what others put under our name gives way, whatever it is.
    store.put(name, record.raw)
    return True


def _is_record(lane: LaneId, number: int, raw: bytes, limit: int) -> bool:
    try:
        parse_record(lane, number, raw, limit=limit)
    except (EncodingError, SignatureError, KeyFormatError):
        return False
    return True


def _ahead(lane: LaneId, number: int) -> UnavailableError:
    return UnavailableError(
        f"lane {lane}: the log has records of this key beyond the {number + 1} that this home knows; the home was "
        "restored from the past, or its key is used elsewhere: run `maia log adopt`",
        code="LANE_AHEAD",
    )
