"""Clients that are not Spark programs: the five operations over a gateway that runs as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_world import (
    LOOPBACK,
    SECONDS,
    GatewayProcess,
    gateway_of,
    join,
    plates,
    raw_socket,
    sighting,
    take,
    told,
)

import maia
from maia.clients import GatewayClient, GatewaySubscription, ServiceClient
from maia.errors import DeniedError, MaiaError, MalformedError, RowsRefusedError, UnavailableError, UsageError
from maia.testing import TYPE_NAME, Command, NumberplateHomes, numberplate_homes

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "examples" / "gateway"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes, on a network."""
    return numberplate_homes(tmp_path_factory.mktemp("gateway"), network=True)


@pytest.fixture(scope="module")
def gateway(world: NumberplateHomes) -> Iterator[GatewayProcess]:
    """Run one gateway for the tests that do not end it."""
    with gateway_of(world.ccs) as running:
        yield running


@pytest.mark.requirement("7.01")
def test_clients_have_the_five_operations_and_no_other(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """Advertise, publish, subscribe and their ends, by name or by definition; types are not managed over brokers."""
    surface = {name for name in vars(GatewayClient) if not name.startswith("_")}
    assert surface == {"advertise", "unadvertise", "publish", "subscribe", "unsubscribe", "close"}
    definition = next((world.ccs / "types").rglob("*.type"), None) or next(
        path for path in (world.ccs / "types").rglob("*") if path.is_file()
    )
    seen: list[str] = []
    with join(gateway, world, "CCTV") as camera, join(gateway, world, "BO") as billing:
        camera.advertise(definition.read_bytes())
        called = billing.subscribe(TYPE_NAME, callback=lambda event: seen.append(event["numberplate"]), name="five")
        camera.publish([sighting("FIVE 1")], TYPE_NAME)
        end = time.monotonic() + SECONDS
        while not seen and time.monotonic() < end:
            time.sleep(0.01)
        assert seen == ["FIVE 1"]
        billing.unsubscribe(called)
        camera.unadvertise(TYPE_NAME)
        with pytest.raises(DeniedError) as refused:
            camera.publish([sighting("FIVE 2")], TYPE_NAME)
        assert refused.value.code == "NOT_ADVERTISED"
        camera.advertise(TYPE_NAME)
        with pytest.raises(MaiaError):
            billing.unsubscribe("five")
    for operation in ("addEventType", "removeEventType", "hello2"):
        with raw_socket(gateway) as connection:
            connection.send(json.dumps({"op": operation, "id": 1, "name": "five"}))
            answer = told(connection)
            assert (answer["op"], answer["code"], answer["id"]) == ("problem", "FRAME", 1)


@pytest.mark.threat("T57")
def test_who_takes_back_what_it_never_advertised_learns_nothing(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """A type of others, another version of it and one that nobody defined are one answer."""
    answers = set()
    with join(gateway, world, "SO") as settlement:
        for name in (TYPE_NAME, f"{TYPE_NAME}@9", "uk.gov.nobody", "@", "nobody/uk.gov.nobody"):
            with pytest.raises(MaiaError) as refused:
                settlement.unadvertise(name)
            answers.add((type(refused.value), refused.value.code, str(refused.value)))
    assert {(kind, code) for kind, code, _ in answers} == {(DeniedError, "NOT_ADVERTISED")}
    assert len(answers) == 1


def test_an_acknowledgement_names_the_commit_and_every_refused_row(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """What is acknowledged is in the log at once; a bad row costs nobody else, and says its code and column."""
    rows = [sighting("ACK 1"), {"numberplate": 42}, {"colour": "red"}, sighting("ACK 2")]
    with join(gateway, world, "CCTV") as camera:
        done = camera.publish(rows, TYPE_NAME)
        assert (done.events, {(item.code, item.column): item.rows for item in done.refused}) == (
            2, {("VALUE_TYPE", "numberplate"): (1,), ("NO_ATTRIBUTE", "colour"): (2,)},
        )  # fmt: skip
        with maia.open(world.ccs) as domain:
            found = domain.lanes.find(done.publication)
            assert found is not None
            assert (found.sequence, found.events) == (done.commit, 2)
        with pytest.raises(RowsRefusedError) as refused:
            camera.publish([{"numberplate": 42}], TYPE_NAME)
        assert refused.value.published.commit is None


def test_publications_are_committed_in_groups(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """Twenty requests at once take fewer commits, and each is answered for its own rows."""
    answers: list[tuple[int, int | None, int]] = []
    with join(gateway, world, "CCTV") as camera:

        def publish(number: int) -> None:
            rows = [sighting(f"GROUP {number}")] * 2 + [{"numberplate": number}] * (number % 2)
            done = camera.publish(rows, TYPE_NAME)
            answers.append((done.events, done.commit, sum(len(item.rows) for item in done.refused)))

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted((events, refused) for events, _, refused in answers) == [(2, 0)] * 10 + [(2, 1)] * 10
    assert len({commit for _, commit, _ in answers}) < 20


def test_a_named_publication_counts_once_and_is_its_clients_own(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """Sent again it adds nothing; the name of one client says nothing to another."""
    with join(gateway, world, "CCTV") as camera:
        first = camera.publish([sighting("ONCE 1")], TYPE_NAME, publication="once")
        again = camera.publish([sighting("ONCE 1")], TYPE_NAME, publication="once")
    assert (again.commit, again.events, again.repeated, first.repeated) == (first.commit, 1, True, False)
    with join(gateway, world, "BO") as billing, pytest.raises(DeniedError) as refused:
        billing.publish([sighting("ONCE 2")], TYPE_NAME, publication="once")
    assert refused.value.code == "DENIED"


def test_a_client_sees_what_it_may_and_unknown_is_as_denied(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """Closed cells are null, a filter over them is refused, and what is not there looks like what is not allowed."""
    with join(gateway, world, "SO") as office, join(gateway, world, "CCTV") as camera:
        found = office.subscribe(TYPE_NAME, where="location = 'Victoria'", name="statistics")
        camera.publish([sighting("SEEN 1")], TYPE_NAME)
        (event,) = take(found, 1)
        assert (event["numberplate"], event["location"]) == (None, "Victoria")
        with pytest.raises(DeniedError) as closed:
            office.subscribe(TYPE_NAME, where="numberplate = 'SEEN 1'", name="plates")
        assert closed.value.code == "FILTER_NOT_AUTHORISED"
        with pytest.raises(DeniedError) as denied:
            camera.subscribe(TYPE_NAME, name="camera")
        with pytest.raises(DeniedError) as unknown:
            camera.subscribe("uk.gov.pito.Nothing", name="camera")
        assert (str(denied.value), denied.value.code) == (str(unknown.value), unknown.value.code)
        with pytest.raises(DeniedError) as foreign:
            camera.unsubscribe("statistics")
        assert foreign.value.code == "NOT_YOUR_SUBSCRIPTION"


def test_a_client_publishes_over_plain_http(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """One signed request, by the same path: committed when it is answered, and refused by the same rights."""
    people, server = world.network.people, world.network.key("CB")
    body = {"type": TYPE_NAME, "rows": [sighting("HTTP 1"), {"numberplate": 1}], "publication": "by-http"}
    with ServiceClient(gateway.url, signer=people["CCTV"], server_key=server, policy=LOOPBACK) as camera:
        done = camera.call("POST", "/v1/publications", body=body)
        assert isinstance(done, dict)
        assert done["events"] == 1
        assert done["refused"] == [{"code": "VALUE_TYPE", "column": "numberplate", "rows": [1]}]
        again = camera.call("POST", "/v1/publications", body=body)
        assert isinstance(again, dict)
        assert (again["commit"], again["repeated"]) == (done["commit"], True)
    with (
        ServiceClient(gateway.url, signer=people["BO"], server_key=server, policy=LOOPBACK) as billing,
        pytest.raises(DeniedError),
    ):
        billing.call("POST", "/v1/publications", body=body)


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xfe",
        "{",
        "[]",
        '{"op": "publish"}',
        '{"op": "unsubscribe", "id": 1, "name": "x", "force": true}',
        '{"op": "hello", "key": 7, "nonce": ""}',
        '{"op": "hello", "op": "x"}',
    ],
)
def test_a_frame_that_cannot_be_read_is_answered_with_a_code_and_ends(
    gateway: GatewayProcess, frame: str | bytes
) -> None:
    """The gateway says what is wrong, closes, and writes no traceback."""
    with raw_socket(gateway) as connection:
        connection.send(frame, text=True)
        answer = told(connection)
        assert (answer["op"], answer["status"], answer["code"]) == ("problem", 400, "FRAME")
        with pytest.raises(Exception, match="1002"):
            connection.recv(timeout=SECONDS)
    assert "Traceback" not in gateway.said()


def test_limits_end_in_refusals(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """A frame that is too large ends the connection; subscriptions of a connection and credit have limits."""
    with raw_socket(gateway, max_size=None) as connection:
        connection.send(json.dumps({"op": "hello", "key": "x" * (1 << 20), "nonce": ""}))
        with pytest.raises(Exception, match="1009"):
            connection.recv(timeout=SECONDS)
    with join(gateway, world, "BO") as billing:
        with pytest.raises(UsageError):
            billing.subscribe(TYPE_NAME, window=10_001)
        opened = [billing.subscribe(TYPE_NAME, name=f"many-{number}") for number in range(64)]
        with pytest.raises(MalformedError) as refused:
            billing.subscribe(TYPE_NAME, name="one-more")
        assert refused.value.code == "TOO_MANY_SUBSCRIPTIONS"
        for one in opened:
            billing.unsubscribe(one)


def test_more_requests_than_allowed_are_told_to_come_back(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """Of a hundred requests at once some are refused with a code of their own; none is lost without an answer."""
    with join(gateway, world, "CCTV") as camera:
        talk = camera._talk
        for number in range(1000, 1100):
            talk._waiting[number] = None  # heard below, by their codes
        codes: Counter[str] = Counter()
        heard = threading.Event()

        def hand_on(frame: dict[str, object]) -> None:
            codes[str(frame.get("code", frame["op"]))] += 1
            if sum(codes.values()) == 100:
                heard.set()

        talk._hand_on = hand_on  # type: ignore[method-assign, assignment]
        for number in range(1000, 1100):
            talk.say("publish", id=number, type=TYPE_NAME, rows=[sighting("FLOOD")])
        assert heard.wait(SECONDS)
        talk._waiting.clear()
    assert set(codes) == {"published", "TOO_MANY_REQUESTS"}
    assert codes["published"] >= 32


def test_a_reader_without_credit_is_sent_nothing_and_slows_nobody(
    gateway: GatewayProcess, world: NumberplateHomes
) -> None:
    """Events wait in the outbox, not in memory; the others get theirs; and it gets all of them when it reads on."""
    # A subscription gets what was not delivered yet when it began: first all that came before has to be.
    with join(gateway, world, "BO") as before, join(gateway, world, "CCTV") as camera:
        early = before.subscribe(TYPE_NAME, name="early")
        camera.publish([sighting("CAUGHT UP")], TYPE_NAME)
        while plates(take(early, 1)) != ["CAUGHT UP"]:
            pass
    with (
        join(gateway, world, "BO") as slow,
        join(gateway, world, "SO") as quick,
        join(gateway, world, "CCTV") as camera,
    ):
        waiting = slow.subscribe(TYPE_NAME, name="slow", window=2)
        running = quick.subscribe(TYPE_NAME, name="quick")
        for number in range(5):
            camera.publish([sighting(f"SLOW {number} {part}") for part in range(4)], TYPE_NAME)
        take(running, 20)
        assert _waits(waiting) <= 2
        first = take(waiting, 3)
        place = waiting.after
        slow.close()
        with join(gateway, world, "BO") as back:
            rest = take(back.subscribe(TYPE_NAME, name="slow", after=place), 17)
    found = plates([*first, *rest])
    assert found == [f"SLOW {number} {part}" for number in range(5) for part in range(4)]


def _waits(subscription: GatewaySubscription) -> int:
    """Count the events that were sent and not taken."""
    frames = [subscription._frames.get() for _ in range(subscription._frames.qsize())]
    for frame in frames:
        subscription._frames.put(frame)
    return sum(len(frame[0]) for frame in frames if isinstance(frame, tuple))


def test_a_place_of_another_outbox_is_refused(gateway: GatewayProcess, world: NumberplateHomes) -> None:
    """It is never taken for a place here."""
    with join(gateway, world, "BO") as billing, join(gateway, world, "CCTV") as camera:
        events = billing.subscribe(TYPE_NAME, name="own")
        camera.publish([sighting("PLACE")], TYPE_NAME)
        take(events, 1)
        for place, code in (("7", "RESUME_TOKEN"), ("0.0." + "0" * 16, "RESUME_TOKEN_FOREIGN")):
            with pytest.raises(MalformedError) as refused:
                billing.subscribe(TYPE_NAME, name="foreign", after=place)
            assert refused.value.code == code


@pytest.mark.fault("F04")
def test_killed_between_acknowledgement_and_delivery_nothing_is_lost_or_twice(world: NumberplateHomes) -> None:
    """Whatever was acknowledged before a kill is delivered once, behind the place that the client remembers."""
    acknowledged: list[str] = []
    got: list[str] = []
    place, name = "", "kills"
    with (
        gateway_of(world.ccs) as gateway,
        join(gateway, world, "BO") as billing,
        join(gateway, world, "CCTV") as camera,
    ):
        events = billing.subscribe(TYPE_NAME, name=name, after=place)
        for round_ in range(3):
            plate = f"KILL {round_}"
            camera.publish([sighting(f"{plate} {part}") for part in range(3)], TYPE_NAME, publication=plate)
            acknowledged += [f"{plate} {part}" for part in range(3)]
        got += plates(take(events, 2))  # in the middle of a frame
        place = events.after
        camera.publish([sighting("KILL 3")], TYPE_NAME, publication="KILL 3")
        acknowledged.append("KILL 3")
        gateway.kill(signal.SIGKILL)  # what was acknowledged last is not delivered yet
        with pytest.raises(UnavailableError):
            camera.publish([sighting("KILL not acknowledged")], TYPE_NAME)
    with (
        gateway_of(world.ccs) as gateway,
        join(gateway, world, "CCTV") as camera,
        join(gateway, world, "BO") as billing,
    ):
        for number in range(4):  # what a client that heard no answer does
            assert camera.publish([sighting("KILL again")], TYPE_NAME, publication=f"KILL {number}").repeated
        events = billing.subscribe(TYPE_NAME, name=name, after=place)
        got += plates(take(events, len(acknowledged) - len(got)))
        assert events.next(seconds=1.5) is None
    assert got == acknowledged


def test_who_lost_its_right_meanwhile_is_refused_with_the_code(world: NumberplateHomes, tmp_path: Path) -> None:
    """A right that is revoked ends a subscription that is open, and one that comes back."""
    made = numberplate_homes(tmp_path / "revoked", network=True, without=["Cap7"])
    with maia.open(made.ccs) as domain, gateway_of(made.ccs) as gateway, join(gateway, made, "CCTV") as camera:
        given = domain.grant("BO", TYPE_NAME, attributes="numberplate")
        with join(gateway, made, "BO") as billing:
            events = billing.subscribe(TYPE_NAME, name="billing")
            camera.publish([sighting("BEFORE")], TYPE_NAME)
            assert plates(take(events, 1)) == ["BEFORE"]
            waiting = billing.subscribe(TYPE_NAME, name="waiting", window=2)
            camera.publish([sighting(f"WAITING {number}") for number in range(5)], TYPE_NAME)
            assert len(take(events, 5)) == 5
            place = events.after
            domain.revoke(given)
            camera.publish([sighting("AFTER")], TYPE_NAME)
            for ended, most in ((events, 0), (waiting, 2)):  # nothing new, and nothing of what was delivered before
                with pytest.raises(DeniedError) as over:
                    take(ended, most + 1)
                assert over.value.code == "REVOKED"
            with pytest.raises(MaiaError) as again:
                billing.subscribe(TYPE_NAME, name="other")
            assert again.value.code == "REVOKED"
        with join(gateway, made, "BO") as billing:
            with pytest.raises(DeniedError) as refused:
                billing.subscribe(TYPE_NAME, name="billing", after=place)
            assert refused.value.code == "REVOKED"


def test_the_command_publishes_and_goes_on_from_its_place(
    gateway: GatewayProcess, world: NumberplateHomes, tmp_path: Path
) -> None:
    """`maia client` needs a key and the broker's, and no home of the domain."""
    rows, place = tmp_path / "rows.jsonl", tmp_path / "place"
    common = ["--gateway", gateway.url, "--home", str(world.ccs), "--type", TYPE_NAME, "--json"]
    follow = ["subscribe", *common, "--as", "BO", "--network", "PITO/UK Police Network", "--name", "command",
              "--place", str(place)]  # fmt: skip
    assert _client(*follow, "--seconds", "0.5") == (0, [])
    for number in range(2):
        rows.write_text(json.dumps(sighting(f"COMMAND {number}")) + "\n" + json.dumps({"numberplate": 7}) + "\n")
        code, done = _client("publish", str(rows), *common, "--as", "CCTV", "--broker", "CB")
        assert (code, done[0]["events"], done[0]["refused"][0]["code"]) == (0, 1, "VALUE_TYPE")
        code, events = _client(*follow, "--limit", "1")
        assert (code, plates(events)) == (0, [f"COMMAND {number}"])
    code, refused = _client("publish", str(rows), *common, "--as", "BO", "--broker", "CB")
    assert (code, refused[0]["error"]) == (3, "DENIED")


def _client(*args: str) -> tuple[int, list[dict[str, Any]]]:
    ran = Command(ROOT)("client", *args)
    return ran.code, ran.lines


def test_a_page_of_plain_javascript_is_a_client(
    gateway: GatewayProcess, world: NumberplateHomes, require_tool: object
) -> None:
    """Below a hundred lines, with WebCrypto alone: it proves its key, checks the broker's, and is refused as others."""
    node = require_tool("node")  # type: ignore[operator]
    assert len((PAGE / "maia.mjs").read_text().splitlines()) < 100
    broker = world.network.key("CB").raw.hex()
    url = f"ws://127.0.0.1:{gateway.port}"

    def run(who: str, *args: str, server: str = broker) -> subprocess.CompletedProcess[str]:
        seed = world.network.people[who].export_seed().hex()
        return subprocess.run(
            [str(node), "--no-warnings", "--experimental-websocket", str(PAGE / "follow.mjs"), url, server, *args],
            capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "MAIA_SEED": seed},
        )  # fmt: skip

    with join(gateway, world, "BO") as billing:
        events = billing.subscribe(TYPE_NAME, name="script")
        sent = run("CCTV", TYPE_NAME, "mine", json.dumps([sighting("SCRIPT 1")]), "0")
        assert plates(take(events, 1)) == ["SCRIPT 1"], sent.stderr
    seen = run("BO", TYPE_NAME, "script")
    assert seen.returncode == 0, seen.stderr
    assert plates([json.loads(line) for line in seen.stdout.splitlines()]) == ["SCRIPT 1"]
    refused = run("CCTV", TYPE_NAME, "mine")
    assert (refused.returncode, "DENIED" in refused.stderr) == (3, True)
    elsewhere = run("BO", TYPE_NAME, "script", server=world.network.key("MB").raw.hex())
    assert (elsewhere.returncode, "not that broker" in elsewhere.stderr) == (1, True)
