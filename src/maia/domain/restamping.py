"""Stamping parcels anew when another publication of the same broker was committed in between.

Stamps grow along a lane, and a stamp is under the seal. Whoever loses the race between stamping and committing opens
its own parcels and seals them again with later stamps: the same events under the same names, in new segments.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime

import pyarrow as pa

from maia.domain.sealing_keys import SealingKeys
from maia.encryption import WHOLE_EVENT, Parcel, ParcelHeader, open_parcel, parse_parcel, verify_parcel
from maia.errors import UnavailableError
from maia.home import Home
from maia.kernel import Sealing, parcel_row, seal_batch
from maia.log import LogDirectory, LogFile, read_segment


def stamp_anew(
    home: Home, log: LogDirectory, files: Sequence[LogFile], sealing: Sealing, publication: str, *, at: datetime
) -> tuple[LogFile, ...]:
    """Seal the parcels of segments that no commit names yet again, with stamps above all that were given out.

    Raises:
        UnavailableError: Keys changed meanwhile: ``PLAN_CHANGED``; the publication is repeated as a whole.
    """
    keys, out = SealingKeys(home), []
    for number, file in enumerate(files):
        with log.writer(publication, sealing.type_id, number, home.broker.public_key.key_id, at=at) as writer:
            for batch in read_segment(log.store, file):
                for data in batch.column("parcel").to_pylist():
                    writer.add(parcel_row(_seal_again(home, parse_parcel(data), sealing, keys)))
            made = writer.close()
        if made is not None:
            out.append(made)
        log.store.delete(file.path)
    return tuple(out)


def _seal_again(home: Home, parcel: Parcel, sealing: Sealing, keys: SealingKeys) -> Parcel:
    """Seal a parcel again with the next stamp, under its old name."""
    columns = open_parcel(verify_parcel(parcel), _keys_of(keys, parcel.header, sealing))
    whole = parcel.header.labels == (WHOLE_EVENT,)
    if not columns or (not whole and set(columns) != set(parcel.header.labels)):
        raise UnavailableError("keys changed while this was published; repeat it", code="PLAN_CHANGED")
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=[uid.decode() for uid in columns])
    return seal_batch(
        rows, sealing, home.broker, keys, stamp=home.next_stamp(), parcel_id=secrets.token_bytes(16),
        event_base=parcel.header.event_base,
    )  # fmt: skip


def _keys_of(keys: SealingKeys, header: ParcelHeader, sealing: Sealing) -> Callable[[bytes], bytes | None]:
    def key_of(label: bytes) -> bytes | None:
        group = sealing.group(label)
        epochs = [epoch for epoch in keys.epochs(group) if epoch <= min(header.stamp, header.epoch)]
        return keys.key(group, epochs[-1]) if epochs else None

    return key_of
