"""An issuer's validity statements in the log: a lane of each signer, timed lists at a rhythm, withdrawals at once.

The topic is the signer's key id, and a message is one signed statement. Rules kept here (rows 13.10 to 13.13, 22.13):

- an issuer signs one list a period, whatever the number of its certificates; a list names what was withdrawn and has
  not expired, so it does not grow for ever;
- a withdrawal is said at once as well, by a plain CRL that counts until the next list is in force. Who keeps it from a
  broker gains the rest of the list and no more. It has no time of its own, so it names what expired since, too: whoever
  judges an old event by it must not take silence for a yes;
- subscribing is asking: the first reply is the state in force now, whoever published last and however long ago;
- what the topic's signer did not sign is passed over, and reading is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from maia.authority import (
    ListStatement,
    Rhythm,
    Series,
    Statement,
    issue_statement,
    parse_statement,
    verify_statement,
)
from maia.errors import MalformedError, UsageError, VerificationError
from maia.log.lane import LaneRead, LaneReader
from maia.log.lane_objects import START, LaneRecord, Place
from maia.log.notices import NoticeKind, NoticeLog
from maia.principals import CertificateId, KeyId, Signer, TestKind, check_aware

MAX_MESSAGES = 10_000
"""Most messages of one topic that are looked at in one go."""
_PAGE = 1000
_LOOK = 8
_LONG = 64
_TIDY_AFTER = timedelta(hours=1)
_log = logging.getLogger(__name__)

Listed = Mapping[CertificateId, datetime | None]
"""Certificates with the ends of their periods; ``None`` when there is no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPublisher:
    """An issuer's side of its topic. Its own record of the lane is its memory: a restart goes on where it ended.

    Attributes:
        notices: The notices of the log, with the issuer's own record.
        signer: The key that certificates name for their lists.
        rhythm: How often, and how early.
        kind: Which lists; a CRL names what is withdrawn, a revalidation what is good.
    """

    notices: NoticeLog
    signer: Signer
    rhythm: Rhythm
    kind: TestKind = TestKind.CRL

    def publish(self, listed: Listed, *, at: datetime) -> Statement | None:
        """Sign and send the list that is due; ``None``, and no signature, while none is.

        Args:
            listed: Certificates that were withdrawn, besides those that a list of this lane named; for a revalidation
                all that are good. Those that expire before the list starts are left out.
            at: Now.
        """
        lists = self._lists()
        last = max((body.ends for body in lists if body.kind is self.kind and body.ends is not None), default=None)
        due = self.rhythm.due(last, at=at)
        if due is None:
            return None
        starts, ends = due
        made = self._send(lists, listed, (starts, ends), at)
        tidy_statements(self.notices, self.signer, at=at)
        return made

    def withdraw(self, listed: Listed, *, at: datetime) -> Statement:
        """Say at once, beside the rhythm, what is withdrawn now.

        Raises:
            UsageError: A revalidation cannot be said early: ``NOT_BY_CRL``.
        """
        if self.kind is not TestKind.CRL:
            raise UsageError("only a CRL revokes at once; a revalidation waits for its next list", code="NOT_BY_CRL")
        return self._send(self._lists(), listed, None, check_aware(at))

    def listed(self) -> frozenset[CertificateId]:
        """Return what the newest list of this kind names."""
        found = [body for body in self._lists() if body.kind is self.kind]
        return max(found, key=lambda body: body.sequence).certificates if found else frozenset()

    def _lists(self) -> list[ListStatement]:
        return [item.body for _, item in _said(self.notices, self.signer) if isinstance(item.body, ListStatement)]

    def _send(
        self,
        lists: list[ListStatement],
        listed: Listed,
        interval: tuple[datetime, datetime] | None,
        at: datetime,
    ) -> Statement:
        number = max((body.sequence for body in lists), default=0)
        over = frozenset[CertificateId]() if interval is None else _over(listed, interval[0])
        # SECURITY: what a list revoked, every later one revokes, whether the caller names it again or not.
        series = Series.of(lists, kind=self.kind, signer=self.signer.public_key, taken=number)
        series = replace(series, certificates=series.certificates - over)
        statement = issue_statement(series.next(frozenset(listed) - over, interval=interval, at=at), self.signer)
        publish_statement(self.notices, self.signer, statement.raw, at=at)
        return statement


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
    messages = _said(notices, signer)
    known = [item for _, item in messages]
    for number, statement in messages:
        if _serves(statement, known, at):
            if number > 0:
                notices.writer(NoticeKind.STATEMENT, signer, signer.public_key.key_id).forget(number - 1, at=at)
            return


def _said(notices: NoticeLog, signer: Signer) -> list[tuple[int, Statement]]:
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


def _over(listed: Listed, starts: datetime) -> frozenset[CertificateId]:
    return frozenset(identity for identity, ends in listed.items() if ends is not None and ends < starts)
