"""Which publications the own record of a lane holds, found without reading all of it.

    <own record>/<folder of the lane>/names     (lane-names "1" <digest of the content> <content>)

    content: (names (lane <kind> <owner> <topic>) (number "n") (digest <digest>) (entries <octets>))
    entries: for each publication, in order, the SHA-256 of its name and in eight octets its newest record's number

Rules kept here:

- the own record decides: this file is made from it, at the home and for its owner alone, and nothing of a shared store
  goes into it;
- it holds for a lane that has exactly this record under this number, and since records are chained, exactly those
  before it. When it does not fit, is damaged, missing or of another format, it is made anew from the whole record;
- what was signed since is read from the record, and the file is renewed every so many records: a kill at any moment
  leaves one that holds for less;
- an own record with a gap is read as it is, and no such file is made of it. A record that the file names and the home
  has no more is damage (``LANE_OWN_DAMAGED``): its publication is not made to count twice.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from contextlib import suppress

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, UnavailableError
from maia.log.commits import Commit, read_commit
from maia.log.lane_objects import START, LaneRecord, Place
from maia.log.lane_writer import LaneWriter
from maia.log.store import Store

RENEWED = 32
"""After so many records the file is made anew."""
_VERSION = b"1"
_ENTRY = struct.Struct(">32sQ")
_KEY = 32
_MAX_NAMES = 1 << 28
_LIMITS = SexpLimits(max_bytes=_MAX_NAMES, max_depth=3, max_atom=_MAX_NAMES)


class LaneNames:
    """Finds the commits of one own lane by the names of their publications."""

    def __init__(self, own: Store, writer: LaneWriter) -> None:
        """Serve a lane; nothing is read yet."""
        self._own = own
        self._writer = writer
        self._file = f"{writer.lane.folder}/names"
        self._upto: Place | None = None
        self._entries = b""
        self._since: dict[bytes, int] = {}
        self._unsaved = 0
        self._whole = True

    def find(self, publication: str) -> Commit | None:
        """Return the newest commit of a publication; ``None`` when there is none.

        Raises:
            EncodingError: The own record is damaged: ``LANE_OWN_DAMAGED``.
        """
        upto = self._load() if self._upto is None else self._upto
        newest = self._writer.newest(known=max(0, upto.number))
        self._read_on(upto, newest)
        number = self._number(_key(publication))
        if number is None:
            return None
        try:
            found = read_commit(self._writer.kept(number), before=-1)
        except NotFoundError:
            found = None
        if found is None or found.publication != publication:
            raise EncodingError(
                f"lane {self._writer.lane}: the home's own copy of record {number} is missing", code="LANE_OWN_DAMAGED"
            )
        return found

    def _load(self) -> Place:
        """Take up the file when it holds for the own record as it is; tell up to where."""
        try:
            upto, entries = self._parse(self._own.get(self._file, limit=_MAX_NAMES))
            if self._writer.kept(upto.number).digest == upto.digest:
                self._entries = entries
                return upto
        except (NotFoundError, EncodingError, UnavailableError):
            pass  # whoever reads the record tells what is wrong with it
        return START

    def _read_on(self, upto: Place, newest: LaneRecord | None) -> None:
        """Read the names that came since."""
        for number in range(upto.number + 1, 0 if newest is None else newest.number + 1):
            try:
                commit = read_commit(self._writer.kept(number), before=-1)
            except NotFoundError:
                self._whole = self._whole and number <= self._writer.floor().number
                continue
            self._unsaved += 1
            if commit is not None and commit.publication:
                self._since[_key(commit.publication)] = number
        self._upto = START if newest is None else newest.place
        if self._whole and self._unsaved >= RENEWED:
            self._save(self._upto)

    def _save(self, upto: Place) -> None:
        numbers = dict(_ENTRY.iter_unpack(self._entries)) | self._since
        self._entries = b"".join(_ENTRY.pack(key, number) for key, number in sorted(numbers.items()))
        self._since.clear()
        self._unsaved = 0
        content = encode(
            (
                b"names",
                self._writer.lane.to_sexp(),
                (b"number", b"%d" % upto.number),
                (b"digest", upto.digest),
                (b"entries", self._entries),
            )
        )
        with suppress(UnavailableError):  # without it, the next look takes longer
            self._own.put(self._file, encode((b"lane-names", _VERSION, hashlib.sha256(content).digest(), content)))

    def _parse(self, raw: bytes) -> tuple[Place, bytes]:
        match parse_canonical(raw, limits=_LIMITS):
            case (b"lane-names", version, bytes() as digest, bytes() as content) if (
                version == _VERSION and hashlib.sha256(content).digest() == digest
            ):
                match parse_canonical(content, limits=_LIMITS):
                    case (
                        b"names",
                        lane,
                        (b"number", bytes() as number),
                        (b"digest", bytes() as last),
                        (b"entries", bytes() as entries),
                    ) if lane == self._writer.lane.to_sexp() and number.isdigit() and len(entries) % _ENTRY.size == 0:
                        return Place(int(number), last), entries
        raise EncodingError("not the names of this lane", code="LANE_NAMES")

    def _number(self, key: bytes) -> int | None:
        if key in self._since:
            return self._since[key]
        entries, size = self._entries, _ENTRY.size
        count = len(entries) // size
        at = bisect_left(range(count), key, key=lambda index: entries[index * size : index * size + _KEY])
        if at < count:
            found, number = _ENTRY.unpack_from(entries, at * size)
            if found == key:
                return int(number)
        return None


def _key(publication: str) -> bytes:
    return hashlib.sha256(publication.encode()).digest()
