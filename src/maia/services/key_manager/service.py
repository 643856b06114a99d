"""A home's key manager as a process: its routes, its rounds, and its place among several.

    app = make_key_manager(home, listening)
    serve(app, listening)

Several processes over one database serve one manager: one leads, the others answer that they stand by (503) until it
is gone. The leader publishes rekey messages into the home's log, opens the groups of types that came to the home, and
does what time asks for.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fastapi import FastAPI

from maia import database
from maia.domain import key_settings, manager_signer, open_home_groups, open_key_manager
from maia.errors import NotFoundError, UnavailableError, UsageError, VerificationError
from maia.events import TypeName
from maia.home import Home
from maia.key_manager import SERVED_RHYTHM, KeyManager, KeySettings
from maia.principals import PublicKey
from maia.services.http import ROUND_SECONDS, Listening, Standby, UnprovenKeys, make_app
from maia.services.key_manager.routes import key_manager_routes

_LOOK_EVERY = timedelta(seconds=30)
_log = logging.getLogger(__name__)


def make_key_manager(
    home: Home,
    listening: Listening,
    *,
    settings: KeySettings | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    seconds: float = ROUND_SECONDS,
) -> FastAPI:
    """Make the service of a home's key manager; nothing runs before it is served.

    Args:
        home: The home; its key ``key-manager``, or the one that speaks for its domain, is the service's.
        listening: Where it will listen.
        settings: Periods and limits of the manager.
        clock: Gives the time.
        seconds: How long the leader waits between its rounds.

    Raises:
        NotFoundError: The home has no key to manage with.
        UnavailableError: The database does not answer.
    """
    signer = manager_signer(home)
    engine = database.open_database(home.database_url)
    database.migrate(engine)
    manager, leadership = open_key_manager(
        home, settings=settings or replace(key_settings(home), rhythm=SERVED_RHYTHM), standby=True, engine=engine
    )
    if leadership is None:  # `standby` gives one
        raise UsageError("a key manager that serves has a leadership", code="KEY_SETTINGS")
    memory = database.RequestMemory(engine, "key-manager")
    rounds = _Rounds(home, manager)
    standby = Standby(
        leadership, now=lambda: memory.now(clock()), begin=rounds.begin, step=rounds.step, seconds=seconds
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with standby.lifespan(app):
                yield
        finally:
            engine.dispose()

    return make_app(
        (key_manager_routes(manager, _operators(home, signer.public_key)),),
        title="Maia key manager",
        signer=signer,
        memory=memory,
        clock=clock,
        authorities=listening.authorities,
        channel=listening.channel(),
        ready=lambda: standby.leads,
        lifespan=lifespan,
        unproven=UnprovenKeys(home),
    )


class _Rounds:
    """What the leader does."""

    def __init__(self, home: Home, manager: KeyManager) -> None:
        self._home = home
        self._manager = manager
        self._looked: datetime | None = None

    def begin(self, at: datetime) -> None:
        """Publish what the last leader had no time to, and open the groups of the home's types."""
        try:
            self._manager.start(at=at)
        except UnavailableError as error:
            if error.code != "KEY_MANAGER_BEHIND":
                raise
            _log.error("some key groups wait for a repair: %s", error.code)
        self._open_groups(at)

    def step(self, at: datetime) -> None:
        """Do what time asks for, and look for new types now and then."""
        if self._looked is None or abs(at - self._looked) >= _LOOK_EVERY:
            self._open_groups(at)
        self._manager.tick(at=at)

    def _open_groups(self, at: datetime) -> None:
        names: dict[bytes, TypeName] = {name.type_id: name for name in self._home.types.names()}
        for name in names.values():
            try:
                open_home_groups(self._home, self._manager, name, at=at)
            except (NotFoundError, VerificationError, UsageError) as error:
                _log.info("the key groups of `%s` are not managed here: %s", name.name, error.code)
        self._looked = at


def _operators(home: Home, manager: PublicKey) -> frozenset[PublicKey]:
    """Name who may look at everything: the manager itself, and who speaks for its domain."""
    try:
        return frozenset((manager, home.key(home.config.domain)))
    except NotFoundError:
        return frozenset((manager,))
