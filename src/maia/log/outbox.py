"""Outboxes: what a domain's subscriptions were delivered, sealed where it rests.

    _identity.json                                      which outbox this is
    _commits/<batch>.json                               what one micro-batch delivered, and how far the log is read
    <subscription>/<batch>-<group>-<attempt>.parquet    sealed deliveries, one row per parcel
    dead/<batch>-<attempt>.parquet                      dead letters: parcels that were refused, and why

Rules kept here:

- a file counts only when a commit names it; a commit and the part of the log that it covers are one record, so output
  and progress cannot be of different times;
- plaintext does not rest: deliveries are sealed under a key derived from the broker's, one key per file, a number per
  row, bound to the subscription. The names of subscriptions are hashed, since names never become paths;
- a committed file that is missing or altered stops the reader with a named error.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import encode
from maia.encryption import decode_column, encode_column
from maia.errors import EncodingError, MaiaError, SealError, UnavailableError
from maia.events import ARROW_TYPES, AttributeType, EventType
from maia.kernel import event_ids
from maia.log.columns import EVENT, STAMP
from maia.log.numbered import NumberedRecords, named_errors, sync_folder
from maia.log.outbox_commits import (
    DeadLetter,
    OutboxCommit,
    OutboxFile,
    hash_subscription,
    outbox_commit,
    places_of,
)

_META = b"maia.outbox"
_FORMAT = 1
_SCHEMA = pa.schema([pa.field("events", pa.int32(), nullable=False), pa.field("sealed", pa.binary(), nullable=False)])
_DEAD = pa.schema(
    [
        pa.field("commit", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("parcel", pa.int32(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
    ]
)
_NAME = 16


class Outbox:
    """An outbox in a directory."""

    def __init__(self, path: Path | str) -> None:
        """Use a directory; it is made when something is written."""
        self.path = Path(path)
        self._records = NumberedRecords(self.path / "_commits", "commit {} of the outbox")
        self._checked = -1

    def latest(self) -> int:
        """Return the number of the newest commit; -1 when there is none."""
        return self._records.latest()

    def commits(self, *, after: int = -1) -> Iterator[OutboxCommit]:
        """Read commits in order.

        Raises:
            EncodingError: One is missing or damaged.
        """
        for record in self._records.walk(after=after):
            yield outbox_commit(record)

    def check_commits(self) -> None:
        """Read the commits that this object has not read yet, each compared with what the next says of it.

        Raises:
            EncodingError: One is missing or damaged.
        """
        for commit in self.commits(after=self._checked):
            self._checked = commit.batch

    def begin(self, after: Mapping[str, str]) -> dict[str, str]:
        """Note once, before the first delivery, after which places it begins; return what was noted first.

        A job that is killed before it commits begins there again, and says so when a lane has expired meanwhile.
        """
        start = NumberedRecords(self.path / "_start", "the start {} of the outbox")
        start.put(0, {"format": _FORMAT, "after": dict(after)}, start.digest(-1))
        return places_of(start.read(0).value["after"])

    def head(self) -> OutboxCommit | None:
        """Return the newest commit."""
        number = self.latest()
        return None if number < 0 else outbox_commit(self._records.read(number))

    def commit(self, made: OutboxCommit) -> bool:
        """Make a micro-batch count; false when its number is taken."""
        value = asdict(made)
        del value["batch"]
        return self._records.put(made.batch, value, self._records.digest(made.batch - 1))

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Read the dead letters in the order of their commits."""
        for commit in self.commits():
            for file in commit.dead:
                for row in pq.read_table(pa.BufferReader(self._data(file))).to_pylist():
                    yield DeadLetter(**row)

    def read(self, subscription: str, secret: bytes, *, after: int = -1) -> Iterator[pa.RecordBatch]:
        """Open the deliveries of a subscription, commit by commit.

        Args:
            subscription: Its identity.
            secret: From `outbox_secret`.
            after: Only what later commits added.

        Raises:
            EncodingError: A commit or file is missing or altered.
            SealError: The secret does not fit.
        """
        for commit in self.commits(after=after):
            for file in commit.files:
                if file.subscription == hash_subscription(subscription):
                    yield from _open_file(self._data(file), subscription, secret)

    def count(self, subscriptions: Iterable[str]) -> dict[str, int]:
        """Count the events that each of these subscriptions was delivered so far."""
        names = {hash_subscription(name): name for name in subscriptions}
        found = dict.fromkeys(names.values(), 0)
        for commit in self.commits():
            for file in commit.files:
                if file.subscription in names:
                    found[names[file.subscription]] += file.events
        return found

    def check(self) -> int:
        """Compare every committed file with its digest; return how many there are.

        Raises:
            EncodingError: One is missing or altered.
        """
        found = [file for commit in self.commits() for file in (*commit.files, *commit.dead)]
        for file in found:
            self._data(file)
        return len(found)

    def write_dead(self, batch: int, letters: list[DeadLetter]) -> OutboxFile | None:
        """Keep dead letters."""
        table = pa.Table.from_pylist([asdict(letter) for letter in letters], schema=_DEAD)
        return self._write(f"dead/{batch:012d}-{secrets.token_hex(8)}.parquet", table) if letters else None

    def sweep(self, *, keep_newer_than: datetime, dry_run: bool = False) -> list[str]:
        """Remove files that no commit names, left by tasks that were killed, and that are older than an instant."""
        named = {file.path for commit in self.commits() for file in (*commit.files, *commit.dead)}
        removed = []
        for path in sorted(self.path.glob("*/*.parquet")):
            relative = path.relative_to(self.path).as_posix()
            if relative not in named and path.lstat().st_mtime < keep_newer_than.timestamp():
                if not dry_run:
                    path.unlink()
                removed.append(relative)
        return removed

    def _write(self, relative: str, table: pa.Table) -> OutboxFile:
        path = self.path / relative
        with named_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, compression="none", write_page_checksum=True)
        return _finish(self.path, relative, "", table.num_rows)

    def _data(self, file: OutboxFile) -> bytes:
        path = self.path / file.path
        try:
            with named_errors(path):
                data = path.read_bytes()
        except FileNotFoundError as error:
            raise UnavailableError(f"the outbox file `{file.path}` is missing", code="OUTBOX_FILE_MISSING") from error
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
            raise EncodingError(f"the outbox file `{file.path}` is not what was committed", code="OUTBOX_FILE_DAMAGED")
        return data


