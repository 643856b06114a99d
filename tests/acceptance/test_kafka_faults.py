"""What goes wrong with a log in Kafka: writers that are killed, a node that is, topics that forget, records planted."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from kafka_world import World

from maia.errors import EncodingError, MaiaError, UnavailableError

pytestmark = pytest.mark.slow

KILLS = {
    "a segment has parts and no name": (".parquet", "act"),
    "a segment is there and no record names it": (".parquet", "answer"),
    "the transaction of a record is open": (".record", "commit"),
    "a record is committed and nobody was told": (".record", "answer"),
}


@pytest.fixture
def world(tmp_path: Path, kafka: Any) -> World:
    """Give an empty log in Kafka."""
    return World(tmp_path, kafka)


@pytest.mark.fault("F01")
@pytest.mark.fault("F02")
def test_a_publisher_killed_on_its_way_leaves_nothing_half_and_doubles_nothing(world: World) -> None:
    """Before its commit nothing of it is seen; what was acknowledged, before and after, is there once."""
    expected = ["FIRST"]
    world.publish("FIRST")
    for number, (case, stop) in enumerate(KILLS.items()):
        process = world.start(f"KILLED {number}", *stop, "SIGKILL")
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, case
        world.publish(f"AFTER {number}")
        expected.append(f"AFTER {number}")
        read = world.read()
        assert [plate for plate in read if not plate.startswith("KILLED")] == expected, case
        assert len(read) == len(set(read)), case
        # A record counts when it lies in its origin's own record, from which it is put again.
        assert (f"KILLED {number}" in read) is (stop[0] == ".record"), case


@pytest.mark.fault("F10")
def test_a_node_that_is_killed_and_comes_back_lost_nothing(world: World) -> None:
    """Meanwhile whoever asks is told that it is away, never that the log is empty."""
    world.publish("ONE")
    node = world.kafka.node
    node.end()
    try:
        for call in (world.read, lambda: world.publish("LOST")):
            with pytest.raises(MaiaError) as told:
                call()
            assert told.value.code == "STORE_UNAVAILABLE"
    finally:
        node.start()
    assert world.read() == ["ONE"]
    world.publish("TWO")
    read = world.read()
    assert [plate for plate in read if plate != "LOST"] == ["ONE", "TWO"]


@pytest.mark.fault("F10")
def test_a_topic_that_forgets_is_refused_and_not_read_with_a_gap(world: World) -> None:
    """Records at its beginning are gone; it is set to expire or to be compacted; it has two partitions."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

    admin = AdminClient({"bootstrap.servers": world.kafka.address, "log_level": 0})
    world.publish("ONE")
    names = f"{world.prefix}.names"

    def told() -> str:
        with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE") as said:
            world.store.list_folders("", "", limit=9)
        return said.value.message

    for setting, wrong, right in (("retention.ms", "1000000", "-1"), ("cleanup.policy", "compact", "delete")):
        for value in (wrong, right):
            entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ConfigResource.Type.TOPIC, names, incremental_configs=[entry])
            [asked] = admin.incremental_alter_configs([resource]).values()
            asked.result(timeout=10)
            if value == wrong:
                assert f"set `{setting}` to `{right}`" in told()
    assert world.read() == ["ONE"]
    [gone] = admin.delete_records([TopicPartition(names, 0, 2)]).values()
    gone.result(timeout=10)
    assert "lost records" in told()
    [(status, detail, _)] = world.findings()
    assert (status, "lost records" in detail) == ("problem", True)
    place = world.kafka.new_log()
    [made] = admin.create_topics([NewTopic(f"{place.rpartition('/')[2]}.names", 2, 1)]).values()
    made.result(timeout=10)
    world.move(place)
    with pytest.raises(UnavailableError, match="exactly one"):
        world.store.list_folders("", "", limit=9)


def test_what_was_removed_gives_its_room_back_and_the_rest_stays_where_it_is(world: World) -> None:
    """The node compacts the topic of data: removed and exchanged parts are gone, others are read as before."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    kafka, data, store = world.kafka, f"{world.prefix}.data", world.store
    for name in ("kept", "removed", "exchanged"):
        store.put(f"x/{name}", name.encode() * 100)
    store.delete("x/removed")
    store.put("x/exchanged", b"new")
    hasty = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "0"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in hasty.items()]
    admin = AdminClient({"bootstrap.servers": kafka.address, "log_level": 0})
    resource = ConfigResource(ConfigResource.Type.TOPIC, data, incremental_configs=entries)
    [asked] = admin.incremental_alter_configs([resource]).values()
    asked.result(timeout=10)
    for number in range(120):
        store.put(f"y/{number}", b"")  # an act without parts
        store.put("x/last", str(number).encode())
        held = b"".join(value or b"" for _, value in kafka.records(data))
        if b"removed" not in held and b"exchanged" not in held:
            break
        time.sleep(0.5)
    else:
        pytest.fail("the node did not compact")
    again = world.store
    assert again.get("x/kept", limit=999) == b"kept" * 100
    assert again.get("x/exchanged", limit=999) == b"new"
    assert again.list_after("x", "", limit=9) == ["exchanged", "kept", "last"]


@pytest.mark.fault("F08")
def test_what_somebody_writes_to_the_topics_stops_nobody(world: World) -> None:
    """Records that are no acts, names that lead out, a record in the place of the next one, parts exchanged."""
    world.publish("ONE")
    names, data = f"{world.prefix}.names", f"{world.prefix}.data"
    [(record, act)] = [item for item in world.kafka.records(names) if (item[0] or b"").endswith(b"0.record")]
    assert record is not None
    assert act is not None
    nxt = record.replace(b"0.record", b"1.record")
    for key, value in (
        (None, None), (None, act), (b"", act), (b"\xff", act), (b"../x", act), (b"a//b", act), (b"x" * 9999, act),
        (record, None), (record, b""), (record, b"junk"), (record, act[:-1]), (record, act + b"12345678"),
        (record, b"other" + act[5:]), (record, act[:5] + b"\x09" + act[6:]), (nxt, act),
        (nxt.replace(b"1.record", b"2.record"), act[:-8] + b"\xff" * 8),
    ):  # fmt: skip
        world.kafka.plant(names, key, value)
    # An object of as many parts as octets, each of which would be fetched by itself.
    world.kafka.plant(names, b"x/crumbs", act[:38] + (4).to_bytes(8) + (1).to_bytes(4) + bytes(32))
    world.kafka.plant(data, b"junk", b"junk")
    world.kafka.plant(names, b"x/copied", act[:6] + bytes(16) + act[22:])
    store = world.store
    assert store.list_after("x", "", limit=9) == ["copied"]
    with pytest.raises(EncodingError, match="OBJECT_UNFIT"):
        store.get("x/copied", limit=1 << 20)
    assert world.read() == ["ONE"]
    world.publish("TWO")
    assert world.read() == ["ONE", "TWO"]
