"""Telling the audit who spoke for a key over HTTP and did not prove it, or proved one that may nothing.

Rules kept here:

- told are the key, its name in the home, the path of the request and the code; of a proof nothing;
- whoever floods a service fills no disk: a key of the home is told once a minute for each path and code, and all keys
  that the home does not know are told as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from maia.domain import note_unproven
from maia.home import Folder, Home
from maia.principals import KeyId, PublicKey

Unproven = Callable[[PublicKey | None, str, str, datetime], None]
"""Hears of a key that was not proven, if one was claimed, the path, the code and the time."""
_EVERY = timedelta(minutes=1)
_MAX_NAMES = 10_000


class UnprovenKeys:
    """Tells the audit of a home, from any number of threads."""

    def __init__(self, home: Home) -> None:
        """Tell the audit of this home."""
        self._home = home
        self._lock = threading.Lock()
        self._names: dict[KeyId, str] = {}
        self._looked: datetime | None = None
        self._told: dict[tuple[str, str, str], datetime] = {}

    def __call__(self, key: PublicKey | None, path: str, code: str, at: datetime) -> None:
        """Tell it, unless it was told just now."""
        with self._lock:
            name = self._name(key, at)
            told = self._told.get((name, path, code))
            if told is not None and told <= at < told + _EVERY:
                return
            self._told[name, path, code] = at  # bounded: by the names, the routes and the codes
        principal = "" if key is None or not name else key.fingerprint
        note_unproven(self._home, name, principal, source=path, code=code, at=at)

    def _name(self, key: PublicKey | None, at: datetime) -> str:
        if self._looked is None or not self._looked <= at < self._looked + _EVERY:
            self._names = dict(list(Folder(self._home.path).names.items())[:_MAX_NAMES])
            self._looked = at
        return "" if key is None else self._names.get(key.key_id, "")
