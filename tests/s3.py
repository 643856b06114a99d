"""An S3 for tests: moto's server on this machine, started once a worker, with faults that a test asks for.

It is an emulator: what it does is what moto's authors found that S3 does. It listens on the loopback address alone and
is gone with the process.
"""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest

BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>later</Message></Error>"


@dataclass
class Fault:
    """What happens to the next request of a method whose path holds some text.

    Attributes:
        method: ``PUT``, ``GET``, ``HEAD``, ``POST`` (which deletes), or ``LIST``.
        status: What is answered.
        after: Whether the request is carried out before, so that only its answer is lost.
        times: How often.
        holds: The text.
    """

    method: str
    status: int
    after: bool = False
    times: int = 1
    holds: str = ""


@dataclass
class S3Server:
    """A running emulator.

    Attributes:
        url: Where it listens.
        faults: What goes wrong next.
        seen: Method, path and status of all requests.
        ranges: Path and length of what was asked for in parts.
        careless: Whether it ignores the condition of a put, as some servers do.
    """

    url: str
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    ranges: list[tuple[str, int]] = field(default_factory=list)
    careless: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    def new_bucket(self) -> str:
        """Make a bucket and name it."""
        name = f"log-{os.getpid()}-{next(self._numbers)}"
        self.ask("PUT", name)
        return name

    def ask(self, method: str, path: str, data: bytes = b"") -> bytes:
        """Do as any other client of the store does, whatever the key."""
        quoted = urllib.parse.quote(path, safe="/=?&")
        request = urllib.request.Request(f"{self.url}/{quoted}", data=data, method=method)  # noqa: S310
        request.add_header("Content-Type", "application/octet-stream")
        request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=eve/20260101/us-east-1/s3/aws4_request")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the emulator's own address
            return bytes(answer.read())

    def fail(self, method: str, status: int, *, after: bool = False, times: int = 1, holds: str = "") -> None:
        """Let the next requests go wrong; see `Fault`."""
        self.faults.append(Fault(method, status, after=after, times=times, holds=holds))

    def wrap(self, app: Callable[..., object]) -> Callable[..., object]:
        """Put the faults before the emulator."""

        def wrapped(environ: dict[str, str], start: Callable[..., object]) -> object:
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
            if method == "GET" and "list-type" in environ.get("QUERY_STRING", ""):
                method = "LIST"
            fault = next((item for item in self.faults if item.method == method and item.holds in path), None)
            if fault is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)

            if environ.get("HTTP_RANGE"):
                first, last = environ["HTTP_RANGE"].removeprefix("bytes=").split("-")
                self.ranges.append((path, int(last) - int(first) + 1))
            if self.careless:
                environ.pop("HTTP_IF_NONE_MATCH", None)

            def noted(status: str, headers: list[tuple[str, str]], *rest: object) -> object:
                self.seen.append((method, path, int(status[:3])))
                return start(status, headers, *rest)

            if fault is None:
                return app(environ, noted)
            if fault.after:
                b"".join(app(environ, lambda *_: None))  # type: ignore[arg-type]
            else:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))  # type: ignore[attr-defined]
            noted(f"{fault.status} Fault", [("Content-Length", str(len(BUSY))), ("Content-Type", "application/xml")])
            return [BUSY]

        return wrapped


@pytest.fixture(scope="session")
def s3_server(require_package: Callable[[str], None]) -> Iterator[S3Server]:
    """Start the emulator; skips where it is not installed, and fails in CI."""
    require_package("moto")
    require_package("flask")
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            """Say nothing."""

    running = S3Server("")
    app = running.wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    running.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield running
    server.shutdown()
    thread.join(timeout=10)


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Give the emulator with an environment that leads to it, as a person would set it."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    s3_server.faults.clear()
    s3_server.seen.clear()
    s3_server.ranges.clear()
    yield s3_server
    s3_server.faults.clear()
    s3_server.careless = False
