"""Opening a database, and transactions that run one after the other on both kinds.

Rules kept here:

- writing transactions are serial: SQLite begins them with BEGIN IMMEDIATE, PostgreSQL with one advisory lock that
  ends with the transaction, so a writer sees everything that earlier writers committed;
- what is committed survives a power cut (SQLite: WAL with synchronous=FULL; PostgreSQL: its default);
- deleted rows are overwritten in the file (SQLite's secure_delete), and leave the journal when it is next written over;
- a SQLite file is readable by its owner only, from its first octet on;
- SECURITY: nothing but SQLite opens its files. POSIX locks belong to a process, so closing any other descriptor of the
  file drops the locks of every connection in the process, and the next process that leaves takes the journal away with
  what was acknowledged. A new file is therefore made beside its place and linked there, and a mode is set by name;
- a commit counts only when the files that it went to are still the database's: one whose journal was taken away, or
  whose file was replaced by another, is not acknowledged (``DATABASE_REPLACED``);
- every wait has a limit;
- no password and no parameter of a statement stands in an error, a log line or a ``repr``.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from maia.errors import NotFoundError, UnavailableError, UsageError
from maia.home import PRIVATE_FILE, write_file

WAIT_SECONDS = 5
"""How long a transaction waits for another writer, or for the server to accept a connection."""

_STATEMENT_SECONDS = 30
_WRITERS = 0x6D616961_00000001  # "maia", 1: the advisory lock of writers; leaders use hashes, see leadership.py
_READING = "maia_reading"
_FILES = "maia_files"

OpenDatabase = Engine
"""A database that this process has opened, once."""
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
            (`DATABASE_CONFLICT`); nothing is changed. Or its files were exchanged or taken away meanwhile
            (`DATABASE_REPLACED`); then what was written may be lost, and whoever asks again finds out.
    """
    with _translated(), engine.begin() as connection:
        files: _Files | None = connection.info.get(_FILES)
        yield connection
    if files is not None and files != _Files.of(files.path):
        engine.dispose()  # the next transaction opens what is there now
        raise UnavailableError(
            f"the files of `{files.path}` were exchanged or taken away while it was in use; what was just written may "
            "be lost: look before you ask again",
            code="DATABASE_REPLACED",
        )


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that sees one state of the database throughout, waits for no writer and changes nothing."""
    with _translated(), engine.connect().execution_options(**{_READING: True}) as connection, connection.begin():
        yield connection


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
    _make_private(path)
    engine = create_engine(
        url.set(database=str(path)),
        hide_parameters=True,
        connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Make the file unless it is there, and close it to others, without ever opening it."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        try:
            write_file(path, b"", mode=PRIVATE_FILE, replace=False)
        except NotFoundError as error:
            raise UnavailableError(f"cannot use `{path}`: no such folder", code="FILE_UNAVAILABLE") from error
        return
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UnavailableError(f"cannot use `{path}`: {reason}", code="FILE_UNAVAILABLE") from error
    if stat.S_IMODE(mode) != PRIVATE_FILE:
        with suppress(OSError):  # a database that somebody else owns is theirs to close; SQLite says what it may not
            path.chmod(PRIVATE_FILE)


@dataclass(frozen=True, slots=True)
class _Files:
    """Which files a connection writes to: the database and its journal, by device and number."""

    path: Path
    database: tuple[int, int] | None
    journal: tuple[int, int] | None

    @classmethod
    def of(cls, path: Path) -> _Files:
        """Look, without opening anything."""
        return cls(path, _identity(path), _identity(path.with_name(f"{path.name}-wal")))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _set_up_sqlite(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
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
        cursor.execute(
            "SELECT count(*) FROM sqlite_master"
        ).fetchall()  # opens the journal, which stays open from now on
        _, _, name = cursor.execute("PRAGMA database_list").fetchone()
        entry.info[_FILES] = _Files.of(Path(name))
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
