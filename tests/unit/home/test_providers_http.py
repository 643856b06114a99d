"""Facts from services: one small answer from an allowed host, or a typed failure, in time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from maia.errors import DeniedError, UnavailableError, UsageError
from maia.home.providers import FetchLimits, HttpFacts, fetch
from maia.policy import Atom, Constant, Environment, Predicate
from maia.testing import at

NOW = at(0)
SMITH = Atom("licensed", (Constant("smith & sons/../x"),))


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[tuple[int, list[bytes]]]:
    """Serve connections on a port of this machine; give the port and what was asked."""
    asked: list[bytes] = []
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                line.settimeout(2)
                try:
                    asked.append(line.recv(65_536))
                    answer(line)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=lambda: [work() for _ in iter(ended.is_set, True)], daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], asked
        finally:
            ended.set()
            thread.join(5)


def saying(data: bytes) -> Callable[[socket.socket], None]:
    """Answer with these octets."""
    return lambda line: line.sendall(data)


def ok(body: bytes) -> bytes:
    """An answer 200."""
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def provider(port: int, *, seconds: float = 2.0) -> HttpFacts:
    """Ask the service at a port of this machine."""
    limits = FetchLimits(hosts=frozenset({f"127.0.0.1:{port}"}), loopback=True, seconds=seconds)
    return HttpFacts(predicate=Predicate("licensed", 1), url=f"http://127.0.0.1:{port}/of/{{1}}?x=1", limits=limits)


@pytest.mark.parametrize(("body", "expected"), [(b'{"holds": true}', True), (b'{"holds": false}', False)])
def test_a_service_says_yes_or_no(body, expected):
    """The parameter is escaped, so it stays a parameter."""
    with serving(saying(ok(body))) as (port, asked):
        assert provider(port).ask(SMITH, at=NOW) is expected
    assert asked[0].startswith(b"GET /of/smith%20%26%20sons%2F..%2Fx?x=1 HTTP/1.0\r\n")


def drip(line: socket.socket) -> None:
    """Send an answer one octet at a time, without end."""
    line.sendall(b"HTTP/1.0 200 OK\r\n")
    while True:
        line.sendall(b"X")
        time.sleep(0.05)


def flood(line: socket.socket) -> None:
    """Send more than anybody wants."""
    line.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
    while True:
        line.sendall(b"x" * 65_536)


ANSWERS = {
    "garbage": (saying(b"\x00\xff" * 99), "PROVIDER_VALUE"),
    "nothing": (saying(b""), "PROVIDER_VALUE"),
    "no JSON": (saying(ok(b"yes")), "PROVIDER_VALUE"),
    "another answer": (saying(ok(b'{"holds": "true"}')), "PROVIDER_VALUE"),
    "an answer with more": (saying(ok(b'{"holds": true, "and": 1}')), "PROVIDER_VALUE"),
    "deep JSON": (saying(ok(b"[" * 60_000)), "PROVIDER_VALUE"),
    "half an answer": (saying(ok(b'{"holds": true}')[:-3]), "PROVIDER_VALUE"),
    "an answer in chunks": (
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "PROVIDER_VALUE",
    ),
    "not found": (saying(b"HTTP/1.0 404 Not Found\r\n\r\n"), "PROVIDER_FAILED"),
    "an error": (saying(b'HTTP/1.0 500 Oh\r\n\r\n{"holds": true}'), "PROVIDER_FAILED"),
    "a slow drip": (drip, "PROVIDER_SLOW"),
    "silence": (lambda line: time.sleep(1.5), "PROVIDER_SLOW"),
    "ten gigabytes": (flood, "PROVIDER_LIMIT"),
}  # fmt: skip


@pytest.mark.fault("F14")
@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_service_that_misbehaves_means_no_within_the_time(case):
    """Garbage, drips without end, floods without end: each ends, as a typed failure that is counted."""
    answer, code = case
    with serving(answer) as (port, _):
        environment = Environment([provider(port, seconds=0.6)])
        assert not environment.holds(SMITH, at=NOW)
    assert dict(environment.failures) == {("licensed/1", code): 1}


@pytest.mark.fault("F14")
def test_a_redirect_to_this_machine_is_not_followed():
    """The door that the redirect points at is never knocked on."""
    with serving(saying(ok(b'{"holds": true}'))) as (inner, knocked):
        away = b"HTTP/1.0 301 Moved\r\nLocation: http://127.0.0.1:%d/\r\n\r\n" % inner
        with serving(saying(away)) as (port, _):
            environment = Environment([provider(port)])
            assert not environment.holds(SMITH, at=NOW)
    assert knocked == []
    assert dict(environment.failures) == {("licensed/1", "PROVIDER_FAILED"): 1}


def test_nobody_listening_is_a_failure_and_slow_names_are_slow():
    """A closed port and a resolver that hangs have codes of their own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnavailableError) as caught:
        provider(port).ask(SMITH, at=NOW)
    assert caught.value.code == "PROVIDER_FAILED"
    limits = FetchLimits(hosts=frozenset({"a.example"}), seconds=0.2)
    for resolve, code in (
        (lambda host, port: time.sleep(1) or [], "PROVIDER_SLOW"),
        (lambda host, port: [], "PROVIDER_FAILED"),
    ):
        with pytest.raises(UnavailableError) as caught:
            fetch("https://a.example/", limits, resolve=resolve)
        assert caught.value.code == code


