"""Following validity statements: what the signers that a home's certificates name have said since.

Rules kept here (rows 13.10 to 13.13, 22.13):

- nothing read here is believed: a statement counts after its signature was verified under the key that the topic and a
  certificate name: one of the home, or one that a key manager stands on. Statements of other signers are not kept;
- a list that is over, or that starts in the far future, is not kept; an old one is refused by the book, which is saved
  before it is used, so a restart changes nothing;
- the file of accepted statements does not go back under a running process: one that lacks what was read from it before
  is made whole from memory, whoever put it there, and the log is read again from its beginning;
- silence denies. A topic that is damaged, flooded or cut off looks like silence, and what needs no statement goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from maia.authority import (
    CertificatePool,
    ListStatement,
    Statement,
    StatementBook,
    parse_statement,
    verify_statement,
)
from maia.domain.snapshot import FileState, file_state
from maia.errors import MalformedError, UnavailableError, VerificationError
from maia.home import Home, StatementFile, is_older
from maia.log import NoticeLog, StatementSubscription, tidy_statements
from maia.principals import KeyId, TestKind

MAX_AHEAD = timedelta(days=8)
"""A list that starts later than this is not kept yet; it stays in the log."""
_RETRIES = 5
_KEPT = timedelta(minutes=5)
_LONG_TOPIC = 64
_TIDY_AFTER = timedelta(hours=1)
_log = logging.getLogger(__name__)


class StatementFollower:
    """Takes up the statements that concern a home, and remembers how far it read; forgetting that costs time only."""

    def __init__(self, home: Home, notices: NoticeLog) -> None:
        """Follow a home's log."""
        self._home = home
        self._notices = notices
        self._cursors: dict[KeyId, int] = {}
        self._held: tuple[FileState, StatementBook] | None = None

    def follow(self, pool: CertificatePool, *, at: datetime, also: frozenset[KeyId] = frozenset()) -> None:
        """Take up what was said since.

        Args:
            pool: Certificates whose signers of lists are followed.
            at: Now.
            also: Further signers, of certificates that are not in the pool.

        Raises:
            UnavailableError: The home's statement file cannot be written.
        """
        self._hold_on(at)
        fresh: list[Statement] = []
        reached: dict[KeyId, int] = {}
        for signer in sorted(named_signers(pool) | also):
            subscription = StatementSubscription(self._notices, signer, after=self._cursors.get(signer, -1))
            try:
                found = subscription.updates()
                if len(found) > _LONG_TOPIC:  # whoever knows the semantics may tidy up, an hour later
                    tidy_statements(self._notices, signer, at=at - _TIDY_AFTER)
            except (MalformedError, UnavailableError) as error:
                # SECURITY: silence denies what relies on this signer, and nothing else.
                _log.warning("statements of %s cannot be read: %s", signer.hex()[:16], error.code)
                continue
            usable = [item for item in found if _wanted(item, at)]
            fresh += _newest(usable)
            if len(usable) == len([item for item in found if not _over(item, at)]):
                reached[signer] = subscription.after  # what came too early is looked at again
        if fresh:
            accept_statements(self._home.statements, fresh, at)
        self._cursors.update(reached)
        self._remember()

    def _hold_on(self, at: datetime) -> None:
        """See that the file holds what it held; the cursors count only together with it."""
        if self._held is None or self._held[0] == file_state(self._home.statements.path):
            return
        file, known = self._home.statements, self._held[1]
        if is_older(file.load(), known):
            _log.warning("the file of statements is older than it was; it is made whole again")
            self._cursors.clear()
            held = [verify_statement(parse_statement(raw)) for raw in known.raw_statements()]
            accept_statements(file, held, at)

    def _remember(self) -> None:
        state = file_state(self._home.statements.path)
        if self._held is None or self._held[0] != state:
            self._held = (state, self._home.statements.load())


def named_signers(pool: CertificatePool) -> frozenset[KeyId]:
    """List the keys whose lists certificates demand."""
    return frozenset(
        test.signer.key_id
        for certificate in pool
        for test in certificate.body.tests
        if test.kind is not TestKind.ONE_TIME
    )


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
    plain: dict[TestKind, Statement] = {}
    timed: list[Statement] = []
    for statement in statements:
        body = statement.body
        if not isinstance(body, ListStatement) or body.timed:
            timed.append(statement)
            continue
        held = plain.get(body.kind)
        if held is None or not isinstance(held.body, ListStatement) or held.body.sequence < body.sequence:
            plain[body.kind] = statement
    return [*timed, *plain.values()]


def _over(statement: Statement, at: datetime) -> bool:
    body = statement.body
    return not isinstance(body, ListStatement) or (body.ends is not None and body.ends <= at)


def _wanted(statement: Statement, at: datetime) -> bool:
    body = statement.body
    if _over(statement, at) or not isinstance(body, ListStatement):
        return False
    return body.starts is None or body.starts <= at + MAX_AHEAD
