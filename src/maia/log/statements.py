"""An issuer's validity statements in the log: one topic per signer, timed lists at a rhythm, withdrawals at once.

The topic is the signer's key id, and a message is one signed statement. Rules kept here (rows 13.10 to 13.13, 22.13):

- an issuer signs one list a period, whatever the number of its certificates; a list names what was withdrawn and has
  not expired, so it does not grow for ever;
- a withdrawal is said at once as well, by a plain CRL that counts until the next list is in force. Who keeps it from a
  broker gains the rest of the list and no more;
- subscribing is asking: the first reply is the state in force now, whoever published last and however long ago;
- what the topic's signer did not sign is passed over, and reading is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from maia.authority import ListStatement, Rhythm, Series, Statement, issue_statement, parse_statement, verify_statement
from maia.errors import EncodingError, MalformedError, UsageError, VerificationError
from maia.log.notices import NoticeKind, NoticeLog
from maia.principals import CertificateId, KeyId, Signer, TestKind, check_aware

MAX_MESSAGES = 10_000
"""Most messages of one topic that are looked at in one go."""
_PAGE = 1000
_log = logging.getLogger(__name__)

Listed = Mapping[CertificateId, datetime | None]
"""Certificates with the ends of their periods; ``None`` when there is no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPublisher:
    """An issuer's side of its topic. The topic itself is its memory: a restart goes on where it ended.

    Attributes:
        notices: The side stream of the log.
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
            listed: All certificates that were withdrawn, or for a revalidation all that are good. Those that expire
                before the list starts are left out.
            at: Now.
        """
        lists = self._lists()
        last = max((body.ends for body in lists if body.kind is self.kind and body.ends is not None), default=None)
        due = self.rhythm.due(last, at=at)
        if due is None:
            return None
        starts, ends = due
        made = self._send(lists, _unexpired(listed, starts), starts, ends)
        topic = self.signer.public_key.key_id
        tidy_statements(self.notices, topic, at=at)
        return made

    def withdraw(self, listed: Listed, *, at: datetime) -> Statement:
        """Say at once, beside the rhythm, what is withdrawn now.

        Raises:
            UsageError: A revalidation cannot be said early: ``NOT_BY_CRL``.
        """
        if self.kind is not TestKind.CRL:
            raise UsageError("only a CRL revokes at once; a revalidation waits for its next list", code="NOT_BY_CRL")
        return self._send(self._lists(), _unexpired(listed, check_aware(at)), None, None)

    def listed(self) -> frozenset[CertificateId]:
        """Return what the newest list of this kind names."""
        found = [body for body in self._lists() if body.kind is self.kind]
        return max(found, key=lambda body: body.sequence).certificates if found else frozenset()

    def _lists(self) -> list[ListStatement]:
        topic = self.signer.public_key.key_id
        return [item.body for _, item in _messages(self.notices, topic, -1)[0] if isinstance(item.body, ListStatement)]

    def _send(
        self,
        lists: list[ListStatement],
        certificates: frozenset[CertificateId],
        starts: datetime | None,
        ends: datetime | None,
    ) -> Statement:
        number = max((body.sequence for body in lists), default=0)
        series = Series(kind=self.kind, signer=self.signer.public_key, sequence=number)
        interval = None if starts is None or ends is None else (starts, ends)
        statement = issue_statement(series.next(certificates, interval=interval), self.signer)
        self.notices.append(NoticeKind.STATEMENT, statement.signer_id, statement.raw)
        return statement


class StatementSubscription:
    """A subscription to an issuer's topic, which is a request for its state as well."""

    def __init__(self, notices: NoticeLog, signer: KeyId, *, after: int = -1) -> None:
        """Follow a topic; ``after`` goes on where an earlier subscription ended."""
        self._notices = notices
        self._signer = signer
        self.after = after

    def state(self, *, at: datetime) -> tuple[Statement, ...]:
        """Return the state of now, and follow from here: lists in force, successors, and newer withdrawals.

        Empty when nobody holds one, which is `unknown` and denies.
        """
        messages, self.after = _messages(self._notices, self._signer, -1)
        found = [item for _, item in messages]
        return tuple(item for item in found if _serves(item, found, at))

    def updates(self) -> tuple[Statement, ...]:
        """Return what was published since, in order."""
        try:
            messages, self.after = _messages(self._notices, self._signer, self.after)
        except UsageError:  # the log is another one than it was: ask again from the beginning
            messages, self.after = _messages(self._notices, self._signer, -1)
        return tuple(item for _, item in messages)


def tidy_statements(notices: NoticeLog, topic: KeyId, *, at: datetime) -> None:
    """Forget the oldest messages of a topic that can serve nobody any more."""
    messages = _messages(notices, topic, -1)[0]
    known = [item for _, item in messages]
    for number, statement in messages:
        if _serves(statement, known, at):
            notices.forget(NoticeKind.STATEMENT, topic, before=number)
            return


def _messages(notices: NoticeLog, topic: KeyId, after: int) -> tuple[list[tuple[int, Statement]], int]:
    """Read the messages of a topic after a number, those that its signer made, and say how far; bounded."""
    found: list[tuple[int, Statement]] = []
    seen = 0
    while seen < MAX_MESSAGES:
        page = notices.read(NoticeKind.STATEMENT, topic, after=after, limit=_PAGE)
        for notice in page:
            try:
                parsed = parse_statement(notice.body)
                if parsed.body.signer.key_id == topic:
                    found.append((notice.number, verify_statement(parsed)))
            except (EncodingError, MalformedError, VerificationError) as error:
                _log.warning("message %d of %s is no statement: %s", notice.number, topic.hex()[:16], error.code)
        seen += len(page)
        after = page[-1].number if page else after
        if len(page) < _PAGE:
            break
    return found, after


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


def _unexpired(listed: Listed, starts: datetime) -> frozenset[CertificateId]:
    return frozenset(identity for identity, ends in listed.items() if ends is None or ends >= starts)
