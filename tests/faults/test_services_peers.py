"""Services that fail in every way a network allows: a typed error within the budget, and no storm."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from echo_service import Echo, free_port
from maia.clients import AddressPolicy, ClientLimits, Rest, ServiceClient
from maia.errors import MaiaError, UnavailableError, UncheckedError, UsageError, VerificationError
from maia.principals import KeySigner

ALICE, SERVER = KeySigner(b"a" * 32), KeySigner(b"s" * 32)
Conduct = Callable[[socket.socket, threading.Event], None]
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Peer:
    """A server that does one wrong thing, over and over."""

    def __init__(self, conduct: Conduct) -> None:
        self.conduct = conduct
        self.connections = 0
        self.stop = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[int]:
        """Do it while the block lasts; give the port."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0.02)
            thread = threading.Thread(target=self._accept, args=(listener,))
            thread.start()
            try:
                yield listener.getsockname()[1]
            finally:
                self.stop.set()
                thread.join()

    def _accept(self, listener: socket.socket) -> None:
        threads = []
        while not self.stop.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            threads.append(threading.Thread(target=self._serve, args=(connection,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            self.conduct(connection, self.stop)


def say(data: bytes) -> Conduct:
    """Answer with these octets and close."""
    return lambda peer, _stop: peer.sendall(data)


def answer_json(body: str) -> Conduct:
    """Answer with JSON."""
    return say(OK + f"content-length: {len(body)}\r\n\r\n{body}".encode())


def drip(start: bytes, piece: bytes) -> Conduct:
    """Answer with a piece every moment, for ever."""

    def conduct(peer: socket.socket, stop: threading.Event) -> None:
        peer.sendall(start)
        while not stop.wait(0.02):
            peer.sendall(piece)

    return conduct


def endless(peer: socket.socket, stop: threading.Event) -> None:
    """Answer with a body that never ends, as fast as it goes."""
    peer.sendall(OK + b"content-length: 10737418240\r\n\r\n")
    while not stop.is_set():
        peer.sendall(b"x" * 65536)


def silent(_peer: socket.socket, stop: threading.Event) -> None:
    """Take the request and say nothing: what a partition looks like from here."""
    stop.wait()


FALSE_OFFER = f'{{"challenge":"{"A" * 96}","nonce":"{"A" * 43}","proof":"{"A" * 86}"}}'
FAULTS: dict[str, tuple[Conduct, type[MaiaError], str]] = {
    "garbage": (say(b"\x00\xff garbage \r\n\r\n" * 10), UnavailableError, "PEER_GARBLED"),
    "another protocol": (say(b"SSH-2.0-OpenSSH_9.2\r\n"), UnavailableError, "PEER_GARBLED"),
    "nothing at all": (say(b""), UnavailableError, "PEER_GARBLED"),
    "half an answer": (say(OK + b"content-length: 100\r\n\r\n{"), UnavailableError, "PEER_GARBLED"),
    "silence": (silent, UnavailableError, "PEER_TIMEOUT"),
    "a body in drips": (drip(OK + b"content-length: 65536\r\n\r\n", b" "), UnavailableError, "PEER_TIMEOUT"),
    "headers in drips": (drip(OK + b"x-slow: ", b"x"), UnavailableError, "PEER_TIMEOUT"),
    "chunks in drips": (
        drip(OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        UnavailableError,
        "PEER_TIMEOUT",
    ),
    "ten gigabytes": (endless, UncheckedError, "ANSWER_TOO_LARGE"),
    "a packed answer": (
        say(OK + b"content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx"),
        UncheckedError,
        "ANSWER_PACKED",
    ),
    "a redirect to loopback": (
        say(b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n"),
        UncheckedError,
        "ANSWER_REDIRECTS",
    ),
    "JSON that is none": (say(OK + b"content-length: 1\r\n\r\n{"), MaiaError, "JSON"),
    "another shape": (say(OK + b"content-length: 2\r\n\r\n[]"), MaiaError, "ANSWER"),
    "an empty promise": (say(OK + b"content-length: 2\r\n\r\n{}"), MaiaError, "ANSWER"),
    "a wrong proof": (answer_json(FALSE_OFFER), VerificationError, "BAD_SIGNATURE"),
    "a refusal of its own": (
        say(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"),
        VerificationError,
        "HANDSHAKE_REFUSED",
    ),
    "too busy": (say(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"), UnavailableError, "PEER_UNAVAILABLE"),
}


def ask(port: int, *, rest: Rest | None = None, seconds: float = 0.3) -> object:
    """Ask once, with a budget that is small unless told."""
    client = ServiceClient(
        f"http://127.0.0.1:{port}",
        signer=ALICE,
        server_key=SERVER.public_key,
        policy=AddressPolicy(loopback=True),
        limits=ClientLimits(seconds=seconds),
        rest=rest,
    )
    with client:
        return client.call("GET", "/v1/things/gold")


@pytest.mark.fault("F14")
@pytest.mark.parametrize("conduct, kind, code", FAULTS.values(), ids=FAULTS)
def test_a_peer_that_misbehaves_is_a_typed_error_within_the_budget(
    conduct: Conduct, kind: type[MaiaError], code: str
) -> None:
    """The peer goes on for ever where it can; the client does not, and treats it as a denial."""
    peer = Peer(conduct)
    # A budget is spent where the code says so; elsewhere the peer's answer counts, however slow the machine is.
    with peer.listening() as port, pytest.raises(kind) as refusal:
        ask(port, seconds=0.3 if code == "PEER_TIMEOUT" else 30)
    # A peer that closes in the middle may reach us as an end or as a reset.
    assert refusal.value.code in ({code, "PEER_UNAVAILABLE"} if code == "PEER_GARBLED" else {code})
    assert peer.connections == 1


@pytest.mark.fault("F14")
def test_an_answer_that_somebody_else_signed_is_refused(tmp_path: Path) -> None:
    """The service proves its key in the handshake; an answer in its name by another key counts for nothing."""
    echo = Echo(str(tmp_path / "store.db"))
    with echo.running(), echo.client() as client:
        client.call("GET", "/v1/things/gold")
        client._server = SERVER.public_key  # from now on the right answers are somebody else's
        with pytest.raises(VerificationError) as refusal:
            client.call("GET", "/v1/things/gold")
        assert refusal.value.code == "BAD_SIGNATURE"


@pytest.mark.fault("F14")
def test_an_answer_without_a_signature_is_refused(tmp_path: Path) -> None:
    """Somebody in front of the service answers in its place after the handshake."""
    echo = Echo(str(tmp_path / "store.db"))
    with echo.client() as client:
        with echo.running():
            client.call("GET", "/v1/things/gold")
        peer = Peer(say(OK + b'content-length: 15\r\n\r\n{"word":"gold"}'))
        with peer.listening() as port:
            client._origin = AddressPolicy(loopback=True).parse(f"http://127.0.0.1:{port}")
            with pytest.raises(MaiaError) as refusal:
                client.call("GET", "/v1/things/gold")
    assert refusal.value.code == "NOT_SIGNED"


class Monotonic:
    """A clock of tests."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Give the time."""
        return self.now


@pytest.mark.fault("F13")
def test_a_partition_ends_in_time_and_storms_nobody() -> None:
    """Asked a hundred times a second, the client reaches the peer at most once a second, and ever more seldom."""
    peer, clock = Peer(silent), Monotonic()
    rest = Rest(monotonic=clock)
    codes = []
    with peer.listening() as port:
        for _ in range(1000):  # ten seconds of a loop
            with pytest.raises(UnavailableError) as refusal:
                ask(port, rest=rest, seconds=0.05)
            codes.append(refusal.value.code)
            clock.now += 0.01
    assert set(codes) == {"PEER_TIMEOUT", "PEER_RESTS"}
    assert peer.connections == codes.count("PEER_TIMEOUT") == 4  # after 0, 1, 3 and 7 seconds


@pytest.mark.fault("F13")
def test_a_peer_that_is_not_there_is_unavailable() -> None:
    """Nobody listens: told at once."""
    with pytest.raises(UnavailableError) as refusal:
        ask(free_port())
    assert refusal.value.code == "PEER_UNAVAILABLE"


@pytest.mark.fault("F13")
def test_a_peer_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """After a restart the client shakes hands again, once its rest is over."""
    echo, clock = Echo(str(tmp_path / "store.db")), Monotonic()
    with echo.client(rest=Rest(monotonic=clock)) as client:
        with echo.running():
            client.call("GET", "/v1/things/gold")
        with pytest.raises(UnavailableError):
            client.call("GET", "/v1/things/gold")
        with echo.running():
            with pytest.raises(UnavailableError) as refusal:
                client.call("GET", "/v1/things/gold")
            assert refusal.value.code == "PEER_RESTS"
            clock.now += 1.0
            assert client.call("GET", "/v1/things/gold") == {"word": "gold"}


def test_a_rest_has_a_longest_time() -> None:
    """However long a peer fails, it is asked again within half a minute; one answer makes all good."""
    clock = Monotonic()
    rest = Rest(monotonic=clock)
    for _ in range(20):
        rest.failed()
        with pytest.raises(UnavailableError):
            rest.enter()
        clock.now += 30.0
        rest.enter()
        with pytest.raises(UnavailableError):
            rest.enter()  # one at a time finds out
    rest.answered()
    rest.enter()
    rest.enter()


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": 61}, {"answer": 1}, {"answer": 2 << 20}])
def test_limits_that_would_be_none_are_refused(limits: dict[str, int]) -> None:
    """A client always has a budget."""
    with pytest.raises(UsageError):
        ClientLimits(**limits)
