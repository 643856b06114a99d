"""A subscription as a client follows it: its events in order, and the place from which to go on another time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maia.errors import MaiaError

if TYPE_CHECKING:
    from maia.clients.frames import Conversation


class GatewaySubscription:
    """The events of one subscription. Iterate over it, or let it call back; it ends with an error that says why.

    Attributes:
        name: What the broker calls it.
    """

    def __init__(
        self,
        talk: Conversation,
        name: str,
        *,
        after: str,
        window: int,
        callback: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        """Follow it over a connection.

        Args:
            talk: The connection.
            name: Its name.
            after: Where it goes on.
            window: How many events may be under way.
            callback: Called with each event.
        """
        self.name = name
        self._talk = talk
        self._window = window
        self._callback = callback
        self._frames: queue.SimpleQueue[tuple[list[dict[str, Any]], str] | MaiaError] = queue.SimpleQueue()
        self._after, self._taken = _split(after)
        self._rows: list[dict[str, Any]] = []
        self._behind = after
        self._owed = 0
        self._error: MaiaError | None = None

    @property
    def after(self) -> str:
        """The place behind the last event that was taken: what to go on from, on this connection or another."""
        return f"{self._after}+{self._taken}" if self._taken else self._after

    def begin(self, after: str) -> None:
        """Go on from where the broker says; with a callback, call it from now on."""
        self._after, self._taken = _split(after)
        if self._callback is not None:
            threading.Thread(target=self._call, name=f"maia-{self.name}", daemon=True).start()

    def take(self, rows: list[dict[str, Any]], after: str) -> None:
        """Take events from the connection; they are at most a window."""
        self._frames.put((rows, after))

    def end(self, error: MaiaError) -> None:
        """Hear from the connection that no more come."""
        self._frames.put(error)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give events as they come.

        Raises:
            MaiaError: The subscription has ended: the right was revoked, or the connection is gone.
        """
        while True:
            event = self.next()
            if event is not None:
                yield event

    def next(self, *, seconds: float | None = None) -> dict[str, Any] | None:
        """Wait for the next event; without one within so many seconds, give none.

        Raises:
            MaiaError: As for iterating.
        """
        if self._error is not None:
            raise self._error
        while not self._rows:
            try:
                found = self._frames.get(timeout=seconds)
            except queue.Empty:
                return None
            if isinstance(found, MaiaError):
                self._error = found
                raise found
            rows, self._behind = found
            self._rows = rows[::-1]
            if not rows:  # the broker passes over what is closed by now
                self._after, self._taken = self._behind, 0
        event = self._rows.pop()
        self._taken += 1
        if not self._rows:
            self._after, self._taken = self._behind, 0
        self._owed += 1
        if self._owed * 2 >= self._window:
            owed, self._owed = self._owed, 0
            self._talk.say("credit", name=self.name, events=owed)
        return event

    def _call(self) -> None:
        if self._callback is None:
            return
        with suppress(MaiaError):  # it has ended, and `next` says why
            for event in self:
                self._callback(event)


def _split(place: str) -> tuple[str, int]:
    """Take a place apart: one that the broker gave, and how many events were taken behind it."""
    base, plus, more = place.partition("+")
    return base, int(more) if plus and more.isdecimal() else 0
