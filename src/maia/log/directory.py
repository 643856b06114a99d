"""The log: lanes of events in a store, and the certificates behind their origins' rights.

    type=<id>/origin=<key>/<number>.record                       what the origin committed, signed (`lane`)
    type=<id>/origin=<key>/head                                  the end of the lane, signed
    type=<id>/origin=<key>/date=<day>/<name>.parquet             segments: parcels, one row each
    _evidence/<hex>                                              certificates behind an origin's right

An offset is a map from lanes to places. Rules kept here:

- lanes are found by the names of their folders, which prove nothing (`lane_search`): when there are many, a reader
  looks at those that it knows and at those whose origin has a right, so many for each issuer of rights, so that
  strangers hide nobody;
- a lane that the reader's home holds (`lane_memory`) is looked at whether or not the store shows its folder;
- an origin writes into its own lane alone (`own_lanes`);
- evidence is named by its hash, so it is true or not there; an origin puts it again whenever it writes;
- the format before lanes is refused by name (``LOG_FORMAT_OLD``), where the reader's own home says that it had one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, UsageError, VerificationError
from maia.kernel import LoggedParcel, instant_at
from maia.log.commits import MAX_COMMIT, Commit, LogFile, Moved, MovedRows, read_commit, read_place
from maia.log.directory_store import DirectoryStore
from maia.log.event_lane import BEGINNING, EVENTS, EventLane, lane_name, lane_of
from maia.log.lane import MAX_LANES, LaneReader
from maia.log.lane_memory import LaneMemory
from maia.log.lane_objects import LaneId
from maia.log.lane_search import Admits, LaneSearch
from maia.log.segment_writer import PartitionWriter, segment_name
from maia.log.store import Store
from maia.log.store_address import open_store
from maia.principals import KeyId

Places = Mapping[str, str]
"""An offset: after which record reading goes on, by lane."""
_TYPE_FOLDER = re.compile(r"type=[0-9a-f]{64}")
_EVIDENCE = "_evidence"
MAX_EVIDENCE = 16 << 20
MAX_TYPES = 4096
_EVIDENCE_LIMITS = SexpLimits(max_bytes=MAX_EVIDENCE, max_depth=2, max_atom=1 << 16)


class LogDirectory:
    """A log in a directory, or in another store."""

    def __init__(
        self,
        place: Path | str | Store,
        *,
        judge: Callable[[], Admits] | None = None,
        before_lanes: bool = False,
        memory: Path | None = None,
    ) -> None:
        """Use a store; a directory is made when something is written.

        Args:
            place: The directory, or the address of the store, or the store.
            judge: Gives, at this moment, whose place a lane takes when there are many; whoever comes first by name
                when nobody can judge.
            before_lanes: Whether the reader's home says that the log was of the format before lanes.
            memory: Where the reader's home remembers how far it read lanes (`lane_memory`); nowhere when it has none.
        """
        self.store: Store = open_store(place) if isinstance(place, str | Path) else place
        self._lanes: dict[str, EventLane] = {}
        self._search = LaneSearch(self.store)
        self._judge = judge
        self._before_lanes = before_lanes
        self._memory = None if memory is None else LaneMemory(memory)

    @property
    def place(self) -> str:
        """Where it lies: a directory, or an address."""
        return self.store.place

    @property
    def path(self) -> Path:
        """The directory in which it lies.

        Raises:
            UsageError: It lies in none: ``LOG_NO_DIRECTORY``.
        """
        if isinstance(self.store, DirectoryStore):
            return self.store.path
        raise UsageError(f"the log in `{self.place}` is no directory", code="LOG_NO_DIRECTORY")

    # -- reading

    def lanes(self, types: Iterable[str] | None = None, *, first: Collection[str] = ()) -> list[EventLane]:
        """Find the lanes of types, or of all, and read what was committed to each since the last look.

        Args:
            types: Ids in hex; every type of the log when there are none.
            first: Lanes that are looked at whatever else there is, by name.

        Raises:
            UsageError: The log is of the format before lanes: ``LOG_FORMAT_OLD``.
            UnavailableError: The store did not answer.
        """
        if types is None:
            folders = self.store.list_folders("", "type=", limit=MAX_TYPES, shape=_TYPE_FOLDER)
            types = [name.removeprefix("type=") for name in folders]
            types = [*types, *(() if self._memory is None else set(self._memory.topics()).difference(types))]
        found: dict[str, LaneId] = {}
        for topic in types:
            known = {name: lane_of(name) for name in first if name.startswith(f"{topic}/")}
            with suppress(UsageError):  # a folder that is no type
                if self._memory is not None:
                    # SECURITY: who takes a folder away would otherwise hide a lane as if it had never been.
                    known |= {lane_name(lane): lane for lane in self._memory.held(topic, self.store.place)}
                known |= {lane_name(lane): lane for lane in self._search.find(topic, known, self._judge)}
            found |= known
        if not found and self._before_lanes:
            raise UsageError(
                f"the log in `{self.place}` is of an older format; `maia log migrate` makes lanes of it",
                code="LOG_FORMAT_OLD",
            )
        lanes = [self._lane(name, lane) for name, lane in sorted(found.items())]
        for lane in lanes:
            lane.refresh()
        return lanes

    def lane(self, name: str) -> EventLane:
        """Give one lane, by its name in offsets, as far as it was read."""
        return self._lane(name, lane_of(name))

    def ends(self, types: Iterable[str] | None = None, *, first: Collection[str] = ()) -> dict[str, str]:
        """Tell how far each lane goes now."""
        return {lane.name: lane.end for lane in self.lanes(types, first=first) if lane.count}

    def behind(self, after: Places, types: Iterable[str] | None = None) -> int:
        """Count the records that lie behind an offset."""
        found = 0
        for lane in self.lanes(types, first=tuple(after)):
            start = max(read_place(after.get(lane.name, BEGINNING))[0].number, read_place(lane.floor)[0].number)
            found += max(0, lane.count - 1 - start)
        return found

    @property
    def judged(self) -> bool:
        """Whether somebody judges whose lanes count."""
        return self._judge is not None

    def begins(self, known: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]] | None:
        """Tell the number and the stamp of the oldest record of each lane, of origins that are no strangers if known.

        SECURITY: that something is not there now says nothing, since anybody can take it away for a moment. A lane that
        is known begins where it did until its owner's signed floor says otherwise.

        Args:
            known: What was found before.

        Returns:
            By lane; nothing when there is more than can be looked at.
        """
        found = dict(known)
        admits = None if self._judge is None else self._judge()
        folders = self.store.list_folders("", "type=", limit=MAX_TYPES, shape=_TYPE_FOLDER)
        if len(folders) >= MAX_TYPES:
            return None
        for folder in folders:
            with suppress(UsageError):  # a folder that is no type
                lanes = self._search.find(folder.removeprefix("type="), (), self._judge)
                if self._judge is None and len(lanes) >= MAX_LANES:
                    return None
                for lane in lanes:
                    reader = LaneReader(self.store, lane, limit=MAX_COMMIT)
                    head = reader.head()
                    record = reader.record(0 if head is None else head.floor.number + 1)
                    if record is None or record.number <= found.get(lane_name(lane), (-1, 0))[0]:
                        continue
                    commit = read_commit(record, before=-1)
                    if admits is None or commit is None or admits(commit) is not None:
                        found[lane_name(lane)] = record.number, record.stamp
        return found

    def commits(
        self, *, after: Places | None = None, upto: Places | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Commit]:
        """Read commits in the order of their stamps, all that can be read unless told between which places.

        Raises:
            NotFoundError: One that is asked for has expired: ``LOG_EXPIRED``.
            UncheckedError: A lane is not the one that was read before.
        """
        if upto is None:
            upto = self.ends(types, first=() if after is None else tuple(after))
        found: list[Commit] = []
        for name, place in upto.items():
            lane = self.lane(name)
            if lane.count <= read_place(place)[0].number:
                lane.refresh()
            found += lane.commits(None if after is None else after.get(name), place)
        # Heartbeats add nothing, and are for readers of lanes alone.
        found = [commit for commit in found if commit.publication or commit.wrong]
        return iter(sorted(found, key=lambda commit: (commit.stamp, commit.lane)))

    def parcels(
        self, commit_lane: str, file: LogFile, *, at: Moved | MovedRows | None = None
    ) -> Iterator[LoggedParcel]:
        """Read the parcels of a segment of a lane, one at a time.

        Args:
            commit_lane: The lane, by its name in offsets.
            file: The segment.
            at: Where it lay when that was planned, unless where it was committed.

        Raises:
            UnavailableError: It is missing: ``LOG_FILE_MISSING``.
            EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
            MalformedError: It is, and is no segment: ``SEGMENT_MALFORMED``.
        """
        return self.lane(commit_lane).parcels(file, at=at)

    def place_of(self, commit_lane: str, file: LogFile) -> Moved | MovedRows | None:
        """Tell where a segment lies now, for those who will read it elsewhere; nothing when that cannot be told."""
        with suppress(VerificationError):  # who reads it looks again
            return self.lane(commit_lane).place_of(file)
        return None

    def evidence(self, digest: bytes) -> tuple[bytes, ...]:
        """Return the certificates that a hash names; none when they are missing or altered, which proves nothing."""
        try:
            data = self.store.get(evidence_name(digest), limit=MAX_EVIDENCE)
            if hashlib.sha256(data).digest() != digest:
                return ()
            expression = parse_canonical(data, limits=_EVIDENCE_LIMITS)
        except (NotFoundError, EncodingError):
            return ()
        if not isinstance(expression, tuple):
            return ()
        return tuple(item for item in expression[1:] if isinstance(item, bytes))

    # -- writing

    def put_evidence(self, certificates: tuple[bytes, ...]) -> bytes:
        """Keep the certificates behind an origin's right; return the hash that parcels name them by."""
        data = encode((b"evidence", *certificates))
        digest = hashlib.sha256(data).digest()
        name = evidence_name(digest)
        if not self.store.put_new(name, data) and not self.evidence(digest):
            self.store.put(name, data)  # something else had its name
        return digest

    def writer(
        self, publication: str, type_id: bytes, partition: int, origin: KeyId, *, at: datetime
    ) -> PartitionWriter:
        """Open a segment for the parcels of one task."""
        lane = LaneId(kind=EVENTS, owner=origin, topic=type_id.hex())
        return PartitionWriter(self.store, segment_name(lane.folder, publication, partition, at=at))

    def _lane(self, name: str, lane: LaneId) -> EventLane:
        known = self._lanes.get(name)
        if known is None:
            known = self._lanes[name] = EventLane(self.store, lane, self._memory)
        return known


def evidence_name(digest: bytes) -> str:
    """Name the certificates behind a right by their digest."""
    return f"{_EVIDENCE}/{digest.hex()}"


def instant_of(commit: Commit) -> datetime:
    """Tell when a commit was made, by its stamp."""
    return instant_at(commit.stamp)
