"""The lists of a home's own keys: made by hand or by the domain's service, in one series, and told to the log.

Rules kept here:

- one signer has one series. A key that speaks for a domain with a register has its lists from the register, whoever
  asks for one; any other key has them from the series file of the home. Both take numbers from that file;
- a list is durable at its owner before the log is touched. What the log could not hear is said again at the next
  occasion, and nothing that is read there can stop a list;
- a home that holds a key which needs no passphrase renews its timed lists whenever it is opened. A key that needs one
  is not there by itself, so its lists last longer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from maia.authority import ListStatement, Rhythm, Series, Statement
from maia.domain.own_notices import home_notices
from maia.domain.register import has_register
from maia.domain.snapshot import FileState, file_state
from maia.domain.statements import accept_statements
from maia.errors import KeyFormatError, MaiaError, NotFoundError
from maia.home import Folder, Home, SeriesFile, read_key, signers_of_lists
from maia.log import publish_statement
from maia.principals import CertificateId, KeyId, PublicKey, Signer, TestKind

if TYPE_CHECKING:
    from maia.access_control import AccessControl

ATTENDED = Rhythm(period=timedelta(days=30))
"""How long a list of a key lasts that a person has to open."""
_log = logging.getLogger(__name__)
_NOTHING: Mapping[CertificateId, datetime | None] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeList:
    """A list that was signed and is durable here.

    Attributes:
        statement: The list.
        told: Whether the log of this home has it; ``None`` where there is no log to tell.
    """

    statement: Statement
    told: bool | None

    @property
    def body(self) -> ListStatement:
        """What it says."""
        assert isinstance(self.statement.body, ListStatement)  # noqa: S101 - nothing else is made here
        return self.statement.body


def make_list(
    folder: Folder,
    signer: Signer,
    kind: TestKind,
    *,
    at: datetime,
    revoke: Mapping[CertificateId, datetime | None] = _NOTHING,
    good: frozenset[CertificateId] = frozenset(),
    interval: tuple[datetime, datetime] | None = None,
    sequence: int | None = None,
) -> MadeList:
    """Sign the next list of a signer, keep it here, and tell the log.

    A list that revokes and comes into force later is preceded by a plain one, which takes force at once.

    Args:
        folder: Whose keys, statements and log.
        signer: Who signs.
        kind: A CRL or a revalidation.
        at: Now.
        revoke: What is revoked from now on, each with the end of its period where that is known.
        good: What a revalidation names.
        interval: When it is in force; ``None`` for a plain CRL.
        sequence: Its number, when it has to jump.

    Raises:
        UsageError: The number was taken before: ``LIST_NUMBER``.
        VerificationError: It overlaps a list that is signed already: ``STATEMENT_OVERLAP``.
        UnavailableError: The register is older than what the log shows: ``REGISTER_BEHIND``.
    """
    if revoke and interval is not None and interval[0] > at:
        make_list(folder, signer, kind, at=at, revoke=revoke)
    with own_register(folder, signer) as service:
        if service is not None:
            statement = service.state(kind, at=at, revoke=revoke, good=good, interval=interval, sequence=sequence)
        else:
            statement = SeriesFile(folder.path, signer.public_key.key_id).make(
                signer, kind, at=at, revoke=revoke, good=good, interval=interval, sequence=sequence
            )
            accept_statements(folder.statements, [statement], at)
    return MadeList(statement=statement, told=tell_lists(folder, signer, at=at))


def known_series(folder: Folder, signer: PublicKey, kind: TestKind, *, at: datetime) -> Series:
    """Sum up what is known here of a signer's lists: by its own record, and by what was accepted."""
    record = SeriesFile(folder.path, signer.key_id).record(kind).series(kind, signer, at=at)
    book = Series.in_book(folder.book(), kind=kind, signer=signer)
    return Series(
        kind=kind, signer=signer, sequence=max(record.sequence, book.sequence),
        interval=max((item.interval for item in (record, book) if item.interval is not None), default=None),
        certificates=record.certificates | book.certificates, since=_first(record.since, book.since),
    )  # fmt: skip


def tell_lists(folder: Folder, signer: Signer, *, at: datetime) -> bool | None:
    """Tell the log what a signer stated and the log has not heard; say whether it has heard all.

    Returns:
        ``None`` where the folder is no home, and so has no log.
    """
    if folder.config is None:
        return None
    key = signer.public_key.key_id
    notices, file = home_notices(Home.of(folder)), SeriesFile(folder.path, key)
    for record in file.load().values():
        waiting = [item for item in record.lists if _number(item) > record.told]
        for statement in sorted(waiting, key=_number):
            try:
                publish_statement(notices, signer, statement.raw, at=at)
            except MaiaError as error:
                _log.warning("the log does not take list %d of %s: %s", _number(statement), key.hex()[:16], error.code)
                return False
            file.note([statement], told=True)
    return True


def assure_list(folder: Folder, signer: Signer, *, at: datetime) -> MadeList | None:
    """Sign a signer's CRL when none is in force, or the next is due; nothing where one serves."""
    with own_register(folder, signer) as service:
        if service is not None:
            service.beat(at=at)
            return None
    series = known_series(folder, signer.public_key, TestKind.CRL, at=at)
    rhythm = list_rhythm(folder, signer.public_key)
    if series.interval is None and series.sequence and rhythm is None:
        return None  # a signer of plain lists goes on with them, and the newest serves
    interval = None
    if series.interval is not None or rhythm is not None:
        interval = _due(series, rhythm, at=at)
        if interval is None:
            return None
    return make_list(folder, signer, TestKind.CRL, at=at, interval=interval)


