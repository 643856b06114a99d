"""The options of the data source: named as Spark names its own, read once into typed values.

A name that is unknown is refused with the nearest one; so is a value that is not what its name says. The home becomes
an absolute path where the options are read, on the driver.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.domain import MAX_EVENTS, Domain, FrameLabels, ProvenClient, TypeOrTopic, check_labelled_read
from maia.errors import UsageError
from maia.events import parse_offset
from maia.filters import parse_timestamp
from maia.home import passphrase_asker
from maia.kernel import FOREVER

MAX_COMMITS = 64
_MOST = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a reader or writer was asked for.

    Attributes:
        home: The domain's home, as an absolute path.
        as_: The client's key name.
        type: ``owner/name@version``, with what is clear left out; either this or ``topic`` is needed.
        topic: ``owner/name``; a reader gets what is below it as well, and may write ``*`` for any one component.
        where: The client's filter.
        version: The version, when the type does not say.
        attributes: Which attributes a reader gets; all when there are none.
        starting_offsets: ``earliest``, ``latest``, or the places after which a stream starts, as JSON.
        with_event_id: Whether rows carry ``_event`` and ``_stamp``.
        max_events: Most events in one parcel.
        max_commits: Most commits in one micro-batch.
        publication: The name of a publication, which stays the same when it is repeated.
        agent: The socket of the agent that proves the client's key; without it the key is unlocked where Spark plans.
        passphrase_file: The file that holds the passphrase of a sealed key.
        advertise: What a writer says that it will publish, as a filter.
        naive_timestamps: The zone of a writer's times that have none: ``UTC`` or an offset such as ``+01:00``.
        starting_timestamp: Only events stamped from this instant on.
        ending_timestamp: Only events stamped before this instant.
        labelled: The ticket of a labelled frame that reads, which `Client.labelled` writes; it checks what leaves it.
    """

    home: str
    as_: str
    type: str | None = None
    topic: str | None = None
    where: str = ""
    version: str | None = None
    attributes: tuple[str, ...] | None = None
    starting_offsets: str = "earliest"
    with_event_id: bool = False
    max_events: int = MAX_EVENTS
    max_commits: int = MAX_COMMITS
    publication: str | None = None
    agent: str | None = None
    passphrase_file: str | None = None
    advertise: str | None = None
    naive_timestamps: str | None = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    labelled: str | None = None

    def __post_init__(self) -> None:
        """Refuse a type beside a topic, and the version of a topic."""
        TypeOrTopic(type=self.type, version=self.version, topic=self.topic)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read Spark's options.

        Raises:
            UsageError: One is unknown, missing or not what it must be.
        """
        found: dict[str, object] = {}
        for key, value in options.items():
            name = key.lower()
            if name in _FOREIGN or name.startswith("option."):
                continue  # Spark's own, and the copies that its catalogue keeps
            known = _KNOWN.get(name)
            if known is None:
                raise UsageError(f"unknown option `{key}`{_nearest(name)}", code="UNKNOWN_OPTION")
            field, read = known
            if name != "path" or "home" not in {other.lower() for other in options}:
                found[field] = read(key, value)
        for spelling, field in (("home", "home"), ("type", "type"), ("as", "as_")):
            if field not in found and (field != "type" or "topic" not in found):
                raise UsageError(f"option `{spelling}` is missing", code="MISSING_OPTION")
        return cls(**found)  # type: ignore[arg-type]

    @property
    def events(self) -> TypeOrTopic:
        """What is published or read."""
        return TypeOrTopic(type=self.type, version=self.version, topic=self.topic)

    @property
    def window(self) -> tuple[int, int] | None:
        """The stamps that are wanted: the first, and the first that is not any more; all when there are none."""
        start, end = self.starting_timestamp, self.ending_timestamp
        if start is None and end is None:
            return None
        return 0 if start is None else _from(start), FOREVER if end is None else _from(end)

    def prove(self, domain: Domain) -> ProvenClient:
        """Prove the client's key, where Spark plans: no plan is made for a name alone.

        Raises:
            MaiaError: There is no such client, or its key is not here, or cannot be unlocked.
        """
        file = None if self.passphrase_file is None else Path(self.passphrase_file)
        return domain.prove(
            self.as_, agent=None if self.agent is None else Path(self.agent),
            passphrase=passphrase_asker(f"`{self.as_}`", file=file),
        )  # fmt: skip

    def frames(self, domain: Domain) -> FrameLabels | None:
        """Tell by what the labelled frame that reads is labelled; nothing when it is no labelled frame.

        Raises:
            DeniedError: The option is not the ticket of this read: ``LABELLED_READ``.
        """
        if self.labelled is None:
            return None
        return check_labelled_read(
            domain.home, self.labelled, self.as_, self.events, self.where, at=domain.clock()
        )  # fmt: skip

    def to_spark(self) -> dict[str, str]:
        """Write them for Spark's readers and writers, those that differ from the defaults."""
        said: dict[str, str | None] = {
            "home": self.home, "as": self.as_, "type": self.type, "topic": self.topic, "version": self.version,
            "where": self.where or None, "attributes": None if self.attributes is None else ",".join(self.attributes),
            "publication": self.publication, "advertise": self.advertise, "agent": self.agent,
            "naiveTimestamps": self.naive_timestamps,
            "labelled": self.labelled,
            "passphraseFile": self.passphrase_file, "withEventId": "true" if self.with_event_id else None,
            "startingOffsets": None if self.starting_offsets == "earliest" else self.starting_offsets,
            "startingTimestamp": None if self.starting_timestamp is None else self.starting_timestamp.isoformat(),
            "endingTimestamp": None if self.ending_timestamp is None else self.ending_timestamp.isoformat(),
        }  # fmt: skip
        return {name: value for name, value in said.items() if value is not None}


