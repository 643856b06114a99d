"""The work beside the requests, done by whoever leads: one process of a service, while the others stand by.

Each round the process tries to lead. When it begins to, it first does what a start asks for; then, every round, what
time asks for. Whatever fails is logged with its code and tried again in the next round. A process that stops resigns,
so another leads at once; one that is killed loses its lock with its life.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from fastapi import FastAPI

from maia import database
from maia.errors import MaiaError, UnavailableError

ROUND_SECONDS = 1.0
_LOST = frozenset(("NOT_LEADER", "DATABASE_UNAVAILABLE", "FILE_UNAVAILABLE"))
_log = logging.getLogger(__name__)


class Standby:
    """Leads or stands by for one service. Its rounds come one after the other."""

    def __init__(
        self,
        leadership: database.Leadership,
        *,
        now: Callable[[], datetime],
        begin: Callable[[datetime], None],
        step: Callable[[datetime], None],
        seconds: float = ROUND_SECONDS,
    ) -> None:
        """Prepare.

        Args:
            leadership: Of the service.
            now: Gives the service's time.
            begin: What to do when this process begins to lead.
            step: What to do every round while it leads.
            seconds: How long to wait between rounds.
        """
        self._leadership = leadership
        self._now = now
        self._begin = begin
        self._step = step
        self._seconds = seconds
        self._begun: int | None = None
        self.leads = False

    def round(self) -> bool:
        """Do one round; say whether this process leads."""
        try:
            self.leads = self._round()
        except UnavailableError as error:
            self.leads = self.leads and error.code not in _LOST
            _log.warning("a round of the service failed: %s", error.code)
        except MaiaError as error:
            _log.error("a round of the service failed: %s", error.code)
        except Exception:  # noqa: BLE001 - the rounds must go on; a bug shows in the log and in readiness
            self.leads = False
            _log.exception("a round of the service failed")
        return self.leads

    def _round(self) -> bool:
        if not self._leadership.try_lead():
            return False
        if self._begun != self._leadership.term:
            _log.info("this process leads, term %s", self._leadership.term)
            self._begin(self._now())
            self._begun = self._leadership.term
        self._step(self._now())
        return True

    def stop(self) -> None:
        """Let another process lead."""
        self.leads = False
        self._leadership.resign()

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """Run rounds while the service runs; the first one before it accepts requests."""
        await asyncio.to_thread(self.round)
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self.stop)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            # Shielded: a round is never left half waited for, so that stopping comes after it.
            await asyncio.shield(asyncio.to_thread(self.round))
