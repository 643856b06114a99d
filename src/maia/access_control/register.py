"""The register of a domain: what its access control remembers, and the transactions in which that changes.

What is done with it stands in modules by subject, which are handed a `Register`: `enrol`, `roles`, `issue`, `grants`,
`withdraw`, `policy_change`, `lists`. Rules kept here:

- one writing transaction a change: what fails leaves the database as it was, and the memory to be loaded anew;
- several processes may serve one database: each sees by its revision that another one wrote, and loads anew;
- what has ended has ended before anything else is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from threading import RLock
from typing import NoReturn, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine

from maia import database
from maia.access_control.role_book import RoleBook
from maia.access_control.settings import Settings
from maia.access_control.values import Holdings, Member, MemberKind, Outside, OwnSeries, Revocation
from maia.errors import DeniedError, NotFoundError
from maia.policy import Fact, Policy, PolicySyntaxError
from maia.principals import Authenticated, PublicKey, Signer, check_aware, public_key

Records: TypeAlias = database.AccessControlRecords
_T = TypeVar("_T")


class Cascade(Protocol):
    """What follows when roles fall and facts are gone: whatever stood on them is withdrawn."""

    def __call__(
        self, register: Register, records: Records, fallen: Iterable[Fact], gone: Iterable[Fact], *, at: datetime
    ) -> Revocation:
        """Withdraw it in the transaction of ``records``, and say what it was."""
        ...


class _PreviewOverError(Exception):
    """Stays inside this module: undoes the transaction in which something was tried."""


def no_roles(*, at: datetime) -> tuple[str, ...]:  # noqa: ARG001 - as those that look
    """Name no role: no agreement speaks of any."""
    return ()


class Register:
    """What a domain remembers of members, roles and policy, kept equal to its database."""

    def __init__(
        self,
        *,
        signer: Signer,
        engine: Engine,
        holdings: Holdings,
        cascade: Cascade,
        settings: Settings | None = None,
        outside: Outside | None = None,
        named_roles: Callable[..., Iterable[str]] = no_roles,
        series: OwnSeries | None = None,
        transaction: Callable[[], AbstractContextManager[Connection]] | None = None,
    ) -> None:
        """Keep the register of a domain.

        Args:
            signer: The domain's key.
            engine: The database, migrated.
            holdings: Types, certificates and statements that the domain holds.
            cascade: What to do about roles that fall because their time is over.
            settings: How the domain issues.
            outside: What is true outside.
            named_roles: Gives, for an instant ``at``, the roles that agreements with other domains speak of.
            series: What was ever stated under the domain's key, outside the database.
            transaction: How to begin a writing transaction, when not any process may: `Leadership.transaction`.
        """
        self.signer = signer
        self.holdings = holdings
        self.settings = Settings() if settings is None else settings
        self.outside = outside
        self.named_roles = named_roles
        self.series = series
        self.trying = False
        self._cascade = cascade
        self._database = engine
        self._begin = (lambda: database.transaction(engine)) if transaction is None else transaction
        self._lock = RLock()
        self._book: RoleBook | None = None
        self._members: dict[str, Member] = {}
        self._names: dict[bytes, str] = {}
        self._revision = -1
        self._changed = False
        self._caught: list[Revocation] = []
        self._policy = ""

    @property
    def key(self) -> PublicKey:
        """The domain's key, which is who the domain is."""
        return self.signer.public_key

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def writing(self, at: datetime, *, only_look: bool = False) -> Iterator[Records]:
        """Work in one transaction; whatever fails leaves the database as it was and the memory to be loaded anew."""
        check_aware(at)
        with self._lock:
            try:
                with self.writing_rows() as records:
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
    def reading(self, at: datetime) -> Iterator[None]:
        """Look at a memory that is what the database holds."""
        check_aware(at)
        with self._lock:
            with self.reading_rows() as records:
                current = records.state()[0]
            ends = None if self._book is None else self._book.next_end
            if self._book is None or current != self._revision or (ends is not None and ends < at):
                with self.writing(at, only_look=True):
                    pass
            yield

    def write(self, work: Callable[[Records], _T], *, at: datetime) -> _T:
        """Do something in a transaction of its own."""
        with self.writing(at) as records:
            return work(records)

    def preview(self, work: Callable[[Records], _T], *, at: datetime) -> _T:
        """Do something in a transaction, keep what it says, and undo it."""
        found: list[_T] = []
        with self._lock:
            self.trying = True
            try:
                with self.writing(at) as records:
                    found.append(work(records))
                    _undo()
            except _PreviewOverError:
                return found[0]
            finally:
                self.trying = False

    @contextmanager
    def reading_rows(self) -> Iterator[Records]:
        """Read what the database holds, without bringing the memory up to it."""
        with database.reading(self._database) as connection:
            yield self._records(connection)

    @contextmanager
    def writing_rows(self) -> Iterator[Records]:
        """Write what no memory depends on, such as the outbox; others need not load anew."""
        with self._begin() as connection:
            yield self._records(connection)

    def changes(self) -> None:
        """Note that the memory is ahead of the database until this transaction commits."""
        self._changed = True

    def _records(self, connection: Connection) -> Records:
        return database.AccessControlRecords(connection, self.key.key_id)

    def _catch_up(self, records: Records, *, at: datetime) -> None:
        """Load what another process wrote, and let end what has ended."""
        self._changed = False
        self._caught = []
        revision, number = records.state()
        if self._book is None or revision != self._revision:
            self._policy = records.policy(number)
            self._members = {item.name: _member(item) for item in records.members.all()}
            self._names = {member.key.raw: name for name, member in self._members.items()}
            self._book, fallen = RoleBook.load(records.roles, self._policy, self.outside, at=at)
            self._revision = revision
            if fallen:
                self.changes()
                self._caught.append(self._cascade(self, records, fallen, (), at=at))
        over = self._book.ended(at=at)
        if over:
            self.changes()
            self._caught.append(self._cascade(self, records, self._book.retract(records.roles, over), over, at=at))

    # ------------------------------------------------------------------ what is remembered, inside a transaction

    @property
    def roles(self) -> RoleBook:
        """Facts, active roles and what they give."""
        assert self._book is not None  # noqa: S101 - loaded by every transaction
        return self._book

    @property
    def policy(self) -> str:
        """The text of the policy in force."""
        return self._policy

    @property
    def caught(self) -> tuple[Revocation, ...]:
        """What this transaction withdrew before its own work began, because its time was over."""
        return tuple(self._caught)

    @property
    def members(self) -> Mapping[str, Member]:
        """All members by name, those that are gone included."""
        return self._members

    def has_key(self, key: PublicKey) -> bool:
        """Tell whether a key is or was a member's."""
        return key.raw in self._names

    def find(self, who: Authenticated) -> Member | None:
        """Find the present member that has proven its key."""
        member = self._members.get(self._names.get(who.key.raw, ""))
        return None if member is None or member.gone is not None else member

    def require(self, who: Authenticated) -> Member:
        """Find the present member that has proven its key.

        Raises:
            DeniedError: There is none: ``NOT_A_MEMBER``.
        """
        member = self.find(who)
        if member is None:
            raise DeniedError(f"`{who.key.fingerprint}` is no member of this domain", code="NOT_A_MEMBER")
        return member

    def present(self, name: str) -> Member:
        """Find a present member by name.

        Raises:
            NotFoundError: There is none: ``NO_MEMBER``.
        """
        member = self._members.get(name)
        if member is None or member.gone is not None:
            raise NotFoundError(f"there is no member `{name}`", code="NO_MEMBER")
        return member

    # ------------------------------------------------------------------ changes of what is remembered

    def add_members(self, records: Records, members: Sequence[Member]) -> None:
        """Make principals members."""
        self.changes()
        records.members.add(
            database.MemberRecord(name=item.name, key=item.key.raw, kind=item.kind.value, joined=item.joined)
            for item in members
        )
        self._members |= {member.name: member for member in members}
        self._names |= {member.key.raw: member.name for member in members}

    def end_members(self, records: Records, names: Sequence[str], *, at: datetime) -> None:
        """Let present members go; their names and keys stay taken."""
        self.changes()
        leaving = [self.present(name) for name in names]
        records.members.end(names, at=at)
        self._members |= {member.name: replace(member, gone=at) for member in leaving}

    def change_policy(self, records: Records, text: str, policy: Policy, *, at: datetime) -> tuple[Fact, ...]:
        """Come under another policy; give the roles that it does not carry."""
        self.changes()
        anonymous = set(self.roles.anonymous)
        self._book, fallen = RoleBook.load(records.roles, text, self.outside, at=at, policy=policy)
        self._book.anonymous |= anonymous & set(fallen)  # what falls anonymously is noted anonymously
        self._policy = text
        return fallen


def _undo() -> NoReturn:
    raise _PreviewOverError


def _member(record: database.MemberRecord) -> Member:
    return Member(
        name=record.name,
        key=public_key(record.key),
        kind=MemberKind(record.kind),
        joined=record.joined,
        gone=record.gone,
    )
