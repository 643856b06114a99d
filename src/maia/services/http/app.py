"""A service over HTTP: FastAPI around its routes, with what every service of Maia has.

    GET  /healthz         the process lives
    GET  /readyz          it can serve: it leads, and its database answers
    GET  /openapi.json    all of it, refusals included
    GET  /v1/server       the service's key
    POST /v1/challenge    see handshake.py
    POST /v1/session
    …    /v1/…            the service's own routes, each with a `Signed` caller

There is no page of documentation: it would load scripts from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from maia import database
from maia.errors import MaiaError, SignatureError, VerificationError
from maia.principals import NonceProof, Signer
from maia.services.http.envelope import KEY, Envelope, HttpLimits
from maia.services.http.sessions import Caller, ServiceSessions
from maia.services.http.unproven import Unproven
from maia.version import __version__
from maia.wire import (
    CHALLENGE_LENGTH,
    LOOPBACK,
    MEDIA_TYPE,
    RANDOM_LENGTH,
    SCHEMA,
    Problem,
    UnauthenticatedError,
    authentication_problem,
    declared,
    decode_key,
    decode_octets,
    encode_key,
    encode_octets,
    problem_of,
)

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


class Body(BaseModel):
    """The base of every body: no unknown field, nothing converted on the quiet."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def octets_field(length: int) -> Any:  # noqa: ANN401 - pydantic's own type for a field
    """Describe a field of exactly this many octets in base64url."""
    letters = -(-length * 8 // 6)
    return Field(min_length=letters, max_length=letters, pattern="^[A-Za-z0-9_-]+$")


def blob_field(limit: int) -> Any:  # noqa: ANN401 - pydantic's own type for a field
    """Describe a field of up to this many octets in base64url."""
    return Field(max_length=-(-limit * 8 // 6), pattern="^[A-Za-z0-9_-]*$")


class ServerView(Body):
    """Who the service is."""

    key: str = octets_field(32)


class ChallengeBody(Body):
    """The start of a handshake: the client's key and random number."""

    key: str = octets_field(32)
    nonce: str = octets_field(RANDOM_LENGTH)


class ChallengeView(Body):
    """The server's challenge and its own proof."""

    challenge: str = octets_field(CHALLENGE_LENGTH)
    nonce: str = octets_field(RANDOM_LENGTH)
    proof: str = octets_field(64)


class SessionBody(Body):
    """The end of a handshake: the client's proof."""

    key: str = octets_field(32)
    nonce: str = octets_field(RANDOM_LENGTH)
    challenge: str = octets_field(CHALLENGE_LENGTH)
    own_nonce: str = octets_field(RANDOM_LENGTH)
    proof: str = octets_field(64)


class SessionView(Body):
    """A session and its end."""

    session: str = octets_field(16)
    until: datetime


class StateView(Body):
    """Whether all is well."""

    state: str


def _caller(request: Request) -> Caller:
    sessions: ServiceSessions = request.app.state.sessions
    try:
        return sessions.authenticate(request.scope[KEY])
    except MaiaError as error:
        if isinstance(error, SignatureError):
            request.app.state.unproven(None, request.scope["route"].path, error.code, sessions.now())
        raise UnauthenticatedError(error) from error


Signed = Annotated[Caller, Depends(_caller)]
"""A route's parameter: who signed the request. A route without it is open to everybody."""


def _now(request: Request) -> datetime:
    sessions: ServiceSessions = request.app.state.sessions
    return sessions.now()


Now = Annotated[datetime, Depends(_now)]
"""A route's parameter: the service's time, for a route that is open to everybody."""


def make_app(
    routers: tuple[APIRouter, ...],
    *,
    title: str,
    signer: Signer,
    memory: database.RequestMemory,
    clock: Callable[[], datetime],
    authorities: frozenset[str],
    channel: bytes = LOOPBACK,
    ready: Callable[[], bool] = lambda: True,
    conflicts: frozenset[str] = frozenset(),
    limits: HttpLimits | None = None,
    lifespan: Lifespan | None = None,
    unproven: Unproven = lambda _key, _path, _code, _at: None,
    websocket: ASGIApp | None = None,
) -> FastAPI:
    """Put a service's routes behind signatures, limits and problem details.

    Args:
        routers: The service's routes, below ``/v1``; those with a `Signed` parameter ask for a signed request.
        title: The service's name.
        signer: The service's key, which signs answers.
        memory: Remembers used requests.
        clock: Gives the time.
        authorities: The hosts that this service is, as clients write them.
        channel: `channel_of` the service's certificate; without one only this machine may connect.
        ready: Whether it can serve now.
        conflicts: Codes of errors that are conflicts (409).
        limits: What one request may take.
        lifespan: What runs beside the requests.
        unproven: Hears of keys that were not proven.
        websocket: Serves WebSocket connections, which are refused without it.
    """
    app = FastAPI(
        title=title, version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan, redirect_slashes=False
    )
    app.state.unproven = unproven
    app.state.sessions = ServiceSessions(signer, memory, channel=channel, clock=clock)
    app.include_router(_common(ready))
    for router in routers:
        app.include_router(router, prefix="/v1", responses=declared())
    _handle_errors(app, conflicts)
    app.add_middleware(
        Envelope,
        signer=signer,
        clock=clock,
        authorities=frozenset(name.lower() for name in authorities),
        only_loopback=channel == LOOPBACK,
        limits=limits or HttpLimits(),
        websocket=websocket,
    )
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign] # FastAPI's documented way
    return app


def _common(ready: Callable[[], bool]) -> APIRouter:
    router = APIRouter()
    room = anyio.CapacityLimiter(2)
    seldom = declared(400, 403, 408, 413, 415, 429, 500)

    @router.get("/healthz", responses=seldom)
    async def healthz() -> StateView:
        """Say that the process lives."""
        return StateView(state="alive")

    @router.get("/readyz", responses=seldom | declared(503))
    async def readyz(response: Response) -> StateView:
        """Say whether the service can serve."""
        # In threads of its own: requests that run may have taken all the others.
        if not await anyio.to_thread.run_sync(ready, limiter=room):
            raise HTTPException(503)
        response.status_code = 200
        return StateView(state="ready")

    @router.get("/v1/server", responses=seldom)
    def server(request: Request) -> ServerView:
        """Give the service's key. It proves nothing: the handshake does."""
        return ServerView(key=encode_key(request.app.state.sessions.server))

    @router.post("/v1/challenge", responses=seldom | declared(401, 422, 503))
    def challenge(body: ChallengeBody, request: Request) -> ChallengeView:
        """Prove the service's key and challenge the client."""
        sessions: ServiceSessions = request.app.state.sessions
        client = decode_key(body.key)
        offer = sessions.challenge(client, decode_octets(body.nonce, length=RANDOM_LENGTH))
        return ChallengeView(
            challenge=encode_octets(offer.challenge),
            nonce=encode_octets(offer.nonce),
            proof=encode_octets(offer.signature),
        )

    @router.post("/v1/session", responses=seldom | declared(401, 422, 503))
    def session(body: SessionBody, request: Request) -> SessionView:
        """Check the client's proof and open a session."""
        sessions: ServiceSessions = request.app.state.sessions
        proof = NonceProof(
            decode_key(body.key),
            decode_octets(body.own_nonce, length=RANDOM_LENGTH),
            decode_octets(body.proof, length=64),
        )
        random = decode_octets(body.nonce, length=RANDOM_LENGTH)
        answer = decode_octets(body.challenge, length=CHALLENGE_LENGTH)
        try:
            name, until = sessions.open(proof, random=random, challenge=answer)
        except MaiaError as error:
            if isinstance(error, VerificationError):
                request.app.state.unproven(proof.key, request.scope["route"].path, error.code, sessions.now())
            raise UnauthenticatedError(error) from error
        return SessionView(session=name, until=until)

    return router


def _handle_errors(app: FastAPI, conflicts: frozenset[str]) -> None:
    @app.exception_handler(MaiaError)
    async def decided(_request: Request, error: MaiaError) -> Response:
        return _render(problem_of(error, conflicts=conflicts))

    @app.exception_handler(UnauthenticatedError)
    async def unknown(_request: Request, error: UnauthenticatedError) -> Response:
        return _render(authentication_problem(error.error))

    @app.exception_handler(RequestValidationError)
    async def unfit(_request: Request, error: RequestValidationError) -> Response:
        return _render(Problem(status=422, code="FIELDS", detail=_fields(error)))

    @app.exception_handler(HTTPException)
    async def other(_request: Request, error: HTTPException) -> Response:
        codes = {404: "NO_PATH", 405: "NO_METHOD", 503: "NOT_READY"}
        known = error.status_code in codes
        problem = Problem(status=error.status_code if known else 400, code=codes.get(error.status_code, "MALFORMED"))
        return _render(problem, dict(error.headers or {}))


def _fields(error: RequestValidationError) -> str:
    """Name the fields that do not fit, and none of their values."""
    names = {".".join(str(part) for part in fault["loc"]) for fault in error.errors()}
    return ", ".join(f"`{name[:100]}`" for name in sorted(names)[:8])


def _render(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    return Response(problem.to_json(), problem.status, headers, MEDIA_TYPE)


def _describe(app: FastAPI) -> dict[str, Any]:
    """Describe the service; made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = SCHEMA
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = schema
    return app.openapi_schema
