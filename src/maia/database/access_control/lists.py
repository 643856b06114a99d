"""The validity lists that a domain signed, as a transaction sees them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, or_, select

from maia.database.access_control.tables import acs_statements
from maia.principals import TestKind


class ListRows:
    """The lists."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def add(self, kind: TestKind, sequence: int, raw: bytes, *, starts: datetime | None, ends: datetime | None) -> None:
        """Keep a list that was signed."""
        row = {"kind": kind.value, "sequence": sequence, "raw": raw, "starts": starts, "ends": ends}
        self._connection.execute(insert(acs_statements).values(**row))

    def put(self, kind: TestKind, sequence: int, raw: bytes, *, starts: datetime | None, ends: datetime | None) -> None:
        """Keep a list that was signed elsewhere, in the place of whatever has its number."""
        same = acs_statements.c.kind == kind.value, acs_statements.c.sequence == sequence
        self._connection.execute(delete(acs_statements).where(*same))
        self.add(kind, sequence, raw, starts=starts, ends=ends)

    def get(self, kind: TestKind, sequence: int) -> bytes | None:
        """Give a list by its number."""
        same = acs_statements.c.kind == kind.value, acs_statements.c.sequence == sequence
        raw: bytes | None = self._connection.scalar(select(acs_statements.c.raw).where(*same))
        return raw

    def kept(self, kind: TestKind) -> tuple[bytes, ...]:
        """List what is kept of a kind, lists that ended and were not followed included."""
        mine = acs_statements.c.kind == kind.value
        return tuple(self._connection.scalars(select(acs_statements.c.raw).where(mine)))

    def last_sequence(self, kind: TestKind) -> int:
        """Give the highest number of a list; 0 when there is none."""
        highest = select(func.max(acs_statements.c.sequence)).where(acs_statements.c.kind == kind.value)
        return int(self._connection.scalar(highest) or 0)

    def last_end(self, kind: TestKind) -> datetime | None:
        """Give the latest end of a timed list."""
        mine = acs_statements.c.kind == kind.value
        latest: datetime | None = self._connection.scalar(select(func.max(acs_statements.c.ends)).where(mine))
        return latest

    def current(self, *, at: datetime) -> tuple[bytes, ...]:
        """List what counts at an instant or later: timed lists that have not ended, and the newest plain one."""
        rows = self._connection.execute(
            select(acs_statements)
            .where(or_(acs_statements.c.ends.is_(None), acs_statements.c.ends > at))
            .order_by(acs_statements.c.kind, acs_statements.c.sequence)
        ).all()
        timed = [row.raw for row in rows if row.ends is not None]
        plain = {row.kind: row.raw for row in rows if row.ends is None}
        return (*timed, *plain.values())

    def forget(self, kind: TestKind, *, before: datetime) -> None:
        """Drop lists that nobody needs any more: timed ones that ended, plain ones that were replaced."""
        mine = acs_statements.c.kind == kind.value
        plain = acs_statements.c.ends.is_(None)
        newest = self._connection.scalar(select(func.max(acs_statements.c.sequence)).where(mine, plain)) or 0
        over = or_(acs_statements.c.ends < before, plain & (acs_statements.c.sequence < newest))
        self._connection.execute(
            delete(acs_statements).where(mine, over, acs_statements.c.sequence < self.last_sequence(kind))
        )
