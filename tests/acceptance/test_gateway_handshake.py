"""Both sides of a connection prove who they are, over the channel between them; nobody in between gains anything."""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gateway_world import (
    LOOPBACK,
    SECONDS,
    Between,
    GatewayProcess,
    any_certificate,
    gateway_of,
    join,
    plates,
    raw_socket,
    self_signed,
    sighting,
    take,
    told,
)
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_socket
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as serve_socket
from websockets.typing import Subprotocol

from maia import wire
from maia.authority import Action, network_right, type_right
from maia.clients import ServiceClient, connect
from maia.encoding import encode
from maia.errors import DeniedError, UnavailableError, UsageError, VerificationError
from maia.principals import KeySigner, NonceProof, prove_by_nonce
from maia.testing import NETWORK_NAME, TYPE_NAME, Command, NumberplateHomes, grant, numberplate_homes

CHANNEL = wire.LOOPBACK


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes; the right of the billing office to connect and to subscribe is not known to its broker."""
    root = tmp_path_factory.mktemp("handshake")
    return numberplate_homes(root, network=True, without=["Cap3b-SO", "Cap9"])


@pytest.fixture(scope="module")
def carried() -> Between:
    """Stand between clients and the gateway."""
    return Between()


@pytest.fixture(scope="module")
def gateway(world: NumberplateHomes, carried: Between) -> Iterator[GatewayProcess]:
    """Run a gateway on this machine, without TLS."""
    with gateway_of(world.ccs, between=(carried,)) as running:
        yield running


def hello(signer: KeySigner, random: bytes) -> str:
    """Begin a handshake."""
    return wire.write_frame("hello", key=wire.encode_key(signer.public_key), nonce=wire.encode_octets(random))


def prove(offer: dict[str, Any], signer: KeySigner, random: bytes, **more: Any) -> str:
    """Answer a challenge."""
    own = secrets.token_bytes(32)
    shown = wire.ServerProof(
        challenge=wire.decode_octets(offer["challenge"], length=wire.CHALLENGE_LENGTH),
        nonce=wire.decode_octets(offer["nonce"], length=32), signature=wire.decode_octets(offer["proof"], length=64),
    )  # fmt: skip
    server = wire.decode_key(offer["key"])
    found: NonceProof = wire.answer_challenge(
        shown, signer=signer, server=server, random=random, own_nonce=own, channel=CHANNEL
    )
    return wire.write_frame(
        "prove", own_nonce=wire.encode_octets(own), proof=wire.encode_octets(found.signature), **more
    )


class FakeBroker:
    """Listens as a gateway and keeps what it hears; how it answers is its own choice."""

    def __init__(self, signer: KeySigner, **shown: Any) -> None:
        """Serve with a key; ``shown`` replaces fields of its challenge."""
        self._signer, self._shown = signer, shown
        self.heard: list[str] = []
        self._server = serve_socket(
            self._talk, "127.0.0.1", 0, subprotocols=[Subprotocol(wire.JSON_PROTOCOL)], compression=None
        )
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _talk(self, connection: ServerConnection) -> None:
        first = json.loads(connection.recv(timeout=SECONDS))
        key, random = wire.decode_key(first["key"]), wire.decode_octets(first["nonce"], length=32)
        challenger = wire.Challenger(self._signer, channel=CHANNEL, secret=b"s" * 32)
        offer = challenger.challenge(
            key, random, own=secrets.token_bytes(32), nonce=secrets.token_bytes(32), at=datetime.now(UTC)
        )
        fields = {
            "key": wire.encode_key(self._signer.public_key), "challenge": wire.encode_octets(offer.challenge),
            "nonce": wire.encode_octets(offer.nonce), "proof": wire.encode_octets(offer.signature),
            "certificates": [], "statements": [],
        }  # fmt: skip
        connection.send(wire.write_frame("challenge", **(fields | self._shown)))
        try:
            while True:
                self.heard.append(str(connection.recv(timeout=SECONDS)))
        except Exception:  # noqa: BLE001 - the client went
            return

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()


@pytest.mark.requirement("6.05")
def test_what_a_key_signs_as_a_server_does_not_prove_it_as_a_client(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """Over one random number and channel: what is signed as a client is taken; as a server, or as nobody, it is not."""
    billing, random = world.network.people["BO"], secrets.token_bytes(32)
    for roles, expected in (((b"client",), "welcome"), ((b"server",), "problem"), ((), "problem")):
        with raw_socket(gateway) as connection:
            connection.send(hello(billing, random))
            offer = told(connection)
            challenge = wire.decode_octets(offer["challenge"], length=wire.CHALLENGE_LENGTH)
            bound = hashlib.sha256(encode((b"maia/1 handshake", *roles, challenge, CHANNEL))).digest()
            proof = prove_by_nonce(
                billing, audience=wire.decode_key(offer["key"]).key_id, challenge=bound, own_nonce=random
            )
            connection.send(wire.write_frame(
                "prove", own_nonce=wire.encode_octets(random), proof=wire.encode_octets(proof.signature)
            ))  # fmt: skip
            answer = told(connection)
            assert answer["op"] == expected, roles
            assert expected == "welcome" or (answer["status"], answer["code"]) == (401, "BAD_SIGNATURE")


@pytest.mark.requirement("6.05")
def test_both_sides_prove_their_keys_in_one_run(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """Both right: a session. A wrong signature of the broker: the client closes; of the client: the broker does."""
    with join(gateway, world, "BO") as billing:
        assert (billing.name, billing.server) == ("BO", world.network.key("CB"))
    fake = FakeBroker(world.network.people["CB"], proof=wire.encode_octets(b"\1" * 64))
    try:
        with pytest.raises(VerificationError) as refused:
            connect(fake.url, key=world.network.people["BO"], server=world.network.key("CB"), policy=LOOPBACK)
        assert (refused.value.code, fake.heard) == ("BAD_SIGNATURE", [])
    finally:
        fake.close()
    random = secrets.token_bytes(32)
    with raw_socket(gateway) as connection:
        connection.send(hello(world.network.people["BO"], random))
        offer = told(connection)
        answer = json.loads(prove(offer, world.network.people["BO"], random))
        connection.send(json.dumps(answer | {"proof": wire.encode_octets(b"\2" * 64)}))
        refusal = told(connection)
        assert (refusal["status"], refusal["code"]) == (401, "BAD_SIGNATURE")


def test_a_proof_that_was_overheard_is_worth_nothing(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """The same octets over another connection do not answer its random number."""
    billing, random = world.network.people["BO"], secrets.token_bytes(32)
    with raw_socket(gateway) as connection:
        connection.send(hello(billing, random))
        proof = prove(told(connection), billing, random)
        connection.send(proof)
        assert told(connection)["op"] == "welcome"
    with raw_socket(gateway) as connection:
        connection.send(hello(billing, random))
        told(connection)
        connection.send(proof)
        answer = told(connection)
        assert (answer["op"], answer["status"], answer["code"]) == ("problem", 401, "BAD_SIGNATURE")
    with raw_socket(gateway) as connection:
        connection.send(wire.write_frame("subscribe", id=1, type=TYPE_NAME, name="early"))
        assert told(connection)["code"] == "NOT_AUTHENTICATED"


@pytest.mark.requirement("22.11")
def test_a_signed_request_counts_once(gateway: GatewayProcess, world: NumberplateHomes, carried: Between) -> None:
    """The second copy of a request, octet for octet, is refused, and so is a second copy of a proof."""
    people, server = world.network.people, world.network.key("CB")
    with ServiceClient(f"http://{carried.name}", signer=people["CCTV"], server_key=server, policy=LOOPBACK) as client:
        client.call("POST", "/v1/publications", body={"type": TYPE_NAME, "rows": [sighting("REPLAY")]})
    sent = bytes(carried.up)
    begin, then = sent.index(b"POST /v1/session"), sent.index(b"POST /v1/publications")
    for copy in (sent[begin:then], sent[then:]):
        status, body = _exchange(gateway.port, copy)
        assert (status, json.loads(body)["code"]) == (401, "REPLAY")


def _exchange(port: int, request: bytes) -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(request)
        found = b""
        while b"\r\n\r\n" not in found or not found.endswith(b"}"):
            found += connection.recv(65536)
    return int(found.split()[1]), found.partition(b"\r\n\r\n")[2]


@pytest.mark.requirement("6.06")
@pytest.mark.requirement("22.09")
def test_a_broker_outside_the_network_hears_no_request(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """A chain of its own making, or none, convinces no client; one that is in the network may not be another either."""
    rogue, network = KeySigner.generate(), (world.network.key("PITO"), NETWORK_NAME)
    own = network_right(world.network.key("PITO"), NETWORK_NAME, [Action.CONNECT])
    made = [grant(rogue, rogue, own, delegate=True).raw, grant(KeySigner.generate(), rogue, own).raw]
    borrowed = [item.raw for item in world.network.some("Cap1b", "Cap2b")]
    for shown in (made, [], borrowed, [*made, *borrowed]):
        fake = FakeBroker(rogue, certificates=[wire.encode_octets(raw) for raw in shown])
        try:
            with pytest.raises(VerificationError):
                connect(fake.url, key=world.network.people["BO"], network=network, policy=LOOPBACK)
            assert fake.heard == []
        finally:
            fake.close()
    with pytest.raises(VerificationError) as other:
        join(gateway, world, "BO", server=world.network.key("MB"))
    assert other.value.code == "WRONG_SERVER"
    with pytest.raises(UsageError) as nobody:
        connect(gateway.url, key=world.network.people["BO"], policy=LOOPBACK)
    assert nobody.value.code == "SERVER_UNKNOWN"


def test_a_connection_names_the_gateway_that_it_means(gateway: GatewayProcess) -> None:
    """What names another host is refused before anything is said, so that no page of elsewhere is led here."""
    raw = socket.create_connection(("127.0.0.1", gateway.port))
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect_socket(
            f"ws://elsewhere.example:{gateway.port}/v1/connect", sock=raw, proxy=None,
            subprotocols=[Subprotocol(wire.JSON_PROTOCOL)],
        ),
    ):  # fmt: skip
        pass
    raw.close()


def test_who_is_no_client_of_the_domain_is_not_let_in(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """A stranger, a client of another domain, the broker itself, and a client that may not connect."""
    refusals = set()
    for key in (KeySigner.generate(), *(world.network.people[who] for who in ("Smith", "CB", "SO"))):
        with pytest.raises(DeniedError) as refused:
            join(gateway, world, "BO", key=key)
        refusals.add(str(refused.value))
    assert len(refusals) == 1
    audited = Command(world.ccs)("audit", "--json").out
    assert all(word in audited for word in ("/v1/connect", "NO_SUCH_KEY", "NOT_A_CLIENT"))


def test_a_client_discloses_what_a_request_needs_and_more_later(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """It connects by the certificates that let it connect, and shows those to subscribe when it subscribes."""
    connects = [item.raw for item in world.network.some("Cap1b", "Cap3b-SO")]
    reads = [item.raw for item in world.network.some("Cap6", "Cap9")]
    kept = world.ccs / "certificates"
    before = {path.name for path in kept.glob("*.cert")}
    with pytest.raises(DeniedError):
        join(gateway, world, "SO", credentials=reads)
    assert {path.name for path in kept.glob("*.cert")} == before
    with join(gateway, world, "SO", credentials=connects) as office, join(gateway, world, "CCTV") as camera:
        with pytest.raises(DeniedError):
            office.subscribe(TYPE_NAME, name="office")
        with pytest.raises(DeniedError):
            office.subscribe(TYPE_NAME, name="office", credentials=[*connects, world.network.some("Cap7")[0].raw])
        more = grant(KeySigner.generate(), world.network.people["SO"], type_right(None, actions=[Action.SUBSCRIBE])).raw
        events = office.subscribe(TYPE_NAME, name="office", credentials=[*connects, *reads, more])
        assert more not in [path.read_bytes() for path in kept.glob("*.cert")]
        camera.publish([sighting("SHOWN")], TYPE_NAME)
        assert [event["location"] for event in take(events, 1)] == ["Victoria"]


@pytest.mark.requirement("22.06")
def test_over_tls_nobody_in_between_reads_or_injects(world: NumberplateHomes, tmp_path: Path) -> None:
    """A capture has no content; what is changed on the way is rejected; whoever ends the TLS convinces nobody."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(*self_signed(tmp_path, "middle"))
    carried, middle = Between(), Between(tls=own, onward=any_certificate())
    people, network = world.network.people, (world.network.key("PITO"), NETWORK_NAME)
    named: dict[str, Any] = {"tls": any_certificate(), "policy": LOOPBACK, "network": network, "seconds": SECONDS}
    with gateway_of(world.ccs, tls=self_signed(tmp_path, "gateway"), between=(carried, middle)):
        # Its certificate is for no host and of no authority: which broker it is, its key proves over this channel.
        there = f"https://{carried.name}"
        with (
            connect(there, key=people["BO"], **named) as billing,
            connect(there, key=people["CCTV"], **named) as camera,
        ):
            events = billing.subscribe(TYPE_NAME, name="tls")
            camera.publish([sighting("TLS 1")], TYPE_NAME)
            assert plates(take(events, 1)) == ["TLS 1"]
            whole = bytes(carried.up + carried.down)
            assert len(whole) > 2000
            assert not any(word in whole for word in (b"TLS 1", b"Victoria", b"Numberplate", b"publish"))
            carried.change = _flipped
            with pytest.raises(UnavailableError):
                camera.publish([sighting("TLS 2")], TYPE_NAME)
        with pytest.raises(VerificationError) as between:
            connect(f"https://{middle.name}", key=people["BO"], **named)
        assert between.value.code == "BAD_SIGNATURE"
        assert b"prove" not in middle.up
        with pytest.raises(UnavailableError):  # without `tls` the system's authorities vouch for it, and none does
            connect(there, key=people["BO"], policy=LOOPBACK, network=network)
    refused = Command(world.ccs)("serve", "gateway", "--host", "0.0.0.0")  # noqa: S104 - which is refused
    assert (refused.code, "TLS_REQUIRED" in refused.out + refused.err) == (2, True)


def _flipped(data: bytes, up: bool) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1]) if up else data
