"""Facts from a database: SQLite, read-only, or PostgreSQL, in a read-only transaction.

Rules kept here:

- statements come from the domain's configuration; parameters are bound, never written into a statement;
- a statement has a time limit, its rows a number limit, and it cannot write;
- whatever goes wrong is `UnavailableError` with a code; what the database said stays out of the message.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from maia.errors import UnavailableError, UsageError
from maia.policy import Atom, Constant, Predicate

MAX_ROWS = 100_000
_STEPS = 1_000
_MARKS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\?|%")
_POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFacts:
    """The facts of one predicate in a database.

    Attributes:
        predicate: Which facts.
        database: The path of a SQLite file, or a ``postgresql://`` address.
        ask_sql: Returns a row when the fact with these parameters (``?``, in order) holds.
        list_sql: Returns one row per fact, a column per parameter; without it, facts are only asked for.
        seconds: The time limit of a statement.
        rows: The most rows that are taken.
    """

    predicate: Predicate
    database: str
    ask_sql: str
    list_sql: str | None = None
    seconds: float = 2.0
    rows: int = MAX_ROWS

    def __post_init__(self) -> None:
        """Refuse a statement that takes another number of parameters than the fact has."""
        if sum(mark == "?" for mark in _MARKS.findall(self.ask_sql)) != self.predicate.arity:
            message = f"the statement of `{self.predicate}` needs {self.predicate.arity} parameters `?`"
            raise UsageError(message, code="PROVIDER_CONFIG")

    def ask(self, fact: Atom, *, at: datetime) -> bool:  # noqa: ARG002 - a database tells what is
        """Tell whether the database has a row for the fact."""
        return bool(self._run(self.ask_sql, [str(_value(item)) for item in fact.arguments], most=1))

    def facts(self, *, at: datetime) -> frozenset[Atom] | None:  # noqa: ARG002
        """List the facts, when there is a statement for it."""
        if self.list_sql is None:
            return None
        rows = self._run(self.list_sql, [], most=self.rows + 1)
        if len(rows) > self.rows:
            raise UnavailableError("a database lists more facts than are taken", code="PROVIDER_LIMIT")
        return frozenset(Atom(self.predicate.name, self._arguments(row)) for row in rows)

    def _arguments(self, row: Sequence[object]) -> tuple[Constant, ...]:
        if len(row) != self.predicate.arity or not all(type(value) in {str, int} for value in row):
            raise UnavailableError(
                "a database answers with other columns than texts and numbers", code="PROVIDER_VALUE"
            )
        return tuple(Constant(str(value)) for value in row)

    def _run(self, statement: str, parameters: list[str], *, most: int) -> list[tuple[object, ...]]:
        run = self._postgres if self.database.startswith(_POSTGRES) else self._sqlite
        return run(statement, parameters, most)

    def _sqlite(self, statement: str, parameters: list[str], most: int) -> list[tuple[object, ...]]:
        ends = time.monotonic() + self.seconds
        address = f"file:{quote(str(Path(self.database).absolute()))}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=self.seconds)) as connection:
                connection.execute("pragma query_only = on")
                connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
                return connection.execute(statement, parameters).fetchmany(most)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            slow = time.monotonic() > ends
            raise _failure(slow=slow) from error

    def _postgres(self, statement: str, parameters: list[str], most: int) -> list[tuple[object, ...]]:
        import psycopg  # noqa: PLC0415 - an extra, needed only here

        limit = max(1, int(self.seconds * 1000))
        try:
            with psycopg.connect(
                self.database,
                connect_timeout=max(2, round(self.seconds)),
                tcp_user_timeout=limit,
                options=f"-c statement_timeout={limit} -c default_transaction_read_only=on",
            ) as connection:
                cursor = connection.execute(_percent(statement).encode(), parameters)
                return cursor.fetchmany(most)
        except (psycopg.errors.QueryCanceled, psycopg.errors.ConnectionTimeout) as error:
            raise _failure(slow=True) from error
        except (psycopg.Error, UnicodeError, OSError) as error:
            raise _failure(slow=False) from error


def _value(term: object) -> str:
    if not isinstance(term, Constant):
        raise UnavailableError("a database is asked about plain words", code="PROVIDER_VALUE")
    return term.value


def _percent(statement: str) -> str:
    """Write ``?`` as PostgreSQL's driver wants it, outside of quotes."""

    def one(found: re.Match[str]) -> str:
        return {"?": "%s", "%": "%%"}.get(found[0], found[0].replace("%", "%%"))

    return _MARKS.sub(one, statement)


def _failure(*, slow: bool) -> UnavailableError:
    if slow:
        return UnavailableError("a database took too long", code="PROVIDER_SLOW")
    return UnavailableError("a database could not answer", code="PROVIDER_FAILED")
