"""A log behind a web server: ranges or none, pages of folders, and answers that are refused."""

from __future__ import annotations

import re
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from maia.clients.addresses import AddressPolicy
from maia.clients.web_log import WebLog
from maia.errors import EncodingError, MalformedError, NotFoundError, UnavailableError

ZEROS = bytes(1 << 20)
OBJECT = bytes(range(256)) * 40_000  # more than one part
PAGE = b'<a href="type%3Dab/">x</a><a href="/log/type=cd/">y</a><a href="file">z</a><a href="../">up</a>'


class Server(BaseHTTPRequestHandler):
    """Answers with an object, a page, and what is none."""

    protocol_version = "HTTP/1.1"
    ranges: ClassVar[bool] = True

    def do_GET(self) -> None:
        """Answer."""
        found = {"/log/object": OBJECT, "/log/": PAGE, "/log/folder/": PAGE, "/log/small": b"abc"}.get(self.path)
        if self.path == "/log/elsewhere":
            return self._say(302, b"", {"location": "/log/object"})
        if self.path == "/log/packed":
            return self._say(200, b"x", {"content-encoding": "gzip"})
        if found is None:
            return self._say(404, b"", {})
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        if span and self.ranges:
            start, end = int(span[1]), min(int(span[2]), len(found) - 1)
            return self._say(206, found[start : end + 1], {"content-range": f"bytes {start}-{end}/{len(found)}"})
        return self._say(200, found, {})

    def _say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class EndlessServer(BaseHTTPRequestHandler):
    """Knows no ranges, and goes on until nobody listens."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(ZEROS)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(params=[True, False], ids=["with ranges", "without ranges"])
def log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebLog]:
    """Read from a server on this machine."""
    monkeypatch.setattr(Server, "ranges", request.param)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = WebLog(f"http://127.0.0.1:{server.server_port}/log/", policy=AddressPolicy(loopback=True))
    yield found
    found.close()
    server.shutdown()
    server.server_close()


def test_objects_are_read_whole_and_in_parts(log: WebLog) -> None:
    """Whether the server has ranges or not."""
    assert log.get("small", limit=3) == b"abc"
    with log.open("object", limit=len(OBJECT)) as opened:
        assert opened.size == len(OBJECT)
        assert opened.get_range(0, 10) == OBJECT[:10]
        assert opened.get_range(len(OBJECT) - 5, 100) == OBJECT[-5:]
        assert opened.get_range(4 << 20, 10) == OBJECT[4 << 20 : (4 << 20) + 10]


def test_what_is_too_large_or_not_there_is_told(log: WebLog) -> None:
    """Reading stops at the limit."""
    for ask in (log.get, log.open):
        with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
            ask("object", limit=1000)
        with pytest.raises(NotFoundError, match="NO_OBJECT"):
            ask("nothing", limit=1000)


def test_what_is_skipped_is_not_kept_and_has_a_limit() -> None:
    """A server may answer with all of an object, from its beginning and without an end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EndlessServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log = WebLog(f"http://127.0.0.1:{server.server_port}", policy=AddressPolicy(loopback=True))
    tracemalloc.start()
    try:
        assert len(log.part("x", 60 << 20, 1000)[1]) == 1000
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
        with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
            log.part("x", (64 << 20) + 1, 1000)
    finally:
        tracemalloc.stop()
        log.close()
        server.shutdown()
        server.server_close()


def test_folders_are_those_of_the_page_that_have_the_shape(log: WebLog) -> None:
    """Links that are no folders, and those that lead up, are none."""
    shape = re.compile("type=[a-z]+")
    assert log.list_folders("", "", limit=9, shape=shape) == ["type=ab", "type=cd"]
    assert log.list_folders("folder", "type=ab", limit=9, shape=shape) == ["type=cd"]
    assert log.list_folders("nothing", "", limit=9, shape=shape) == []


@pytest.mark.parametrize("name", ["elsewhere", "packed"])
def test_a_redirect_and_a_packed_answer_are_refused(log: WebLog, name: str) -> None:
    """Nobody is led elsewhere."""
    with pytest.raises(UnavailableError, match="PEER_UNAVAILABLE"):
        log.get(name, limit=1 << 30)


@pytest.mark.parametrize(
    "url",
    ["http://example.com/log", "https://host/../x", "https://host/?q", "https://user:pw@host/", "https://127.0.0.1/"],
)
def test_an_address_that_leads_astray_is_refused(url: str) -> None:
    """As for services."""
    with pytest.raises(MalformedError):
        WebLog(url)
