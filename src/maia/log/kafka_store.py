"""A store in Kafka (`maia.log.store`): two topics with one partition each, ``prefix.names`` and ``prefix.data``.

An object's octets are written to the topic of data, in parts; the act in the topic of names says where, and closes it.
Rules kept here:

- what an act came to is read back from the topic, as everybody hears it (`kafka_index`): that decides who won a name,
  not what a producer was told. Nothing returns before its act was heard, so whoever asks later hears it too;
- a transaction that was not answered is settled by fencing its producer: the act was heard then, or never will be;
- each call first hears what was committed, so what one process wrote the next one sees;
- parts are compared with what the act says of them; an object of which one is missing or another is unfit;
- parts that nobody needs get tombstones, and the node's compaction removes them.

The index is this store's own; whoever opens the log again hears the topic of names again.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from io import BytesIO
from itertools import chain
from typing import IO

from maia.errors import MaiaError, UnavailableError
from maia.log.kafka_index import (
    MARK,
    MAX_PARTS,
    PART,
    Act,
    ActOutcome,
    ActVerb,
    Index,
    KeptObject,
    pack_places,
    write_act,
)
from maia.log.kafka_topics import Record, Topics
from maia.log.object_parts import OpenKey, Upload
from maia.log.store import Seen, no_object, split_name, unfit

_PATIENCE = 40.0
"""How long an act may take to be heard: others that were killed within a transaction hold it up."""
_PAUSE = 0.002
_HELD_PARTS = 4


class KafkaStore:
    """A store in two topics of Kafka."""

    def __init__(self, server: str, prefix: str, told: Mapping[str, str]) -> None:
        """Use a node; nothing is asked of it yet.

        Args:
            server: The node, as ``host:port``.
            prefix: What the names of the topics begin with.
            told: The environment, which says who we are.
        """
        self.place = f"kafka://{server}/{prefix}"
        self._topics = Topics(server, prefix, told)
        self._index = Index()
        self._position = 0
        self._heard: dict[bytes, ActOutcome | None] = {}
        self._lock = threading.RLock()

    def put_new(self, name: str, data: bytes) -> bool:
        """Create an object, durable when this returns; false when the name is taken, which changes nothing.

        Raises:
            UnavailableError: Kafka refused, or did not answer. Unless it says so, the object is not there.
        """
        return self._write(ActVerb.NEW, name, BytesIO(data), len(data))

    def put(self, name: str, data: bytes) -> None:
        """Create an object or put it in the place of what has its name; durable when this returns.

        Raises:
            UnavailableError: Kafka refused; the object is the old one or the new one.
        """
        self._write(ActVerb.PUT, name, BytesIO(data), len(data))

    def create(self, name: str) -> Upload:
        """Begin an object; nothing of it is in the store before it is finished."""
        split_name(name)
        return Upload(partial(self._upload, name))

    def get(self, name: str, *, limit: int) -> bytes:
        """Return an object of at most ``limit`` octets.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or a part of it is missing: ``OBJECT_UNFIT``.
            UnavailableError: Kafka did not answer.
        """
        act = self._find(name, limit=limit).act
        return b"".join(self._part(name, act, number) for number in range(_parts(act)))

    def open(self, name: str, *, limit: int) -> OpenKey:
        """Open an object of at most ``limit`` octets, to read parts of it.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            EncodingError: It is larger, or a part of it is missing: ``OBJECT_UNFIT``.
            UnavailableError: Kafka did not answer.
        """
        act = self._find(name, limit=limit).act
        part = lru_cache(maxsize=_HELD_PARTS)(partial(self._part, name, act))

        def fetch(start: int, length: int) -> bytes:
            first, last = start // act.part, (start + length - 1) // act.part
            data = b"".join(part(number) for number in range(first, last + 1))
            return data[start - first * act.part :][:length]

        return OpenKey(act.size, fetch)

    def list_after(self, folder: str, after: str, *, limit: int) -> list[str]:
        """List the objects in a folder that sort after a name, in order, at most so many."""
        with self._lock:
            self._hear()
            return self._index.list_after(folder, after, limit=limit)

    def list_folders(self, folder: str, after: str, *, limit: int, shape: re.Pattern[str] | None = None) -> list[str]:
        """List the folders in a folder that sort after a name, in order, at most so many."""
        with self._lock:
            self._hear()
            return self._index.list_folders(folder, after, limit=limit, shape=shape)

    def look(self, name: str) -> Seen:
        """Tell how large an object is, and when it was written.

        Raises:
            NotFoundError: There is none: ``NO_OBJECT``.
            UnavailableError: Kafka did not answer.
        """
        kept = self._find(name)
        return Seen(kept.act.size, kept.written)

    def list_left(self, folder: str, *, limit: int) -> list[str]:
        """List nothing: what a killed writer left has no name."""
        del folder, limit
        return []

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none.

        Raises:
            UnavailableError: Kafka refused.
        """
        split_name(name)
        with self._lock:
            self._hear()
            kept = self._index.find(name)
            if kept is not None:
                act = Act(verb=ActVerb.DELETE, mark=secrets.token_bytes(MARK), of=kept.act.mark)
                self._do(name, act, frees=kept)

    def _find(self, name: str, *, limit: int | None = None) -> KeptObject:
        split_name(name)
        with self._lock:
            self._hear()
            kept = self._index.find(name)
        if kept is None:
            raise no_object(name)
        # SECURITY: what is too large is not fetched.
        if limit is not None and kept.act.size > limit:
            raise unfit(name)
        return kept

    def _part(self, name: str, act: Act, number: int) -> bytes:
        with self._lock:
            key, value = self._topics.fetch(act.place(number))
        # SECURITY: a record is taken for a part only where it says that it is this part of this object.
        if key != _key(act.mark, number) or value is None or len(value) != act.length(number):
            raise unfit(name)
        return value

    def _upload(self, name: str, file: IO[bytes], size: int) -> None:
        file.seek(0)
        if not self._write(ActVerb.NEW, name, file, size):
            raise UnavailableError(f"cannot use `{name}`: the name is taken", code="STORE_UNAVAILABLE")

    def _write(self, verb: ActVerb, name: str, file: IO[bytes], size: int) -> bool:
        split_name(name)
        if size > MAX_PARTS * PART:
            raise unfit(name)
        mark = secrets.token_bytes(MARK)
        with self._lock:
            self._hear()
            kept = self._index.find(name)
            if verb is ActVerb.NEW and kept is not None:
                return False
            act = Act(verb=verb, mark=mark, size=size)
            return self._do(name, act, _cut(mark, file), frees=kept)

    def _do(self, name: str, act: Act, cut: Iterable[Record] = (), *, frees: KeptObject | None) -> bool:
        """Write an act with its parts, hear what came of it, and let go of parts that nobody needs."""
        self._heard[act.mark] = None
        parts = _parts(act)
        records = chain(cut, _tombstones(frees.act) if frees is not None else ())

        def said(places: list[int]) -> tuple[bytes, bytes]:
            return name.encode(), write_act(replace(act, places=pack_places(places[:parts])))

        try:
            try:
                self._topics.write(records, said)
            except UnavailableError:
                # SECURITY: a producer that was not answered is fenced before anybody is told that it failed.
                self._topics.settle()
                self._hear()
                if self._heard[act.mark] is None:
                    raise
            outcome = self._await(name, act.mark)
        finally:
            del self._heard[act.mark]
        if outcome.freed is not None and (frees is None or outcome.freed.mark != frees.act.mark):
            with suppress(MaiaError):  # they take room, and nobody sees them
                self._topics.write(_tombstones(outcome.freed))
        return outcome.done

    def _await(self, name: str, mark: bytes) -> ActOutcome:
        until = time.monotonic() + _PATIENCE
        while (outcome := self._heard[mark]) is None:
            if time.monotonic() > until:
                raise UnavailableError(
                    f"cannot use `{name}`: it was written, and others hold it up", code="STORE_UNAVAILABLE"
                )
            time.sleep(_PAUSE)
            self._hear()
        return outcome

    def _hear(self) -> None:
        """Take in what was committed up to now."""
        end = self._topics.end(self._position)
        if end <= self._position:
            return
        for record in self._topics.hear(self._position, end):
            told = self._index.hear(record.key, record.value, record.written)
            self._position = record.then
            if told is not None and told[0] in self._heard and self._heard[told[0]] is None:
                self._heard[told[0]] = told[1]


def _key(mark: bytes, number: int) -> bytes:
    """Name a part, for its reader and for the node's compaction."""
    return mark + number.to_bytes(4)


def _tombstones(act: Act) -> Iterator[Record]:
    return ((_key(act.mark, number), None) for number in range(_parts(act)))


def _parts(act: Act) -> int:
    return -(-act.size // act.part)


def _cut(mark: bytes, file: IO[bytes]) -> Iterator[Record]:
    """Cut a file into parts."""
    number = 0
    while data := file.read(PART):
        yield _key(mark, number), data
        number += 1
