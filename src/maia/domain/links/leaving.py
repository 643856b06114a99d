"""Copying by content: leaving out what who serves says that no filter of the link wants.

Rules kept here:

- records come always, so that lanes stay whole chains; what is left out is segments, noted before their record comes;
- who serves is asked with filters that are sealed for this round, and is believed in this alone: it could withhold by
  it what is wanted. What it said stands in the notes, and a link without filters fetches and compares all of it;
- only segments that the origin's commit names are left out, and only of the type that the filters are on;
- what was left out and is wanted now comes, or the lane is parked: a note is forgotten once all that it names is here
  and was compared, and for no other reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from maia.domain.domain import Domain
from maia.domain.left_out import forget_left, leave_out, left_of, wish_of
from maia.domain.link_files import Link
from maia.domain.links.filters import seal_filters
from maia.errors import UsageError
from maia.home import Home
from maia.log import Commit, LaneId, Leave, ReadableStore, fill_record


@runtime_checkable
class FilteringLog(Protocol):
    """A served log that can be asked what is not wanted."""

    def unwanted(self, name: str, filters: Sequence[bytes]) -> tuple[tuple[str, ...], int]:
        """Name the segments, from a record on, that no filter wants, and the last record that was looked at."""
        ...


def wanting(domain: Domain, link: Link, source: ReadableStore) -> Callable[[LaneId], Leave | None]:
    """Prepare to leave out what a link does not want; nothing is left out of a link without filters.

    Raises:
        UsageError: Who serves cannot be asked: ``LINK_FILTER``.
        MaiaError: The filters cannot be sealed.
    """
    if not link.filters:
        return lambda _lane: None
    if not isinstance(source, FilteringLog):
        raise UsageError("files of a log cannot be asked what a filter wants", code="LINK_FILTER")
    sealed = [item.to_bytes() for item in seal_filters(domain, link.types[0], link.filters)]
    wish = wish_of(link.filters)

    def leaving(lane: LaneId) -> Leave | None:
        if not lane.folder.startswith("type=") or lane.topic not in link.types or not sealed:
            return None
        said: tuple[tuple[str, ...], int] = ((), -1)

        def leave(commit: Commit) -> frozenset[str]:
            nonlocal said
            if commit.files and said[1] < commit.sequence:
                said = source.unwanted(lane.record_name(commit.sequence), sealed)
            names = tuple(file.path for file in commit.files if file.path in said[0])
            if names:
                # INVARIANT: noted before the record is here, so whoever reads the record knows.
                leave_out(domain.home, commit, wish, names)
            return frozenset(names)

        return leave

    return leaving


def filled_in(home: Home, link: Link, source: ReadableStore, lane: LaneId) -> tuple[int, list[str]]:
    """Fetch what was left out of a lane by another wish than the link has now.

    Returns:
        How many octets came, and of each segment that is not here now the code that says why. It stays noted, and is
        tried again at the next round.
    """
    octets, codes = 0, list[str]()
    for number, note in left_of(home, lane, unless=wish_of(link.filters)):
        came, missing = fill_record(source, home.log_store, lane, number, note.record, note.segments)
        octets += came
        # SECURITY: who serves would have it forgotten by serving nothing, and nobody would be told of what is missing.
        if missing:
            codes += missing
        else:
            forget_left(home, lane, number)
    return octets, codes
