"""The highest instant a home ever planned with, so that a clock that was set back revives nothing.

    clock        milliseconds since 1970 UTC
    pace         which start of the machine, and by how much the clock was ahead of its running time then

Rules kept here (threat T61):

- within the window, a clock that went back stands still until it has caught up: no list, certificate or answer that was
  over counts again;
- beyond the window nothing is planned until the clock is right: nobody can tell how long lists should still serve;
- the file is written before an instant is used, at most once a second, and survives a restart. Where it cannot be
  written, since the disk is full or read-only, the floor that it holds counts all the same: nothing but reading works
  there, and that has to be audited first, see `maia.log.Audit`.

A clock that ran ahead by mistake and was set right looks the same. Whoever set it right removes the file.

- a clock that jumps ahead of the machine's running time is noticed before it stamps anything (finding B16): while the
  machine runs, the clock may gain no more than the window from one stamp to the next. Whoever set it right, so that
  what it showed before was wrong, removes the file ``pace``.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.errors import MalformedError, UnavailableError
from maia.home.files import PUBLIC_FILE, locked, read_file, write_file
from maia.kernel import milliseconds

CLOCK_WINDOW = timedelta(seconds=30)
_log = logging.getLogger(__name__)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = 1000
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MAX_FILE = 32


def check_pace(path: Path, at: datetime, *, window: timedelta = CLOCK_WINDOW) -> None:
    """Refuse a clock that gained on the machine's running time since the last look; remember where it stands.

    Args:
        path: The file, which need not exist.
        at: What the clock says.
        window: What it may gain from one look to the next.

    Raises:
        UnavailableError: It jumped ahead: ``CLOCK_AHEAD``.
    """
    try:
        start = _BOOT.read_bytes().strip()[:64]
        running = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
    except (OSError, AttributeError):  # no such clock on this system
        return
    ahead = milliseconds(at) - running
    known = read_file(path, limit=128).split() if path.exists() else []
    if len(known) == 2 and known[0] == start and known[1].lstrip(b"-").isdigit():
        gained = ahead - int(known[1])
        if gained > window // timedelta(milliseconds=1):
            raise UnavailableError(
                f"the clock jumped ahead by {gained // 1000} s while the machine ran; set it right, or remove `{path}` "
                "if it is right now",
                code="CLOCK_AHEAD",
            )
        if abs(gained) < _STEP:
            return
    write_file(path, b"%s %d" % (start, ahead), mode=PUBLIC_FILE)


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
        return self._held(at, floor, window)

    def check(self, at: datetime, *, window: timedelta = CLOCK_WINDOW) -> None:
        """Look whether `steady` would refuse an instant; nothing is written.

        Raises:
            UnavailableError: The clock went back by more than the window: ``CLOCK_BACK``.
            MalformedError: The file holds no instant: ``CLOCK_FILE``.
        """
        floor = self._floor()
        if floor is not None:
            self._held(at, floor, window)

    def _held(self, at: datetime, floor: int, window: timedelta) -> datetime:
        moment = milliseconds(at)
        if moment >= floor:
            return at
        behind = timedelta(milliseconds=floor - moment)
        if behind > window:
            seconds = int(behind.total_seconds())
            raise UnavailableError(
                f"the clock is {seconds} s behind where it was; set it right, or remove `{self.path}` if it is right "
                "now and was wrong before",
                code="CLOCK_BACK",
            )
        return _EPOCH + timedelta(milliseconds=floor)

    def _floor(self) -> int | None:
        if not self.path.exists():
            return None
        data = read_file(self.path, limit=_MAX_FILE)
        if not data.isdigit():
            raise MalformedError(
                f"`{self.path}` holds no instant; see that the clock is right, then remove the file", code="CLOCK_FILE"
            )
        return int(data)
