"""What publishers drew from their rates: a ledger that all processes of a home share and that survives restarts.

Rules kept here:

- at most ``count`` publications are granted in *any* stretch of the period's length, not only in stretches that start
  with the minute;
- looking and drawing are one transaction: two executors that draw at once never get more together than one would;
- a named reservation counts once. A task that runs twice, because it failed or was too slow, is granted the same again;
- a clock that goes back frees nothing: draws that lie in the future count as well;
- what was not granted leaves no trace, so that a flood does not fill the disk;
- a ledger that cannot be read or written grants nothing.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.errors import UnavailableError, UsageError
from maia.home.files import PRIVATE_FILE, PUBLIC_FOLDER, make_folder
from maia.policy import RateLimit

_KEPT = timedelta(hours=1)
_OLDEST = timedelta(days=40)  # longer than any period
_WAIT = 3.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TABLES = """
create table if not exists draws (
    bucket blob not null, reservation blob not null, at integer not null, granted integer not null,
    primary key (bucket, reservation)
) without rowid;
create index if not exists draws_by_time on draws (at);
"""


class RateLedger:
    """The draws of one home, in a file of SQLite."""

    def __init__(self, path: Path | str) -> None:
        """Use the ledger at a path; it is made with the first draw."""
        self._path = Path(path)

    def reserve(self, limit: RateLimit, *, bucket: bytes, reservation: bytes, count: int, at: datetime) -> int:
        """Draw publications from an account.

        Args:
            limit: How many in what time.
            bucket: The account.
            reservation: Names the draw, the same when it is tried again; empty for one that is never tried again.
            count: How many are wanted.
            at: Now.

        Returns:
            How many are granted; a draw that was made before is granted the same again.

        Raises:
            UnavailableError: The ledger cannot be used; nothing is granted.
        """
        if count < 0:
            raise UsageError("a draw is not negative")
        moment = (at - _EPOCH) // _MICROSECOND
        name = reservation or secrets.token_bytes(16)
        with self._transaction() as ledger:
            known = ledger.execute(
                "select granted from draws where bucket = ? and reservation = ?", (bucket, name)
            ).fetchone()
            if known is not None:
                return min(int(known[0]), count)
            since = moment - limit.period // _MICROSECOND
            (used,) = ledger.execute(
                "select coalesce(sum(granted), 0) from draws where bucket = ? and at > ?", (bucket, since)
            ).fetchone()
            granted = max(0, min(count, limit.count - int(used)))
            if granted:
                ledger.execute("insert into draws values (?, ?, ?, ?)", (bucket, name, moment, granted))
            forgotten = min(since, moment - _KEPT // _MICROSECOND)
            ledger.execute("delete from draws where bucket = ? and at <= ?", (bucket, forgotten))
            ledger.execute("delete from draws where at <= ?", (moment - _OLDEST // _MICROSECOND,))
            return granted

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the ledger to one process alone, until the draw is on disk."""
        make_folder(self._path.parent, mode=PUBLIC_FOLDER)
        try:
            # A connection for each draw: one that was made before a fork must not be used after it.
            with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as ledger:
                ledger.execute("pragma synchronous = full")
                ledger.execute("begin immediate")
                try:
                    if not ledger.execute("select 1 from sqlite_master where name = 'draws_by_time'").fetchone():
                        for statement in _TABLES.split(";")[:-1]:
                            ledger.execute(statement)
                        self._path.chmod(PRIVATE_FILE)
                    yield ledger
                except BaseException:
                    ledger.execute("rollback")
                    raise
                ledger.execute("commit")
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError("the ledger of rates cannot be used", code="RATE_LEDGER") from error