@dataclass(slots=True)
class OutboxWriter:
    """Writes the deliveries of one task, a file per subscription; nothing counts until it is committed."""

    root: Path
    batch: int
    group: int
    secret: bytes
    _files: dict[str, _SealedFile] = field(default_factory=dict)

    def add(
        self,
        subscription: str,
        event_type: EventType,
        name: bytes,
        stamp: int,
        rows: npt.NDArray[np.int64],
        batch: pa.RecordBatch,
    ) -> None:
        """Seal one delivery; all of a subscription have the same columns."""
        file = self._files.get(subscription)
        if file is None:
            relative = (
                f"{hash_subscription(subscription)}/{self.batch:012d}-{self.group:05d}-{secrets.token_hex(8)}.parquet"
            )
            names = batch.schema.names
            file = _SealedFile(self.root, relative, subscription, event_type, names, self.secret)
            self._files[subscription] = file
        file.add(name, stamp, rows, batch)

    def close(self) -> list[OutboxFile]:
        """Finish and sync all files."""
        return [file.close() for file in self._files.values()]


class _SealedFile:
    def __init__(
        self, root: Path, relative: str, subscription: str, event_type: EventType, names: list[str], secret: bytes
    ) -> None:
        self._root = root
        self._relative = relative
        self._subscription = subscription
        attributes = [event_type.by_name(name) for name in names]
        self._kinds = [item.type for item in attributes]
        salt = secrets.token_bytes(16)
        self._meta = json.dumps(
            {
                "format": _FORMAT,
                "salt": salt.hex(),
                "type": event_type.type_id.hex(),
                "version": event_type.name.version.text,
                "attributes": [[item.name, item.uid, item.type.value] for item in attributes],
            }
        ).encode()
        self._cipher = AESGCM(_file_key(secret, salt))
        self._count = 0
        self._events = 0
        path = root / relative
        with named_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(
                path, _SCHEMA.with_metadata({_META: self._meta}), compression="none", use_dictionary=False,
                write_page_checksum=True,
            )  # fmt: skip

    def add(self, name: bytes, stamp: int, rows: npt.NDArray[np.int64], batch: pa.RecordBatch) -> None:
        columns = [encode_column(pa.array(rows), AttributeType.INTEGER)]
        columns += [encode_column(column, kind) for column, kind in zip(batch.columns, self._kinds, strict=True)]
        plain = b"".join((name, stamp.to_bytes(8, "big"), *(len(x).to_bytes(4, "big") + x for x in columns)))
        sealed = self._cipher.encrypt(
            self._count.to_bytes(12, "big"), plain, _bound(self._meta, self._subscription, len(rows))
        )
        row = {"events": len(rows), "sealed": sealed}
        with named_errors(self._root / self._relative):
            self._writer.write_batch(pa.RecordBatch.from_pylist([row], schema=_SCHEMA))
        self._count += 1
        self._events += len(rows)

    def close(self) -> OutboxFile:
        with named_errors(self._root / self._relative):
            self._writer.close()
        return _finish(self._root, self._relative, hash_subscription(self._subscription), self._events)


