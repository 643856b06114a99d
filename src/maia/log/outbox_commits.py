"""What one micro-batch of a delivery job added to an outbox: a record, made of JSON and read back from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from maia.errors import EncodingError
from maia.log.numbered import Record


@dataclass(frozen=True, slots=True)
class OutboxFile:
    """One file of an outbox: sealed deliveries, or dead letters."""

    subscription: str
    path: str
    size: int
    digest: str
    events: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A parcel that was delivered to nobody, where it lies in the log, and why; ``parcel`` is -1 for a whole file."""

    commit: int
    file: str
    parcel: int
    origin: str
    code: str
    events: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Subscriptions that were delivered nothing after these places yet.

    Attributes:
        after: The places, by lane.
        subscriptions: The hashes of their names, each with the code of its doubt; empty when it is catching up.
    """

    after: dict[str, str]
    subscriptions: dict[str, str]


@dataclass(frozen=True, slots=True)
class OutboxCommit:
    """What one micro-batch added.

    Attributes:
        batch: Its number, which is also the record's.
        query: The streaming query that ran it; empty without Spark.
        after: The places of the log that it starts after, by lane.
        upto: The places of the log that it ends with; each has a digest, by which the lane is known again.
        commits: How many commits it covers.
        files: Sealed deliveries.
        dead: Dead letters.
        waiting: Subscriptions that are not as far as ``upto``.
    """

    batch: int
    query: str
    after: dict[str, str]
    upto: dict[str, str]
    commits: int = 0
    files: tuple[OutboxFile, ...] = ()
    dead: tuple[OutboxFile, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def events(self) -> int:
        """Count the deliveries."""
        return sum(file.events for file in self.files)


def outbox_commit(record: Record) -> OutboxCommit:
    """Read a commit of an outbox.

    Raises:
        EncodingError: It is damaged, or of the format before lanes: ``COMMIT_DAMAGED``, ``LOG_FORMAT_OLD``.
    """
    try:
        value = dict(record.value)
        for name in ("files", "dead"):
            items = value[name]
            value[name] = tuple(OutboxFile(**item) for item in items)  # type: ignore[attr-defined]
        waiting = value.get("waiting", ())
        value["waiting"] = tuple(Waiting(**item) for item in waiting)  # type: ignore[attr-defined]
        value |= {name: places_of(value[name]) for name in ("after", "upto")}
        return OutboxCommit(batch=record.number, **value)  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise EncodingError(f"commit {record.number} of the outbox is damaged", code="COMMIT_DAMAGED") from error


def places_of(value: object) -> dict[str, str]:
    """Read an offset.

    Raises:
        EncodingError: It is of the format before lanes: ``LOG_FORMAT_OLD``.
    """
    if not isinstance(value, dict):
        raise EncodingError(
            "the outbox was made from a log of an older format: deliver into a new one", code="LOG_FORMAT_OLD"
        )
    return value


def hash_subscription(name: str) -> str:
    """Give what an outbox calls a subscription: names never become paths."""
    return hashlib.sha256(b"maia/1 subscription " + name.encode()).hexdigest()[:32]
