"""A log in Kafka: the same product, over a real node that others can write to."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka_world import World
from peer_world import Peers

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME, Command, deliver_here, publish_here, read_here

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path, kafka: Any) -> World:
    """Give an empty log in Kafka."""
    return World(tmp_path, kafka)


def test_the_whole_product_works_over_kafka(world: World) -> None:
    """Publish, read, deliver, status, compact, expire, sweep and doctor; nothing of the log lies in the homes."""
    world.ago, world.at = timedelta(minutes=45), world.at - timedelta(minutes=45)
    for number in range(3):
        assert world.publish(f"OLD {number}", f"OLD {number}B") == 2
    expected = [f"OLD {number}{letter}" for number in range(3) for letter in ("", "B")]
    assert world.read() == expected
    assert [item["events"] for item in world.command.do("log", "show")["commits"]] == [2, 2, 2]
    assert world.command.do("status")["log"]["commits"] == 3
    world.command.do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)
    assert deliver_here(maia.open(world.homes.ccs).home) == 3
    assert world.command.do("log", "compact")["before"] == 3
    assert world.read() == expected
    world.ago = timedelta(0)
    world.publish("NEW")
    assert deliver_here(maia.open(world.homes.ccs).home) == 1
    shown = world.command("deliver", "show", "billing", "--as", "BO", "--json")
    assert [row["numberplate"] for row in shown.lines] == [*expected, "NEW"]
    assert world.command.do("log", "expire", "--older-than", "30m", "--yes")["events"] == 6
    assert world.read() == ["NEW"]
    assert world.command.do("log", "sweep", "--older-than", "0s", "--yes")["files"] == []
    assert world.command.do("log", "reassert")["put"] == 0
    assert [status for status, _, _ in world.findings()] == ["ok"]
    assert not (world.root / "log").exists()
    assert not [path for path in world.root.rglob("*.parquet") if "outbox" not in path.parts]


def test_whoever_reads_the_topics_sees_ciphertext(world: World) -> None:
    """No record of either topic holds a value, committed or not; and what lies there is read by who may."""
    plates = ["SECRET 1", "SECRET 2", "SECRET 3"]
    world.publish(*plates)
    records = world.records()
    octets = b"".join(part or b"" for record in records for part in record)
    assert len(records) > 4
    assert len(octets) > 1000
    assert b"SECRET" not in octets
    assert b"Victoria" not in octets
    assert world.read() == plates


def test_two_organisations_meet_over_kafka_and_part_again(tmp_path: Path, kafka: Any) -> None:
    """An invitation names the log; rights, keys and notices go through it, and what is revoked is heard there."""
    peers = Peers(tmp_path, place=kafka.new_log())
    invitation = peers.invite()
    refused = peers.mary.refused("domain", "connect", str(invitation), "--yes", "--reader", "ann")
    assert refused == (2, "PEER_LOG_NODE"), "who we are is proven to no node that only an invitation names"
    peers.admit(peers.answer(invitation, "--reader", "ann", "--log", peers.place))
    assert peers.members("ward") == 2
    mary = maia.open(peers.mary.home)
    assert mary.home.log_place == peers.place
    rows = [{"patient": "Ann", "ward": "A", "value": 1.5}]
    publish_here(maia.open(peers.clinic.home).home, "Result", rows, as_="lab", at=datetime.now(UTC))
    assert read_here(mary.home, "Result", as_="ann") == [{"patient": None, "ward": "A", "value": 1.5}]
    peers.clinic.do("domain", "disconnect", "st-marys", "--yes")
    with pytest.raises(MaiaError):
        read_here(maia.open(peers.mary.home).home, "Result", as_="ann")


def test_publishers_of_a_home_race_and_nothing_is_lost_or_doubled(world: World) -> None:
    """Two processes publish at once: who comes late is refused by code and tries again; each event is there once."""
    running = [world.start(f"PLATE {number}") for number in range(2)]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert json.loads(out) == 1, err
    assert sorted(world.read()) == ["PLATE 0", "PLATE 1"]


def test_a_node_that_is_not_there_is_told_soon_and_with_what_to_do(world: World) -> None:
    """By a command and by doctor, with a code, within seconds; not as an empty log."""
    world.move("kafka://127.0.0.1:1/nowhere")
    before = time.monotonic()
    assert world.command.refused("log", "show") == (1, "STORE_UNAVAILABLE")
    assert time.monotonic() - before < 15
    [(status, detail, hint)] = world.findings()
    assert status == "problem"
    assert "did not answer" in detail
    assert "KAFKA_SECURITY_PROTOCOL" in hint


def test_who_did_not_say_so_speaks_tls_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without TLS is not spoken to unless the environment says so."""
    monkeypatch.delenv("KAFKA_SECURITY_PROTOCOL")
    assert world.command.refused("log", "show") == (1, "STORE_UNAVAILABLE")
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "no such")
    [(status, detail, _)] = world.findings()
    assert (status, "environment" in detail) == ("problem", True)


ADDRESSES = {
    "a user and a password": "kafka://key:secret@host:9092/log",
    "options": "kafka://host:9092/log?sasl.password=secret",
    "no port": "kafka://host/log",
    "no prefix": "kafka://host:9092",
    "a folder": "kafka://host:9092/a/b",
    "no topic's name": "kafka://host:9092/ä",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_an_address_in_kafka_says_where_and_nothing_else(tmp_path: Path, address: str) -> None:
    """It is refused, no home is made, and a secret is not repeated."""
    command = Command(tmp_path / "clinic")
    ran = command("domain", "init", str(command.home), "--log", address, "--json")
    assert (ran.code, ran.data["error"]) == (2, "STORE_ADDRESS")
    assert "secret" not in ran.out + ran.err
    assert not command.home.exists()


def test_a_home_is_made_with_a_log_in_kafka(tmp_path: Path, kafka: Any) -> None:
    """`maia domain init --log kafka://…`; nothing is asked yet, and status finds an empty log."""
    command = Command(tmp_path / "clinic")
    place = kafka.new_log()
    command.do("domain", "init", str(command.home), "--log", place)
    assert maia.open(command.home).log.place == place
    assert command.do("status")["log"]["commits"] == 0
