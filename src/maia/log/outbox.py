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
- beside what is shown lies, sealed with it, what clauses asked of the rows and did not show, so that who replays a
  delivery can screen it by the rights of then;
- a committed file that is missing or altered stops the reader with a named error.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import EncodingError, UnavailableError
from maia.events import EventType, ValueType
from maia.log.numbered import NumberedRecords, named_errors
from maia.log.outbox_commits import (
    DeadLetter,
    OutboxCommit,
    OutboxFile,
    hash_subscription,
    outbox_commit,
    places_of,
)
from maia.log.outbox_files import Kept, SealedFile, finish_file, open_file

HiddenColumn = tuple[ValueType, pa.Array]
"""The type and the values of an attribute that clauses ask about and do not show."""
_FORMAT = 1
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
        """Open what a subscription was shown, commit by commit; whoever hands it out later screens `kept` instead.

        Args:
            subscription: Its identity.
            secret: From `outbox_secret`.
            after: Only what later commits added.

        Raises:
            EncodingError: A commit or file is missing or altered.
            SealError: The secret does not fit.
        """
        return (item.batch for _, item in self.kept(subscription, secret, after=after))

    def kept(self, subscription: str, secret: bytes, *, after: int = -1, skip: int = 0) -> Iterator[tuple[int, Kept]]:
        """Open the deliveries of a subscription with all that is needed to screen them again, each with its commit.

        Args:
            subscription: Its identity.
            secret: From `outbox_secret`.
            after: Only what later commits added.
            skip: Leave out the first so many events of the commit behind that one; they are not opened where a whole
                parcel is left out.

        Raises:
            EncodingError: A commit or file is missing or altered.
            SealError: The secret does not fit.
        """
        for commit in self.commits(after=after):
            left = skip if commit.batch == after + 1 else 0
            for file in commit.files:
                if file.subscription != hash_subscription(subscription):
                    continue
                if file.events <= left:
                    left -= file.events
                    continue
                for item in open_file(self._data(file), subscription, secret, skip=left):
                    yield commit.batch, item
                left = 0

    def digest(self, number: int) -> str:
        """Return the digest of a commit, by which it is known again.

        Raises:
            EncodingError: It is missing or damaged.
        """
        return self._records.digest(number)

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
        return finish_file(self.path, relative, "", table.num_rows)

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
    _files: dict[str, SealedFile] = field(default_factory=dict)

    def add(
        self,
        subscription: str,
        event_type: EventType,
        name: bytes,
        stamp: int,
        rows: npt.NDArray[np.int64],
        batch: pa.RecordBatch,
        hidden: Mapping[str, HiddenColumn],
    ) -> None:
        """Seal one delivery; all of a subscription have the same columns."""
        file = self._files.get(subscription)
        if file is None:
            relative = (
                f"{hash_subscription(subscription)}/{self.batch:012d}-{self.group:05d}-{secrets.token_hex(8)}.parquet"
            )
            columns = [(item.name, item.uid, item.type) for item in map(event_type.by_name, batch.schema.names)]
            asked = [(uid, kind) for uid, (kind, _) in hidden.items()]
            file = SealedFile(self.root, relative, subscription, event_type, columns, asked, self.secret)
            self._files[subscription] = file
        file.add(name, stamp, rows, [*batch.columns, *(column for _, column in hidden.values())])

    def close(self) -> list[OutboxFile]:
        """Finish and sync all files."""
        return [file.close() for file in self._files.values()]


def outbox_secret(seed: bytes) -> bytes:
    """Derive the key that seals a broker's outboxes from the broker's own private key."""
    return hmac.digest(seed, b"maia/1 outbox\x01", hashlib.sha256)