def list_rhythm(folder: Folder, key: PublicKey) -> Rhythm | None:
    """Say how often lists of a key are signed: as the home's settings say, where nobody has to open the key."""
    from maia.domain.access_control.service import read_settings  # noqa: PLC0415 - most folders have no service

    if folder.config is None or _open_unattended(folder, key) is None:
        return ATTENDED
    return read_settings(Home.of(folder)).rhythm


def renews_lists(folder: Folder, signer: KeyId, kind: TestKind) -> bool:
    """Tell whether the lists of a key are renewed without anybody: by this home as it works, or by its service."""
    key = next((known for known in folder.keys.values() if known.key_id == signer), None)
    if folder.config is None or key is None or _open_unattended(folder, key) is None:
        return False
    if key == _domain_key(folder) and (folder.config.access_control is not None or has_register(folder)):
        return True
    return kind is TestKind.CRL and signer in signers_of_lists(folder.path)


class OwnLists:
    """Keeps the timed lists of a home's own keys fresh; looking costs next to nothing while none is due."""

    def __init__(self, home: Home) -> None:
        """Look after a home."""
        self._home = home
        self._seen: FileState = ()
        self._due: datetime | None = None

    def keep(self, *, at: datetime) -> None:
        """Sign what is due and tell what the log has not heard; what fails is tried again, and stops nobody."""
        state = file_state(self._home.path / "series")
        if state == self._seen and (self._due is None or at < self._due):
            return
        folder = Folder(self._home.path)
        dues: list[datetime] = []
        for signer in signers_of_lists(self._home.path):
            try:
                due = _keep(folder, self._home, signer, at=at)
            except (MaiaError, OSError) as error:
                _log.warning("lists of %s cannot be kept: %s", signer.hex()[:16], getattr(error, "code", error))
                due = at
            if due is not None:
                dues.append(due)
        self._due = min(dues, default=None)
        self._seen = file_state(self._home.path / "series")


def _keep(folder: Folder, home: Home, signer: KeyId, *, at: datetime) -> datetime | None:
    """Renew the lists of one key and tell the log of them; say when to look again."""
    file = SeriesFile(home.path, signer)
    accept_statements(home.statements, file.record(TestKind.CRL).lists, at)  # whatever became of the accepted ones
    key = next((known for known in folder.keys.values() if known.key_id == signer), None)
    opened = None if key is None else _open_unattended(folder, key)
    if key is None or opened is None:
        return None
    ends = file.record(TestKind.CRL).ends
    if ends is not None and (home.config.access_control is None or key != _domain_key(folder)):
        assure_list(folder, opened, at=at)
        ends = file.record(TestKind.CRL).ends or ends
        rhythm = list_rhythm(folder, key)
        ends -= timedelta(0) if rhythm is None else rhythm.lead
    return at if tell_lists(folder, opened, at=at) is False else ends


@contextmanager
def own_register(folder: Folder, signer: Signer) -> Iterator[AccessControl | None]:
    """Open the service that keeps the lists of a key: that of the home's domain, once it has a database."""
    if folder.config is None or _domain_key(folder) != signer.public_key or not has_register(folder):
        yield None
        return
    from maia.domain.access_control.service import open_register  # noqa: PLC0415 - most homes have no service

    with open_register(Home.of(folder), signer) as service:
        yield service


def _domain_key(folder: Folder) -> PublicKey | None:
    return None if folder.config is None else folder.keys.get(folder.config.domain)


def _open_unattended(folder: Folder, key: PublicKey) -> Signer | None:
    """Open a private key of the folder that has no passphrase."""
    for name, known in folder.keys.items():
        if known == key and folder.key_path(name).is_file():
            try:
                return read_key(folder.key_path(name))
            except (KeyFormatError, NotFoundError):
                return None
    return None


def _due(series: Series, rhythm: Rhythm | None, *, at: datetime) -> tuple[datetime, datetime] | None:
    """Give the interval of the next list when it is due: never longer than the last one, nor than the setting says."""
    if series.interval is None:
        return None if rhythm is None else rhythm.due(None, at=at)
    length = max(series.interval[1] - series.interval[0], timedelta(seconds=1))
    lead = timedelta(0)
    if rhythm is not None:
        length = min(length, rhythm.period)
        lead = min(rhythm.lead, timedelta(seconds=length.total_seconds() // 2))
    found = Rhythm(period=length, lead=lead).due(series.interval[1], at=at)
    # SECURITY: whoever was told a window by the lists so far is not given a longer one
    return None if found is None else (found[0], min(found[1], found[0] + length))


def _first(*known: Mapping[CertificateId, int]) -> dict[CertificateId, int]:
    """Take the earliest moment of each certificate."""
    return {
        identity: min(some[identity] for some in known if identity in some) for identity in frozenset().union(*known)
    }


def _number(statement: Statement) -> int:
    assert isinstance(statement.body, ListStatement)  # noqa: S101 - a series holds nothing else
    return statement.body.sequence
