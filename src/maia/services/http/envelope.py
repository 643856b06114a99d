"""Around every request: limits on the way in, a signature on the way out.

Rules kept here:

- no more than a stated number of requests run at once; one more is told to come back (429). A request takes its place
  once it is whole, so that a slow one costs only itself. Some places are kept for requests inside sessions, no address
  but this machine's takes more than a share, and health is told without a place;
- a body is read within a limit of octets and of time, and is never inflated: a content coding is refused (415);
- a body is JSON with one reading (400, 415); a service of pages also takes what a form sends;
- a request names a host that this service is (400), and on a channel without TLS comes from this machine (403);
- the answer to a signed request is signed, a refusal as well; every answer forbids caches and browsers to use it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maia.errors import MaiaError, MalformedError
from maia.principals import Signer
from maia.wire import MEDIA_TYPE, Answer, Fields, Problem, ServiceRequest, is_signed, read_json, sign_answer

KEY = "maia.request"
"""Where a handler finds the request as it was sent, in the scope."""

_OPEN_PATHS = frozenset(("/healthz", "/readyz"))
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_MAX_PATH = 8192
_ALL, _UNSIGNED = "all", "unsigned"  # no address is written so
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one request may take.

    Attributes:
        body: Octets of a request's body.
        seconds: How long a request may take to arrive.
        concurrent: How many requests run at once.
        unsigned: How many of them may come from outside of a session.
        of_peer: How many of them may come from one address of another machine.
    """

    body: int = 256 << 10
    seconds: float = 10.0
    concurrent: int = 64
    unsigned: int = 32
    of_peer: int = 16


