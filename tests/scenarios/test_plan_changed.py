"""Tasks of two attempts at one micro-batch are never committed together: it is repeated whole, nothing is lost.

Each attempt is planned once, on the driver; here each task is one of its own, and the network's key changes between.
The writer is the one that Spark drives; its tasks run here, one after the other, in the network's time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from key_network import Network, joined

from maia.domain import Domain, audit_of
from maia.errors import UnavailableError
from maia.home import Home
from maia.log import read_audit
from maia.spark import writer
from maia.spark.options import SourceOptions
from maia.spark.session import SETTINGS
from maia.spark.writer import MaiaStreamWriter, WrittenMessage
from maia.testing import TYPE_NAME

PARTS = (["AE05 XYZ", "BX51 ABC"], ["CD02 DEF", "AE05 XYZ"])


@dataclass
class Task:
    """What Spark tells a task of a stream."""

    partition: int
    batch: int

    def partitionId(self) -> int:  # noqa: N802 - Spark's
        """Give the partition."""
        return self.partition

    def getLocalProperty(self, name: str) -> str:  # noqa: N802 - Spark's
        """Give the micro-batch, the query, or a setting of the session."""
        stream = {"streaming.sql.batchId": str(self.batch), "sql.streaming.queryId": "query"}
        return (SETTINGS | stream)[name]


class Stream:
    """The CCS's camera as a stream whose tasks run when they are told to."""

    def __init__(self, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
        self.network = network
        self.task = Task(0, 0)
        monkeypatch.setattr(writer, "now", lambda: network.now)
        monkeypatch.setattr(
            Domain, "open", lambda path: Domain(Home.open(path), clock=lambda: network.now)
        )  # fmt: skip
        monkeypatch.setattr(writer.TaskContext, "get", lambda: self.task)
        monkeypatch.setattr(Home, "next_stamp", lambda _: network.stamp())
        home = str(network.homes["ccs"].path)
        self.asked = SourceOptions(home=home, type=TYPE_NAME, as_="CCTV", publication="camera")
        self.writer = MaiaStreamWriter(self.asked, None)

    def write(self, partition: int, batch: int, plates: list[str]) -> WrittenMessage:
        """Run one task of an attempt that is planned now."""
        self.task = Task(partition, batch)
        self.writer = MaiaStreamWriter(self.asked, writer.plan_publication(self.asked))
        written = self.writer.write(iter([self.network.rows(plates)] if plates else []))
        assert isinstance(written, WrittenMessage)
        return written

    def change(self) -> None:
        """Change the network's key, and wait until it is in force."""
        self.network.refresh_all(self.network.types()[1])
        self.network.pass_time(2)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Give a network with keyed type ids, whose brokers have joined."""
    with joined(tmp_path, keyed=True) as made:
        yield made


@pytest.fixture
def stream(network: Network, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Give the camera's stream."""
    return Stream(network, monkeypatch)


def test_ids_that_change_within_a_micro_batch_repeat_it_and_lose_nothing(network: Network, stream: Stream) -> None:
    """One task sealed under the old id and one under the new: no commit, no trace; the repetition brings every row."""
    first = stream.write(0, 0, PARTS[0])
    stream.change()
    second = stream.write(1, 0, PARTS[1])
    assert first.written.sealed_as != second.written.sealed_as
    with pytest.raises(UnavailableError) as refusal:
        stream.writer.commit([first, second], 0)
    assert refusal.value.code == "PLAN_CHANGED"
    stream.writer.abort([first, second], 0)
    home = network.homes["ccs"].path
    assert list(network.log.commits()) == []
    told = [(row.kind, row.code) for row in read_audit(home / "audit")]
    assert sorted(told) == [
        ("advertise", "OK"),
        ("intent", "PUBLISH"),
        ("intent", "PUBLISH"),
        ("result", "ABORTED"),
        ("result", "PLAN_CHANGED"),
    ]
    assert not (home / "refused").exists()
    assert network.read("ccs", "BO") == []

    again = [stream.write(partition, 0, plates) for partition, plates in enumerate(PARTS)]
    assert {message.written.sealed_as for message in again} == {second.written.sealed_as}
    stream.writer.commit(again, 0)
    expected = sorted((plate, None) for plates in PARTS for plate in plates)
    assert network.read("ccs", "BO") == expected
    assert network.read("met", "Smith") == [("AE05 XYZ", "Victoria")] * 2
    (commit,) = network.log.commits()
    assert again[0].written.sealed_as == (commit.type_id, commit.evidence)


def test_what_is_aborted_ends_its_own_intent_and_no_other_of_the_name(network: Network, stream: Stream) -> None:
    """Another attempt under the same name goes on waiting for its own end."""
    first, second = stream.write(0, 0, PARTS[0]), stream.write(0, 0, PARTS[0])
    audit = audit_of(network.homes["ccs"])
    assert set(audit.waiting()) == {first.planned.operation, second.planned.operation}
    stream.writer.abort([first, None], 0)
    assert set(audit.waiting()) == {second.planned.operation}
    stream.writer.abort([None], 0)  # no task came as far as to say by which plan it worked
    assert audit.waiting() == {}


def test_a_change_between_micro_batches_or_beside_an_empty_task_repeats_nothing(
    network: Network, stream: Stream
) -> None:
    """A task without rows sealed nothing, so what it planned does not matter; each micro-batch bears its own id."""
    stream.writer.commit([stream.write(0, 0, PARTS[0])], 0)
    empty = stream.write(0, 1, [])
    stream.change()
    full = stream.write(1, 1, PARTS[1])
    assert empty.written.sealed_as != full.written.sealed_as
    stream.writer.commit([empty, full], 1)
    assert len({commit.type_id for commit in network.log.commits()}) == 2
    assert network.read("ccs", "BO") == sorted((plate, None) for plates in PARTS for plate in plates)


def test_a_repetition_that_is_overtaken_again_is_repeated_again(network: Network, stream: Stream) -> None:
    """As often as the key changes within it; the rows arrive once, when it stands still."""
    for _ in range(3):
        first = stream.write(0, 0, PARTS[0])
        stream.change()
        with pytest.raises(UnavailableError, match="PLAN_CHANGED"):
            stream.writer.commit([first, stream.write(1, 0, PARTS[1])], 0)
    messages = [stream.write(partition, 0, plates) for partition, plates in enumerate(PARTS)]
    stream.writer.commit(messages, 0)
    stream.writer.commit(messages, 0)
    assert len(network.read("ccs", "BO")) == 4
