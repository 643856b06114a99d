"""Databases behind the services: opened alike, migrated up, down and up again, one writer at a time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, Engine, MetaData, Table, insert, inspect, select, text, update

from maia.database import Instant, metadata, migrate, open_database, reading, transaction
from maia.database.requests import clock_floors
from maia.errors import UnavailableError, UsageError

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """Give a migrated database of each kind."""
    opened = open_database(database_url)
    migrate(opened)
    yield opened
    opened.dispose()


def tables(engine: Engine) -> set[str]:
    """List the tables that are there."""
    with reading(engine) as connection:
        return set(inspect(connection).get_table_names()) - {"alembic_version"}


def test_migrations_run_once(database_url: str) -> None:
    """From nothing to every table; a second run changes nothing."""
    engine = open_database(database_url)
    for _ in range(2):
        migrate(engine)
        assert tables(engine) == set(metadata.tables)
    engine.dispose()


def test_migrations_make_exactly_the_tables_of_the_code(engine: Engine) -> None:
    """Alembic finds no difference between what migrations made and what the code declares."""
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_difference_would_be_found(engine: Engine) -> None:
    """The comparison above sees a table that no migration makes."""
    more = MetaData()
    for table in metadata.tables.values():
        table.to_metadata(more)
    Table("forgotten", more, Column("at", Instant, primary_key=True))
    with reading(engine) as connection:
        differences = compare_metadata(MigrationContext.configure(connection), more)
    assert [(kind, table.name) for kind, table in differences] == [("add_table", "forgotten")]


def test_a_database_of_a_newer_version_is_refused(engine: Engine) -> None:
    """An unknown revision is not guessed at."""
    with transaction(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UnavailableError) as refusal:
        migrate(engine)
    assert refusal.value.code == "DATABASE_NEWER"


def test_an_instant_keeps_its_microseconds_and_its_zone(engine: Engine) -> None:
    """What is written is read: the same instant, in UTC, exactly."""
    moment = datetime(2026, 11, 16, 13, 0, 0, 123457, tzinfo=UTC)
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="x", floor=moment))
    with reading(engine) as connection:
        assert connection.scalar(select(clock_floors.c.floor)) == moment


def write_and_fail(connection: Connection) -> None:
    """Write a row and give up."""
    connection.execute(insert(clock_floors).values(name="x", floor=NOON))
    raise ZeroDivisionError


def test_an_error_undoes_the_whole_transaction(engine: Engine) -> None:
    """Half a transaction is none, and the caller's own error passes through."""
    with pytest.raises(ZeroDivisionError), transaction(engine) as connection:
        write_and_fail(connection)
    with reading(engine) as connection:
        assert connection.execute(select(clock_floors)).all() == []


def test_a_forbidden_row_is_a_conflict(engine: Engine) -> None:
    """A rule of the tables speaks with Maia's error, and without the values."""
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="hush", floor=NOON))
    with pytest.raises(UnavailableError) as refusal, transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="hush", floor=NOON))
    assert refusal.value.code == "DATABASE_CONFLICT"
    assert "parameters hidden" in str(refusal.value.__cause__)


def test_writers_never_lose_an_update(engine: Engine) -> None:
    """Read, add one, write, from several threads: every one of them counts."""
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="x", floor=NOON))

    def add() -> None:
        for _ in range(10):
            with transaction(engine) as connection:
                floor = connection.scalar(select(clock_floors.c.floor))
                assert floor is not None
                connection.execute(update(clock_floors).values(floor=floor + timedelta(seconds=1)))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as connection:
        assert connection.scalar(select(clock_floors.c.floor)) == NOON + timedelta(seconds=40)


def test_a_reader_waits_for_no_writer_and_sees_one_state(engine: Engine) -> None:
    """What a writer has not committed is not seen, and what it commits meanwhile is not seen either."""
    with reading(engine) as reader:
        assert reader.execute(select(clock_floors)).all() == []
        with transaction(engine) as writer:
            writer.execute(insert(clock_floors).values(name="x", floor=NOON))
            assert reader.execute(select(clock_floors)).all() == []
        assert reader.execute(select(clock_floors)).all() == []


def test_deleted_values_leave_the_files_of_sqlite(tmp_path: Path) -> None:
    """After deletion, and when everybody has left, no file of the database holds the value."""
    engine = open_database(str(tmp_path / "store.db"))
    migrate(engine)
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="a-very-telling-name", floor=NOON))
    assert any(b"a-very-telling-name" in file.read_bytes() for file in tmp_path.iterdir())
    with transaction(engine) as connection:
        connection.execute(clock_floors.delete())
    engine.dispose()
    assert not any(b"a-very-telling-name" in file.read_bytes() for file in tmp_path.iterdir())


