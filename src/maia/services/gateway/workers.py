"""Threads that work for a gateway, each with the domain opened for itself: the event loop only waits for them.

What a thread does it does in the order in which it was asked. Rule: no more than a stated number of requests wait, with
no more than so many octets; one more is told to come back (``TOO_MANY_REQUESTS``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from maia.domain import Domain
from maia.errors import UnavailableError
from maia.home import Home
from maia.services.gateway.refusals import BUSY

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Worker:
    """One thread and its domain."""

    def __init__(self, home: Path, name: str, *, clock: Callable[[], datetime]) -> None:
        """Prepare; nothing is opened yet."""
        self._domain = Domain(Home.open(home), clock=clock)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"gateway-{name}")

    async def run(self, work: Callable[Concatenate[Domain, _P], _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Let the thread do something with its domain; even when nobody waits for it any more, it is done whole."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, lambda: work(self._domain, *args, **options)))

    def close(self) -> None:
        """Let it finish what it does, and close the domain; what still waits is left."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._domain.close()


class AnswerPlaces:
    """Counts the requests that are not answered yet, and their octets."""

    def __init__(self, *, requests: int, octets: int) -> None:
        """Allow so many."""
        self._requests, self._octets = requests, octets

    @contextmanager
    def take(self, octets: int) -> Iterator[None]:
        """Take a place while a request is being answered.

        Raises:
            UnavailableError: There is none: ``TOO_MANY_REQUESTS``.
        """
        if self._requests < 1 or self._octets < octets:
            raise UnavailableError("too many requests wait; come back", code=BUSY)
        self._requests -= 1
        self._octets -= octets
        try:
            yield
        finally:
            self._requests += 1
            self._octets += octets
