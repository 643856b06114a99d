"""Which parcels of a log were there before, told by the log alone: the same answer for every reader.

Rules kept here:

- of the parcels that hold events of one origin under one name, the first in the log counts; the others are repetitions;
- a commit's word proves nothing: a claim to events keeps nobody out until the parcel behind it was looked at, its
  signature verified and its name compared. Only names that are claimed twice are looked at;
- a parcel that its commit calls by another name than its own is refused: nothing is repeated under a false name;
- what has expired cannot be looked at any more. A parcel that is older than the newest of what has expired, and that an
  expired commit claims, is a repetition; one that is younger cannot be;
- a parcel that is older than everything the log still held when it last expired is refused (``STAMP_BEHIND``), so the
  names of what expired need not be kept for ever. What is kept is 12 octets for each parcel that the log holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.encryption import KeyProvider, ParcelHeader, parse_parcel, verify_parcel
from maia.errors import MaiaError
from maia.kernel import DeliverPlan, DeliveryPlan, Outcome, deliver_parcels
from maia.log.commits import Commit, LogFile
from maia.log.directory import LogDirectory

DUPLICATE = "DUPLICATE_EVENTS"
MISNAMED = "EVENTS_MISNAMED"
_MAX_LOOKED = 10_000
_Keys = npt.NDArray[np.uint64]
_Numbers = npt.NDArray[np.int32]
Place = tuple[int, int, int]
"""A commit, a file of it and a parcel of that: the order of the log."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Hashes of the names that commits claim, sorted, each with the number of its commit."""

    upto: int
    digest: str
    start: int
    keys: _Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    numbers: _Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    @classmethod
    def sorted(cls, upto: int, digest: str, start: int, keys: _Keys, numbers: _Numbers) -> _Names:
        """Put names in order."""
        order = np.argsort(keys, kind="stable")
        return cls(upto, digest, start, keys[order], numbers[order])

    def repeated(self, keys: _Keys) -> npt.NDArray[np.bool_]:
        """Tell which of these names are claimed more than once."""
        found = np.searchsorted(self.keys, keys, "right") - np.searchsorted(self.keys, keys, "left")
        return np.asarray(found > 1)

    def claimed_by(self, key: np.uint64) -> list[int]:
        """List the commits that claim a name, in order."""
        start, end = np.searchsorted(self.keys, key, "left"), np.searchsorted(self.keys, key, "right")
        found: list[int] = np.unique(self.numbers[start:end]).tolist()
        return found


