"""The state of a gateway while it runs: its threads, its groups of publications, and who is connected."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from maia.domain import BrokerCredentials, broker_credentials
from maia.errors import UnavailableError
from maia.home import Home
from maia.principals import PublicKey
from maia.services.gateway.connection import Connection
from maia.services.gateway.groups import Groups
from maia.services.gateway.limits import GatewayLimits
from maia.services.gateway.pump import Pump
from maia.services.gateway.room import ConnectionRoom, Followers
from maia.services.gateway.workers import AnswerPlaces, Worker
from maia.services.http import UnprovenKeys
from maia.wire import GATEWAY_PATH, MAX_FRAME, Challenger

_SHOWN_FOR = timedelta(seconds=5)


class Gateway:
    """Serves the clients of a domain; made on the event loop that it runs on."""

    max_frame = MAX_FRAME

    def __init__(self, home: Home, *, channel: bytes, limits: GatewayLimits, clock: Callable[[], datetime]) -> None:
        """Prepare.

        Args:
            home: Whose clients.
            channel: What handshakes are bound to.
            limits: What clients may take.
            clock: Gives the time.
        """
        self.limits = limits
        self.clock = clock
        self.key = home.key(home.config.broker)
        self.challenger = Challenger(home.broker, channel=channel, secret=secrets.token_bytes(32))
        self.room, self.followers = ConnectionRoom(limits), Followers()
        self.places = AnswerPlaces(requests=limits.waiting, octets=limits.waiting_octets)
        self.sessions = Worker(home.path, "sessions", clock=clock)
        self.delivery = Worker(home.path, "delivery", clock=clock)
        self.pump = Pump(
            self.delivery, seconds=limits.poll_seconds, wake=self.followers.wake, judge=self.followers.judge
        )
        self.groups = Groups(self.sessions, limits, committed=self.pump.nudge)
        self._unproven = UnprovenKeys(home)
        self._shown: tuple[datetime, BrokerCredentials] | None = None

    async def credentials(self) -> BrokerCredentials:
        """Give what the broker shows of itself; looked up anew every few seconds, so that new ones are seen."""
        now = self.clock()
        if self._shown is None or not self._shown[0] <= now < self._shown[0] + _SHOWN_FOR:
            self._shown = now, await self.sessions.run(broker_credentials)
        return self._shown[1]

    async def tell_unproven(self, key: PublicKey, code: str) -> None:
        """Tell the audit of a key that was not proven, or is no client's."""
        await self.sessions.run(lambda _: self._unproven(key, GATEWAY_PATH, code, self.clock()))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver while the gateway runs."""
        task = asyncio.create_task(self.pump.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.delivery.close()
        self.sessions.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket connection."""
        socket = WebSocket(scope, receive, send)
        peer = scope.get("client")
        try:
            if scope["path"] != GATEWAY_PATH:
                await socket.close()
                return
            with self.room.connection(peer[0] if peer else ""):
                await Connection(self, socket).run()
        except UnavailableError:
            await socket.close()