def _text(_key: str, value: str) -> str:
    return value


def _path(_key: str, value: str) -> str:
    return str(Path(value).absolute())


def _flag(key: str, value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise UsageError(f"option `{key}` is `true` or `false`, not `{value}`", code="OPTION_VALUE")
    return value.lower() == "true"


def _count(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < _MOST:
        raise UsageError(f"option `{key}` is a number above 0, not `{value}`", code="OPTION_VALUE")
    return int(value)


def _names(key: str, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(f"option `{key}` lists attributes, each once, with commas between them", code="OPTION_VALUE")
    return names


def _instant(key: str, value: str) -> datetime:
    found = parse_timestamp(value)
    if found is None:
        raise UsageError(
            f"option `{key}` is an instant such as `2026-06-01T08:00:00Z`, not `{value}`", code="OPTION_VALUE"
        )
    return found


def _from(instant: datetime) -> int:
    """Give the first stamp that is not before an instant."""
    return -((datetime.fromtimestamp(0, UTC) - instant) // timedelta(milliseconds=1))


def _start(key: str, value: str) -> str:
    if value not in {"earliest", "latest"} and not value.startswith("{"):
        raise UsageError(
            f"option `{key}` is `earliest`, `latest` or a JSON object from lanes to places, not `{value}`",
            code="OPTION_VALUE",
        )
    return value


def _zone(_key: str, value: str) -> str:
    parse_offset(value)
    return value


_Read = Callable[[str, str], object]
_SPELLINGS: dict[str, tuple[str, _Read]] = {
    "home": ("home", _path),
    "type": ("type", _text),
    "topic": ("topic", _text),
    "as": ("as_", _text),
    "where": ("where", _text),
    "version": ("version", _text),
    "attributes": ("attributes", _names),
    "startingOffsets": ("starting_offsets", _start),
    "withEventId": ("with_event_id", _flag),
    "startingTimestamp": ("starting_timestamp", _instant),
    "endingTimestamp": ("ending_timestamp", _instant),
    "maxEventsPerParcel": ("max_events", _count),
    "maxCommitsPerTrigger": ("max_commits", _count),
    "publication": ("publication", _text),
    "advertise": ("advertise", _text),
    "naiveTimestamps": ("naive_timestamps", _zone),
    "agent": ("agent", _path),
    "labelled": ("labelled", _text),
    "passphraseFile": ("passphrase_file", _path),
}
_KNOWN = {spelling.lower(): known for spelling, known in _SPELLINGS.items()} | {"path": ("home", _path)}
_FOREIGN = frozenset(("checkpointlocation", "provider", "owner", "location"))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, [item.lower() for item in _SPELLINGS], n=1)
    close = next((item for item in _SPELLINGS if near and item.lower() == near[0]), None)
    return f"; did you mean `{close}`?" if close else f"; known are {', '.join(_SPELLINGS)}"
