"""An issuer's validity statements in the log: a lane of each signer, whose topic is the signer's key id.

A message is one signed statement. Rules kept here:

- subscribing is asking: the first reply is the state in force now, whoever published last and however long ago;
- what the topic's signer did not sign is passed over, and reading is bounded.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from maia.authority import (
    ListStatement,
    Statement,
    parse_statement,
    verify_statement,
)
from maia.errors import MalformedError, VerificationError
from maia.log.lane import LaneRead, LaneReader
from maia.log.lane_objects import START, LaneRecord, Place
from maia.log.notices import NoticeKind, NoticeLog
from maia.principals import KeyId, Signer

MAX_MESSAGES = 10_000
"""Most messages of one topic that are looked at in one go."""
_PAGE = 1000
_LOOK = 8
_LONG = 64
_TIDY_AFTER = timedelta(hours=1)
_log = logging.getLogger(__name__)


class StatementSubscription:
    """A subscription to an issuer's topic, which is a request for its state as well."""

    def __init__(self, notices: NoticeLog, signer: KeyId, *, after: Place = START) -> None:
        """Follow a topic; ``after`` goes on where an earlier subscription ended."""
        self._notices = notices
        self._signer = signer
        self.after = after

    def state(self, *, at: datetime) -> tuple[Statement, ...]:
        """Return the state of now, and follow from here: lists in force, successors, and newer withdrawals.

        Empty when nobody holds one, which is `unknown` and denies.
        """
        found, self.after = _messages(self._notices, self._signer, START)
        return tuple(item for item in found if _serves(item, found, at))

    def updates(self) -> tuple[Statement, ...]:
        """Return what was published since, in order."""
        found, self.after = _messages(self._notices, self._signer, self.after)
        return tuple(found)


def publish_statement(notices: NoticeLog, signer: Signer, raw: bytes, *, at: datetime) -> None:
    """Say a statement in the lane of its signer; saying the newest again changes nothing.

    Raises:
        UnavailableError: As `NoticeLog.say` does: it counts when the code is ``LANE_PENDING``.
    """
    topic = signer.public_key.key_id
    said = notices.say(NoticeKind.STATEMENT, signer, topic, raw, at=at)
    if said.number - notices.writer(NoticeKind.STATEMENT, signer, topic).floor().number > _LONG:
        tidy_statements(notices, signer, at=at - _TIDY_AFTER)


def tidy_statements(notices: NoticeLog, signer: Signer, *, at: datetime) -> None:
    """Let go of the oldest of a signer's own messages that can serve nobody any more."""
    messages = said_statements(notices, signer)
    known = [item for _, item in messages]
    for number, statement in messages:
        if _serves(statement, known, at):
            if number > 0:
                notices.writer(NoticeKind.STATEMENT, signer, signer.public_key.key_id).forget(number - 1, at=at)
            return


def said_statements(notices: NoticeLog, signer: Signer) -> list[tuple[int, Statement]]:
    """List what a signer said, by its own record, with the numbers; bounded."""
    writer = notices.writer(NoticeKind.STATEMENT, signer, signer.public_key.key_id)
    newest = writer.newest()
    if newest is None:
        return []
    first = max(writer.floor().number + 1, newest.number - MAX_MESSAGES + 1)
    found = ((number, _statement(writer.kept(number))) for number in range(first, newest.number + 1))
    return [(number, item) for number, item in found if item is not None]


def _messages(notices: NoticeLog, signer: KeyId, place: Place) -> tuple[list[Statement], Place]:
    """Read what a signer said behind a place, and say how far; bounded.

    A statement needs none before it to be believed, so where a record is missing what lies behind it is looked at too,
    and the place stays before the hole. A place that is not of this lane any more is its beginning.
    """
    reader = notices.reader(NoticeKind.STATEMENT, signer, signer)
    found: list[Statement] = []
    while len(found) < MAX_MESSAGES:
        page = reader.since(place, limit=_PAGE)
        code = "" if page.alarm is None else page.alarm.code
        if code == "LANE_EXPIRED" and page.head is not None:
            place = page.head.floor
            continue
        if code == "LANE_FORKED" and place != START and not page.records:
            place = START
            continue
        beyond = [] if page.alarm is None else _beyond(reader, page)
        found += [item for record in (*page.records, *beyond) if (item := _statement(record)) is not None]
        place = page.place
        if code:
            _log.warning("statements of %s: %s", signer.hex()[:16], code)
        if code or len(page.records) < _PAGE:
            break
    return found, place


def _beyond(reader: LaneReader, page: LaneRead) -> list[LaneRecord]:
    """Look at the newest few records, and at the next few, whatever lies between."""
    next_few = range(page.place.number + 1, page.place.number + 1 + _LOOK)
    end = next_few.stop if page.head is None else page.head.place.number + 1
    newest = range(max(next_few.stop, end - _LOOK), end)
    return [record for number in (*next_few, *newest) if (record := reader.record(number)) is not None]


def _statement(record: LaneRecord) -> Statement | None:
    """Open the statement in a record of its signer."""
    try:
        parsed = parse_statement(record.body)
        if parsed.body.signer.key_id == record.lane.owner:
            return verify_statement(parsed)
    except (MalformedError, VerificationError) as error:
        _log.warning("record %d of %s is no statement: %s", record.number, record.lane, error.code)
    return None


def _serves(statement: Statement, known: list[Statement], at: datetime) -> bool:
    """Tell whether a message can still change an answer: a list that is not over, or the newest withdrawal."""
    body = statement.body
    if not isinstance(body, ListStatement):
        return False
    if body.ends is not None:
        return body.ends > at
    same = [other.body for other in known if isinstance(other.body, ListStatement) and other.body.kind is body.kind]
    return not any(
        other.sequence > body.sequence and (not other.timed or (other.starts is not None and other.starts <= at))
        for other in same
    )
