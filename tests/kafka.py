"""A real Kafka node for tests: started once a session, on free ports of the loopback address, gone with the session.

It runs from Kafka's published jars (scripts/kafka_node.py, which is what `make kafka` runs). Where neither the jars nor
`mvn` are, tests that need it skip with a reason; in CI they fail.
"""

from __future__ import annotations

import importlib.util
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "kafka_node.py"


def load_script() -> ModuleType:
    """Load the program that runs a node."""
    spec = importlib.util.spec_from_file_location("maia_scripts_kafka_node", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Kafka:
    """A node, as tests use it."""

    def __init__(self, node: Any) -> None:
        self.node = node

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self.node.address)

    def new_log(self) -> str:
        """Name a log that nobody has."""
        return f"kafka://{self.address}/log-{secrets.token_hex(6)}"

    def records(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Read a topic as any consumer does, committed or not."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({
            "bootstrap.servers": self.address, "group.id": secrets.token_hex(4), "enable.partition.eof": True,
            "isolation.level": "read_uncommitted", "log_level": 0,
        })  # fmt: skip
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        for _ in range(100_000):
            message = consumer.poll(10)
            assert message is not None, "the node did not answer"
            if message.error() is not None:
                break
            found.append((message.key(), message.value()))
        consumer.close()
        return found

    def plant(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Write a record as anybody who may write does."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        producer.produce(topic, value, key=key, partition=0)
        assert producer.flush(10) == 0


@pytest.fixture(scope="session")
def kafka_node(require_package: Callable[[str], None], require_tool: Callable[[str], str]) -> Iterator[Kafka]:
    """Start the node; skips where its jars cannot be had, and fails in CI."""
    require_package("confluent_kafka")
    program = load_script()
    java = require_tool("java")
    where = program.jars()
    if not any(where.glob("kafka_*.jar")):
        where = program.fetch(require_tool("mvn"))
    node = program.KafkaNode(java, where)
    try:
        node.start()
        yield Kafka(node)
    finally:
        node.stop()


@pytest.fixture
def kafka(kafka_node: Kafka, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Give the node with an environment that leads to it, as a person would set it."""
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "PLAINTEXT")
    return kafka_node