class _RefusedError(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class Envelope:
    """ASGI middleware, the outermost one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        signer: Signer,
        clock: Callable[[], datetime],
        authorities: frozenset[str],
        only_loopback: bool,
        limits: HttpLimits,
        websocket: ASGIApp | None = None,
        pages: Mapping[str, str] | None = None,
    ) -> None:
        """Wrap a service.

        Args:
            app: The service.
            signer: Signs answers.
            clock: Gives the time.
            authorities: The hosts (with ports, as a client writes them) that this service is.
            only_loopback: Whether only this machine may connect.
            limits: What one request may take.
            websocket: Serves WebSocket connections that name this host; without it there are none.
            pages: For a service that browsers use: what every answer tells them, in place of using nothing of it; its
                forms are taken as well as JSON.
        """
        self._app = app
        self._headers = _HEADERS if pages is None else pages
        self._kinds = frozenset((_JSON,)) if pages is None else frozenset((_JSON, _FORM))
        self._websocket = websocket
        self._signer = signer
        self._clock = clock
        self._authorities = authorities
        self._only_loopback = only_loopback
        self._limits = limits
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the service's start and end."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._connect(scope, receive, send)
            return
        request = _message_of(scope)
        await self._send(await self._answer(scope, receive, request), send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a WebSocket connection on, if there are any here and it is meant for this host."""
        try:
            self._check_peer(scope, _message_of({**scope, "method": "GET"}))
        except _RefusedError:
            await send({"type": "websocket.close", "code": 1008})
            return
        if self._websocket is None:
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._websocket(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, request: ServiceRequest) -> Answer:
        try:
            self._check_peer(scope, request)
            request.body = await self._read(receive, request)
            with self._place(scope, request):
                _check_body(request, self._kinds)
                scope[KEY] = request
                return await _run(self._app, scope, request)
        except _RefusedError as refusal:
            return _problem(refusal.problem, request)
        except Exception:  # noqa: BLE001 - the last line of defence: even a bug is answered, and says nothing
            _log.exception("a request failed")
            return _problem(Problem(status=500, code="INTERNAL"), request)

    @contextmanager
    def _place(self, scope: Scope, request: ServiceRequest) -> Iterator[None]:
        """Take a place among the requests that run, or refuse."""
        if scope["path"] in _OPEN_PATHS:
            yield
            return
        # A signature that nobody checked yet: it only decides which places are tried.
        kinds = [_ALL] if is_signed(request) else [_ALL, _UNSIGNED]
        peer = scope.get("client")
        if peer and not _is_loopback(peer[0]):
            kinds.append(peer[0])
        limits = {_ALL: self._limits.concurrent, _UNSIGNED: self._limits.unsigned}
        if any(self._running[kind] >= limits.get(kind, self._limits.of_peer) for kind in kinds):
            raise _RefusedError(Problem(status=429, code="TOO_MANY_REQUESTS"))
        self._running.update(kinds)
        try:
            yield
        finally:
            self._running.subtract(kinds)
            for kind in kinds:
                if not self._running[kind]:
                    del self._running[kind]

    def _check_peer(self, scope: Scope, request: ServiceRequest) -> None:
        peer = scope.get("client")
        if self._only_loopback and not (peer and _is_loopback(peer[0])):
            raise _RefusedError(Problem(status=403, code="ONLY_LOOPBACK"))
        path = scope["path"]
        if len(request.url) > _MAX_PATH:
            raise _RefusedError(Problem(status=400, code="TARGET_TOO_LONG"))
        if path not in _OPEN_PATHS and request.headers.get("host", "").lower() not in self._authorities:
            raise _RefusedError(Problem(status=400, code="WRONG_HOST", detail="this service is another host"))

    async def _read(self, receive: Receive, request: ServiceRequest) -> bytes:
        limit = self._limits.body
        length = request.headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or len(length) > 18 or int(length) > limit:
            raise _RefusedError(Problem(status=413, code="BODY_TOO_LARGE", detail=f"a body has at most {limit} octets"))
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        raise _RefusedError(Problem(status=400, code="DISCONNECTED"))
                    parts.append(event.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        detail = f"a body has at most {limit} octets"
                        raise _RefusedError(Problem(status=413, code="BODY_TOO_LARGE", detail=detail))
                    if not event.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise _RefusedError(Problem(status=408, code="REQUEST_TOO_SLOW")) from None

    async def _send(self, answer: Answer, send: Send) -> None:
        for name, value in self._headers.items():
            answer.headers[name] = value
        answer.headers["content-length"] = str(len(answer.body))
        if answer.status_code in (429, 503):
            answer.headers["retry-after"] = "1"
        if answer.status_code == 401:
            answer.headers["www-authenticate"] = "Maia-Session"
        if is_signed(answer.request):
            try:
                sign_answer(answer, self._signer, at=self._clock())
            except MalformedError:
                _log.debug("an answer to a signature that cannot be read is not signed")
        lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": lines})
        await send({"type": "http.response.body", "body": answer.body})


def _message_of(scope: Scope) -> ServiceRequest:
    lines = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    fields = Fields(lines)
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    target = path.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
    return ServiceRequest(
        method=scope["method"], url=f"{scope['scheme']}://{fields.get('host', '')}{target}", headers=fields
    )


def _check_body(request: ServiceRequest, kinds: frozenset[str]) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise _RefusedError(Problem(status=415, code="CONTENT_CODING", detail="a body is sent as it is"))
    if not request.body:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in kinds:
        raise _RefusedError(Problem(status=415, code="CONTENT_TYPE", detail=f"a body is `{min(kinds)}`"))
    if kind == _FORM:
        return
    try:
        read_json(request.body)
    except MaiaError as error:
        raise _RefusedError(Problem(status=400, code=error.code, detail=error.message)) from error


async def _run(app: ASGIApp, scope: Scope, request: ServiceRequest) -> Answer:
    """Run the service on a body that is whole, and keep its answer, which is whole too."""
    given = False
    start: Message = {}
    parts: list[bytes] = []

    async def receive() -> Message:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(event: Message) -> None:
        if event["type"] == "http.response.start":
            start.update(event)
        else:
            parts.append(event.get("body", b""))

    await app(scope, receive, send)
    lines = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", ())]
    return Answer(status_code=start["status"], headers=Fields(lines), body=b"".join(parts), request=request)


def _problem(problem: Problem, request: ServiceRequest) -> Answer:
    headers = Fields([("content-type", MEDIA_TYPE)])
    return Answer(status_code=problem.status, headers=headers, body=problem.to_json(), request=request)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
