"""A small service for tests of what all services share: it repeats words, and has one thing that only one may see."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from fastapi import APIRouter, FastAPI

from maia import database, wire
from maia.clients import AddressPolicy, ServiceClient
from maia.errors import DeniedError, NotFoundError, UnavailableError, UsageError
from maia.principals import KeySigner
from maia.services import http
from maia.services.http.serving import _configure, _Server

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving_in_a_thread(app: FastAPI, listening: http.Listening) -> Iterator[None]:
    """Serve in a thread of this process while the block lasts."""
    ready = threading.Event()
    server = _Server(_configure(app, listening, None), lambda _port: ready.set())

    def work() -> None:
        try:
            with suppress(SystemExit):  # uvicorn's way to say that it cannot listen
                server.run()
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="maia-service", daemon=True)
    thread.start()
    ready.wait()
    try:
        if not server.started:
            raise UnavailableError(f"cannot serve on port {listening.port}", code="ADDRESS_UNAVAILABLE")
        yield
    finally:
        server.should_exit = True
        thread.join()


class Word(http.Body):
    """A word."""

    word: str


def routes(owner: KeySigner) -> APIRouter:
    """Give the service's routes."""
    router = APIRouter()

    @router.post("/echo")
    def echo(body: Word, caller: http.Signed) -> Word:
        """Repeat a word."""
        return body

    @router.get("/things/{name}")
    def thing(name: str, caller: http.Signed) -> Word:
        """Show the one thing to its owner."""
        if name == "failing":
            raise ZeroDivisionError
        if name == "resting":
            raise UnavailableError("not now", code="RESTING")
        if name == "taken":
            raise UsageError("it is taken", code="TAKEN")
        if name != "gold":
            raise NotFoundError(f"there is no `{name}`", code="NO_THING")
        if caller.key != owner.public_key:
            raise DeniedError("the gold is not yours", code="NOT_YOURS")
        return Word(word=name)

    return router


class Clock:
    """A clock that tests set."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Give the time."""
        return self.now


@dataclass
class Echo:
    """The service with its keys, its database and its clock; made anew over the same database it is a restart."""

    database_url: str
    port: int = field(default_factory=free_port)
    server: KeySigner = field(default_factory=KeySigner.generate)
    owner: KeySigner = field(default_factory=KeySigner.generate)
    clock: Clock = field(default_factory=Clock)
    limits: http.HttpLimits = field(default_factory=http.HttpLimits)
    ready: bool = True
    certificate: Path | None = None
    private_key: Path | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{'http' if self.certificate is None else 'https'}://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve while the block lasts."""
        engine = database.open_database(self.database_url)
        database.migrate(engine)
        listening = http.Listening(port=self.port, certificate=self.certificate, private_key=self.private_key)
        app = http.make_app(
            (routes(self.owner),),
            title="Echo",
            signer=self.server,
            memory=database.RequestMemory(engine, "echo"),
            clock=self.clock,
            authorities=listening.authorities,
            channel=listening.channel(),
            ready=lambda: self.ready,
            conflicts=frozenset(("TAKEN",)),
            limits=self.limits,
        )
        try:
            with serving_in_a_thread(app, listening):
                yield
        finally:
            engine.dispose()

    def client(self, signer: KeySigner | None = None, **options: Any) -> ServiceClient:
        """Give a client of somebody, the owner unless told."""
        options.setdefault("policy", AddressPolicy(loopback=True))
        options.setdefault("server_key", self.server.public_key)
        options.setdefault("clock", self.clock)
        return ServiceClient(self.url, signer=signer or self.owner, **options)

    def handshake(self, signer: KeySigner, channel: bytes = wire.LOOPBACK) -> str:
        """Open a session by hand and give its name."""
        key, random, own = wire.encode_key(signer.public_key), secrets.token_bytes(32), secrets.token_bytes(32)
        start = {"key": key, "nonce": wire.encode_octets(random)}
        offer = httpx2.post(f"{self.url}/v1/challenge", json=start).json()
        proof = wire.answer_challenge(
            wire.ServerProof(
                challenge=wire.decode_octets(offer["challenge"], length=wire.CHALLENGE_LENGTH),
                nonce=wire.decode_octets(offer["nonce"], length=32),
                signature=wire.decode_octets(offer["proof"], length=64),
            ),
            signer=signer,
            server=self.server.public_key,
            random=random,
            own_nonce=own,
            channel=channel,
        )
        end = {"own_nonce": wire.encode_octets(own), "proof": wire.encode_octets(proof.signature)}
        answer = httpx2.post(f"{self.url}/v1/session", json={**start, "challenge": offer["challenge"], **end})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["session"])

    def sign(self, signer: KeySigner, session: str, method: str, path: str, body: bytes = b"") -> wire.ServiceRequest:
        """Make a signed request by hand."""
        request = wire.ServiceRequest(method=method, url=self.url + path, body=body)
        if body:
            request.headers["content-type"] = "application/json"
        wire.sign_request(request, signer, session=session, nonce=secrets.token_bytes(16), at=self.clock())
        return request


def send(request: wire.ServiceRequest) -> httpx2.Response:
    """Send a request as it is."""
    return httpx2.request(request.method, request.url, content=request.body, headers=dict(request.headers))
