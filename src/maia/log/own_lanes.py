"""The lanes that a broker writes, and its own record of them.

The own record (`lane_writer`) says what was published: publishing again under a name is recognised there, and nobody
else can claim it. What the store loses is put again from it.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from maia.errors import EncodingError, NotFoundError, UsageError
from maia.log.commits import MAX_COMMIT, MAX_SEGMENTS, Commit, LogFile, check_turn, read_commit, write_commit
from maia.log.directory import MAX_EVIDENCE, MAX_TYPES, LogDirectory, evidence_name
from maia.log.directory_store import DirectoryStore
from maia.log.event_lane import EVENTS
from maia.log.lane_names import LaneNames
from maia.log.lane_objects import LaneId
from maia.log.lane_writer import LaneWriter
from maia.principals import Signer


class OwnLanes:
    """The lanes that a broker writes, with its own record of them."""

    def __init__(self, log: LogDirectory, own: Path, signer: Signer) -> None:
        """Write to a log as a broker, whose own record lies at its home."""
        self.log = log
        self._own = DirectoryStore(own, private=True)
        self._signer = signer
        self._writers: dict[str, LaneWriter] = {}
        self._names: dict[str, LaneNames] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep other processes of this home from writing to its lanes meanwhile; ends with the process."""
        self._own.put_new("turn", b"")
        with (self._own.path / "turn").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def find(self, publication: str) -> Commit | None:
        """Return the newest commit of a publication or stream, by the own record; ``None`` when there is none."""
        found = [self._known(type_id).find(publication) for type_id in self.types()]
        return max((item for item in found if item is not None), key=lambda item: item.stamp, default=None)

    def writer(self, type_id: str) -> LaneWriter:
        """Give the writer of this broker's lane of a type."""
        known = self._writers.get(type_id)
        if known is None:
            lane = LaneId(kind=EVENTS, owner=self._signer.public_key.key_id, topic=type_id)
            known = LaneWriter(self.log.store, lane, self._signer, self._own, limit=MAX_COMMIT)
            self._writers[type_id] = known
        return known

    def last_stamp(self, type_id: str) -> int:
        """Tell the stamp of the newest record of a lane; -1 when there is none."""
        newest = self.writer(type_id).newest()
        return -1 if newest is None else newest.stamp

    def commit(
        self,
        publication: str,
        type_id: str,
        files: tuple[LogFile, ...],
        *,
        evidence: str,
        refused: int = 0,
        query: str = "",
        batch: int = -1,
        at: datetime,
        stamp: int | None = None,
    ) -> Commit:
        """Make files count, once per publication, or once per micro-batch of a stream.

        Returns:
            The commit, which may be an earlier one of the same publication; then the files given here do not count.

        Raises:
            UsageError: The name belongs to something else: another query, or a batch that is not the next; or stamps
                lie behind the lane's last: ``STAMP_BEHIND``; or there are too many files: ``TOO_MANY_SEGMENTS``.
            UnavailableError: ``LANE_PENDING``: it counts, and the store does not have it yet. Otherwise nothing was
                committed.
        """
        writer = self.writer(type_id)
        newest = self.find(publication)
        known = check_turn(newest, query, batch, sum(file.events for file in files) + refused)
        if known is not None:
            self.writer(known.type_id).reassert(at=at)
            return known
        last = self.last_stamp(type_id)
        if any(file.first_stamp <= last for file in files):
            raise UsageError("stamps behind what was committed", code="STAMP_BEHIND")
        if len(files) > MAX_SEGMENTS:
            raise UsageError(f"a commit has at most {MAX_SEGMENTS} segments", code="TOO_MANY_SEGMENTS")
        made = Commit(0, publication, type_id, "", evidence, files, refused, query, batch)
        if stamp is None:
            stamp = max((file.last_stamp for file in files), default=None)
        self._keep_evidence(bytes.fromhex(evidence))
        record = writer.append(write_commit(made, writer.lane.folder), at=at, stamp=stamp)
        return replace(
            made, sequence=record.number, origin=writer.lane.owner.hex(), stamp=record.stamp, digest=record.digest.hex()
        )

    def take_over(self, commit: Commit, *, at: datetime) -> None:
        """Sign a commit of the format before lanes, whose parcels this broker sealed; its turn is its stamp.

        Raises:
            UnavailableError: As `commit` does.
        """
        writer = self.writer(commit.type_id)
        self._keep_evidence(bytes.fromhex(commit.evidence))
        writer.append(write_commit(commit, writer.lane.folder), at=at, stamp=commit.stamp)

    def bases(self, type_id: str) -> set[str]:
        """Name the events of all parcels that the own record of a lane has."""
        return {base for file in self._files(type_id) for base in file.bases}

    def paths(self, type_id: str) -> set[str]:
        """Name all segments that the own record of a lane has."""
        return {file.path for file in self._files(type_id)}

    def heartbeat(self, type_id: str, *, at: datetime) -> None:
        """Commit nothing, so that nothing can be dated back behind now."""
        writer = self.writer(type_id)
        newest = self._newest(writer)
        if newest is not None:
            empty = Commit(0, "", type_id, "", newest.evidence, ())
            writer.append(write_commit(empty, writer.lane.folder), at=at)

    def reassert(self, *, at: datetime, depth: int | None = 16, rhythm: timedelta = timedelta(0)) -> int:
        """Put again what the store lost of this broker's lanes and of the evidence that they name.

        Args:
            at: Now, for the heads.
            depth: How many of the newest records are compared; all of them when ``None``.
            rhythm: Within which time the heads will be asserted again.

        Returns:
            How many records had to be put again.
        """
        put = 0
        for type_id in self.types():
            writer = self.writer(type_id)
            put += writer.reassert(at=at, depth=depth, rhythm=rhythm)
            newest = writer.newest()
            count = 0 if newest is None else newest.number + 1
            for digest in self._evidence(writer, range(0 if depth is None else max(0, count - depth), count)):
                self._put_evidence(digest)
        return put

    def adopt(self) -> int:
        """Take over what the log holds of this broker beyond its own record; return how many records."""
        owner = self._signer.public_key.key_id.hex()
        names = [lane.name for lane in self.log.lanes() if lane.name.endswith(f"/{owner}")]
        return sum(self.writer(name.partition("/")[0]).adopt() for name in names)

    def types(self) -> list[str]:
        """List the types that this broker has a lane of."""
        folders = self._own.list_folders("", "type=", limit=MAX_TYPES)
        return [name.removeprefix("type=") for name in folders]

    def _keep_evidence(self, digest: bytes) -> None:
        """Keep a copy of evidence, to be put again when the log loses it."""
        with suppress(NotFoundError, EncodingError):
            name = evidence_name(digest)
            data = self.log.store.get(name, limit=MAX_EVIDENCE)
            if hashlib.sha256(data).digest() == digest:
                self._own.put_new(name, data)

    def _put_evidence(self, digest: bytes) -> None:
        if not self.log.evidence(digest):
            with suppress(NotFoundError, EncodingError):
                self.log.store.put(evidence_name(digest), self._own.get(evidence_name(digest), limit=MAX_EVIDENCE))

    def _evidence(self, writer: LaneWriter, numbers: range) -> frozenset[bytes]:
        """Name the evidence that records of a lane rest on."""
        found: set[bytes] = set()
        for number in numbers:
            with suppress(NotFoundError):
                commit = read_commit(writer.kept(number), before=-1)
                found |= set() if commit is None or not commit.evidence else {bytes.fromhex(commit.evidence)}
        return frozenset(found)

    def _files(self, type_id: str) -> Iterator[LogFile]:
        """Go through the segments that the own record of a lane has."""
        writer = self.writer(type_id)
        newest = writer.newest()
        for number in range(0 if newest is None else newest.number + 1):
            with suppress(NotFoundError):
                commit = read_commit(writer.kept(number), before=-1)
                yield from () if commit is None else commit.files

    def _newest(self, writer: LaneWriter) -> Commit | None:
        record = writer.newest()
        return None if record is None else read_commit(record, before=-1)

    def _known(self, type_id: str) -> LaneNames:
        known = self._names.get(type_id)
        if known is None:
            known = self._names[type_id] = LaneNames(self._own, self.writer(type_id))
        return known
