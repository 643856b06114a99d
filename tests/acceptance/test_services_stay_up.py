"""Services stay up: slow, silent, idle and greedy clients cost themselves; whoever speaks is answered."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import urllib.request
from collections.abc import Iterator

import pytest

from maia.clients import AddressPolicy, KeyManagerClient
from maia.errors import DeniedError
from maia.principals import KeySigner
from maia.testing import CROWDS, HEALTH, ManagedType, crowd, make_room, managed_type, served

MANY = 10_000 if os.environ.get("MAIA_TORTURE") else 700


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> ManagedType:
    """Give a home that manages the keys of its type."""
    return managed_type(tmp_path_factory.mktemp("up") / "clinic")


@pytest.fixture(scope="module")
def port(clinic: ManagedType) -> Iterator[int]:
    """Serve its key manager."""
    make_room(MANY)
    with served("key-manager", clinic.path) as port:
        yield port


def health(port: int) -> tuple[str, str]:
    """Ask whether all is well."""
    found = []
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            found.append(json.load(answer)["state"])
    return found[0], found[1]


@pytest.mark.fault("F25")
@pytest.mark.parametrize("kind", CROWDS)
def test_clients_of_every_kind_are_survived(clinic: ManagedType, port: int, kind: str) -> None:
    """With hundreds of them inside, health is told, a session that runs goes on, and a new one begins, every time."""
    url, policy = f"http://127.0.0.1:{port}", AddressPolicy(loopback=True)

    def connect(signer: KeySigner) -> KeyManagerClient:
        return KeyManagerClient(url, signer=signer, server_key=clinic.owner.public_key, policy=policy)

    with connect(clinic.owner) as running:
        assert running.status()
        with crowd(port, CROWDS[kind], MANY) as drip:
            answered = 0
            for _ in range(5):
                drip()
                assert health(port) == ("alive", "ready")
                assert running.status()
                with connect(KeySigner.generate()) as newcomer, pytest.raises(DeniedError):
                    newcomer.status()
                answered += 1
            assert answered == 5
    assert health(port) == ("alive", "ready")


@pytest.mark.fault("F25")
@pytest.mark.parametrize("kind", ["slow heads", "nothing at all"])
def test_a_connection_that_says_nothing_is_ended(port: int, kind: str) -> None:
    """Whoever sends no whole head is cut off by the service."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(CROWDS[kind].encode())
        peer.settimeout(60)
        try:
            assert peer.recv(1) == b""
        except ConnectionResetError:
            return


@pytest.mark.fault("F25")
def test_who_holds_most_connections_makes_room_for_newcomers(port: int) -> None:
    """A peer that has all places, answered once each, and goes on connecting shuts out nobody who is slow to speak."""
    question = HEALTH.encode()
    with contextlib.ExitStack() as stack:
        held = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)))
            for _ in range(520)
        ]
        for peer in held:
            with contextlib.suppress(OSError):
                peer.sendall(question)
                peer.recv(4096)
        guest = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        for _ in range(20):
            late = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)))
            with contextlib.suppress(OSError):
                late.sendall(question)
                late.recv(4096)
        guest.sendall(question)
        assert b" 200 " in guest.recv(4096)
