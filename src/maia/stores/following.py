"""Following the log's notices: a home is brought up to date before each plan, on the driver.

Rules kept here:

- every plan is made after its home has read what the log says by then, so a right or a key that ended is not in it;
- notices are hints, not orders: each step verifies the objects that it takes up, and its place in the log is its own;
- a step may run in several processes at once and any number of times: it locks what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from maia.pipeline import NoticeLog
from maia.stores.home import Home

Step = Callable[[Home, NoticeLog, datetime], None]
"""Takes up one kind of notices; nothing to do when there is nothing new."""

_STEPS: tuple[Step, ...] = ()


def follow(home: Home, *, at: datetime) -> None:
    """Bring a home up to date with the notices of its log; called before each plan of a micro-batch.

    Args:
        home: The home, whose log is followed.
        at: Now.

    Raises:
        MaiaError: A notice is damaged, missing or not what it must be; no plan is made then.
    """
    notices = NoticeLog(home.log_path)
    for step in _STEPS:
        step(home, notices, at)
