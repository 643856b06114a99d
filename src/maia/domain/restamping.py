"""Stamping parcels anew: when another publication of the same broker was committed in between, or a worker wrote them.

Stamps grow along a lane, and a stamp is under the seal. Whoever loses the race between stamping and committing opens
its own parcels and seals them again with later stamps: the same events under the same names, in new segments.

What a worker wrote was sealed and signed under keys of its task (`orders`), since workers have none of the domain's. It
is opened with those and sealed in the same way. A segment that is not named as one of this publication in the broker's
own lane, that a commit names already, or with a parcel that another key signed, is refused as a whole.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime

import pyarrow as pa

from maia.domain.orders import TaskKeys
from maia.domain.sealing_keys import SealingKeys
from maia.encryption import WHOLE_EVENT, Parcel, ParcelHeader, open_parcel, verify_parcel
from maia.errors import SignatureError, UnavailableError
from maia.home import Home
from maia.kernel import Sealing, seal_batch
from maia.log import LogDirectory, LogFile, OwnLanes, is_segment_of, read_segment
from maia.principals import PublicKey


def stamp_anew(
    home: Home,
    lanes: OwnLanes,
    files: Sequence[LogFile],
    sealing: Sealing,
    publication: str,
    *,
    at: datetime,
    task: TaskKeys | None = None,
) -> tuple[LogFile, ...]:
    """Seal the parcels of segments that no commit names yet again, with stamps above all that were given out.

    Args:
        home: Whose.
        lanes: Those of its broker, and the log where they lie.
        files: The segments.
        sealing: How.
        publication: Of which publication.
        at: Now.
        task: The keys of the tasks, where workers wrote them.

    Raises:
        UnavailableError: Keys changed meanwhile: ``PLAN_CHANGED``; the publication is repeated as a whole.
        SignatureError: Something was not written by a task of this publication: ``TASK_SIGNER``.
    """
    keys, out, log = SealingKeys(home), [], lanes.log
    writer_key = home.broker.public_key if task is None else task.signer.public_key
    # SECURITY: what is removed below is named by tasks. What a commit names, the broker signed, and no task did.
    if task is None and not lanes.paths(sealing.type_id.hex()).isdisjoint(file.path for file in files):
        raise not_ours()
    for number, file in enumerate(files):
        with log.writer(publication, sealing.type_id, number, home.broker.public_key.key_id, at=at) as writer:
            for logged in read_segment(log.store, file):
                writer.add(_seal_again(home, logged.parse(), sealing, keys, task, writer_key))
            made = writer.close()
        if made is not None:
            out.append(made)
        log.store.delete(file.path)
    return tuple(out)


def check_names(home: Home, files: Sequence[LogFile], type_id: str, publication: str) -> None:
    """See that segments are named as those that a publication, or a micro-batch of it, has in the broker's own lane.

    Raises:
        SignatureError: They are not: ``TASK_SIGNER``.
    """
    # SECURITY: tasks say what they wrote.
    lane = f"type={type_id}/origin={home.broker.public_key.key_id.hex()}"
    if not all(is_segment_of(file.path, lane, publication) for file in files):
        raise not_ours()


def check_signed_here(home: Home, log: LogDirectory, files: Sequence[LogFile]) -> None:
    """See that the broker itself signed what lies in segments, and that they are what is said of them.

    Raises:
        SignatureError: It did not: ``TASK_SIGNER``.
        MaiaError: A segment is missing or another one.
    """
    for file in files:
        for logged in read_segment(log.store, file):
            parcel = logged.parse()
            if parcel.signer != home.broker.public_key:
                raise not_ours()
            verify_parcel(parcel)
            if not file.first_stamp <= parcel.header.stamp <= file.last_stamp:
                raise not_ours()


def not_ours() -> SignatureError:
    """Make the error that says that a task did not write what it says."""
    return SignatureError("a worker names what no task of this publication wrote", code="TASK_SIGNER")


def _seal_again(
    home: Home, parcel: Parcel, sealing: Sealing, keys: SealingKeys, task: TaskKeys | None, writer: PublicKey
) -> Parcel:
    """Seal a parcel again with the next stamp, under its old name."""
    if parcel.signer != writer:
        raise not_ours()
    columns = open_parcel(verify_parcel(parcel), _keys_of(keys if task is None else task, parcel.header, sealing))
    whole = parcel.header.labels == (WHOLE_EVENT,)
    if not columns or (not whole and set(columns) != set(parcel.header.labels)):
        raise UnavailableError("keys changed while this was published; repeat it", code="PLAN_CHANGED")
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=[uid.decode() for uid in columns])
    return seal_batch(
        rows, sealing, home.broker, keys, stamp=home.next_stamp(), parcel_id=secrets.token_bytes(16),
        event_base=parcel.header.event_base,
    )  # fmt: skip


def _keys_of(keys: SealingKeys | TaskKeys, header: ParcelHeader, sealing: Sealing) -> Callable[[bytes], bytes | None]:
    def key_of(label: bytes) -> bytes | None:
        group = sealing.group(label)
        epochs = [epoch for epoch in keys.epochs(group) if epoch <= min(header.stamp, header.epoch)]
        return keys.key(group, epochs[-1]) if epochs else None

    return key_of