class Repeats:
    """Recognises the repetitions in a log; it remembers the names that it has read."""

    def __init__(self, log: LogDirectory) -> None:
        """Look at a log."""
        self._log = log
        self._upkeep = log.upkeep()
        self._known: _Names | None = None
        self._looked: dict[str, tuple[ParcelHeader | None, ...]] = {}

    @property
    def horizon(self) -> int:
        """The stamp before which a parcel is refused, since the log would not know it again."""
        return self._log.upkeep().horizon.oldest

    def of(self, commits: Sequence[Commit]) -> dict[tuple[int, str], frozenset[int]]:
        """Tell for each commit and file of it which parcels of that file were in the log before.

        Raises:
            MaiaError: The log is damaged; nothing is guessed.
        """
        if not commits:
            return {}
        self._upkeep = self._log.upkeep()
        self._looked.clear()
        names = self._names(commits[-1].sequence)
        found: dict[tuple[int, str], frozenset[int]] = {}
        for commit in commits:
            for at, file in enumerate(commit.files):
                keys = _keys(commit.origin, file.bases)
                doubtful = np.flatnonzero(names.repeated(keys)).tolist()
                again = {
                    index
                    for index in doubtful
                    if self._was_before((commit.sequence, at, index), commit, names.claimed_by(keys[index]))
                }
                found[commit.sequence, file.path] = frozenset(again)
        return found

    def _was_before(self, place: Place, commit: Commit, numbers: Iterable[int]) -> bool:
        """Tell whether a true parcel with the same name lies before a place of the log."""
        file = commit.files[place[1]]
        wanted = (commit.origin, file.bases[place[2]])
        for number in numbers:
            if number > place[0]:
                return False
            if number <= self._upkeep.expired:
                # INVARIANT: what expired was stamped before `newest`; a younger parcel is none of it.
                own = self._look(file)[place[2]]
                old = own is not None and own.stamp < self._upkeep.horizon.newest
                if old and any(True for _ in self._claims(number, wanted)):
                    return True
                continue
            for at, index, other in self._claims(number, wanted):
                if (number, at, index) >= place:
                    return False
                true = self._look(other)[index]
                if true is not None and (true.origin.hex(), true.event_base.hex()) == wanted:
                    return True
        return False

    def _claims(self, number: int, wanted: tuple[str, str]) -> Iterator[tuple[int, int, LogFile]]:
        """Find where a commit claims a name: the file's and the parcel's position."""
        [commit] = self._log.records(after=number - 1, upto=number)
        for at, file in enumerate(commit.files if commit.origin == wanted[0] else ()):
            for index, base in enumerate(file.bases):
                if base == wanted[1]:
                    yield at, index, file

    def _look(self, file: LogFile) -> tuple[ParcelHeader | None, ...]:
        """Verify the parcels of a file, once: the header of each, or ``None`` where nothing is proven."""
        known = self._looked.get(file.path)
        if known is None:
            parcels = (parcel for batch in self._log.parcels(file) for parcel in batch.column("parcel").to_pylist())
            known = tuple(_verified(parcel) for parcel in parcels)
            if len(self._looked) >= _MAX_LOOKED:
                self._looked.clear()
            self._looked[file.path] = known
        return known

    def _is_there(self, known: _Names) -> bool:
        """Tell whether the log still has the commit up to which names are known; it may have been put back."""
        return known.upto <= self._log.latest() and known.digest == self._log.digest(known.upto)

    def _names(self, upto: int) -> _Names:
        """Read the names that were claimed since this object last looked; all when the log is not the one it was."""
        known = self._known
        start = self._upkeep.horizon.names
        if known is None or known.start != start or not self._is_there(known):
            known = _Names(start - 1, self._log.digest(start - 1), start)
        if known.upto < upto:
            keys, numbers, digest = [known.keys], [known.numbers], known.digest
            for commit in self._log.records(after=known.upto, upto=upto):
                digest = commit.digest
                for file in commit.files:
                    if commit.sequence > self._upkeep.expired or file.last_stamp >= self._upkeep.horizon.oldest:
                        keys.append(_keys(commit.origin, file.bases))
                        numbers.append(np.full(len(file.bases), commit.sequence, dtype=np.int32))
            known = _Names.sorted(upto, digest, start, np.concatenate(keys), np.concatenate(numbers))
        self._known = known
        return known


def deliver_once(
    plan: DeliverPlan,
    log: LogDirectory,
    keys: KeyProvider,
    *,
    origin: str,
    file: LogFile,
    again: frozenset[int],
    compiled: DeliveryPlan | None = None,
) -> Iterator[Outcome]:
    """Do as `deliver_parcels` does for one file of a commit, but refuse what is a repetition or not as it is claimed.

    Args:
        plan: By which to open and screen.
        log: Where the file lies.
        keys: This broker's keys.
        origin: Whose parcels they are, as the commit says, in hex.
        file: The file.
        again: Positions of the repetitions, from `Repeats.of`; they are not opened.
        compiled: The plan's index, for who goes through many files with one plan.

    Yields:
        An outcome for each parcel, in order.

    Raises:
        MaiaError: The log is damaged.
    """
    fresh = [index for index in range(len(file.bases)) if index not in again]
    counts: dict[int, int] = {}

    def others() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in log.parcels(file):
            repeated = [index for index in range(start, start + batch.num_rows) if index in again]
            if repeated:
                events = batch.column("events").to_pylist()
                counts.update({index: events[index - start] for index in repeated})
                new = [start + row not in again for row in range(batch.num_rows)]
                yield batch.filter(pa.array(new, type=pa.bool_()))
            else:
                yield batch
            start += batch.num_rows

    done = 0
    for index, outcome in zip(fresh, deliver_parcels(plan, others(), keys, compiled=compiled), strict=True):
        yield from (Outcome(counts[earlier], refused=DUPLICATE) for earlier in range(done, index))
        done = index + 1
        header = None if outcome.opened is None else outcome.opened.header
        if header is not None and (header.origin.hex(), header.event_base.hex()) != (origin, file.bases[index]):
            yield Outcome(outcome.events, refused=MISNAMED)
        else:
            yield outcome
    yield from (Outcome(counts[rest], refused=DUPLICATE) for rest in range(done, len(file.bases)))


def _verified(parcel: bytes) -> ParcelHeader | None:
    try:
        return verify_parcel(parse_parcel(parcel)).header
    except MaiaError:
        return None


def _keys(origin: str, bases: Sequence[str]) -> _Keys:
    start = hashlib.blake2b(origin.encode(), digest_size=8)
    digests = []
    for base in bases:
        one = start.copy()
        one.update(base.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
