"""The memory of the access control service and the transactions in which it changes.

Rules kept here:

- one writing transaction a change: what fails leaves the database as it was, and the memory to be loaded anew;
- several processes may serve one database: each sees by its revision that another one wrote, and loads anew;
- what has ended has ended before anything else is looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from threading import RLock
from typing import NoReturn, TypeVar

from sqlalchemy import Connection, Engine

from maia import database
from maia.access_control.role_book import RoleBook
from maia.access_control.settings import Settings
from maia.access_control.values import Environment, Member, MemberKind, Revocation, Surroundings, Telling
from maia.errors import DeniedError, NotFoundError
from maia.policy import (
    Fact,
    PolicySyntaxError,
)
from maia.principals import (
    Authenticated,
    PublicKey,
    Signer,
    check_aware,
    public_key,
)

_Records = database.AccessControlRecords
_T = TypeVar("_T")


class _PreviewOverError(Exception):
    """Stays inside this module: undoes the transaction in which something was tried."""


def _no_roles(*, at: datetime) -> tuple[str, ...]:  # noqa: ARG001 - as those that look
    return ()


def _undo() -> NoReturn:
    raise _PreviewOverError


class Keeping(ABC):
    """What the service remembers, kept equal to its database."""

    def __init__(
        self,
        *,
        signer: Signer,
        engine: Engine,
        surroundings: Surroundings,
        settings: Settings | None = None,
        telling: Telling | None = None,
        environment: Environment | None = None,
        named_roles: Callable[..., Iterable[str]] = _no_roles,
        transaction: Callable[[], AbstractContextManager[Connection]] | None = None,
    ) -> None:
        """Serve a domain.

        Args:
            signer: The domain's key.
            engine: The database, migrated.
            surroundings: Types, certificates and statements of the domain's home.
            settings: How the domain issues.
            telling: Who must hear of statements, certificates and withdrawals; nobody when not given.
            environment: What is true outside.
            named_roles: Gives, for an instant ``at``, the roles that agreements with other domains speak of.
            transaction: How to begin a writing transaction, when not any process may: `Leadership.transaction`.
        """
        self._signer = signer
        self._database = engine
        self._home = surroundings
        self.settings = Settings() if settings is None else settings
        self._telling = telling
        self._environment = environment
        self._named_roles = named_roles
        self._begin = (lambda: database.transaction(engine)) if transaction is None else transaction
        self._lock = RLock()
        self._book: RoleBook | None = None
        self._members: dict[str, Member] = {}
        self._names: dict[bytes, str] = {}
        self._revision = -1
        self._changed = False
        self._caught: list[Revocation] = []
        self._policy_text = ""
        self._challenges: OrderedDict[bytes, datetime] = OrderedDict()

    @property
    def key(self) -> PublicKey:
        """The domain's key, which is who the domain is."""
        return self._signer.public_key

    @abstractmethod
    def _cascade(
        self,
        records: _Records,
        fallen: Iterable[Fact],
        gone: Iterable[Fact],
        *,
        at: datetime,
        certificates: tuple[bytes, ...] = (),
        members: tuple[str, ...] = (),
    ) -> Revocation:
        """Withdraw what stood on roles and facts that are gone."""

    def _records(self, connection: Connection) -> _Records:
        return database.AccessControlRecords(connection, self.key.key_id)

    @contextmanager
    def _writing(self, at: datetime, *, only_look: bool = False) -> Iterator[_Records]:
        """Work in one transaction; whatever fails leaves the database as it was and the memory to be loaded anew."""
        check_aware(at)
        with self._lock:
            try:
                with self._begin() as connection:
                    records = self._records(connection)
                    self._catch_up(records, at=at)
                    yield records
                    if self._changed or not only_look:  # who only looks must not make others load anew
                        self._revision = records.touch()
            except (DeniedError, PolicySyntaxError):
                if self._changed:
                    self._book = None
                raise
            except BaseException:
                self._book = None
                raise

    @contextmanager
    def _reading(self, at: datetime) -> Iterator[None]:
        """Look at a state that is what the database holds."""
        check_aware(at)
        with self._lock:
            with database.reading(self._database) as connection:
                current = self._records(connection).state()[0]
            ends = None if self._book is None else self._book.next_end
            if self._book is None or current != self._revision or (ends is not None and ends < at):
                with self._writing(at, only_look=True):
                    pass
            yield

    def _write(self, work: Callable[[_Records], _T], *, at: datetime) -> _T:
        with self._writing(at) as records:
            return work(records)

    def _try(self, work: Callable[[_Records], _T], *, at: datetime) -> _T:
        """Do something in a transaction, keep what it says, and undo it."""
        found: list[_T] = []
        try:
            with self._writing(at) as records:
                found.append(work(records))
                _undo()
        except _PreviewOverError:
            return found[0]

    def _catch_up(self, records: _Records, *, at: datetime) -> None:
        """Load what another process wrote, and let end what has ended."""
        self._changed = False
        self._caught = []
        revision, number = records.state()
        if self._book is None or revision != self._revision:
            self._policy_text = records.policy(number)
            self._members = {
                item.name: Member(
                    name=item.name,
                    key=public_key(item.key),
                    kind=MemberKind(item.kind),
                    joined=item.joined,
                    gone=item.gone,
                )
                for item in records.members()
            }
            self._names = {member.key.raw: name for name, member in self._members.items()}
            self._book, fallen = RoleBook.load(records, self._policy_text, self._environment, at=at)
            self._revision = revision
            if fallen:
                self._changes()
                self._caught.append(self._cascade(records, fallen, (), at=at))
        over = self._book.ended(at=at)
        if over:
            self._changes()
            self._caught.append(self._cascade(records, self._book.retract(records, over), over, at=at))

    def _changes(self) -> None:
        """Note that the memory is ahead of the database until this transaction commits."""
        self._changed = True

    @property
    def _roles(self) -> RoleBook:
        assert self._book is not None  # noqa: S101 - loaded by every transaction
        return self._book

    def _known(self, who: Authenticated) -> Member | None:
        member = self._members.get(self._names.get(who.key.raw, ""))
        return None if member is None or member.gone is not None else member

    def _require(self, who: Authenticated) -> Member:
        member = self._known(who)
        if member is None:
            raise DeniedError(f"`{who.key.fingerprint}` is no member of this domain", code="NOT_A_MEMBER")
        return member

    def _present(self, name: str) -> Member:
        member = self._members.get(name)
        if member is None or member.gone is not None:
            raise NotFoundError(f"there is no member `{name}`", code="NO_MEMBER")
        return member
