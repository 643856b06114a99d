"""The guard before a delivery job: checkpoint, outbox and log must belong together and be of the same time.

Spark alone starts anew without a word when its checkpoint is lost, and then repeats or drops deliveries. The rules:

- at the first start checkpoint and outbox get the same identity; at each later start both must have it;
- the outbox's last micro-batch is the checkpoint's last, or the one after it (killed between the two), run by the same
  query, and the checkpoint planned it over the same part of the log;
- the log still has the commit that the outbox ends with, unchanged;
- whatever does not fit is refused with a code, before anything is read; nothing is repaired by guessing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from maia.domain import check_log
from maia.errors import EncodingError, UnavailableError, UsageError
from maia.home import newer_format
from maia.log import LogDirectory, Outbox, OutboxCommit, named_errors, write_once

_IDENTITY = "_identity.json"
_FORMAT = 1
_MAX_FILE = 1 << 20


def check_start(checkpoint: Path, outbox: Outbox, log: LogDirectory) -> str:
    """Let a job start only where it left off; at the very first start, mark both as belonging together.

    Returns:
        The identity.

    Raises:
        UsageError: Checkpoint, outbox and log are not of one job or not of one time; the code says how.
        EncodingError: The outbox or the log is damaged.
    """
    check_log(outbox, log)
    head = outbox.head()
    ours, theirs = _read_identity(outbox.path), _read_identity(checkpoint)
    if theirs is None and _numbers(checkpoint, "offsets"):
        raise UsageError("the checkpoint has lost its identity", code="CHECKPOINT_UNKNOWN")
    if ours is None and (head is not None or theirs is not None):
        raise UsageError("the outbox is not the one that the checkpoint was made with", code="OUTBOX_UNKNOWN")
    if theirs is None and head is not None:
        raise UsageError(
            "the outbox holds deliveries but its checkpoint is gone: give it back, or deliver into a new outbox",
            code="CHECKPOINT_MISSING",
        )
    if ours is None:
        ours = secrets.token_hex(16)
        _write_identity(outbox.path, ours)
    if theirs is None:
        _write_identity(checkpoint, ours)
    elif theirs != ours:
        raise UsageError("the checkpoint belongs to another outbox", code="CHECKPOINT_FOREIGN")
    _check_progress(checkpoint, head)
    return ours


def query_id(checkpoint: Path) -> str:
    """Return the identity of the query that Spark keeps in a checkpoint; empty when there is none.

    Raises:
        EncodingError: It is there and cannot be read: ``CHECKPOINT_DAMAGED``.
    """
    path = checkpoint / "metadata"
    if not path.exists():
        return ""
    try:
        return str(json.loads(path.read_bytes()[:_MAX_FILE])["id"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EncodingError("the checkpoint's metadata is damaged", code="CHECKPOINT_DAMAGED") from error


def places_in(offset: Mapping[str, str]) -> dict[str, str]:
    """Give the places of an offset, without the turn (`log_stream`)."""
    return {lane: place for lane, place in offset.items() if "/" in lane}


def _check_progress(checkpoint: Path, head: OutboxCommit | None) -> None:
    planned, done = _numbers(checkpoint, "offsets"), _numbers(checkpoint, "commits")
    query = query_id(checkpoint)
    if planned and not query:
        raise UsageError("the checkpoint has lost its metadata", code="CHECKPOINT_DAMAGED")
    last = max(done, default=-1)
    if head is None:
        if last >= 0:
            raise UsageError(f"the checkpoint is at batch {last} and the outbox is empty", code="OUTBOX_BEHIND")
        return
    if query != head.query:
        raise UsageError("the checkpoint is of another query than the outbox", code="CHECKPOINT_FOREIGN")
    if last > head.batch:
        raise UsageError(f"the checkpoint is at batch {last}, the outbox at {head.batch}", code="OUTBOX_BEHIND")
    if last < head.batch - 1 or head.batch not in planned:
        raise UsageError(f"the checkpoint is at batch {last}, the outbox at {head.batch}", code="CHECKPOINT_BEHIND")
    if places_in(_offset(checkpoint, head.batch)) != head.upto:
        raise UsageError(
            f"the checkpoint planned batch {head.batch} over another part of the log", code="CHECKPOINT_FOREIGN"
        )


def _offset(checkpoint: Path, batch: int) -> dict[str, str]:
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_bytes()[:_MAX_FILE].splitlines()
        return dict(json.loads(lines[-1]))
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise EncodingError(f"offset {batch} of the checkpoint is damaged", code="CHECKPOINT_DAMAGED") from error


def _numbers(checkpoint: Path, folder: str) -> set[int]:
    found = checkpoint / folder
    return {int(path.name) for path in found.iterdir() if path.name.isdigit()} if found.is_dir() else set()


def _read_identity(folder: Path) -> str | None:
    path = folder / _IDENTITY
    try:
        with named_errors(path):
            value = json.loads(path.read_bytes()[:_MAX_FILE])
        form, identity = value.get("format", _FORMAT), value["outbox"]
        if type(form) is int and form > _FORMAT:
            raise newer_format(path.name, found=form, known=_FORMAT)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EncodingError(f"the identity in `{path.parent.name}` is damaged", code="IDENTITY_DAMAGED") from error
    return str(identity)


def _write_identity(folder: Path, identity: str) -> None:
    with named_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not write_once(folder / _IDENTITY, json.dumps({"format": _FORMAT, "outbox": identity}).encode()):
            raise UnavailableError("another job starts here at this moment", code="JOB_RUNNING")
