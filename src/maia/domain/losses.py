"""Whether a home's services lost what they had acknowledged: their databases against what the log and the system show.

Before databases were opened by one discipline, a command that looked at a home could take the journal of a running
service away; what was acknowledged afterwards was gone with the process. What is left of it outside the database tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from maia.authority import ListStatement
from maia.errors import KeyFormatError, MaiaError, NotFoundError
from maia.home import HealthFinding, Home
from maia.log import NoticeLog, StatementSubscription
from maia.principals import PublicKey, TestKind

_PROCESSES = Path("/proc")


def find_losses(home: Home) -> Iterator[HealthFinding]:
    """Look for signs that a database of this home is older than what it was seen to hold, each with what to do."""
    url = home.database_url
    if "://" not in url:
        if not Path(url).exists():
            return
        yield from _taken_away(Path(url).resolve())
    yield from _lists(home)
    yield from _groups(home)


def _taken_away(database: Path) -> Iterator[HealthFinding]:
    """Find processes of this user that write to a journal which is no more, where the system tells."""
    gone = f"{database}-wal (deleted)"
    for folder in _PROCESSES.glob("[0-9]*/fd"):
        try:
            held = [item for item in folder.iterdir() if str(item.readlink()) == gone]
        except OSError:
            continue  # another user's, or ended meanwhile
        if held:
            process = folder.parent.name
            yield HealthFinding(
                name="database", status="problem",
                detail=f"process {process} writes to a journal of `{database.name}` that was taken away: what it "
                "acknowledges is gone when it ends",
                hint=f"let it write no more, compare what it shows with what the database holds, keep {held[0]}, and "
                "start it anew",
            )  # fmt: skip


def _lists(home: Home) -> Iterator[HealthFinding]:
    """Compare the lists that the domain signed and published with those that its register knows."""
    from maia import database  # noqa: PLC0415 - most homes have no service

    try:
        key = home.key(home.config.domain)
        told = _told(home, key)
    except MaiaError:
        return  # it has no service, or its log says so itself
    if not told:
        return
    engine = database.open_database(home.database_url)
    try:
        database.migrate(engine)
        with database.reading(engine) as connection:
            records = database.AccessControlRecords(connection, key.key_id)
            behind = {kind: number for kind, number in told.items() if records.lists.last_sequence(kind) < number}
    finally:
        engine.dispose()
    for kind, number in behind.items():
        yield HealthFinding(
            name="access control", status="problem",
            detail=f"the log holds list {number} ({kind.value}) of this domain, and its register ends earlier: the "
            "database lost changes, or was restored from an old copy (`REGISTER_BEHIND`)",
            hint="appointments, members and revocations of that time are not in the register: look at `maia audit` and "
            "the lists in the log, and record them again; what the lists name stays revoked",
        )  # fmt: skip


def _told(home: Home, key: PublicKey) -> dict[TestKind, int]:
    """Give the highest number of the lists that the log holds of a domain, by kind; what others wrote is nothing."""
    found = dict[TestKind, int]()
    for statement in StatementSubscription(NoticeLog(home.log_store), key.key_id).updates():
        if isinstance(statement.body, ListStatement):
            found[statement.body.kind] = max(found.get(statement.body.kind, 0), statement.body.sequence)
    return found


def _groups(home: Home) -> Iterator[HealthFinding]:
    """Compare the epochs that the key manager knows with those that it announced."""
    from maia.domain.key_groups import open_key_manager  # noqa: PLC0415 - needs a database

    if home.config.key_manager is not None:
        return
    try:
        manager, _ = open_key_manager(home)
    except (NotFoundError, KeyFormatError):
        return  # no key to manage with, or one that is sealed
    try:
        behind = [status for status in manager.status() if status.behind]
    finally:
        manager.close()
    if behind:
        yield HealthFinding(
            name="key manager", status="problem",
            detail=f"{len(behind)} of its key groups are older than the rekey messages in the log: the database lost "
            "changes, or was restored from an old copy (`KEY_MANAGER_BEHIND`)",
            hint="`maia keys repair GROUP` lets each go on behind the log; brokers that joined meanwhile join again, "
            "and what was revoked meanwhile is revoked again",
        )  # fmt: skip
