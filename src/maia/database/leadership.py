"""Which of several processes leads a service: the others stand by and take over when it is gone.

Rules kept here:

- one process holds a lock that ends with it: a session's advisory lock on PostgreSQL, a lock on a file beside the
  database on SQLite;
- taking the lock raises the service's term, and a leader writes through `Leadership.transaction`, which commits only
  while the term is its own. A former leader that does not know yet that its connection died can therefore commit
  nothing once another has begun to lead, however the two are delayed (writing transactions are serial).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, insert, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from maia.database.engine import sqlite_path, transaction
from maia.database.requests import leader_terms
from maia.errors import UnavailableError, UsageError
from maia.home import PRIVATE_FILE


class Leadership:
    """The leadership of one service on one database, as one process sees it.

    Not for several threads at once; `transaction` may be used by any thread.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        """Stand by for a service.

        Args:
            engine: The database, migrated.
            name: The service's name; who leads one service says nothing about another.
        """
        if not name or not all(letter.isalnum() or letter in "-_" for letter in name) or len(name) > 64:
            raise UsageError(f"`{name}` cannot name a service", code="SERVICE_NAME")
        self._engine = engine
        self._name = name
        self._path = sqlite_path(engine)
        self._file: int | None = None
        self._session: Connection | None = None
        self._term: int | None = None

    def __repr__(self) -> str:
        """Show the service and whether this process led it when last asked."""
        return f"Leadership({self._name!r}, term={self._term})"

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Resign."""
        self.resign()

    @property
    def term(self) -> int | None:
        """The term in which this process leads, if it does."""
        return self._term

    @property
    def is_leader(self) -> bool:
        """Whether this process leads: it took the lock and the lock's connection is still there."""
        if self._term is None:
            return False
        if self._path is None and not self._session_lives():
            self._lose()
            return False
        return True

    def try_lead(self) -> bool:
        """Take the leadership if nobody has it.

        Returns:
            Whether this process leads now, be it since long ago.

        Raises:
            UnavailableError: The database does not answer.
        """
        if self.is_leader:
            return True
        self._lose()
        if not (self._lock_session() if self._path is None else self._lock_file(self._path)):
            return False
        try:
            with transaction(self._engine) as connection:
                self._term = self._raise_term(connection)
        except BaseException:
            self._lose()
            raise
        return True

    def resign(self) -> None:
        """Let another lead; what this process still has under way does not commit any more."""
        self._lose()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a writing transaction as `maia.database.transaction` does, to the leader only.

        Raises:
            UnavailableError: This process does not lead, or another has led since (`NOT_LEADER`); nothing is changed.
        """
        term = self._term
        if term is None:
            raise UnavailableError("this process stands by; another leads", code="NOT_LEADER")
        with transaction(self._engine) as connection:
            # INVARIANT: writers are serial, so either this commit comes before the next leader's term, or it sees it.
            if connection.scalar(select(leader_terms.c.term).where(leader_terms.c.name == self._name)) != term:
                raise UnavailableError("another process leads since", code="NOT_LEADER")
            yield connection

    def _raise_term(self, connection: Connection) -> int:
        old = connection.scalar(select(leader_terms.c.term).where(leader_terms.c.name == self._name))
        if old is None:
            connection.execute(insert(leader_terms).values(name=self._name, term=1))
            return 1
        connection.execute(update(leader_terms).where(leader_terms.c.name == self._name).values(term=old + 1))
        return int(old) + 1

    def _lock_file(self, database: Path) -> bool:
        path = database.with_name(f".{database.name}.{self._name}.lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        except OSError as error:
            raise UnavailableError(f"cannot lock `{path}`", code="FILE_UNAVAILABLE") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise UnavailableError(f"cannot lock `{path}`", code="FILE_UNAVAILABLE") from error
        self._file = descriptor
        return True

    def _lock_session(self) -> bool:
        try:
            session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            session.detach()  # a lock's session is never lent to anything else
        except SQLAlchemyError as error:
            raise UnavailableError("the database does not answer", code="DATABASE_UNAVAILABLE") from error
        try:
            held = session.scalar(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": self._lock_number})
        except SQLAlchemyError as error:
            _close(session)
            raise UnavailableError("the database does not answer", code="DATABASE_UNAVAILABLE") from error
        if not held:
            _close(session)
            return False
        self._session = session
        return True

    def _session_lives(self) -> bool:
        try:
            return self._session is not None and self._session.scalar(text("SELECT 1")) == 1
        except SQLAlchemyError:
            return False

    @property
    def _lock_number(self) -> int:
        digest = hashlib.sha256(b"maia/1 leadership\x00" + self._name.encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    def _lose(self) -> None:
        self._term = None
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._session is not None:
            # The server ends a session some time after its client left; whoever resigns lets go of the lock before.
            with suppress(SQLAlchemyError):
                self._session.execute(text("SELECT pg_advisory_unlock_all()"))
            _close(self._session)
            self._session = None


def _close(session: Connection) -> None:
    with suppress(SQLAlchemyError):
        session.close()
