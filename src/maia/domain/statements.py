"""Following validity statements: what the signers that a home's certificates name have said since.

Rules kept here (rows 13.10 to 13.13, 22.13):

- nothing read here is believed: a statement counts after its signature was verified under the key that the topic and a
  certificate name: one of the home, or one that a key manager stands on. Statements of other signers are not kept;
- a list that is over, or that starts in the far future, is not kept, but for the last one where all are over; an old
  one is refused by the book, which is saved before it is used, so a restart changes nothing;
- the places up to which lanes were read belong to one state of the file of accepted statements. When somebody puts an
  old one back, the lanes are read again from their beginning, so nothing that was withdrawn comes back;
- silence denies. A topic that is damaged, flooded or cut off looks like silence, and what needs no statement goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from maia.authority import (
    MAX_BROUGHT,
    CertificatePool,
    ListStatement,
    Statement,
    StatementBook,
)
from maia.errors import MalformedError, UnavailableError, VerificationError
from maia.home import Home, StatementFile
from maia.log import START, NoticeLog, Place, StatementSubscription
from maia.principals import KeyId, OnlineTest, TestKind

MAX_AHEAD = timedelta(days=8)
"""A list that starts later than this is not kept yet; it stays in the log."""
_RETRIES = 5
_MAX_BROUGHT = 16 << 10
_KEPT = timedelta(minutes=5)
_log = logging.getLogger(__name__)

FileMark = tuple[int, int, int, int]
"""What tells one state of a file from another."""


class StatementFollower:
    """Takes up the statements that concern a home, and remembers how far it read; forgetting that costs time only."""

    def __init__(self, home: Home, notices: NoticeLog) -> None:
        """Follow a home's log."""
        self._home = home
        self._notices = notices
        self._cursors: dict[KeyId, Place] = {}
        self._mark: FileMark | None = None

    def follow(self, pool: CertificatePool, *, at: datetime, also: frozenset[KeyId] = frozenset()) -> None:
        """Take up what was said since.

        Args:
            pool: Certificates whose signers of lists are followed.
            at: Now.
            also: Further signers, of certificates that are not in the pool.

        Raises:
            UnavailableError: The home's statement file cannot be written.
        """
        fresh: list[Statement] = []
        reached: dict[KeyId, Place] = {}
        mark = file_mark(self._home.statements.path)
        if self._mark != mark:
            self._cursors.clear()  # the places belong to the file that was written; to another one they mean nothing
        for signer in sorted(named_signers(pool) | also):
            subscription = StatementSubscription(self._notices, signer, after=self._cursors.get(signer, START))
            try:
                found = subscription.updates()
            except (MalformedError, UnavailableError) as error:
                # SECURITY: silence denies what relies on this signer, and nothing else.
                _log.warning("statements of %s cannot be read: %s", signer.hex()[:16], error.code)
                continue
            usable = [item for item in found if _wanted(item, at)]
            fresh += _newest(usable) + _lapsed(found, at)
            if len(usable) == len([item for item in found if not _over(item, at)]):
                reached[signer] = subscription.after  # what came too early is looked at again
        if fresh:
            accept_statements(self._home.statements, fresh, at)
            mark = file_mark(self._home.statements.path)
        self._cursors.update(reached)
        self._mark = mark


def file_mark(path: Path) -> FileMark | None:
    """Tell one state of a file from another; nothing when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def usable_lists(statements: Sequence[Statement], at: datetime) -> list[Statement]:
    """Leave out what is over, comes too early, or is replaced by a newer one of the same signer."""
    return _newest([item for item in statements if _wanted(item, at)])


def named_signers(pool: CertificatePool) -> frozenset[KeyId]:
    """List the keys whose lists certificates demand."""
    return frozenset(
        test.signer.key_id
        for certificate in pool
        for test in certificate.body.tests
        if test.kind is not TestKind.ONE_TIME
    )


def lists_behind(
    tests: Iterable[OnlineTest], book: StatementBook, *, at: datetime, withdrawals: bool = False
) -> tuple[bytes, ...]:
    """List the statements that answer tests now, to go along with the certificates that demand them.

    A list that is too large to go along every time is one that others have to hear of themselves.
    """
    found: dict[bytes, None] = {}
    for test in tests:
        for item in (book.serving(test, at=at), book.withdrawing(test) if withdrawals else None):
            if item is not None and len(item.raw) <= _MAX_BROUGHT:
                found[item.raw] = None
    return tuple(found)[:MAX_BROUGHT]


def accept_statements(file: StatementFile, statements: Sequence[Statement], at: datetime | None = None) -> None:
    """Put statements into the home's book and keep it, also when others write to it.

    Args:
        file: The book.
        statements: Verified; what the book knows better is left out.
        at: Lists that ended before are forgotten.
    """
    for attempt in range(_RETRIES):
        book = file.load()
        known = set(book.raw_statements())
        new = [item for item in statements if item.raw not in known and not _replaced(item, book)]
        if not sum(_offer(book, item) for item in new):
            return
        forgotten = None if at is None else at - _KEPT
        if forgotten is not None:
            book.forget_before(forgotten)
        try:
            file.save(book, forgotten=forgotten)
        except UnavailableError as error:
            if error.code != "STATEMENTS_NEWER_ON_DISK" or attempt == _RETRIES - 1:
                raise
        else:
            return


def _replaced(statement: Statement, book: StatementBook) -> bool:
    """Tell whether the book holds a newer plain list of the same signer and kind, which is no news."""
    body = statement.body
    if not isinstance(body, ListStatement) or body.timed:
        return False
    held = book.plain(statement.signer_id, body.kind)
    return held is not None and held.sequence >= body.sequence


def _offer(book: StatementBook, statement: Statement) -> bool:
    try:
        book.accept(statement)
    except VerificationError as error:
        _log.warning("a statement of %s is refused: %s", statement.signer_id.hex()[:16], error.code)
        return False
    return True


def _newest(statements: list[Statement]) -> list[Statement]:
    """Leave out the plain lists that a newer one replaces; the book would refuse them in any other order."""
    plain: dict[tuple[KeyId, TestKind], Statement] = {}
    timed: list[Statement] = []
    for statement in statements:
        body = statement.body
        if not isinstance(body, ListStatement) or body.timed:
            timed.append(statement)
            continue
        held = plain.get((statement.signer_id, body.kind))
        if held is None or not isinstance(held.body, ListStatement) or held.body.sequence < body.sequence:
            plain[statement.signer_id, body.kind] = statement
    return [*timed, *plain.values()]


def _lapsed(statements: Sequence[Statement], at: datetime) -> list[Statement]:
    """Give the last of a signer's timed lists where all of them are over: by it the book knows that there were some."""
    bodies = [(item.body, item) for item in statements if isinstance(item.body, ListStatement)]
    timed = sorted(((body.ends, body.kind, item) for body, item in bodies if body.ends is not None), key=_first)
    last = {kind: (ends, item) for ends, kind, item in timed}
    return [item for ends, item in last.values() if ends <= at]


def _first(found: tuple[datetime, TestKind, Statement]) -> datetime:
    return found[0]


def _over(statement: Statement, at: datetime) -> bool:
    body = statement.body
    return not isinstance(body, ListStatement) or (body.ends is not None and body.ends <= at)


def _wanted(statement: Statement, at: datetime) -> bool:
    body = statement.body
    if _over(statement, at) or not isinstance(body, ListStatement):
        return False
    return body.starts is None or body.starts <= at + MAX_AHEAD
