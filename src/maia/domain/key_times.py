"""For how long a key that was replaced may still be used: by publishers that did not hear of it, and by readers.

    oldest      the stamp of the oldest commit that the log held when somebody looked: {"format": 1, "looked": …,
                "oldest": …}

Rules kept here:

- a publisher trusts the last word of a key manager for as long as the manager promised, and its own ``silence`` more
  (`heard`). Whoever can write to the log can keep it from hearing more, and what it seals meanwhile is not lost:
  readers keep the old key for that time, and open with it what is stamped within it;
- a key is needed as long as the log holds what was sealed with it. That something is not there now says nothing:
  anybody may hide it for a moment. So a home remembers where the lanes that it saw begin (``log-begins``), until their
  owners' signed floors say otherwise;
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

_FILE = "log-begins"
_VERSION = 1
_EVERY = 600_000
_MAX_KNOWN = 16 << 20

_Begins = dict[str, tuple[int, int]]


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
    begins = _begins(home, log or LogDirectory(home.log_store), at=milliseconds(at), fresh=fresh)
    oldest = 0 if begins is None else min((stamp for _, stamp in begins.values()), default=None)
    if oldest is not None:
        kept = milliseconds(at) - oldest
        grace += max(0, kept)
    return Tolerance(grace=grace, skew=home.tolerance.skew, deaf=deaf)


def forget_look(home: Home) -> None:
    """Say that the log has changed at its beginning; whoever asks next looks."""
    looked, known = _read(home)
    if looked:
        _write(home, known, looked=0)


def _begins(home: Home, log: LogDirectory, *, at: int, fresh: bool) -> _Begins | None:
    """Tell where the lanes begin that a home knows, and remember it where somebody judged whose lanes count."""
    looked, known = _read(home)
    if not fresh and 0 <= at - looked < _EVERY:
        return known
    found = log.begins(known)
    if found is not None and log.judged:
        _write(home, found, looked=at)
    return found


def _read(home: Home) -> tuple[int, _Begins]:
    """Read when the log was last looked through, and what is remembered; nothing of another log."""
    with suppress(MaiaError, OSError, ValueError, TypeError, KeyError, AttributeError):
        value = json.loads(read_file(home.path / _FILE, limit=_MAX_KNOWN))
        if (value["v"], value["log"]) == (_VERSION, home.log_place):
            known = {str(name): (int(number), int(stamp)) for name, (number, stamp) in value["lanes"].items()}
            return int(value["looked"]), known
    return 0, {}


def _write(home: Home, begins: _Begins, *, looked: int) -> None:
    value = {"v": _VERSION, "log": home.log_place, "looked": looked, "lanes": begins}
    write_file(home.path / _FILE, json.dumps(value).encode(), mode=PRIVATE_FILE)
