"""The connections of a service: how long each may take for what, and who makes room when there are too many.

Rules kept here:

- the head of a request arrives within a limit of time, from the first moment of a connection and again after each
  answer; what takes longer is cut off;
- whoever does not read its answer is cut off after the same time;
- there is always room for one more connection: when all places are taken, one goes of the peer that is furthest above
  its share of them; where none is, one that never sent a whole request, the oldest first, then one that rests between
  two requests; never one whose request is being answered;
- one request follows the answer to the one before: a client that sends several at once gets its first answer;
- hence slow, silent, idle and half-closed clients cost themselves, and a client that speaks is heard.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 5.0
MAX_CONNECTIONS = 512
SPARE_CONNECTIONS = 64
_LEAST_SHARES = 8  # a peer below an eighth of the connections has no more than its share, however many peers there are


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn with deadlines, and a place that others may need more."""

    head_seconds = HEAD_SECONDS
    max_connections = MAX_CONNECTIONS

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the class above is made
        """Begin as uvicorn's protocol does, without a deadline."""
        super().__init__(*args, **options)
        self.since = time.monotonic()
        self.served = False
        self._handed_on = False
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._under_way() and not self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Take a place, another's if there is none, and wait for a head."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._unset()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take octets in; a deadline that runs goes on until the head is whole."""
        answered = self.cycle
        super().data_received(data)
        if self.cycle is not answered:
            self._unset()  # the head is here; the body has a limit of its own
        elif self._deadline is None and not self._under_way() and not self._handed_on:
            self._expect()

    def on_response_complete(self) -> None:
        """Rest until the next head, which gets its own time from its first octet on."""
        self.served = True
        self.since = time.monotonic()
        if self.conn.trailing_data[0]:
            self.transport.close()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Give a client that does not read some time."""
        super().pause_writing()
        self._expect()

    def resume_writing(self) -> None:
        """Go on: it reads."""
        self._unset()
        super().resume_writing()

    def handle_websocket_upgrade(self, event: Any) -> None:  # noqa: ANN401 - a request of a library below
        """Hand the connection on; whoever takes it has deadlines of its own."""
        self._handed_on = True
        self._unset()
        super().handle_websocket_upgrade(event)

    def drop(self) -> None:
        """Cut the connection off, whatever is still to be written."""
        self._unset()
        self.connections.discard(self)
        self.transport.abort()

    @property
    def peer(self) -> str:
        """Where the connection comes from."""
        return self.client[0] if self.client else ""

    def _under_way(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # which uvicorn leaves empty until a head has come
        return cycle is not None and not cycle.response_complete

    def _expect(self) -> None:
        self._unset()
        self._deadline = self.loop.call_later(self.head_seconds, self.drop)

    def _unset(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        """Cut off one who waits: of the peer furthest above its share, else one never answered, else the oldest.

        The newcomer itself is cut off when everybody else is being answered.
        """
        others = [item for item in self.connections if isinstance(item, GuardedProtocol) and item is not self]
        waiting = [item for item in others if not item.busy]
        if not waiting:
            if len(others) >= self.max_connections + SPARE_CONNECTIONS:
                self.drop()
            return
        of_peer = Counter(item.peer for item in others)
        share = max(self.max_connections // _LEAST_SHARES, self.max_connections // len(of_peer))
        victim = min(waiting, key=lambda item: (-max(0, of_peer[item.peer] - share), item.served, item.since))
        victim.drop()
