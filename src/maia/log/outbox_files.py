"""One sealed file of an outbox: the deliveries of one task to one subscription, a row a parcel."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import encode
from maia.encryption import decode_column, encode_column
from maia.errors import MaiaError, SealError, UnavailableError
from maia.events import AttributeType, EventType, Uid, ValueType, arrow_type, parse_attribute_type
from maia.kernel import event_ids
from maia.log.columns import EVENT, STAMP
from maia.log.numbered import named_errors, sync_folder
from maia.log.outbox_commits import OutboxFile, hash_subscription

_META = b"maia.outbox"
_FORMAT, _FORMAT_WITH_HIDDEN = 1, 2
_SCHEMA = pa.schema([pa.field("events", pa.int32(), nullable=False), pa.field("sealed", pa.binary(), nullable=False)])
_NAME = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """One delivery as it lies in the outbox.

    Attributes:
        batch: What was shown, by name, with the columns ``_event`` and ``_stamp``.
        uids: The uids of the attributes in it, in their order.
        hidden: By uid, what was asked of the rows and need not be shown; for screening alone.
    """

    batch: pa.RecordBatch
    uids: tuple[str, ...]
    hidden: Mapping[str, pa.Array] = field(default_factory=dict, repr=False)

    def slice(self, offset: int) -> Kept:
        """Give it without its first events."""
        hidden = {uid: column.slice(offset) for uid, column in self.hidden.items()}
        return Kept(self.batch.slice(offset), self.uids, hidden) if offset else self


class SealedFile:
    """A file that is being written; it counts when a commit names it."""

    def __init__(
        self,
        root: Path,
        relative: str,
        subscription: str,
        event_type: EventType,
        columns: list[tuple[str, Uid, ValueType]],
        hidden: list[tuple[str, ValueType]],
        secret: bytes,
    ) -> None:
        """Begin a file for deliveries of these columns."""
        self._root = root
        self._relative = relative
        self._subscription = subscription
        self._kinds = [*(kind for _, _, kind in columns), *(kind for _, kind in hidden)]
        salt = secrets.token_bytes(16)
        self._meta = json.dumps(
            {
                "format": _FORMAT_WITH_HIDDEN if hidden else _FORMAT,
                "salt": salt.hex(),
                "type": event_type.type_id.hex(),
                "version": event_type.name.version.text,
                "attributes": [[name, uid, kind.value] for name, uid, kind in columns],
            }
            | ({"hidden": [[uid, kind.value] for uid, kind in hidden]} if hidden else {})
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

    def add(self, name: bytes, stamp: int, rows: npt.NDArray[np.int64], cells: list[pa.Array]) -> None:
        """Seal one delivery."""
        columns = [encode_column(pa.array(rows), AttributeType.INTEGER)]
        columns += [encode_column(column, kind) for column, kind in zip(cells, self._kinds, strict=True)]
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
        """Finish and sync it."""
        with named_errors(self._root / self._relative):
            self._writer.close()
        return finish_file(self._root, self._relative, hash_subscription(self._subscription), self._events)


def finish_file(root: Path, relative: str, subscription: str, events: int) -> OutboxFile:
    """Sync a file, and name it for a commit."""
    path = root / relative
    with named_errors(path):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        sync_folder(path.parent)
        return OutboxFile(subscription, relative, path.stat().st_size, digest, events)


def open_file(data: bytes, subscription: str, secret: bytes, *, skip: int = 0) -> Iterator[Kept]:
    """Open the deliveries of a file, without its first events.

    Raises:
        SealError: It cannot be opened with this secret, or was altered.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    try:
        table = pq.read_table(pa.BufferReader(data))
        meta = table.schema.metadata[_META]
        value = json.loads(meta)
        if value["format"] not in (_FORMAT, _FORMAT_WITH_HIDDEN):
            raise _newer(value["format"])
        shown = [(name, uid, parse_attribute_type(kind)) for name, uid, kind in value["attributes"]]
        hidden = [uid for uid, _ in value.get("hidden", [])]
        cipher = AESGCM(_file_key(secret, bytes.fromhex(value["salt"])))
        for number, row in enumerate(table.to_pylist()):
            if row["events"] <= skip:
                skip -= row["events"]
                continue
            plain = cipher.decrypt(number.to_bytes(12, "big"), row["sealed"], _bound(meta, subscription, row["events"]))
            yield _delivery(plain, shown, hidden, row["events"]).slice(skip)
            skip = 0
    except UnavailableError:
        raise
    except (InvalidTag, ValueError, KeyError, TypeError, MaiaError) as error:
        raise SealError("the outbox cannot be opened") from error


def _newer(found: object) -> UnavailableError:
    return UnavailableError(
        f"an outbox file is of format {found}, and this Maia knows format {_FORMAT_WITH_HIDDEN}: a newer one wrote it, "
        "use that one",
        code="FORMAT_NEWER",
    )


def _delivery(plain: bytes, shown: list[tuple[str, str, ValueType]], hidden: list[str], count: int) -> Kept:
    view, position = memoryview(plain), _NAME + 8
    columns: list[pa.Array] = []
    while position < len(view):
        start = position + 4
        position = start + int.from_bytes(view[position:start], "big")
        columns.append(decode_column(view[start:position], count=count))
    stamp = int.from_bytes(view[_NAME : _NAME + 8], "big")
    events = pa.array(event_ids(bytes(view[:_NAME]), columns[0].to_pylist()), type=pa.string())
    stamps = pa.array(np.full(count, stamp, dtype=np.int64))
    fields = [pa.field(name, arrow_type(kind)) for name, _, kind in shown]
    fields += [pa.field(EVENT, pa.string(), nullable=False), pa.field(STAMP, pa.int64(), nullable=False)]
    cells, rest = columns[1 : len(shown) + 1], columns[len(shown) + 1 :]
    batch = pa.RecordBatch.from_arrays([*cells, events, stamps], schema=pa.schema(fields))
    return Kept(batch, tuple(uid for _, uid, _ in shown), dict(zip(hidden, rest, strict=True)))


def _file_key(secret: bytes, salt: bytes) -> bytes:
    return hmac.digest(secret, b"maia/1 outbox file " + salt + b"\x01", hashlib.sha256)


def _bound(meta: bytes, subscription: str, events: int) -> bytes:
    return encode((b"outbox", meta, subscription.encode(), b"%d" % events))