def outbox_secret(seed: bytes) -> bytes:
    """Derive the key that seals a broker's outboxes from the broker's own private key."""
    return hmac.digest(seed, b"maia/1 outbox\x01", hashlib.sha256)


def _finish(root: Path, relative: str, subscription: str, events: int) -> OutboxFile:
    path = root / relative
    with named_errors(path):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        sync_folder(path.parent)
        return OutboxFile(subscription, relative, path.stat().st_size, digest, events)


def _open_file(data: bytes, subscription: str, secret: bytes) -> Iterator[pa.RecordBatch]:
    try:
        table = pq.read_table(pa.BufferReader(data))
        meta = table.schema.metadata[_META]
        value = json.loads(meta)
        if value["format"] != _FORMAT:
            raise _newer(value["format"])
        kinds = [AttributeType(kind) for _, _, kind in value["attributes"]]
        names = [name for name, _, _ in value["attributes"]]
        cipher = AESGCM(_file_key(secret, bytes.fromhex(value["salt"])))
        for number, row in enumerate(table.to_pylist()):
            plain = cipher.decrypt(number.to_bytes(12, "big"), row["sealed"], _bound(meta, subscription, row["events"]))
            yield _delivery(plain, names, kinds, row["events"])
    except UnavailableError:
        raise
    except (InvalidTag, ValueError, KeyError, TypeError, MaiaError) as error:
        raise SealError("the outbox cannot be opened") from error


def _newer(found: object) -> UnavailableError:
    return UnavailableError(
        f"an outbox file is of format {found}, and this Maia knows format {_FORMAT}: a newer one wrote it, "
        "use that one",
        code="FORMAT_NEWER",
    )


def _delivery(plain: bytes, names: list[str], kinds: list[AttributeType], count: int) -> pa.RecordBatch:
    view, position = memoryview(plain), _NAME + 8
    columns: list[pa.Array] = []
    while position < len(view):
        start = position + 4
        position = start + int.from_bytes(view[position:start], "big")
        columns.append(decode_column(view[start:position], count=count))
    stamp = int.from_bytes(view[_NAME : _NAME + 8], "big")
    events = pa.array(event_ids(bytes(view[:_NAME]), columns[0].to_pylist()), type=pa.string())
    stamps = pa.array(np.full(count, stamp, dtype=np.int64))
    fields = [pa.field(name, ARROW_TYPES[kind]) for name, kind in zip(names, kinds, strict=True)]
    fields += [pa.field(EVENT, pa.string(), nullable=False), pa.field(STAMP, pa.int64(), nullable=False)]
    return pa.RecordBatch.from_arrays([*columns[1:], events, stamps], schema=pa.schema(fields))


def _file_key(secret: bytes, salt: bytes) -> bytes:
    return hmac.digest(secret, b"maia/1 outbox file " + salt + b"\x01", hashlib.sha256)


def _bound(meta: bytes, subscription: str, events: int) -> bytes:
    return encode((b"outbox", meta, subscription.encode(), b"%d" % events))
