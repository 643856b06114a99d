"""A key manager's messages in the log: one lane a group, whose own record is the manager's database.

Rules kept here:

- a record is signed in the transaction that begins its epoch, and kept; the log is told afterwards, in order, as often
  as it takes. So no epoch has two keys and no number is used twice, and nothing in the log keeps an eviction from
  counting;
- the log is ahead of the database only when the database is not the one it was: a backup. Records that this manager
  signed show it by number and digest, so nothing that is replayed hides it. Then no epoch is begun in that group before
  it is repaired;
- what others write there counts for nothing, and gives way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from maia.encryption import KeyGroupId, VerifiedRekey, parse_rekey, rekey_topic, verify_rekey
from maia.errors import EncodingError, MaiaError, UnavailableError, UncheckedError
from maia.kernel import milliseconds
from maia.log import (
    MAX_NOTICE,
    START,
    LaneHead,
    LaneReader,
    LaneRecord,
    NoticeKind,
    NoticeLog,
    Place,
    assert_record,
    parse_record,
    sign_head,
    sign_record,
    stamp_of,
)
from maia.principals import Signer

_PAGE = 1000
_PAGES = 100
_ENVELOPE = 1024
_logger = logging.getLogger(__name__)


class RekeyLog:
    """One manager's messages in a log."""

    def __init__(self, notices: NoticeLog, signer: Signer, *, rhythm: timedelta) -> None:
        """Use a log's notices; within ``rhythm`` the newest record of each group is said again."""
        self._store = notices.store
        self._notices = notices
        self._signer = signer
        self._rhythm = rhythm

    def sign(self, group: KeyGroupId, last: tuple[Place, int], body: bytes, *, at: datetime) -> LaneRecord:
        """Sign the record that follows the last one, given by its place and stamp."""
        if len(body) + _ENVELOPE > MAX_NOTICE:
            raise UncheckedError("a rekey message that is larger than a notice may be", code="LIMIT_EXCEEDED")
        place, stamp = last
        lane = self._reader(group).lane
        return sign_record(lane, place, stamp=stamp_of(at, after=stamp), body=body, signer=self._signer)

    def parse(self, group: KeyGroupId, number: int, raw: bytes) -> LaneRecord:
        """Read a record as the database keeps it."""
        return parse_record(self._reader(group).lane, number, raw, limit=MAX_NOTICE)

    def is_ahead(self, group: KeyGroupId, place: Place) -> bool:
        """Tell whether the log shows that this manager signed more than the database knows, or something else.

        A log that cannot be read shows nothing: what must be done is done, and published when it can be.
        """
        try:
            return self._reader(group).reaches_beyond(place)
        except UnavailableError as error:
            # SECURITY: no reading of the log stops an eviction. Nobody gets a key of an epoch before it is published,
            # and publishing looks again.
            _logger.warning("the log cannot be compared with the key groups: %s", error.code)
            return False

    def check(self, group: KeyGroupId, place: Place) -> None:
        """Refuse to go on with a group that is older than what the log shows.

        Raises:
            UnavailableError: ``KEY_MANAGER_BEHIND``.
        """
        if self.is_ahead(group, place):
            raise _behind()

    def missed(self, group: KeyGroupId, place: Place) -> tuple[LaneRecord, ...]:
        """Read what the log shows beyond a place: all of it, or its end alone when something between is missing.

        Raises:
            UnavailableError: Its end is not there (``LANE_GAP``), there are too many, or the log cannot be used.
        """
        reader, found = self._reader(group), list[LaneRecord]()
        begin = place
        for _ in range(_PAGES):
            page = reader.since(begin, limit=_PAGE)
            found += page.records
            begin = page.place
            if page.alarm is not None or page.head is None:
                break
            if len(page.records) < _PAGE:
                return tuple(found)
        else:
            raise UnavailableError("the log holds more rekey messages than are read", code="REKEY_BACKLOG")
        head = page.head
        if head is None or head.place.number <= begin.number:
            # Without a newer head, the end is the last record that can be found under the next few numbers.
            last = next((item for step in range(9, -1, -1) if (item := reader.record(begin.number + step))), None)
            return tuple(found) if last is None or last.place == begin else (last,)
        newest = reader.record(head.place.number)
        if newest is None or newest.digest != head.place.digest:
            raise UnavailableError(
                f"the newest record of a key group, {head.place.number}, is not in the log; put it back from a copy",
                code="LANE_GAP",
            )
        return (newest,)

    def verify(self, record: LaneRecord) -> VerifiedRekey:
        """Open the message of a record."""
        return verify_rekey(parse_rekey(record.body), self._signer.public_key)

    def publish(self, records: Sequence[LaneRecord]) -> int:
        """Put records where the log does not have them, in order; tell how many it lacked.

        Raises:
            UnavailableError: The log holds another record of this manager (``KEY_MANAGER_BEHIND``), or cannot be used.
        """
        try:
            return sum(assert_record(self._store, record, limit=MAX_NOTICE) for record in records)
        except UnavailableError as error:
            if error.code == "LANE_AHEAD":
                raise _behind() from error
            raise
        except EncodingError as error:  # a folder that may not be entered
            raise UnavailableError(error.message, code=error.code) from error

    def assert_head(self, newest: LaneRecord, floor: Place, *, at: datetime) -> bool:
        """Say what the newest record is unless the log says so and it is not long ago; tell whether it was said.

        Raises:
            UnavailableError: The log cannot be used.
        """
        reader, now = LaneReader(self._store, newest.lane, limit=MAX_NOTICE), milliseconds(at)
        said = reader.head()
        if said is not None and (said.place, said.floor) == (newest.place, floor):
            rhythm = min(said.due - said.asserted, self._rhythm // timedelta(milliseconds=1))
            if 0 <= now - said.asserted < rhythm / 2:
                return False
        head = LaneHead(place=newest.place, asserted=now, due=milliseconds(at + self._rhythm), floor=floor)
        try:
            self._store.put(newest.lane.head_name, sign_head(newest.lane, head, self._signer))
        except EncodingError as error:
            raise UnavailableError(error.message, code=error.code) from error
        return True

    def forget(self, group: KeyGroupId, numbers: Sequence[int]) -> None:
        """Remove records below the floor; what is not removed does no harm."""
        lane = self._reader(group).lane
        for number in numbers:
            try:
                self._store.delete(lane.record_name(number))
            except MaiaError as error:
                _logger.warning("an old rekey message cannot be removed: %s", error.code)

    def _reader(self, group: KeyGroupId) -> LaneReader:
        return self._notices.reader(NoticeKind.REKEY, self._signer.public_key.key_id, rekey_topic(group))


def floor_below(oldest: LaneRecord) -> Place:
    """Tell the place before the oldest record that is kept."""
    return START if oldest.number == 0 else Place(oldest.number - 1, oldest.previous)


def _behind() -> UnavailableError:
    return UnavailableError(
        "the log shows epochs of a key group that the database does not know: it was restored from a backup; "
        "run `maia keys repair`",
        code="KEY_MANAGER_BEHIND",
    )
