"""The console of a home as a process: pages for whoever oversees the domain.

app = make_console(home, listening)
serve(app, listening)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from maia.errors import MaiaError, MalformedError, NotFoundError
from maia.home import Home
from maia.principals import Signer
from maia.services.console.desk import Desk
from maia.services.console.login_routes import login_routes
from maia.services.console.routes import console_routes
from maia.services.http import Envelope, HttpLimits, Listening
from maia.version import __version__
from maia.wire import LOOPBACK, MEDIA_TYPE, LoginChallenge, Problem, answer_login, parse_login, problem_of

PAGES = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What every answer tells a browser: own files only, no script in a page, in nobody's frame, remembered nowhere."""
_STATIC = Path(__file__).parent / "static"
_FILES = {
    "console.css": "text/css", "console.js": "text/javascript", "login.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}  # fmt: skip
_LIMITS = HttpLimits(body=64 << 10, concurrent=32, unsigned=32, of_peer=16)


def make_console(
    home: Home,
    listening: Listening,
    *,
    passphrase: Callable[[], str] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """Make the console of a home; nothing runs before it is served.

    Args:
        home: The home whose rights are shown; its broker's key is the console's.
        listening: Where it will listen; this machine only, unless over TLS.
        passphrase: Asks for the passphrase of a sealed key that signs a list; without it such a key signs nothing here.
        clock: Gives the time.

    Raises:
        NotFoundError: The home has no broker's key.
    """
    hosts = frozenset(name.lower() for name in listening.authorities)
    secure = listening.certificate is not None
    desk = Desk(home, hosts=hosts, secure=secure, clock=clock, passphrase=passphrase)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            desk.close()

    app = FastAPI(
        title="Maia console", version=__version__, docs_url=None, redoc_url=None, openapi_url=None,
        lifespan=lifespan, redirect_slashes=False,
    )  # fmt: skip
    app.state.desk = desk
    app.include_router(login_routes(desk))
    app.include_router(console_routes(desk))
    _plain(app)
    _handle_errors(app, desk)
    app.add_middleware(
        Envelope, signer=home.broker, clock=clock, authorities=hosts, only_loopback=listening.channel() == LOOPBACK,
        limits=_LIMITS, pages=PAGES,
    )  # fmt: skip
    return app


def invite(app: FastAPI, signer: Signer, *, host: str, changes: bool) -> str:
    """Log a key in from within the process of a console: give the path of an address that is good once.

    Args:
        app: What `make_console` made.
        signer: Who logs in.
        host: The console, with its port.
        changes: Whether the session may change things.

    Raises:
        DeniedError: The key does not oversee the domain: ``NO_OVERSIGHT``.
    """
    desk: Desk = app.state.desk
    at = desk.clock()
    asked = LoginChallenge(host=host, changes=changes, challenge=desk.login.challenge(at=at))
    proof = parse_login(answer_login(asked, signer, console=desk.console.key_id))
    login = desk.login.check(proof, asked, oversees=desk.domain.oversight, at=desk.clock())
    return f"/login/once?token={desk.login.keep(login, at=desk.clock())}"


def _plain(app: FastAPI) -> None:
    """Serve what needs no session: health, and the files of the pages."""

    @app.get("/")
    async def start() -> Response:
        return RedirectResponse("/rights", 303)

    @app.get("/healthz")
    async def healthz() -> Response:
        return JSONResponse({"state": "alive"})

    @app.get("/readyz")
    async def readyz() -> Response:
        return JSONResponse({"state": "ready"})

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in _FILES:
            raise NotFoundError("there is no such file", code="NO_FILE")
        return Response((_STATIC / name).read_bytes(), media_type=_FILES[name])


def _handle_errors(app: FastAPI, desk: Desk) -> None:
    async def told(request: Request, error: MaiaError) -> Response:
        if request.headers.get("content-type", "").startswith("application/json"):
            problem = problem_of(error)
            return Response(problem.to_json(), problem.status, media_type=MEDIA_TYPE)
        return desk.problem(error, await desk.overseer(request))

    @app.exception_handler(MaiaError)
    async def decided(request: Request, error: MaiaError) -> Response:
        return await told(request, error)

    @app.exception_handler(RequestValidationError)
    async def unfit(request: Request, _error: RequestValidationError) -> Response:
        return await told(request, MalformedError("the request does not fit", code="FIELDS"))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            who = await desk.overseer(request)
            return desk.page("problem.html", who, status=404, code="NO_PATH", message="there is no such page")
        problem = Problem(status=405, code="NO_METHOD")
        return Response(problem.to_json(), 405, dict(error.headers or {}), MEDIA_TYPE)
