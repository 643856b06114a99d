"""What a link left out, since a filter does not want it: noted in the home, so that nobody takes it for lost.

    left-out/type=<id>/origin=<owner>/<number>      (left-out "1" (record <digest>) (wish <digest>) (segments <name>*))

Rules kept here:

- the note is there before the record that it speaks of, and lies in the home: what others put into a log hides nothing;
- who reads the lane goes on without these segments, and without these alone; the note counts for one record, by digest,
  and while a link of the home has the wish that left them out. Without one they are missing, like any other;
- what one wish left out is fetched as soon as the link has another one, or none, and the note goes when all is here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from maia.domain.link_files import read_links
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MalformedError, NotFoundError
from maia.home import Home
from maia.log import Commit, DirectoryStore, LaneId

_FOLDER = "left-out"
_MAX_NOTE = 16 << 20
_LIMITS = SexpLimits(max_bytes=_MAX_NOTE, max_depth=3, max_atom=4096)
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Segments of a record that were not copied, and the wish that did not ask for them."""

    record: str
    wish: bytes
    segments: tuple[str, ...]


def wish_of(filters: Sequence[str]) -> bytes:
    """Name what a link wants by a digest; empty when it wants all."""
    return hashlib.sha256(encode(tuple(text.encode() for text in filters))).digest() if filters else b""


def leave_out(home: Home, commit: Commit, wish: bytes, segments: Sequence[str]) -> None:
    """Note that segments of a commit are not copied."""
    note = (b"left-out", b"1", (b"record", commit.digest.encode()), (b"wish", wish), (b"segments", *_octets(segments)))
    _store(home).put(_name(commit), encode(note))


def wishes_of(home: Home) -> frozenset[tuple[str, bytes]]:
    """List what the links of a home want of which type: no other note counts."""
    if not (home.path / _FOLDER).is_dir():
        return frozenset()
    with suppress(MalformedError):
        return frozenset((type_, wish_of(link.filters)) for link in read_links(home) for type_ in link.types)
    return frozenset()  # nobody knows what is wanted, so nothing is left out by right


def without_left_out(home: Home, commit: Commit, wishes: Collection[tuple[str, bytes]]) -> Commit:
    """Give a commit as it was copied: without the segments that were left out, by a wish that somebody still has."""
    if not wishes:
        return commit
    note = _read(home, _name(commit))
    if note is None or note.record != commit.digest:
        return commit
    # SECURITY: what nobody wishes away any more is missing; else who never serves it again hides it for good.
    if (commit.type_id, note.wish) not in wishes:
        return commit
    return replace(commit, files=tuple(file for file in commit.files if file.path not in note.segments))


def left_of(home: Home, lane: LaneId, *, unless: bytes) -> list[tuple[int, LeftOut]]:
    """List what was left out of a lane by other wishes than one, by the numbers of records."""
    if not (home.path / _FOLDER).is_dir():
        return []
    store, found, after = _store(home), list[tuple[int, LeftOut]](), ""
    while True:
        page = store.list_after(lane.folder, after, limit=_PAGE)
        for name in page:
            note = _read(home, f"{lane.folder}/{name}")
            if note is not None and note.wish != unless:
                found.append((int(name), note))
        if len(page) < _PAGE:
            return found
        after = page[-1]


def forget_left(home: Home, lane: LaneId, number: int) -> None:
    """Forget that something was left out: it is here now."""
    _store(home).delete(f"{lane.folder}/{number:012d}")


def _store(home: Home) -> DirectoryStore:
    return DirectoryStore(home.path / _FOLDER, private=True)


def _name(commit: Commit) -> str:
    return f"type={commit.type_id}/origin={commit.origin}/{commit.sequence:012d}"


def _read(home: Home, name: str) -> LeftOut | None:
    try:
        data = _store(home).get(name, limit=_MAX_NOTE)
    except NotFoundError:
        return None
    match parse_canonical(data, limits=_LIMITS):
        case (b"left-out", b"1", (b"record", bytes() as record), (b"wish", bytes() as wish), (b"segments", *names)):
            return LeftOut(record.decode(), wish, tuple(item.decode() for item in names if isinstance(item, bytes)))
    # SECURITY: a note that cannot be read hides nothing; whoever reads is told that segments are missing.
    raise EncodingError(f"`{_FOLDER}/{name}` is no note of what was left out", code="LEFT_OUT_SHAPE")


def _octets(names: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in names)
