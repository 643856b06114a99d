"""Publishing over plain HTTP: one signed request, for clients that keep no connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from maia.services.gateway import broker
from maia.services.gateway.gateway import Gateway
from maia.services.http import Body, Signed
from maia.wire import MAX_ROWS

_MAX_TEXT = 4096


class PublicationBody(Body):
    """Rows to publish: objects, attributes by name."""

    type: str = Field(max_length=_MAX_TEXT)
    version: str | None = Field(default=None, max_length=_MAX_TEXT)
    rows: list[dict[str, Any]] = Field(max_length=MAX_ROWS)
    publication: str | None = Field(default=None, max_length=_MAX_TEXT)


class RefusedView(Body):
    """Rows that went no further, by position, and why."""

    code: str
    column: str | None
    rows: list[int]


class TogetherView(Body):
    """What became of all that was committed at once."""

    events: int
    forced: int
    nulled: int


class PublicationView(Body):
    """What became of the rows; what is published is in the log."""

    publication: str
    commit: int | None
    events: int
    refused: list[RefusedView]
    repeated: bool
    together: TogetherView


def gateway_routes(gateway: Callable[[], Gateway]) -> APIRouter:
    """Make the routes of a gateway that will run."""
    router = APIRouter()

    @router.post("/publications")
    async def publish(body: PublicationBody, caller: Signed) -> PublicationView:
        """Publish rows as the client that signed the request."""
        running = gateway()
        client = await running.sessions.run(broker.admit, caller.authenticated, ())
        done = await running.groups.publish(
            client, list(body.rows), type=body.type, version=body.version, publication=body.publication
        )
        return PublicationView.model_validate(done.to_json())

    return router
