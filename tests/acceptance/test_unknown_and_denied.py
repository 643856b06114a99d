"""Who has no right learns nothing of what there is: unknown and denied are the same answer, octet for octet.

What differs between any two answers is left out: the time, the signature, and the nonce that it is bound to. `make
torture` compares how long the answers take as well, as two samples; no test of CI measures time.
"""

from __future__ import annotations

import math
import os
import re
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from maia.clients import AccessControlClient, AddressPolicy, KeyManagerClient
from maia.encryption import KeyGroupId
from maia.errors import DeniedError
from maia.principals import KeySigner
from maia.testing import managed_type, numberplate_homes, served

TORTURE = bool(os.environ.get("MAIA_TORTURE"))
SAMPLES = 20_000
MOST = 4.5
"""The statistic of Welch below which two samples are not told apart; that of the row of the threat."""
LOOPBACK = AddressPolicy(loopback=True)
_BESIDE = "127.0.0.2"
_ALWAYS_OTHER = re.compile(rb"^(date|signature|signature-input): .*$", re.IGNORECASE | re.MULTILINE)

Ask = Callable[[Any], object]


class Relay:
    """Carries octets to a service and back, and keeps what came back; clients take it for the service's host."""

    def __init__(self, port: int) -> None:
        """Listen beside the service, on another address of this machine."""
        self._service, self.answers = port, bytearray()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server((_BESIDE, port))
        self.reached: dict[str, Any] = {
            "url": f"http://localhost:{port}", "policy": LOOPBACK, "resolver": lambda *_: (_BESIDE,),
        }  # fmt: skip
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._service))
            self._open += (near, far)
            threading.Thread(target=self._carry, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, self.answers), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
        try:
            while data := source.recv(65536):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        """Listen no more, and carry nothing."""
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def answer(self, ask: Callable[[], object]) -> bytes:
        """Ask what is refused; give the answer without what is never the same."""
        self.answers.clear()
        with pytest.raises(DeniedError) as refusal:
            ask()
        assert refusal.value.code == "DENIED"
        return _ALWAYS_OTHER.sub(lambda found: found[1] + b": %d" % len(found[0]), bytes(self.answers))


@contextmanager
def relayed(what: str, home: Path) -> Iterator[Relay]:
    """Run a service behind a relay."""
    with served(what, home) as port:
        relay = Relay(port)
        yield relay
        relay.close()


@pytest.fixture(scope="module", params=["key-manager", "acs"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give a relay, a stranger's client, and pairs of questions: about something that is there and something not."""
    root, stranger = tmp_path_factory.mktemp(request.param), KeySigner.generate()
    if request.param == "key-manager":
        clinic = managed_type(root / "clinic")
        there, nowhere = KeyGroupId(clinic.type_id, b"11"), KeyGroupId(clinic.type_id, b"99")
        questions: dict[str, tuple[Ask, Ask]] = {
            "rekeys of a group": (lambda client: client.rekeys(there), lambda client: client.rekeys(nowhere)),
            "a refresh of a group": (lambda client: client.refresh(there), lambda client: client.refresh(nowhere)),
        }
        server = clinic.owner.public_key
        with (
            relayed("key-manager", clinic.path) as relay,
            KeyManagerClient(signer=stranger, server_key=server, **relay.reached) as client,
        ):
            yield relay, client, questions
        return
    homes = numberplate_homes(root)
    met = homes.network.people["Met"]
    questions = {
        "the end of a member": (
            lambda client: client.revoke(principal="smith"), lambda client: client.revoke(principal="nobod"),
        ),
        "a fact that is taken back": (
            lambda client: client.retract("detective(smith)"), lambda client: client.retract("detective(nobod)"),
        ),
    }  # fmt: skip
    with relayed("acs", homes.met) as relay:
        with AccessControlClient(signer=met, server_key=met.public_key, **relay.reached) as chief:
            assert chief.appoint("detective(smith)")
            chief.invite("smith")
        with AccessControlClient(signer=stranger, server_key=met.public_key, **relay.reached) as client:
            yield relay, client, questions


@pytest.mark.threat("T57")
def test_unknown_and_denied_are_one_answer(asked: Any) -> None:
    """Status, fields and body are the same octets, whether there is such a thing or not."""
    relay, client, questions = asked
    for name, (there, nowhere) in questions.items():
        relay.answer(lambda there=there: there(client))  # with the handshake in front
        one = relay.answer(lambda there=there: there(client))
        two = relay.answer(lambda nowhere=nowhere: nowhere(client))
        assert one == two, name
        assert one.startswith(b"HTTP/1.1 403 "), name


@pytest.mark.threat("T57")
@pytest.mark.skipif(not TORTURE, reason="compares how long answers take, which `make torture` does")
@pytest.mark.timeout(14_400)
def test_unknown_and_denied_take_the_same_time(asked: Any) -> None:
    """Two samples of answers, asked in turn, the dearest hundredth left out: Welch's t does not tell them apart."""
    _, client, questions = asked
    for name, pair in questions.items():
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(SAMPLES * 2):
            ask, begun = pair[number % 2], time.perf_counter()
            with pytest.raises(DeniedError):
                ask(client)
            taken[number % 2].append(time.perf_counter() - begun)
        assert abs(welch(*(sorted(some)[: -SAMPLES // 100] for some in taken))) < MOST, name


def welch(one: list[float], two: list[float]) -> float:
    """Give the statistic of Welch of two samples."""
    spread = sum(statistics.variance(some) / len(some) for some in (one, two))
    return (statistics.fmean(one) - statistics.fmean(two)) / math.sqrt(spread)


def test_two_samples_that_differ_are_told_apart() -> None:
    """The comparison finds a difference of a twentieth of what an answer takes."""
    answers = [1 + (number * 37 % 101) / 500 for number in range(5_000)]
    slower = [value * 1.05 for value in answers]
    assert abs(welch(answers, list(reversed(answers)))) < MOST < abs(welch(answers, slower))
