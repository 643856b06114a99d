"""A parcel as the log has it: in one piece, or a head and blocks that lie apart, fetched when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from maia.encryption import Parcel, parse_head, parse_parcel

Octets = bytes | memoryview
Blame = Callable[[], None]
"""Raises when what was read is not what was committed; returns when it is, so that it is its origin's fault."""
HEAD, WHOLE = "head", "parcel"


@dataclass(frozen=True, slots=True)
class LoggedParcel:
    """One parcel of the log, of which nothing was checked.

    Attributes:
        events: How many events are said to be in it.
        parse: Reads it; raises a `MaiaError` when it is none.
        blame: Asked when a block is not what the head says.
    """

    events: int
    parse: Callable[[], Parcel]
    blame: Blame | None = None

    @classmethod
    def whole(cls, events: int, data: Octets) -> LoggedParcel:
        """Take a parcel that lies in one piece; what lies under a view must not change any more."""
        return cls(events, lambda: parse_parcel(data))

    @classmethod
    def apart(
        cls, events: int, head: Octets, fetch: Callable[[bytes, int], Octets], blame: Blame | None = None
    ) -> LoggedParcel:
        """Take a parcel by its head, whose blocks are fetched by their labels and lengths."""

        def parse() -> Parcel:
            found: list[bytes] = []
            parcel = parse_head(head, lambda number, length: fetch(found[number], length))
            found += parcel.header.labels
            return parcel

        return cls(events, parse, blame)


def logged_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[LoggedParcel]:
    """Give the parcels of rows of the log, as any reader of Parquet sees them; rows that hold none are left out."""
    for batch in batches:
        names = batch.schema.names
        counts = batch.column("events").to_pylist()
        wholes = batch.column(WHOLE) if WHOLE in names else [None] * len(counts)
        heads = batch.column(HEAD) if HEAD in names else [None] * len(counts)
        for row, (events, whole, head) in enumerate(zip(counts, wholes, heads, strict=True)):
            if whole is not None and whole.is_valid:
                yield LoggedParcel.whole(events, memoryview(whole.as_buffer()))
            elif head is not None and head.is_valid:
                yield LoggedParcel(events, partial(_together, batch, row, memoryview(head.as_buffer())))


def _together(batch: pa.RecordBatch, row: int, head: memoryview) -> Parcel:
    """Put a parcel together whose blocks lie in the cells of a row; its signature tells whether they are its own."""

    def cell(label: bytes) -> Octets:
        at = batch.schema.get_field_index(label.decode("ascii", "backslashreplace"))
        found = None if at < 0 else batch.column(at)[row]
        return b"" if found is None or not found.is_valid else memoryview(found.as_buffer())

    parcel = parse_head(head, lambda *_: b"")
    return Parcel(parcel.header, tuple(map(cell, parcel.header.labels)), parcel.signer, parcel.signature)
