"""The highest instant a home ever planned with, so that a clock that was set back revives nothing.

    clock        milliseconds since 1970 UTC

Rules kept here (threat T61):

- within the window, a clock that went back stands still until it has caught up: no list, certificate or answer that was
  over counts again;
- beyond the window nothing is planned until the clock is right: nobody can tell how long lists should still serve;
- the file is written before an instant is used, at most once a second, and survives a restart. Where it cannot be
  written, since the disk is full or read-only, the floor that it holds counts all the same: nothing but reading works
  there, and that has to be audited first, see `maia.log.write_audit`.

A clock that ran ahead by mistake and was set right looks the same. Whoever set it right removes the file.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.errors import MalformedError, UnavailableError
from maia.home.files import PUBLIC_FILE, locked, read_file, write_file
from maia.kernel import milliseconds

CLOCK_WINDOW = timedelta(seconds=30)
_log = logging.getLogger(__name__)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = 1000
_MAX_FILE = 32


class ClockFile:
    """The floor under a home's clock."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        self.path = path

    def steady(self, at: datetime, *, window: timedelta = CLOCK_WINDOW) -> datetime:
        """Return the instant to plan with: now, or the highest instant so far when that is a little later.

        Raises:
            UnavailableError: The clock went back by more than the window: ``CLOCK_BACK``.
            MalformedError: The file holds no instant.
        """
        moment = milliseconds(at)
        floor = self._floor()
        if floor is None or moment >= floor + _STEP:
            try:
                with locked(self.path):
                    floor = self._floor()
                    if floor is None or moment >= floor + _STEP:
                        write_file(self.path, b"%d" % moment, mode=PUBLIC_FILE)
                        return at
            except UnavailableError as error:
                _log.warning("the floor under the clock cannot be written: %s", error.code)
                return at
        if moment >= floor:
            return at
        behind = timedelta(milliseconds=floor - moment)
        if behind > window:
            seconds = int(behind.total_seconds())
            raise UnavailableError(
                f"the clock is {seconds} s behind where it was; set it right, or remove `{self.path}`",
                code="CLOCK_BACK",
            )
        return _EPOCH + timedelta(milliseconds=floor)

    def _floor(self) -> int | None:
        if not self.path.exists():
            return None
        data = read_file(self.path, limit=_MAX_FILE)
        if not data.isdigit():
            raise MalformedError(f"`{self.path}` holds no instant", code="CLOCK_FILE")
        return int(data)
