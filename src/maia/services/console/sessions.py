"""Sessions of browsers: a cookie that only its browser has, bound to a key that was proven.

Rules kept here:

- a session is known by the digest of its cookie; what is in memory logs nobody in;
- it ends when nobody used it for a quarter of an hour, and after eight hours whatever happens;
- each has a token of its own that every change must show, which no other site can read;
- a login always makes a new session and ends the one before: a cookie that somebody else planted is worth nothing;
- a key has a few sessions at once, and the oldest gives way.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from maia.principals import PublicKey
from maia.services.console.login import Login
from maia.wire import encode_octets

IDLE = timedelta(minutes=15)
LIFETIME = timedelta(hours=8)
MAX_OF_KEY = 8
MAX_SESSIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """One browser in which somebody is logged in.

    Attributes:
        key: The key that was proven.
        changes: Whether it asked to change things; whether it may is asked anew each time.
        csrf: What a form of this session has to send along.
        ends: When it is over, whatever happens.
        idle: When it is over unless it is used.
    """

    key: PublicKey
    changes: bool
    csrf: str
    ends: datetime
    idle: datetime

    def is_form(self, token: str) -> bool:
        """Tell whether a form is this session's own."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())


class ConsoleSessions:
    """The sessions of a console in this process; after a restart everybody logs in again."""

    def __init__(self) -> None:
        """Have none."""
        self._sessions: dict[bytes, ConsoleSession] = {}
        self._lock = threading.Lock()

    def open(self, login: Login, *, before: str, at: datetime) -> str:
        """Begin a session in place of the one that the browser had before; return its cookie."""
        cookie = encode_octets(secrets.token_bytes(32))
        session = ConsoleSession(
            key=login.proof.key, changes=login.changes, csrf=encode_octets(secrets.token_bytes(32)),
            ends=at + LIFETIME, idle=at + IDLE,
        )  # fmt: skip
        with self._lock:
            self._sessions.pop(_digest(before), None)
            self._sessions = {name: item for name, item in self._sessions.items() if min(item.ends, item.idle) > at}
            mine = [name for name, item in self._sessions.items() if item.key == session.key]
            for name in mine[: max(0, len(mine) - MAX_OF_KEY + 1)]:
                del self._sessions[name]
            while len(self._sessions) >= MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[_digest(cookie)] = session
        return cookie

    def find(self, cookie: str, *, at: datetime) -> ConsoleSession | None:
        """Give the session of a cookie, if it is not over, and let it go on."""
        name = _digest(cookie)
        with self._lock:
            found = self._sessions.get(name)
            if found is None:
                return None
            if min(found.ends, found.idle) <= at:
                del self._sessions[name]
                return None
            self._sessions[name] = found = replace(found, idle=at + IDLE)
        return found

    def close(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
