"""What waits: lanes that a reader of this domain cannot read on, why, and since when.

    parked/<hash of the reader>.json      what one reader waits for: {"format": 1, "parked": […]}

Rules kept here: a reader writes its own file alone, whole, and only when something changed; what begins to wait is an
alarm in the audit, what goes on is told there as well. A file holds so many lanes, those that were there first, and
says with `LIMIT_EXCEEDED` that there are more: one that cannot be read back would be told anew each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from maia.domain.operations import audit_of
from maia.errors import MaiaError
from maia.home import PRIVATE_FILE, Home, list_files, make_folder, read_file, write_file
from maia.log import AuditRow

_FOLDER = "parked"
_FORMAT = 1
_MAX_FILE = 16 << 20
_MOST = 16_384
_WAITS = {
    "EVIDENCE_MISSING": "the certificates behind its origin's right",
    "LOG_FILE_MISSING": "a segment that is missing",
    "LOG_FILE_DAMAGED": "a segment that is damaged",
    "LANE_GAP": "a record that is missing",
    "LANE_MEMORY": "records that this home read before and that are not there now",
    "LANE_HIDDEN": "a record that was read before and is not there now",
    "LANE_FORKED": "its origin, which signed two records of one number",
    "LANE_ROLLED_BACK": "whoever serves the log, and took back what was served before",
    "LANE_STAMP": "its origin, which signed a stamp that does not grow",
    "LOG_EXPIRED": "somebody to start anew behind what has expired",
    "LANE_SILENT": "its origin to say where it ends; what is there was read",
    "STAMP_AHEAD": "the time that it is stamped with",
    "NO_KEYS": "a key of the type",
    "DIRECT_ONLY": "its origin to serve it itself: events of this type go through nobody in between",
    "LIMIT_EXCEEDED": "fewer lanes that wait: there are more than are listed",
    "CERTIFICATE_MISSING": "a certificate of this home that is missing",
    "CLIENT_KEY_CHANGED": "the client's key as it was, or its client to prove the new one by reading",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A lane that cannot be read on.

    Attributes:
        reader: Who reads: a client, the delivery job, or one of its subscriptions.
        lane: The type's id and the origin's, in hex; ``/`` for all that the reader wants.
        code: Why.
        since: Since when, in ISO form.
    """

    reader: str
    lane: str
    code: str
    since: str

    @property
    def waits(self) -> str:
        """What is waited for, for people."""
        return _WAITS.get(self.code, "a statement, or another doubt to be resolved")


def reader_of(client: str, type_: str, *, batch: bool) -> str:
    """Name a client that reads a type; one that reads what there is now is another reader than one that follows."""
    return f"{client}: {type_}{' (batch)' if batch else ''}"


def read_parked(path: Path) -> tuple[Parked, ...]:
    """List what the readers of a home wait for."""
    found: list[Parked] = []
    for file in list_files(path / _FOLDER, suffix=".json"):
        found += _read(file)
    return tuple(sorted(found, key=lambda item: (item.since, item.reader, item.lane)))


def keep_parked(
    home: Home,
    reader: str,
    waiting: Sequence[tuple[str, str]],
    *,
    at: datetime,
    looked: Collection[str] | None = None,
) -> tuple[Parked, ...]:
    """Remember for which lanes a reader waits, with the code of each, and say what changed in the audit.

    Args:
        home: Whose reader it is.
        reader: Who waits.
        waiting: The lanes, each with its code.
        at: When.
        looked: At which lanes the reader looked, when not at all: what is known of others stays.
    """
    path = home.path / _FOLDER / f"{hashlib.sha256(reader.encode()).hexdigest()[:24]}.json"
    known = {(item.lane, item.code): item for item in _read(path)}
    if looked is not None:
        waiting = [*waiting, *(pair for pair in known if pair[0] not in looked)]
    if len(waiting) > _MOST:
        waiting = [*sorted(waiting, key=lambda pair: pair not in known)[: _MOST - 1], ("/", "LIMIT_EXCEEDED")]
    new = {pair: Parked(reader=reader, lane=pair[0], code=pair[1], since=at.isoformat()) for pair in waiting}
    now = {pair: replace(item, since=known[pair].since) if pair in known else item for pair, item in new.items()}
    if now == known:
        return tuple(now.values())
    row = partial(AuditRow, at=at, principal=home.broker.public_key.fingerprint, subject=reader, events=0)
    rows = [
        row(kind="alarm", type_id=lane.partition("/")[0], source=lane, code=code)
        for lane, code in sorted(now.keys() - known.keys())
    ]
    rows += [
        row(kind="notice", type_id=lane.partition("/")[0], source=lane, code="LANE_RESUMED")
        for lane, _ in sorted(known.keys() - now.keys())
        if all(lane != other for other, _ in now)
    ]
    audit_of(home).note(rows)
    make_folder(path.parent, mode=0o700)
    value = {"format": _FORMAT, "parked": [asdict(item) for item in now.values()]}
    write_file(path, json.dumps(value).encode(), mode=PRIVATE_FILE)
    return tuple(now.values())


def _read(file: Path) -> list[Parked]:
    with suppress(MaiaError, ValueError, TypeError, KeyError):
        value = json.loads(read_file(file, limit=_MAX_FILE))
        if value["format"] == _FORMAT:
            return [Parked(**item) for item in value["parked"]]
    return []
