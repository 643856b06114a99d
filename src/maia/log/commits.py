"""Commits: what one publication added to the log, as it stands in a numbered record.

Rules kept here: a record that is no commit, or names a file outside of the log, is damage and not a commit; the commits
of one stream come from one query, batch after batch, and what is out of turn is refused.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from maia.errors import EncodingError, UsageError
from maia.log.numbered import Record


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of parcels. ``bases`` names the events of each parcel, in order."""

    path: str
    size: int
    digest: str
    parcels: int
    events: int
    first_stamp: int
    last_stamp: int
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """What one publication added to the log.

    Attributes:
        sequence: Its number.
        publication: Its name, which a retry has too.
        type_id: The type, in hex.
        origin: The broker that sealed the parcels, in hex.
        evidence: The hash of the evidence for the broker's right, in hex.
        files: The files that count from now on.
        refused: How many rows went no further.
        query: For a stream, the query that wrote it; empty for a batch.
        batch: For a stream, the micro-batch; -1 for a batch.
        digest: Of the commit itself, as it was read.
    """

    sequence: int
    publication: str
    type_id: str
    origin: str
    evidence: str
    files: tuple[LogFile, ...]
    refused: int = 0
    query: str = ""
    batch: int = -1
    digest: str = ""

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(file.events for file in self.files)

    @property
    def name(self) -> str:
        """The publication, with the micro-batch when it is a stream's."""
        return self.publication if self.batch < 0 else f"{self.publication}/{self.batch}"


def check_turn(newest: Commit | None, query: str, batch: int, rows: int) -> Commit | None:
    """Return the commit that already stands for this one, nothing when it is new, or refuse what is out of turn."""
    if newest is None:
        raise UsageError(
            f"the log has nothing of this stream before batch {batch}: its checkpoint belongs to another log or time",
            code="CHECKPOINT_AHEAD",
        )
    if (newest.query, min(newest.batch, 0)) != (query, min(batch, 0)):
        raise UsageError(
            f"`{newest.publication}` was begun by another query: name it anew, or give back its checkpoint",
            code="PUBLICATION_TAKEN",
        )
    if batch > newest.batch + 1:
        raise UsageError(f"the log ends at batch {newest.batch} and the checkpoint at {batch}", code="CHECKPOINT_AHEAD")
    if batch < newest.batch:
        raise UsageError(f"the log has batch {newest.batch} and the checkpoint {batch}", code="CHECKPOINT_BEHIND")
    if batch == newest.batch:
        if batch >= 0 and rows != newest.events + newest.refused:
            raise UsageError(f"batch {batch} was committed with other rows", code="CHECKPOINT_BEHIND")
        return newest
    return None


def value_of(commit: Commit) -> dict[str, object]:
    """Write a commit as the value of its record."""
    value = asdict(commit)
    del value["sequence"], value["digest"]
    return value


def commit_of(record: Record) -> Commit:
    """Read a commit from its record.

    Raises:
        EncodingError: It is damaged: ``COMMIT_DAMAGED``.
    """
    try:
        value = dict(record.value)
        items = value.pop("files")
        files = tuple(LogFile(**{**item, "bases": tuple(item["bases"])}) for item in items)  # type: ignore[attr-defined]
        commit = Commit(record.number, files=files, digest=record.digest, **value)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED") from error
    if any(".." in file.path or file.path.startswith("/") or len(file.bases) != file.parcels for file in files):
        raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED")
    return commit
