"""Requests that any broker can check, and what brokers verify of them (6.12 to 6.14, 21.09, 22.11, 22.12)."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from maia.authority import Action, Verifier, type_right
from maia.errors import UsageError, VerificationError
from maia.events import type_id
from maia.filters import compile_filter
from maia.principals import Authorisation, KeySigner, issue
from maia.routing import (
    Advertise,
    AdvertisedLane,
    AskedRequest,
    Broker,
    Event,
    Gate,
    Lane,
    LinkHandshake,
    NeighbourTable,
    NetworkRequest,
    Packet,
    Pull,
    Pulled,
    Routes,
    Strategy,
    distance,
    identifier,
    rendezvous,
    sign_request,
    subject_of,
    verify_request,
)
from maia.simulator import Network, model
from maia.testing import Command

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECONDS = NOW.timestamp()
OWNER, CLIENT, THIEF = (KeySigner(bytes([number]) * 32) for number in (1, 2, 3))
NAME = "uk.gov.pito.Numberplate"
KEY = rendezvous(type_id(OWNER.public_key, NAME))
WISH = compile_filter("price > 3", {"price": "integer"})
HERE, THERE = identifier(b"here"), identifier(b"there")
ROOT, MIDDLE, EDGE = sorted("abc", key=lambda name: distance(identifier(name.encode()), KEY))
RIGHT = type_right(OWNER.public_key, NAME, actions=[Action.SUBSCRIBE])
CERTIFICATE = issue(
    Authorisation(issuer=OWNER.public_key, subject=CLIENT.public_key, delegate=False, tag=RIGHT.to_sexp()), OWNER
)


def request(signer: KeySigner = CLIENT, action: Action = Action.SUBSCRIBE, at: datetime = NOW) -> NetworkRequest:
    """Sign a wish for the type's events."""
    return sign_request(
        signer, action, OWNER.public_key, NAME, subject=subject_of(WISH), at=at, credentials=(CERTIFICATE.raw,)
    )


def broker(strategy: str = "always") -> Broker:
    """A broker alone, which verifies by a strategy."""
    gate = Gate(Strategy.parse(strategy), Verifier(), random.Random(7).random)
    return Broker(NeighbourTable(identifier(b"b")), gate=gate)


def line_of_three(*, late: int) -> Network:
    """Three brokers in a row, of which the first verifies nothing and sends on what a client signed, late."""

    def make(routes: Routes, life: int) -> Broker:
        if routes.own == net.place(EDGE):
            return Broker(routes, life=life)
        return Broker(routes, life=life, gate=Gate(Strategy(1.0), Verifier(), random.Random(7).random))

    net = Network(make=make)
    net.lay([(EDGE, MIDDLE), (MIDDLE, ROOT)])
    net.now = SECONDS + late
    net.at(EDGE).subscribe("c", KEY, WISH, now=net.now, evidence=request())
    net.flush(EDGE)
    net.drain()
    return net


def test_any_broker_checks_a_request_and_an_old_copy_is_a_replay() -> None:
    """The bytes verify anywhere within the window; ten minutes later they are a replay."""
    asked = request()
    assert verify_request(asked, Verifier(), at=NOW + timedelta(minutes=1)) == 2
    with pytest.raises(VerificationError, match="STALE_REQUEST"):
        verify_request(asked, Verifier(), at=NOW + timedelta(minutes=10))
    with pytest.raises(VerificationError, match="STALE_REQUEST"):
        verify_request(asked, Verifier(), at=NOW - timedelta(minutes=10))


