"""Opening a database, and transactions that run one after the other on both kinds.

Rules kept here:

- writing transactions are serial: SQLite begins them with BEGIN IMMEDIATE, PostgreSQL with one advisory lock that
  ends with the transaction, so a writer sees everything that earlier writers committed;
- what is committed survives a power cut (SQLite: WAL with synchronous=FULL; PostgreSQL: its default);
- deleted rows are overwritten in the file (SQLite's secure_delete), and `scrub` takes them out of the journal too;
- a SQLite file is readable by its owner only, from its first octet on;
- every wait has a limit;
- no password and no parameter of a statement stands in an error, a log line or a ``repr``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from maia.errors import UnavailableError, UsageError
from maia.home import PRIVATE_FILE

WAIT_SECONDS = 5
"""How long a transaction waits for another writer, or for the server to accept a connection."""

_STATEMENT_SECONDS = 30
_WRITERS = 0x6D616961_00000001  # "maia", 1: the advisory lock of writers; leaders use hashes, see leadership.py
_READING = "maia_reading"

Transactions = Callable[[], AbstractContextManager[Connection]]
"""What begins a transaction."""


def open_database(url: str) -> Engine:
    """Open a database, making the file of a SQLite database that does not exist yet.

    Args:
        url: A path or ``sqlite:///path``, or ``postgresql://`` (``postgresql+psycopg://``) ``user:password@host/name``.

    Returns:
        An engine; no connection to a server is made before it is used.

    Raises:
        UsageError: The address is of another kind, gives a password outside its place, or lacks its driver.
        UnavailableError: The file cannot be made.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed)
    try:
        engine = create_engine(
            parsed,
            hide_parameters=True,
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": WAIT_SECONDS,
                "keepalives_idle": WAIT_SECONDS,
                "keepalives_interval": 1,
                "keepalives_count": 3,
                "options": f"-c lock_timeout={WAIT_SECONDS}s -c statement_timeout={_STATEMENT_SECONDS}s"
                f" -c idle_in_transaction_session_timeout={_STATEMENT_SECONDS}s -c timezone=UTC",
            },
        )
    except ImportError as error:
        raise UsageError("PostgreSQL needs its driver: install `maia[postgres]`", code="DATABASE_DRIVER") from error
    event.listen(engine, "begin", _begin_postgresql)
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Give a connection inside a writing transaction: committed at the end, undone by any error.

    No other writing transaction of Maia runs on this database meanwhile.

    Raises:
        UnavailableError: The database did not do it (`DATABASE_UNAVAILABLE`), or a rule of its tables forbids it
            (`DATABASE_CONFLICT`); nothing is changed.
    """
    with _translated(), engine.begin() as connection:
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that sees one state of the database throughout, waits for no writer and changes nothing."""
    with _translated(), engine.connect().execution_options(**{_READING: True}) as connection, connection.begin():
        yield connection


def scrub(engine: Engine) -> None:
    """Take what was deleted out of the database's files as well, as far as the database can."""
    with _translated(), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)" if sqlite_path(engine) else "VACUUM"))


def sqlite_path(engine: Engine) -> Path | None:
    """Return the file of a SQLite database, and nothing for another."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def _parse(url: str) -> URL:
    if "://" not in url:
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError("the database's address is not one", code="DATABASE_ADDRESS") from None  # it may hold a secret
    if any("password" in key.lower() for key in parsed.query):
        raise UsageError("a password stands before the host, not in the query", code="DATABASE_ADDRESS")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return parsed
    if parsed.drivername in ("postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    raise UsageError(f"`{parsed.drivername}` is no database that Maia uses", code="DATABASE_ADDRESS")


def _open_sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:" or url.query:
        raise UsageError("a SQLite database is a file", code="DATABASE_ADDRESS")
    path = Path(url.database).absolute()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            os.fchmod(descriptor, PRIVATE_FILE)
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UnavailableError(f"cannot use `{path}`: {reason}", code="FILE_UNAVAILABLE") from error
    engine = create_engine(
        url.set(database=str(path)),
        hide_parameters=True,
        connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # this module begins transactions, not the driver
    cursor = connection.cursor()
    try:
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            "trusted_schema=OFF",
        ):
            cursor.execute(f"PRAGMA {pragma}")
    finally:
        cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN" if options.get(_READING, False) else "BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return
    if options.get(_READING, False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    else:
        # Each statement of READ COMMITTED sees what is committed when it starts, hence all that earlier writers did.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS})")


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what the database says into what Maia says."""
    try:
        yield
    except IntegrityError as error:
        raise UnavailableError("a rule of the database's tables forbids this", code="DATABASE_CONFLICT") from error
    except DBAPIError as error:
        raise UnavailableError("the database did not do it", code="DATABASE_UNAVAILABLE") from error
    except SQLAlchemyError as error:
        raise UnavailableError("the database could not be used", code="DATABASE_UNAVAILABLE") from error
