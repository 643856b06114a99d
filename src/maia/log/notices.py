"""Notices: signed objects beside the events, which members of a network follow by reading the log.

    _lanes/<kind>/<hash of the topic>/origin=<owner>/<number>.record, head

Every kind is a lane of its owner (`maia.log.lane`): rekey messages of the key manager, by key group; validity
statements of their signer; certificates of the key that sends them, and what it says to another domain whose
broker wants keys, by the domain that they are for.

Rules kept here:

- whose notices are read is said by the reader, never found in the log: what others put there is as if it were not;
- a place is a number and a digest. A reader that finds another record under a number it has read is told so;
- saying the newest thing again changes nothing, so a writer that was killed says it again without harm;
- a topic never becomes a path, and bodies are bounded.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from maia.errors import UsageError
from maia.log.directory_store import DirectoryStore
from maia.log.lane import LaneReader
from maia.log.lane_objects import LaneId, LaneRecord
from maia.log.lane_writer import LaneWriter
from maia.log.store import Store
from maia.log.store_address import open_store
from maia.principals import KeyId, Signer

MAX_NOTICE = 16 << 20
"""The octets of a notice, with its signature."""
OWN_RHYTHM = timedelta(days=1)
"""Within which time an owner without a running service promises to be heard again."""


class NoticeKind(StrEnum):
    """What a notice carries."""

    REKEY = "rekey"
    STATEMENT = "statement"
    CERTIFICATE = "certificate"
    PEER = "peer"


class NoticeLog:
    """The notices of a log."""

    def __init__(self, path: Path | str | Store, *, own: Path | str | Store | None = None) -> None:
        """Use a log; its directory is made when something is written.

        Args:
            path: Where the log is, or the store that it is.
            own: The writer's own record of its lanes, which nobody else can write to; who only reads has none.
        """
        self.store: Store = open_store(path) if isinstance(path, str | Path) else path
        self._own = DirectoryStore(own, private=True) if isinstance(own, str | Path) else own

    def reader(self, kind: NoticeKind, owner: KeyId, topic: bytes) -> LaneReader:
        """Read what an owner said about a topic."""
        return LaneReader(self.store, notice_lane(kind, owner, topic), limit=MAX_NOTICE)

    def writer(self, kind: NoticeKind, signer: Signer, topic: bytes) -> LaneWriter:
        """Write as an owner.

        Raises:
            UsageError: There is no own record to write by: ``NOTICES_READ_ONLY``.
        """
        if self._own is None:
            raise UsageError("notices are written by whoever keeps an own record of them", code="NOTICES_READ_ONLY")
        lane = notice_lane(kind, signer.public_key.key_id, topic)
        return LaneWriter(self.store, lane, signer, self._own, limit=MAX_NOTICE)

    def say(
        self,
        kind: NoticeKind,
        signer: Signer,
        topic: bytes,
        body: bytes,
        *,
        at: datetime,
        rhythm: timedelta = OWN_RHYTHM,
    ) -> LaneRecord:
        """Say something about a topic, after all that was said; it is in the log when this returns.

        What the log lost of what was said before comes back first.

        Raises:
            UsageError: The body is too large: ``LANE_SIZE``.
            UnavailableError: ``LANE_PENDING``: it counts, and the log does not have it yet; say it again.
                ``LANE_AHEAD``: the log has more than the own record. Otherwise nothing counts that did not before.
        """
        writer = self.writer(kind, signer, topic)
        newest = writer.newest()
        if newest is None or newest.body != body:
            newest = writer.append(body, at=at)
        writer.reassert(at=at, rhythm=rhythm)
        return newest


def notice_lane(kind: NoticeKind, owner: KeyId, topic: bytes) -> LaneId:
    """Name the lane of an owner's notices about a topic."""
    return LaneId(kind=kind.value, owner=owner, topic=hashlib.sha256(topic).hexdigest())
