"""Following the log's notices: a home is brought up to date before each plan, on the driver.

Rules kept here:

- every plan is made after its home has read what the log says by then, so a right or a key that ended is not in it;
- notices are hints, not orders: each step verifies the objects that it takes up, and its place in the log is its own;
- time never runs back: the instant to plan with is the one that `follow` returns;
- a step may run in several processes at once and any number of times: it locks what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib import import_module

from maia.pipeline import NoticeLog
from maia.stores.certificate_stream import follow_certificates
from maia.stores.clock import ClockFile
from maia.stores.group_keys import GroupKeys
from maia.stores.home import Home
from maia.stores.statement_stream import follow_statements

Step = Callable[[Home, NoticeLog, datetime], None]
"""Takes up one kind of notices; nothing to do when there is nothing new."""


def _follow_keys(home: Home, notices: NoticeLog, at: datetime) -> None:
    if (home.path / "groups").exists():
        if home.may_manage_keys():
            import_module("maia.stores.group_keys_home").tick_own_groups(home, at)
        GroupKeys(home).follow(notices, at=at)


_STEPS: tuple[Step, ...] = (follow_certificates, follow_statements, _follow_keys)


def follow(home: Home, *, at: datetime) -> datetime:
    """Bring a home up to date with the notices of its log; called before each plan of a micro-batch.

    Args:
        home: The home, whose log is followed.
        at: Now, as the clock says.

    Returns:
        The instant to plan with: now, or the highest so far after the clock was set back a little.

    Raises:
        UnavailableError: The clock was set back by more than a little: ``CLOCK_BACK``.
        MaiaError: A notice is damaged, missing or not what it must be; no plan is made then.
    """
    moment = ClockFile(home.path / "clock").steady(at)
    notices = NoticeLog(home.log_path)
    for step in _STEPS:
        step(home, notices, moment)
    return moment
