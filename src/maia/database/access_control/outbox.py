"""What others must hear of and what was done, as a transaction sees it: the outbox and the journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from maia.database.access_control.rows import batches, insert_rows, record_of
from maia.database.access_control.tables import acs_journal, acs_outbox

MAX_OUTBOX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord:
    """Something decided and not yet told."""

    number: int
    kind: str
    topic: bytes
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """Something the service did; ``who`` is empty where the role is used anonymously."""

    number: int
    at: datetime
    action: str
    who: str | None
    what: str


class OutboxRows:
    """The outbox."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def post(self, kind: str, topic: bytes, body: bytes) -> None:
        """Put something in."""
        self._connection.execute(insert(acs_outbox).values(kind=kind, topic=topic, body=body))

    def waiting(self, *, last: str = "") -> tuple[OutboxRecord, ...]:
        """List what was not told yet, oldest first, one kind after all others; at most `MAX_OUTBOX` at a time."""
        order = (acs_outbox.c.kind == last, acs_outbox.c.number)
        rows = self._connection.execute(select(acs_outbox).order_by(*order).limit(MAX_OUTBOX))
        return tuple(record_of(OutboxRecord, row) for row in rows)

    def told(self, numbers: Iterable[int]) -> None:
        """Take out what was told."""
        for some in batches(numbers):
            self._connection.execute(delete(acs_outbox).where(acs_outbox.c.number.in_(some)))


class JournalRows:
    """The journal."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def note(self, action: str, what: str, *, who: str | None, at: datetime) -> None:
        """Write a line."""
        self.note_all([(action, what, who)], at=at)

    def note_all(self, lines: Iterable[tuple[str, str, str | None]], *, at: datetime) -> None:
        """Write lines in order: what was done, to what, and who is named for it."""
        rows = ({"at": at, "action": action, "who": who, "what": what} for action, what, who in lines)
        insert_rows(self._connection, acs_journal, rows)

    def latest(self, action: str, *, who: str | None = None, limit: int = 1_000) -> tuple[JournalRecord, ...]:
        """Read the lines of one kind, latest first, of one who is named for it or of all."""
        chosen = select(acs_journal).where(acs_journal.c.action == action)
        if who is not None:
            chosen = chosen.where(acs_journal.c.who == who)
        rows = self._connection.execute(chosen.order_by(acs_journal.c.number.desc()).limit(limit))
        return tuple(record_of(JournalRecord, row) for row in rows)

    def read(self, *, after: int = 0, limit: int = 1_000) -> tuple[JournalRecord, ...]:
        """Read lines in order."""
        chosen = select(acs_journal).where(acs_journal.c.number > after).order_by(acs_journal.c.number).limit(limit)
        return tuple(record_of(JournalRecord, row) for row in self._connection.execute(chosen))