CHANGES = {
    "another subject": {"subject": b"x"},
    "another action": {"action": Action.PUBLISH},
    "another type": {"name": "uk.gov.pito.Other"},
    "another time": {"stamp": NOW + timedelta(seconds=1)},
    "another key": {"key": THIEF.public_key},
    "no credentials": {"credentials": ()},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_in_a_request_can_be_exchanged(change: dict[str, Any]) -> None:
    """The signature covers all of it, and the right must be the signer's."""
    with pytest.raises(VerificationError):
        verify_request(replace(request(), **change), Verifier(), at=NOW)


@pytest.mark.requirement("6.13")
def test_a_quarter_of_the_requests_is_verified() -> None:
    """P = 0.25: of 10,000 forwarded requests 2,500 ± 130 are verified; what is not looked at passes."""
    gate = Gate(Strategy.parse("0.25"), Verifier(), random.Random(11).random)
    asked = AskedRequest(Action.SUBSCRIBE, KEY, subject_of(WISH))
    signed = request()
    assert all(gate.admits(signed, asked, at=SECONDS) for _ in range(10_000))
    assert 2370 <= gate.requests <= 2630


@pytest.mark.requirement("6.13")
@pytest.mark.parametrize(("strategy", "verified", "refused"), [("always", 1, 1), ("edge", 0, 0)])
def test_a_forged_request_ends_at_the_first_broker_that_verifies(
    tmp_path: Path, strategy: str, verified: int, refused: int
) -> None:
    """With `always` the broker after the rogue one refuses; with `edge` nobody behind the edge looks."""
    found = Command(tmp_path).do("simulate", "verify", "--strategy", strategy, "--brokers", "300")
    forged = found["checks"][-2]
    assert (forged["kind"], forged["requests"], forged["refused"]) == ("forged", verified, refused)
    assert all(item["refused"] == 0 for item in found["checks"][:-2])


@pytest.mark.requirement("6.12")
@pytest.mark.parametrize(("strategy", "refused"), [("always", 1), ("edge", 0)])
def test_a_broker_on_the_way_verifies_and_an_old_copy_ends_there(tmp_path: Path, strategy: str, refused: int) -> None:
    """Brokers in between verify a subscription and pass it on; the same octets ten minutes later are refused."""
    found = Command(tmp_path).do("simulate", "verify", "--strategy", strategy, "--brokers", "300")
    subscribed = [item for item in found["checks"] if item["kind"] == "subscribe"]
    replayed = found["checks"][-1]
    assert (replayed["kind"], replayed["refused"]) == ("replayed", refused)
    assert all(item["refused"] == 0 for item in subscribed)
    if strategy == "always":  # the client's own broker verifies in any case, here the others do as well
        assert all(item["requests"] > 1 for item in subscribed)


@pytest.mark.requirement("6.12")
def test_octets_that_passed_one_broker_pass_the_next_only_in_their_time() -> None:
    """The broker in the middle looks: a forwarded subscription leaves an entry, an old one none."""
    for late, entries in ((0, 3), (600, 1)):
        net = line_of_three(late=late)
        assert [net.at(name).entries for name in (EDGE, MIDDLE, ROOT)].count(1) == entries
        assert net.at(MIDDLE).refused == (1 if late else 0)


@pytest.mark.requirement("6.13")
def test_a_strategy_is_a_probability() -> None:
    """Anything else is refused."""
    for text in ("sometimes", "1.5", "-0.1", "nan"):
        with pytest.raises(UsageError, match="STRATEGY"):
            Strategy.parse(text)


@pytest.mark.requirement("6.14")
def test_what_a_neighbour_proved_is_in_its_routing_entry(tmp_path: Path) -> None:
    """A neighbour with {T1: subscribe, all attributes} brings nothing, nor a lane that ended; with more it does."""
    found = Command(tmp_path).do("simulate", "verify", "--brokers", "20", "--publishers", "1", "--subscribers", "1")
    neighbour = found["neighbour"]
    assert neighbour["rights"] == {"T1": {"subscribe": ["(*)"]}}
    assert (neighbour["refused"], neighbour["passed"]) == (2, [0, 1])
    # One message to each other at first, and one more with the new certificate alone.
    assert neighbour["shown"] == [2, 1]
    assert neighbour["gained"] == {
        "T1": {"subscribe": ["(*)"]}, "T2": {"publish": ["(*)"], "subscribe": ["(*)"]},
    }  # fmt: skip


def hands(*certificates: bytes, peer: KeySigner = CLIENT) -> tuple[LinkHandshake, LinkHandshake]:
    """Two brokers that have not met: one that shows certificates, and one that looks at them."""
    types = [(OWNER.public_key, NAME)]
    shows = LinkHandshake(HERE, peer, certificates, verifier=Verifier(), types=types)
    return shows, LinkHandshake(THERE, OWNER, (), verifier=Verifier(), types=types)


@pytest.mark.requirement("6.14")
def test_credentials_are_shown_to_one_neighbour_once_and_just_now() -> None:
    """A copy, a late one, one for another broker, one that was altered and one of another key: nothing is kept."""
    shows, looks = hands(CERTIFICATE.raw)
    shown = shows.meet(THERE, now=SECONDS)
    assert shown is not None
    for other, at in ((replace(shown, number=9), SECONDS), (replace(shown, certificates=()), SECONDS)):
        with pytest.raises(VerificationError):
            looks.take(HERE, other, now=at)
    with pytest.raises(VerificationError, match="STALE_CREDENTIALS"):
        looks.take(HERE, shown, now=SECONDS + 600)
    with pytest.raises(VerificationError):
        looks.take(identifier(b"elsewhere"), shown, now=SECONDS)
    assert Action.SUBSCRIBE in looks.take(HERE, shown, now=SECONDS).types[KEY].actions
    with pytest.raises(VerificationError, match="STALE_CREDENTIALS"):
        looks.take(HERE, shown, now=SECONDS)
    thief, _ = hands(peer=THIEF)
    for _ in range(3):
        thief.forget(THERE)
        assert thief.meet(THERE, now=SECONDS) is not None
    ((_, added),) = thief.gain([CERTIFICATE.raw], now=SECONDS)
    with pytest.raises(VerificationError, match="OTHER_KEY"):
        looks.take(HERE, added, now=SECONDS)
    stolen, looks = hands(CERTIFICATE.raw, peer=THIEF)
    other = stolen.meet(THERE, now=SECONDS)
    assert other is not None
    assert not looks.take(HERE, other, now=SECONDS).types


@pytest.mark.requirement("6.14")
def test_who_has_shown_nothing_brings_nothing() -> None:
    """A broker that asks for credentials refuses an advertisement of a neighbour that did not show any."""
    _, looks = hands()
    here = Broker(NeighbourTable(THERE), handshake=looks)
    offered = Advertise(KEY, (AdvertisedLane(Lane(HERE, 1, KEY), 0, (WISH,)),))
    here.receive(Packet(HERE, THERE, 1, 0, 1, 0, offered), now=SECONDS)
    assert (here.entries, here.refused, here.rights_of(HERE)) == (0, 1, None)


def test_what_a_lane_hands_over_later_is_verified_as_well() -> None:
    """A rogue broker says that its lane ended, so that others ask for its events; what nobody signed is refused."""
    gate = Gate(Strategy.parse("always"), Verifier(), random.Random(7).random)
    reader = Broker(NeighbourTable(HERE), gate=gate)
    reader.subscribe("c", KEY, WISH, now=SECONDS, evidence=request())
    rogue = Lane(THERE, 1, KEY)
    told = [
        Advertise(KEY, (AdvertisedLane(rogue, 1, (), closed=True),)),
        Pulled(rogue, 0, 1, (Event(1, SECONDS + 1, {"price": 9}),)),
    ]
    for number, message in enumerate(told, 1):
        reader.receive(Packet(THERE, HERE, 1, 0, number, 0, message), now=SECONDS + 2)
    assert any(isinstance(packet.message, Pull) for packet in reader.take_packets())
    assert (reader.take_deliveries(), reader.refused) == ([], 1)


@pytest.mark.requirement("21.09")
def test_signature_checks_stay_below_the_model(tmp_path: Path) -> None:
    """C = 2, p = 3, s = 5: 120, 30 and 180 for ways of 10 hops, and what is counted is at most the bound."""
    assert model(chain=2, publishers=3, subscribers=5, way=10) == {"advertise": 30, "subscribe": 120, "publish": 180}
    found = Command(tmp_path).do(
        "simulate", "verify", "--chain", "2", "--publishers", "3", "--subscribers", "5", "--strategy", "always"
    )
    kinds = [item["kind"] for item in found["checks"]]
    assert kinds == ["advertise"] * 3 + ["subscribe"] * 5 + ["publish", "forged", "replayed"]
    for item in found["checks"][:-2]:
        assert 3 <= item["signatures"] <= item["bound"]
        assert item["signatures"] == 3 * item["requests"]


def test_a_broker_takes_a_request_once() -> None:
    """The second copy of the same bytes is refused, and so is a request without a signature."""
    here = broker()
    here.subscribe("c", KEY, WISH, now=SECONDS, evidence=request())
    with pytest.raises(VerificationError, match="REPLAYED_REQUEST"):
        here.subscribe("c", KEY, WISH, now=SECONDS, evidence=request())
    with pytest.raises(VerificationError, match="UNSIGNED_REQUEST"):
        here.subscribe("c", KEY, WISH, now=SECONDS)
    here.subscribe("c", KEY, WISH, now=SECONDS, evidence=request(at=NOW + timedelta(seconds=1)))
    assert here.entries == 1


@pytest.mark.requirement("22.12")
def test_a_stolen_certificate_serves_nobody_but_its_subject() -> None:
    """Whoever signs with another key has no right by it; nor does a request serve for another filter or action."""
    here = broker()
    with pytest.raises(VerificationError):
        here.subscribe("c", KEY, WISH, now=SECONDS, evidence=request(THIEF))
    with pytest.raises(VerificationError, match="OTHER_REQUEST"):
        here.advertise("c", KEY, now=SECONDS, evidence=request())
    other = compile_filter("price > 2", {"price": "integer"})
    with pytest.raises(VerificationError, match="OTHER_REQUEST"):
        here.subscribe("c", KEY, other, now=SECONDS, evidence=request())
    assert here.entries == 0
