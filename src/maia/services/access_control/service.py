"""A domain's access control service as a process: its routes, its rounds, and its place among several.

    app = make_access_control(home, listening)

Several processes over one database serve one domain: one leads, the others answer that they stand by (503) until it is
gone. The leader signs the lists that are due, asks the environment anew, lets ended facts end, and tells whoever has to
hear of what was withdrawn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI

from maia import database
from maia.domain import OwnNotices, domain_signer, open_access_control
from maia.home import Home
from maia.services.access_control.routes import access_control_routes
from maia.services.http import ROUND_SECONDS, Listening, Standby, UnprovenKeys, make_app

CONFLICTS = frozenset(("MEMBER_KEY", "MEMBER_NAME_TAKEN", "WITHDRAWN"))
"""What was right, and came too late."""


def make_access_control(
    home: Home,
    listening: Listening,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    seconds: float = ROUND_SECONDS,
) -> FastAPI:
    """Make the access control service of a home; nothing runs before it is served.

    Args:
        home: The domain's home; the key that speaks for the domain is the service's.
        listening: Where it will listen.
        clock: Gives the time.
        seconds: How long the leader waits between its rounds.

    Raises:
        NotFoundError: The home has no key for its domain.
        UnavailableError: The database does not answer.
    """
    signer = domain_signer(home)
    engine = database.open_database(home.database_url)
    database.migrate(engine)
    leadership = database.Leadership(engine, "access-control")
    service = open_access_control(home, signer=signer, transaction=leadership.transaction, engine=engine)
    memory = database.RequestMemory(engine, "access-control")

    def begin(at: datetime) -> None:
        service.tell(at=at)

    said = OwnNotices(home)

    def step(at: datetime) -> None:
        service.refresh(at=at)
        service.beat(at=at)
        said.keep(at=at)

    standby = Standby(leadership, now=lambda: memory.now(clock()), begin=begin, step=step, seconds=seconds)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with standby.lifespan(app):
                yield
        finally:
            engine.dispose()

    return make_app(
        access_control_routes(service),
        title="Maia access control",
        signer=signer,
        memory=memory,
        clock=clock,
        authorities=listening.authorities,
        channel=listening.channel(),
        ready=lambda: standby.leads,
        conflicts=CONFLICTS,
        lifespan=lifespan,
        unproven=UnprovenKeys(home),
    )
