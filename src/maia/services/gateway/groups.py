"""Publications in groups: what one client publishes of one type within a short while is one commit.

A group is committed when it has waited long enough or has enough rows. Rule: a request is answered when the commit is
in the log, and not before; one that names its publication is a commit of its own, so that sending it again counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from maia.domain import ProvenClient, PublishedPart, publish_parts
from maia.services.gateway.limits import GatewayLimits
from maia.services.gateway.workers import Worker

_Key = tuple[bytes, str, str | None]
_Answer = asyncio.Future[PublishedPart]


@dataclass(slots=True)
class _Group:
    client: ProvenClient
    parts: list[list[object]] = field(default_factory=list)
    answers: list[_Answer] = field(default_factory=list)
    rows: int = 0


class Groups:
    """Collects the publications of a gateway's clients."""

    def __init__(self, worker: Worker, limits: GatewayLimits, *, committed: Callable[[], None]) -> None:
        """Publish by a worker; ``committed`` hears that there is something to deliver."""
        self._worker = worker
        self._limits = limits
        self._committed = committed
        self._open: dict[_Key, _Group] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def publish(
        self,
        client: ProvenClient,
        rows: list[object],
        *,
        type: str,  # noqa: A002 - as everywhere
        version: str | None = None,
        publication: str | None = None,
    ) -> PublishedPart:
        """Publish rows; they are in the log when this returns.

        Raises:
            MaiaError: The client may not, or nothing could be committed.
        """
        if publication is not None:
            # Names are a client's own: nobody learns of, or stands in for, what another has published.
            own = f"{client.name}/{publication}"
            (done,) = await self._worker.run(
                publish_parts, client, [rows], type=type, version=version, publication=own
            )  # fmt: skip
            self._committed()
            return done
        key = (bytes(client.key.key_id), type, version)
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = _Group(client)
            asyncio.get_running_loop().call_later(self._limits.linger, self._commit, key, group)
        answer: _Answer = asyncio.get_running_loop().create_future()
        group.parts.append(rows)
        group.answers.append(answer)
        group.rows += len(rows)
        if group.rows >= self._limits.group_rows:
            self._commit(key, group)
        return await answer

    def _commit(self, key: _Key, group: _Group) -> None:
        if self._open.get(key) is group:
            del self._open[key]
            task = asyncio.get_running_loop().create_task(self._publish(group, type=key[1], version=key[2]))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _publish(self, group: _Group, *, type: str, version: str | None) -> None:  # noqa: A002 - as everywhere
        try:
            done = await self._worker.run(publish_parts, group.client, group.parts, type=type, version=version)
        except BaseException as error:  # noqa: BLE001 - whatever it was, everybody who waits hears of it
            failed = error if isinstance(error, Exception) else asyncio.CancelledError()
            for answer in group.answers:
                if not answer.done():
                    answer.set_exception(failed)
            return
        for answer, part in zip(group.answers, done, strict=True):
            if not answer.done():
                answer.set_result(part)
        self._committed()