def test_an_answer_over_tls_needs_a_certificate_that_is_trusted():
    """A server that does not speak TLS, or nobody vouches for, is a failure."""
    with serving(saying(ok(b"{}"))) as (port, _):
        limits = FetchLimits(hosts=frozenset({f"localhost:{port}"}), loopback=True)
        with pytest.raises(UnavailableError) as caught:
            fetch(f"https://localhost:{port}/", limits, resolve=lambda host, port: ["127.0.0.1"])
    assert caught.value.code == "PROVIDER_FAILED"


def test_a_service_cannot_be_listed_and_is_asked_about_plain_words():
    """Facts come one by one; a parameter that could walk the path is refused."""
    found = provider(1)
    assert found.facts(at=NOW) is None
    for word in ("", ".", ".."):
        with pytest.raises(UnavailableError) as caught:
            found.ask(Atom("licensed", (Constant(word),)), at=NOW)
        assert caught.value.code == "PROVIDER_VALUE"
    elsewhere = HttpFacts(
        predicate=Predicate("licensed", 0), url="https://b.example/", limits=FetchLimits(hosts=frozenset({"a.example"}))
    )
    with pytest.raises(UnavailableError) as caught:
        elsewhere.ask(Atom("licensed"), at=NOW)
    assert caught.value.code == "FETCH_REFUSED"
    for url in ("https://{1}.example/", "https://a.example/", "https://a.example/{2}", "https://a.example/{1}{x}"):
        with pytest.raises(UsageError):
            HttpFacts(predicate=Predicate("licensed", 1), url=url, limits=FetchLimits(hosts=frozenset()))


def test_hosts_are_compared_letter_for_letter():
    """With a port where one is named; the standard port needs none."""
    public = ["93.184.215.14"]
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        raise OSError("enough")

    limits = FetchLimits(hosts=frozenset({"a.example", "b.example:8443"}), seconds=0.5)
    for url in ("https://a.example/x", "https://a.example:443/x", "https://b.example:8443/"):
        with pytest.raises(UnavailableError):
            fetch(url, limits, resolve=resolve)
    assert asked == [("a.example", 443), ("a.example", 443), ("b.example", 8443)]
    for url in (
        "https://a.example:8443/",
        "https://b.example/",
        "https://a.example.evil.example/",
        "https://x@a.example/",
    ):
        with pytest.raises(DeniedError):
            fetch(url, limits, resolve=lambda host, port: public)
