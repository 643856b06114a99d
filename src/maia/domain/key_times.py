"""For how long a key that was replaced may still be used: by publishers that did not hear of it, and by readers.

    oldest      the stamp of the oldest commit that the log held when somebody looked: {"format": 1, "looked": …,
                "oldest": …}

Rules kept here:

- a publisher trusts the last word of a key manager for as long as the manager promised, and its own ``silence`` more
  (`heard`). Whoever can write to the log can keep it from hearing more, and what it seals meanwhile is not lost:
  readers keep the old key for that time, and open with it what is stamped within it;
- a reader cannot know a publisher's ``silence``: it takes its own for it, but not less than the usual one;
- what the log held when somebody looked says whether it is worth looking again: every ten minutes, or when a key could
  go by it. No key goes before the log was looked through just then.
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

_FILE = "oldest"
_FORMAT = 1
_EVERY = 600_000
_MAX_FILE = 1024


def deafness(home: Home, promised: int) -> int:
    """Tell for how long a publisher may go on without a word of its manager, in milliseconds, as this home sees it."""
    return promised + max(home.config.silence, DEFAULT_SILENCE) * 1000


def retention(
    home: Home, *, at: datetime, log: LogDirectory | None = None, deaf: int = 0, fresh: bool = True
) -> Tolerance:
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
        fresh: Look through the log now; otherwise what was seen some minutes ago is enough.
    """
    grace = home.tolerance.grace
    if home.config.history is not None:
        return Tolerance(grace=max(grace, home.config.history * 1000 - deaf), skew=home.tolerance.skew, deaf=deaf)
    oldest = _oldest(home, log, at=milliseconds(at), fresh=fresh)
    if oldest is not None:
        kept = milliseconds(at) - oldest
        grace += max(0, kept)
    return Tolerance(grace=grace, skew=home.tolerance.skew, deaf=deaf)


def forget_oldest(home: Home) -> None:
    """Say that the log has changed at its beginning; whoever asks next looks."""
    (home.path / _FILE).unlink(missing_ok=True)


def _oldest(home: Home, log: LogDirectory | None, *, at: int, fresh: bool) -> int | None:
    path = home.path / _FILE
    if not fresh:
        with suppress(MaiaError, ValueError, TypeError, KeyError):
            kept = json.loads(read_file(path, limit=_MAX_FILE))
            if kept["format"] == _FORMAT and 0 <= at - kept["looked"] < _EVERY:
                return None if kept["oldest"] is None else int(kept["oldest"])
    found = (LogDirectory(home.log_path) if log is None else log).oldest()
    if log is not None:  # strangers' lanes keep no key here for longer than those who cannot judge them look
        kept = {"format": _FORMAT, "looked": at, "oldest": found}
        write_file(path, json.dumps(kept).encode(), mode=PRIVATE_FILE)
    return found
