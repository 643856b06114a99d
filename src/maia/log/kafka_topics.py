"""The two topics of a log in Kafka, through `confluent-kafka`: names, and data (`maia.log.kafka_store`).

Rules kept here:

- each topic has one partition, which is the one order that everybody hears. The topic of names keeps every record for
  ever: one that is compacted, expires, or lost its beginning is refused. Topics that are not there are made so;
- an object's records and the one that names them are written in one transaction, and names are read as committed: what
  was aborted is never heard. A producer that was not answered is given up, and its successor of the same id fences it:
  what was said to have failed does not arrive later;
- no call waits for ever, and a node that does not answer is `UnavailableError`;
- who we are there, and whether we speak TLS, is said by the environment (`kafka_settings`);
- clients do not survive a fork: a child makes its own.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, TopicMetadata  # type: ignore[attr-defined]

from maia.errors import UnavailableError
from maia.log.kafka_settings import client_settings

_ANSWER = 5.0
_PATIENCE = 30.0
_TRANSACTION = 10.0
"""Who is killed within a transaction holds the others up no longer than this, and what the node takes to notice."""
_PAUSE = 0.05
_WINDOW = 16
"""Records of one transaction."""
_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
_NAMES = {**_FOR_EVER, "message.timestamp.type": "LogAppendTime"}
_DATA = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
_DENIED = frozenset((
    KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED,  # noqa: SLF001
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
))  # fmt: skip
_FENCED = frozenset((
    KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._FENCED,  # noqa: SLF001
    KafkaError.INVALID_TXN_STATE, KafkaError._STATE,  # noqa: SLF001
))  # fmt: skip
_NOWHERE = frozenset((KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET))  # noqa: SLF001
_UNREACHED = frozenset((KafkaError._TRANSPORT, KafkaError._RESOLVE))  # noqa: SLF001
_END = KafkaError._PARTITION_EOF  # noqa: SLF001
_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001


Record = tuple[bytes, bytes | None]
"""A key and a value; without a value, a tombstone."""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """A record of the topic of names, and where the reading goes on; without one it is the end that moved."""

    then: int
    key: bytes | None
    value: bytes | None
    written: datetime


class Topics:
    """The topics of one log. Not for two threads at once."""

    def __init__(self, server: str, prefix: str, told: Mapping[str, str]) -> None:
        """Ask nothing yet.

        Args:
            server: A node, as ``host:port``; it tells of the others.
            prefix: What the names of both topics begin with.
            told: The environment.
        """
        self.names, self.data = f"{prefix}.names", f"{prefix}.data"
        self._settings = {
            "bootstrap.servers": server,
            "log_level": 0,
            "reconnect.backoff.ms": 10,
            **client_settings(told),
        }
        self._id = f"maia-{prefix}-{secrets.token_hex(8)}"
        self._clients = _Clients()
        self._ask_again = 0.0

    def end(self, position: int) -> int:
        """Tell where the committed names end.

        Raises:
            UnavailableError: The node did not answer, or the topic is not the one that was read up to a position.
        """
        with self._told():
            low, high = self._hearing().get_watermark_offsets(TopicPartition(self.names, 0), timeout=_ANSWER)
        # SECURITY: a gap is told. What expired or was made anew would be another log, read as if it were this one.
        if low > 0 or high < position:
            raise _away(f"the topic `{self.names}` lost records that it had")
        return int(high)

    def hear(self, position: int, end: int) -> Iterator[NameRecord]:
        """Read the committed names from a position to an end.

        Raises:
            UnavailableError: The node did not answer.
        """
        with self._told():
            consumer = self._hearing()
            consumer.assign([TopicPartition(self.names, 0, position)])
            try:
                while position < end:
                    message = _next(consumer)
                    position = _place(message)
                    if message.error() is None:
                        position += 1
                        written = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
                        yield NameRecord(position, _octets(message.key()), _octets(message.value()), written)
                    else:
                        yield NameRecord(position, None, None, datetime.fromtimestamp(0, UTC))
            finally:
                consumer.unassign()

    def fetch(self, place: int) -> tuple[bytes | None, bytes | None]:
        """Give the key and the value of the record at a place of the topic of data; nothing where there is none.

        Raises:
            UnavailableError: The node did not answer.
        """
        with self._told():
            consumer = self._fetching()
            consumer.assign([TopicPartition(self.data, 0, place)])
            try:
                message = _next(consumer)
                if message.error() is not None or _place(message) != place:
                    return None, None
                return _octets(message.key()), _octets(message.value())
            except KafkaException as error:
                if error.args[0].code() in _NOWHERE:
                    return None, None
                raise
            finally:
                consumer.unassign()

    def write(self, records: Iterable[Record], act: Callable[[list[int]], tuple[bytes, bytes]] | None = None) -> None:
        """Write records to the topic of data and then one to the topic of names; committed when this returns.

        What is too much for one transaction is committed in stretches, of which nobody knows before the last one.

        Args:
            records: Their keys and values.
            act: Gives the key and the value of the record of names, by where the records lie.

        Raises:
            UnavailableError: It was not committed, or nobody knows: `settle` does.
        """
        with self._told():
            producer = self._producing()
            try:
                places: list[int] = []
                producer.begin_transaction()
                for number, window in enumerate(_windows(records)):
                    if number:
                        producer.commit_transaction(_TRANSACTION)
                        producer.begin_transaction()
                    places += self._send(producer, window)
                if act is not None:
                    name, value = act(places)
                    producer.produce(self.names, value, key=name, partition=0)
                producer.commit_transaction(_TRANSACTION)
            except BaseException:
                self._clients.producing = None
                raise

    def _send(self, producer: Producer, window: list[Record]) -> list[int]:
        """Write records to the topic of data, within a transaction; tell where they lie."""
        places: list[int] = []
        failed: list[KafkaError] = []

        def told(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                places.append(_place(message))

        for key, value in window:
            producer.produce(self.data, value, key=key, partition=0, on_delivery=told)
        producer.flush(_TRANSACTION)
        if failed:
            raise KafkaException(failed[0])
        if len(places) != len(window):
            raise _away("the node did not answer")
        return places

    def settle(self) -> None:
        """Fence the producer that was not answered: what it did not commit is aborted when this returns.

        Raises:
            UnavailableError: The node did not answer, so nobody knows.
        """
        with self._told():
            self._producing()

    # -- clients, made when they are needed

    def _hearing(self) -> Consumer:
        mine = self._mine()
        if mine.hearing is None:
            self._see_topics()
            mine.hearing = self._consumer("read_committed")
        return mine.hearing

    def _fetching(self) -> Consumer:
        mine = self._mine()
        if mine.fetching is None:
            # What is named was acknowledged; who keeps a transaction open in this topic holds nobody up.
            mine.fetching = self._consumer("read_uncommitted")
        return mine.fetching

    def _producing(self) -> Producer:
        mine = self._mine()
        if mine.producing is None:
            self._hearing()
            producer = confluent_kafka.Producer({
                **self._all(), "transactional.id": self._id, "linger.ms": 0,
                "transaction.timeout.ms": int(_TRANSACTION * 1000),
            })  # fmt: skip
            producer.init_transactions(_TRANSACTION)
            mine.producing = producer
        return mine.producing

    def _consumer(self, isolation: str) -> Consumer:
        return Consumer({
            **self._all(), "group.id": "maia", "isolation.level": isolation, "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "error", "fetch.wait.max.ms": 5,
            "fetch.message.max.bytes": 65536, "queued.max.messages.kbytes": 2048,
        })  # fmt: skip

    def _mine(self) -> _Clients:
        if self._clients.process != os.getpid():
            # The parent's are kept and never used: their threads are not here, and nobody can close them.
            self._clients = _Clients(of_parent=self._clients)
            self._id = f"{self._id[:-16]}{secrets.token_hex(8)}"
        return self._clients

    def _all(self) -> dict[str, Any]:
        return {**self._settings, "error_cb": self._mine().note}

    def _see_topics(self) -> None:
        """See that both topics are there, with one partition each, and that names are kept."""
        if time.monotonic() < self._ask_again:
            raise _away("the node did not answer a moment ago")
        admin = AdminClient(self._all())
        try:
            found = [self._see(admin, self.names, _NAMES), self._see(admin, self.data, _DATA)]
        except KafkaException:
            self._ask_again = time.monotonic() + _ANSWER
            raise
        for topic in found:
            # SECURITY: two partitions have no common order, so two writers could both be the first.
            if len(topic.partitions) != 1:
                raise _away(f"`{topic.topic}` has {len(topic.partitions)} partitions; a log needs exactly one")
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.names)
        [asked] = admin.describe_configs([resource], request_timeout=_ANSWER).values()
        kept = asked.result(timeout=_ANSWER)
        for setting, value in _FOR_EVER.items():
            # SECURITY: of a topic that forgets, the first record of a name would be another one later.
            if kept[setting].value != value:
                raise _away(f"the topic `{self.names}` forgets: set `{setting}` to `{value}`")

    def _see(self, admin: AdminClient, name: str, settings: dict[str, str]) -> TopicMetadata:
        """Find a topic, and make it when it is not there."""
        found = self._look_up(admin, name)
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            self._make(admin, name, settings)
            for _ in range(int(_ANSWER / _PAUSE)):
                time.sleep(_PAUSE)
                found = self._look_up(admin, name)
                if found.error is None:
                    break
        if found.error is not None:
            raise KafkaException(found.error)
        return found

    def _look_up(self, admin: AdminClient, name: str) -> TopicMetadata:
        """Ask for a topic; who is refused the connection twice does not wait for the rest."""
        for left in reversed(range(int(_ANSWER))):
            try:
                return admin.list_topics(name, timeout=1.0).topics[name]
            except KafkaException:
                admin.poll(0)
                if not left or (left < _ANSWER - 1 and self._clients.noted in _UNREACHED):
                    raise
        raise _away("the node did not answer")

    @staticmethod
    def _make(admin: AdminClient, name: str, settings: dict[str, str]) -> None:
        [made] = admin.create_topics([NewTopic(name, 1, -1, config=settings)], request_timeout=_ANSWER).values()
        try:
            made.result(timeout=_ANSWER)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the client says into what Maia says."""
        try:
            yield
        except KafkaException as error:
            said: KafkaError = error.args[0]
            raise _away(_reason(said.code(), self._clients.noted)) from error
        except (BufferError, TimeoutError) as error:
            raise _away("the node did not answer") from error