def test_the_files_of_sqlite_are_the_owners_alone(tmp_path: Path) -> None:
    """The database, its journal and its index are 0600, whatever the umask; an open file is closed up."""
    path = tmp_path / "store.db"
    path.touch(0o666)
    path.chmod(0o666)
    before = os.umask(0)
    try:
        engine = open_database(f"sqlite:///{path}")
        migrate(engine)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)
    engine.dispose()


def test_opening_a_database_again_leaves_the_locks_of_whoever_has_it(tmp_path: Path) -> None:
    """Another process that comes and goes does not take the journal away, however often this one opens the file."""
    engine = open_database(str(tmp_path / "store.db"))
    migrate(engine)
    again = open_database(str(tmp_path / "store.db"))
    look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM clock_floors').fetchall()"
    subprocess.run([sys.executable, "-c", look, str(tmp_path / "store.db")], check=True)
    assert (tmp_path / "store.db-wal").exists()
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="kept", floor=NOON))
    for opened in (again, engine):
        opened.dispose()


@pytest.mark.parametrize("taken", ["store.db", "store.db-wal"])
def test_what_went_into_a_file_that_was_taken_away_is_not_acknowledged(taken: str, tmp_path: Path) -> None:
    """A writer whose file or journal was removed is told; afterwards it writes to what is there."""
    engine = open_database(str(tmp_path / "store.db"))
    migrate(engine)
    (tmp_path / taken).unlink()
    with pytest.raises(UnavailableError) as refusal, transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="lost", floor=NOON))
    assert refusal.value.code == "DATABASE_REPLACED"
    migrate(engine)
    with transaction(engine) as connection:
        connection.execute(insert(clock_floors).values(name="kept", floor=NOON))
    engine.dispose()


SQLITE_SETTINGS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}


@pytest.mark.parametrize("pragma, value", SQLITE_SETTINGS.items(), ids=SQLITE_SETTINGS)
def test_sqlite_is_set_up_to_keep_its_promises(pragma: str, value: object, tmp_path: Path) -> None:
    """A commit is on the disk, references hold, and deleted content is overwritten."""
    engine = open_database(str(tmp_path / "store.db"))
    with reading(engine) as connection:
        assert connection.scalar(text(f"PRAGMA {pragma}")) == value
    engine.dispose()


def test_a_second_writer_is_refused_after_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that cannot have its turn gets an error, not an endless wait."""
    monkeypatch.setattr("maia.database.engine.WAIT_SECONDS", 0)
    engine = open_database(str(tmp_path / "store.db"))
    with transaction(engine), pytest.raises(UnavailableError) as refusal, transaction(engine):
        pytest.fail("two writers at once")
    assert refusal.value.code == "DATABASE_UNAVAILABLE"
    engine.dispose()


WRONG = {
    "another product": "mysql://maia:hush@host/maia",
    "another driver": "postgresql+asyncpg://maia:hush@host/maia",
    "no port": "postgresql://maia:hush@host:port/maia",
    "a password in the query": "postgresql://maia@host/maia?password=hush",
    "no file": "sqlite://",
    "memory": "sqlite:///:memory:",
    "options": "sqlite:///x.db?mode=ro",
}


@pytest.mark.parametrize("url", WRONG.values(), ids=WRONG)
def test_other_addresses_are_refused_without_their_password(url: str) -> None:
    """The error names no secret, nor do its causes."""
    with pytest.raises(UsageError) as refusal:
        open_database(url)
    assert refusal.value.code == "DATABASE_ADDRESS"
    assert "hush" not in f"{refusal.value!r} {refusal.value.__cause__!r} {refusal.value.args}"


def test_a_password_is_in_no_error_and_no_repr(tmp_path: Path) -> None:
    """A server that does not answer is named without the password."""
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    engine = open_database(f"postgresql://maia:hush@/maia?host={tmp_path}")
    with pytest.raises(UnavailableError) as refusal, transaction(engine):
        pytest.fail("there is no server")
    assert refusal.value.code == "DATABASE_UNAVAILABLE"
    shown = f"{engine!r} {engine.url} {refusal.value} {refusal.value.__cause__}"
    assert "hush" not in shown


def test_a_file_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    """The folder must be there."""
    with pytest.raises(UnavailableError) as refusal:
        open_database(str(tmp_path / "none" / "store.db"))
    assert refusal.value.code == "FILE_UNAVAILABLE"
