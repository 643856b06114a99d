"""A home's log as a process: read-only, for the brokers of its network.

app = make_log(home, listening)
serve(app, listening)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI

from maia import database
from maia.domain import Domain
from maia.errors import NotFoundError
from maia.home import Home
from maia.services.http import Listening, UnprovenKeys, make_app
from maia.services.log.neighbours import Neighbours
from maia.services.log.routes import log_routes


def make_log(home: Home, listening: Listening, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> FastAPI:
    """Make the service of a home's log; nothing runs before it is served.

    Args:
        home: The home; its broker's key is the service's.
        listening: Where it will listen.
        clock: Gives the time.

    Raises:
        NotFoundError: The home names no network, so nobody has a right to connect: ``NO_NETWORK``. Or it has no
            broker's key.
        UnavailableError: The database does not answer.
    """
    # SECURITY: without a network there is no right to ask for, and a log is not for everybody.
    if home.network is None:
        raise NotFoundError(
            "a log is served to those who may connect to a network, and `maia.toml` names none", code="NO_NETWORK"
        )
    engine = database.open_database(home.database_url)
    database.migrate(engine)
    domain = Domain(home, clock=clock)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            domain.close()
            engine.dispose()

    return make_app(
        (log_routes(lambda: home.log_store, Neighbours(domain)),),
        title="Maia log",
        signer=home.broker,
        memory=database.RequestMemory(engine, "log"),
        clock=clock,
        authorities=listening.authorities,
        channel=listening.channel(),
        lifespan=lifespan,
        unproven=UnprovenKeys(home),
    )