class _Clients:
    """What one process uses."""

    def __init__(self, *, of_parent: _Clients | None = None) -> None:
        self.process = os.getpid()
        self.of_parent = of_parent
        self.hearing: Consumer | None = None
        self.fetching: Consumer | None = None
        self.producing: Producer | None = None
        self.noted: int | None = None

    def note(self, error: KafkaError) -> None:
        """Keep why a connection failed: the call that waits for it is only told that it did."""
        if error.code() != _ALL_DOWN:
            self.noted = error.code()


def _windows(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Give records so many at a time."""
    rest = iter(records)
    while window := list(islice(rest, _WINDOW)):
        yield window


def _next(consumer: Consumer) -> Message:
    """Give the next record, or the end of the partition.

    Raises:
        UnavailableError: Nothing came in time, or something else.
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None or error.code() == _END:
            return message
        raise KafkaException(error)
    raise _away("the node did not answer")


def _place(message: Message) -> int:
    place = message.offset()
    if place is None:
        raise _away("the node did not say where a record lies")
    return place


def _octets(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None


def _away(reason: str) -> UnavailableError:
    return UnavailableError(f"cannot use the log in Kafka: {reason}", code="STORE_UNAVAILABLE")


def _reason(code: int, noted: int | None) -> str:
    """Say in a few words why Kafka refused."""
    codes = {code, noted}
    if codes & _DENIED:
        return "permission denied; credentials come from the environment (`KAFKA_SASL_USERNAME` …)"
    if KafkaError._SSL in codes:  # noqa: SLF001
        return "no TLS with this node; see `KAFKA_SECURITY_PROTOCOL` and `KAFKA_SSL_CA_LOCATION`"
    if code == KafkaError._INVALID_ARG:  # noqa: SLF001
        return "the client cannot use what the environment says; see `KAFKA_SECURITY_PROTOCOL` and the other variables"
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return "a record is larger than the topic takes; raise its `max.message.bytes` to 1 MiB"
    if code in _FENCED:
        return "the transaction had ended before it was committed"
    if code in _NOWHERE:
        return "a record is not where it was"
    said = KafkaError(code).name().strip("_").lower()
    return f"the node did not answer ({said}); see its address, and `KAFKA_SECURITY_PROTOCOL`, which is TLS if not said"
