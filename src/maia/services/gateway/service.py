"""The gateway of a home as a process: WebSocket for the five operations, HTTP to publish.

app = make_gateway(home, listening)
serve(app, listening, websocket=MAX_FRAME)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from maia import database
from maia.errors import UnavailableError
from maia.home import Home
from maia.services.gateway.gateway import Gateway
from maia.services.gateway.limits import GatewayLimits
from maia.services.gateway.routes import gateway_routes
from maia.services.http import HttpLimits, Listening, UnprovenKeys, make_app
from maia.wire import MAX_FRAME


def make_gateway(
    home: Home,
    listening: Listening,
    *,
    limits: GatewayLimits | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """Make the gateway of a home; nothing runs before it is served.

    Args:
        home: The home; its broker's key is the gateway's.
        listening: Where it will listen.
        limits: What clients may take.
        clock: Gives the time.

    Raises:
        NotFoundError: The home has no broker's key.
        UnavailableError: The database does not answer.
    """
    engine = database.open_database(home.database_url)
    database.migrate(engine)
    memory = database.RequestMemory(engine, "gateway")
    channel, running = listening.channel(), list[Gateway]()

    def gateway() -> Gateway:
        if not running:
            raise UnavailableError("the gateway does not run", code="NOT_READY")
        return running[0]

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        made = Gateway(home, channel=channel, limits=limits or GatewayLimits(), clock=clock)
        running.append(made)
        try:
            async with made.running():
                yield
        finally:
            running.clear()
            engine.dispose()

    async def connect(scope: Scope, receive: Receive, send: Send) -> None:
        await gateway()(scope, receive, send)

    return make_app(
        (gateway_routes(gateway),),
        title="Maia gateway",
        signer=home.broker,
        memory=memory,
        clock=clock,
        authorities=listening.authorities,
        channel=channel,
        ready=lambda: bool(running) and running[0].pump.works,
        limits=HttpLimits(body=MAX_FRAME),
        lifespan=lifespan,
        unproven=UnprovenKeys(home),
        websocket=connect,
    )
