"""What a home says itself, notices and events: its own record of it, and keeping the log to it.

Rules kept here:

- what a key of this home said is kept at the home, in ``lanes/``, before the log is told;
- whenever the home is opened for work, and in the rounds of its services, the log is compared with that record: what
  it lost comes back, and the newest heads are asserted again. Nothing that lies in the log stops that;
- a key that is not here, or is sealed, says nothing by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from maia.errors import MaiaError
from maia.home import Home, list_files
from maia.log import (
    MAX_NOTICE,
    OWN_RHYTHM,
    DirectoryStore,
    LaneId,
    LaneWriter,
    LogDirectory,
    NoticeKind,
    NoticeLog,
    OwnLanes,
    find_lanes,
)
from maia.principals import KeyId, KeySigner

_FOLDER = "lanes"
_MAX_TOPICS = 10_000
_BETWEEN = timedelta(seconds=30)
_KINDS = (NoticeKind.STATEMENT, NoticeKind.CERTIFICATE, NoticeKind.PEER)
_logger = logging.getLogger(__name__)


def home_notices(home: Home) -> NoticeLog:
    """Give the notices of a home's log, to be written by the keys of the home."""
    return NoticeLog(home.log_store, own=home.path / _FOLDER)


class OwnNotices:
    """Keeps the log to what the keys of a home said."""

    def __init__(self, home: Home) -> None:
        """Serve a home; nothing is read yet."""
        self._home = home
        self._own = DirectoryStore(home.path / _FOLDER, private=True)
        self._store = home.log_store
        self._kept: datetime | None = None

    def keep(self, *, at: datetime) -> int:
        """Put again what the log lost, and assert the heads; every half minute at most.

        Returns:
            How many notices had to be put again.
        """
        if not (self._home.path / _FOLDER).is_dir() or (
            self._kept is not None and timedelta(0) <= at - self._kept < _BETWEEN
        ):
            return 0
        self._kept = at
        put, signers = self._keep_events(at), dict[KeyId, KeySigner]()
        for lane in self._lanes():
            try:
                signers = signers or self._signers()
                if lane.owner in signers:
                    writer = LaneWriter(self._store, lane, signers[lane.owner], self._own, limit=MAX_NOTICE)
                    put += writer.reassert(at=at, rhythm=OWN_RHYTHM)
            except MaiaError as error:
                _logger.warning("the log cannot be told again what lane %s says: %s", lane, error.code)
        return put

    def _keep_events(self, at: datetime) -> int:
        """Put again what the log lost of the broker's own lanes of events, and assert their heads."""
        try:
            own = OwnLanes(LogDirectory(self._home.log_store), self._own.path, self._home.broker)
            return own.reassert(at=at, rhythm=OWN_RHYTHM) if own.types() else 0
        except MaiaError as error:
            _logger.warning("the log cannot be told again what was published: %s", error.code)
            return 0

    def _lanes(self) -> Iterator[LaneId]:
        for kind in _KINDS:
            for topic in self._own.list_folders(f"_lanes/{kind.value}", "", limit=_MAX_TOPICS):
                yield from find_lanes(self._own, kind.value, topic)

    def _signers(self) -> dict[KeyId, KeySigner]:
        """Open the private keys that work unattended."""
        found: dict[KeyId, KeySigner] = {}
        for path in list_files(self._home.path / "keys", suffix=".key"):
            try:
                signer = self._home.signer(path.stem)
            except MaiaError:
                continue
            found[signer.public_key.key_id] = signer
        return found
