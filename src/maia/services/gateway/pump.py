"""The delivery job beside a gateway: it fills the outbox, and wakes who has something in it.

Where another process of the home delivers, a streaming query of Spark or a second gateway, this one only looks at what
it put into the outbox. What fails is logged with its code and tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from maia.domain import DeliveryJob, Domain, delivery_job, outbox_of, read_subscriptions
from maia.errors import MaiaError
from maia.services.gateway.workers import Worker

_FOREIGN = frozenset(("CHECKPOINT_FOREIGN", "JOB_RUNNING"))
_log = logging.getLogger(__name__)


class Pump:
    """Delivers, round by round."""

    def __init__(
        self,
        worker: Worker,
        *,
        seconds: float,
        wake: Callable[[frozenset[str]], None],
        judge: Callable[[], None],
    ) -> None:
        """Deliver by a worker, at least every so many seconds.

        Args:
            worker: Whose thread works.
            seconds: How long to wait for a `nudge`.
            wake: Hears, on the event loop, the hashed names of subscriptions that got something.
            judge: Hears that certificates or statements changed, so that rights may have ended.
        """
        self._worker = worker
        self._seconds = seconds
        self._wake = wake
        self._judge = judge
        self._moment: tuple[object, ...] | None = None
        self._nudged = asyncio.Event()
        self._job: DeliveryJob | None = None
        self._seen: int | None = None
        self.works = False

    def nudge(self) -> None:
        """Say that there is something to deliver."""
        self._nudged.set()

    async def run(self) -> None:
        """Deliver until it is cancelled."""
        while True:
            self._nudged.clear()
            try:
                found, changed = await self._worker.run(self._round)
                self.works = True
                if found:
                    self._wake(found)
                if changed:
                    self._judge()
            except MaiaError as error:
                self.works = False
                _log.warning("a round of delivering failed: %s", error.code)
            except Exception:  # noqa: BLE001 - the rounds must go on; a bug shows in the log and in readiness
                self.works = False
                _log.exception("a round of delivering failed")
            try:
                async with asyncio.timeout(self._seconds):
                    await self._nudged.wait()
            except TimeoutError:
                continue

    def _round(self, domain: Domain) -> tuple[frozenset[str], bool]:
        """Deliver what the log holds, and tell who got something since the last look, and whether rights changed."""
        outbox = outbox_of(domain)
        if self._seen is None:
            self._seen = outbox.latest()
        if read_subscriptions(domain.path):
            if self._job is None:
                self._job = delivery_job(domain)
            try:
                self._job.run_here()
            except MaiaError as error:
                if error.code not in _FOREIGN:
                    raise
        found: set[str] = set()
        for commit in outbox.commits(after=self._seen):
            found.update(file.subscription for file in commit.files)
            self._seen = commit.batch
        at = domain.follow()
        known = domain.known(at=at)
        before, self._moment = self._moment, known.sessions.moment(known.pool, at=at)
        return frozenset(found), before not in (None, self._moment)
