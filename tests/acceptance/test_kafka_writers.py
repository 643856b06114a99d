"""Who wins a name of a log in Kafka: processes that race, one that was stopped too long, answers that got lost."""

from __future__ import annotations

import json
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka_world import World, start

from maia.errors import NotFoundError, UnavailableError

pytestmark = pytest.mark.slow
COUNT = 12


@pytest.fixture
def world(tmp_path: Path, kafka: Any) -> World:
    """Give an empty log in Kafka."""
    return World(tmp_path, kafka)


def test_processes_that_race_for_names_win_each_of_them_once(world: World) -> None:
    """Nobody loses what it was told to have won, and what lies there is the winner's."""
    store = world.store
    store.put("begun", b"")
    names = [f"lane/{number:03d}" for number in range(COUNT)]
    running = [start("create", world.homes.ccs, ",".join(names)) for _ in range(2)]
    time.sleep(2)
    store.delete("begun")
    store.put("go", b"")
    won: dict[str, list[int]] = {name: [] for name in names}
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        for name in json.loads(out):
            won[name].append(process.pid)
    assert {name: len(winners) for name, winners in won.items()} == dict.fromkeys(names, 1)
    assert {name: store.get(name, limit=99) for name in names} == {
        name: str(winner).encode() for name, [winner] in won.items()
    }


@pytest.mark.fault("F10")
def test_a_writer_that_was_stopped_too_long_is_fenced(world: World) -> None:
    """Its transaction is aborted, another one takes the name, and when it goes on it is refused by code."""
    store = world.store
    store.put("go", b"")
    zombie = start("create", world.homes.ccs, "lane/1", "lane/1", "commit", "SIGSTOP")
    assert _is_stopped(zombie.pid)
    before = time.monotonic()
    assert store.list_after("lane", "", limit=9) == []
    assert time.monotonic() - before < 5, "who reads is not held up"
    assert store.put_new("lane/1", b"ours"), "what is aborted has no name"
    zombie.send_signal(signal.SIGCONT)
    out, err = zombie.communicate(timeout=120)
    assert json.loads(out) == "STORE_UNAVAILABLE", err
    assert world.store.get("lane/1", limit=99) == b"ours"


@pytest.fixture
def producers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Give the producers that are made from now on; the first one fails to commit, or to say that it did."""
    made: list[Any] = []

    class Failing(Producer):  # type: ignore[misc]
        committed = True

        def __init__(self, settings: dict[str, Any]) -> None:
            super().__init__(settings)
            made.append(self)

        def commit_transaction(self, *args: Any) -> None:
            if self is not made[0]:
                super().commit_transaction(*args)
                return
            if self.committed:
                super().commit_transaction(*args)
            else:
                self.flush(10)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(confluent_kafka, "Producer", Failing)
    return made


@pytest.mark.fault("F10")
def test_an_answer_that_gets_lost_makes_nobody_lose(world: World, producers: list[Any]) -> None:
    """It was committed: whoever won is told so, though its producer was told that time ran out."""
    store = world.store
    assert store.put_new("lane/1", b"1")
    assert len(producers) == 2
    assert not store.put_new("lane/1", b"2")


@pytest.mark.fault("F10")
def test_what_was_said_to_have_failed_does_not_arrive_later(
    world: World, producers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not committed, and its producer is fenced when that is told: it cannot commit any more."""
    store = world.store
    monkeypatch.setattr(confluent_kafka.Producer, "committed", False)
    with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
        store.put_new("lane/1", b"1")
    with pytest.raises(KafkaException) as told:
        Producer.commit_transaction(producers[0], 10)
    assert told.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    for reader in (store, world.store):
        with pytest.raises(NotFoundError, match="NO_OBJECT"):
            reader.get("lane/1", limit=9)


def test_a_child_of_a_process_has_clients_of_its_own(world: World) -> None:
    """A store that was used before a fork is used by both, as Spark's workers do."""
    store = world.store
    store.put("x/before", b"1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            won = (
                store.put_new("x/child", b"2") and not store.put_new("x/before", b"") and store.get("x/before", limit=9)
            )
            os._exit(0 if won == b"1" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get("x/child", limit=9) == b"2"
    assert store.put_new("x/after", b"3")


def _is_stopped(pid: int) -> bool:
    for _ in range(1200):
        if Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.05)
    return False
