"""For how long a key that was replaced may still be used: by publishers that did not hear of it, and by readers.

Rules kept here:

- a publisher trusts the last word of a key manager for as long as the manager promised, and its own ``silence`` more
  (`heard`). Whoever can write to the log can keep it from hearing more, and what it seals meanwhile is not lost:
  readers keep the old key for that time, and open with it what is stamped within it;
- a key is needed as long as the log holds what was sealed with it. That something is not there now says nothing:
  anybody may hide it for a moment. So a home remembers where the lanes that it saw begin (``log-begins``), until their
  owners' signed floors say otherwise;
- a reader cannot know a publisher's ``silence``: it takes its own for it, but not less than the usual one.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime

from maia.encryption import Tolerance
from maia.errors import MaiaError
from maia.home import DEFAULT_SILENCE, PRIVATE_FILE, Home, read_file, write_file
from maia.kernel import milliseconds
from maia.log import LogDirectory

_MAX_KNOWN = 16 << 20


def deafness(home: Home, promised: int) -> int:
    """Tell for how long a publisher may go on without a word of its manager, in milliseconds, as this home sees it."""
    return promised + max(home.config.silence, DEFAULT_SILENCE) * 1000


def retention(home: Home, *, at: datetime, log: LogDirectory | None = None, deaf: int = 0) -> Tolerance:
    """Tell how long a replaced key is kept.

    A home says so in its settings: ``history`` seconds, but at least ``grace`` after the last moment at which a
    publisher may seal with it. Without ``history`` it keeps what the log still needs: keys that were replaced before
    the oldest commit that has not expired go. What strangers put into the log needs no key, for whoever can judge who
    is one.

    Args:
        home: Whose settings and log.
        at: Now.
        log: Its log, with somebody who judges whose lanes count; without, all of them count.
        deaf: For how long a publisher may seal with a key that was replaced, see `deafness`.
    """
    grace = home.tolerance.grace
    if home.config.history is not None:
        return Tolerance(grace=max(grace, home.config.history * 1000 - deaf), skew=home.tolerance.skew, deaf=deaf)
    begins = _begins(home, LogDirectory(home.log_path) if log is None else log)
    oldest = 0 if begins is None else min((stamp for _, stamp in begins.values()), default=None)
    if oldest is not None:
        kept = milliseconds(at) - oldest
        grace += max(0, kept)
    return Tolerance(grace=grace, skew=home.tolerance.skew, deaf=deaf)


def _begins(home: Home, log: LogDirectory) -> dict[str, tuple[int, int]] | None:
    """Tell where the lanes begin that a home knows, and remember it where somebody judged whose lanes count."""
    path, place = home.path / "log-begins", str(home.log_path)
    known: dict[str, tuple[int, int]] = {}
    with suppress(MaiaError, OSError, ValueError, TypeError, KeyError, AttributeError):
        value = json.loads(read_file(path, limit=_MAX_KNOWN))
        if (value["v"], value["log"]) == (1, place):
            known = {str(name): (int(number), int(stamp)) for name, (number, stamp) in value["lanes"].items()}
    found = log.begins(known)
    if found is not None and found != known and log.judged:
        write_file(path, json.dumps({"v": 1, "log": place, "lanes": found}).encode(), mode=PRIVATE_FILE)
    return found
