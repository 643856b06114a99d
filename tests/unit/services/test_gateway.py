"""The deadlines and limits of a gateway's connections, spoken to frame by frame over a port of this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_socket
from websockets.typing import Subprotocol

from echo_service import free_port
from maia.clients import AddressPolicy, connect
from maia.domain import OutboxPlace
from maia.errors import MaiaError
from maia.home import Home
from maia.services.gateway import GatewayLimits, make_gateway
from maia.services.gateway.connection import Connection, FollowedSubscription
from maia.services.http import Listening
from maia.services.http.sockets import GuardedSocket
from maia.testing import NumberplateHomes, numberplate_homes
from maia.wire import MAX_HELLO, MAX_PROVE, GatewayFrame, encode_key, encode_octets, read_frame, write_frame


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build homes without a network."""
    return numberplate_homes(tmp_path_factory.mktemp("limits"))


@contextmanager
def running(home: Path, **limits: Any) -> Iterator[int]:
    """Serve a gateway with limits of its own, in a thread."""
    port = free_port()
    app = make_gateway(Home.open(home), Listening(port=port), limits=GatewayLimits(**limits))
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, ws=GuardedSocket, ws_max_size=1 << 20, log_config=None, lifespan="on")
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.02)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def raw(port: int) -> Iterator[ClientConnection]:
    """Open a connection."""
    with connect_socket(
        f"ws://127.0.0.1:{port}/v1/connect", subprotocols=[Subprotocol("maia.json.v1")], proxy=None
    ) as connection:
        yield connection


def ends(connection: ClientConnection) -> str:
    """Hear why it ends, and that it does."""
    code = str(json.loads(connection.recv(timeout=30))["code"])
    with pytest.raises(ConnectionClosed):
        connection.recv(timeout=30)
    return code


def test_deadlines_and_places_end_in_codes(homes: NumberplateHomes) -> None:
    """Whoever does not prove its key in time, is silent, or is one too many is told so, and goes."""
    people, server = homes.network.people, homes.network.key("CB")

    def join(port: int, who: str) -> Callable[[], None]:
        made = connect(
            f"http://127.0.0.1:{port}", key=people[who], server=server, policy=AddressPolicy(loopback=True), seconds=30
        )
        return made.close

    with running(homes.ccs, handshake_seconds=1.0, unproven=1) as port, raw(port) as first:
        with raw(port) as second:
            assert ends(second) == "TOO_MANY_REQUESTS"
        assert ends(first) == "HANDSHAKE_TOO_SLOW"
    with running(homes.ccs, of_key=1, idle_seconds=2.0) as port:
        close = join(port, "BO")
        with pytest.raises(MaiaError) as refused:
            join(port, "BO")
        assert refused.value.code == "TOO_MANY_REQUESTS"
        close()
        gone = connect(
            f"http://127.0.0.1:{port}", key=people["SO"], server=server, policy=AddressPolicy(loopback=True), seconds=30
        )
        threading.Event().wait(3.0)
        with pytest.raises(MaiaError) as idle:
            gone.unsubscribe("nothing")
        assert idle.value.code == "IDLE"
        gone.close()


def test_before_a_key_is_proven_frames_are_small_and_read_beside_the_loop(
    homes: NumberplateHomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's large frame is not even read; one that holds certificates does not hold the others up."""
    read: list[tuple[int, str]] = []

    def read_and_tell(data: bytes) -> GatewayFrame:
        read.append((len(data), threading.current_thread().name))
        return read_frame(data)

    monkeypatch.setattr("maia.services.gateway.connection.read_frame", read_and_tell)
    key, zeros = encode_key(homes.network.key("BO")), encode_octets(bytes(32))
    with running(homes.ccs) as port:
        with raw(port) as connection:
            connection.send(write_frame("hello", key=key, nonce=zeros) + " " * MAX_HELLO)
            assert ends(connection) == "FRAME"
        assert read == []
        for size, code in ((16 << 10, "BAD_SIGNATURE"), (MAX_PROVE, "FRAME")):
            with raw(port) as connection:
                connection.send(write_frame("hello", key=key, nonce=zeros))
                assert json.loads(connection.recv(timeout=30))["op"] == "challenge"
                proof = write_frame("prove", own_nonce=zeros, proof=encode_octets(bytes(64)))
                connection.send(proof + " " * size)
                assert ends(connection) == code
    (first, loop), (second, beside), (third, again) = read
    assert first == third < MAX_HELLO < 16 << 10 < second < MAX_PROVE
    assert loop == again != beside


def test_credit_upon_credit_looks_for_nothing() -> None:
    """A subscription is looked at when it had no credit; one that has waits for events."""
    gateway: Any = SimpleNamespace(limits=GatewayLimits())
    connection = Connection(gateway, cast("Any", None))
    followed = connection._followed["mine"] = FollowedSubscription("mine", OutboxPlace())
    frame = read_frame(b'{"op": "credit", "name": "mine", "events": 2}')
    for looks in (True, False, False):
        connection._give_credit(frame)
        assert followed.look.is_set() is looks
        followed.look.clear()
    assert followed.credit == 6


def test_fragments_without_end_are_cut_off(homes: NumberplateHomes) -> None:
    """Empty fragments count against no limit of octets, and have one of their own."""
    with running(homes.ccs) as port, raw(port) as connection:
        with suppress(ConnectionClosed):
            connection.send("" for _ in range(3000))
        with pytest.raises(ConnectionClosed):
            connection.recv(timeout=30)
