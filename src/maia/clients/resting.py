"""How often a peer that fails is asked again: at most once a second, and ever more seldom while it goes on failing.

A caller that asks in a loop is answered at once, without a connection, until the peer's rest is over. So a service
that comes back is not met by a storm, and a caller never waits for a peer that did not answer a moment ago.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from maia.errors import UnavailableError

FIRST_SECONDS = 1.0
LAST_SECONDS = 30.0


class Rest:
    """The rest of one peer; for any number of threads."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Have a peer that is awake."""
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._until: float | None = None
        self._next = FIRST_SECONDS

    def enter(self) -> None:
        """Let one exchange begin.

        After a failure one exchange a rest is let through; it is the one that finds out whether the peer is back.

        Raises:
            UnavailableError: The peer rests (`PEER_RESTS`).
        """
        with self._lock:
            if self._until is None:
                return
            now = self._monotonic()
            if now < self._until:
                raise UnavailableError("the service failed a moment ago and is left alone", code="PEER_RESTS")
            self._until = now + self._next

    def failed(self) -> None:
        """Let the peer rest, longer than last time."""
        with self._lock:
            self._until = self._monotonic() + self._next
            self._next = min(self._next * 2, LAST_SECONDS)

    def answered(self) -> None:
        """Forget earlier failures."""
        with self._lock:
            self._until = None
            self._next = FIRST_SECONDS
