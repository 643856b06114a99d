"""What a log says to those who copy it: parts of objects, and records one behind the other.

    part      (part "octets of the whole" <octets>)
    records   (records <octets>*)
    nothing   (absent), or (unfit) for what lies there and cannot be read

Rule kept here: a name is one of a lane's objects or of evidence, as a log has them; nothing else of a store is asked
for or given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError

LOG_PART = 768 << 10
"""Octets of an object in one answer."""
LOG_RECORDS = 64
"""Records in one answer."""
LOG_FOLDERS = 1000
"""Folders in one answer."""
_LANE = r"(?:type=[0-9a-f]{64}|_lanes/[a-z][a-z-]{0,31}/[0-9a-f]{64})/origin=[0-9a-f]{64}"
_OBJECT = re.compile(
    rf"{_LANE}/(?:head|[0-9]{{12}}\.record|date=[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}/[0-9a-z-]{{1,100}}\.(?:parquet|segments))"
    r"|_evidence/[0-9a-f]{64}"
)
_RECORD = re.compile(rf"({_LANE})/([0-9]{{12}})\.record")
_SHAPES = (
    (re.compile(r""), re.compile(r"type=[0-9a-f]{64}")),
    (re.compile(r"_lanes/[a-z][a-z-]{0,31}"), re.compile(r"[0-9a-f]{64}")),
    (re.compile(r"type=[0-9a-f]{64}|_lanes/[a-z][a-z-]{0,31}/[0-9a-f]{64}"), re.compile(r"origin=[0-9a-f]{64}")),
)
ABSENT, UNFIT = encode((b"absent",)), encode((b"unfit",))
"""What is said of an object that is not there, and of one that cannot be read. Both are answers, and signed as such."""
_LIMITS = SexpLimits(max_bytes=1 << 20, max_depth=2, max_atom=1 << 20)


def is_log_object(name: str) -> bool:
    """Tell whether a name is one of an object that a log serves.

    >>> is_log_object("_evidence/" + "0" * 64), is_log_object("../keys/broker.key")
    (True, False)
    """
    return _OBJECT.fullmatch(name) is not None


def folder_shape(folder: str) -> re.Pattern[str] | None:
    """Tell which names count in a folder by which lanes are found; nothing when it is another folder.

    SECURITY: others are not listed, or empty folders would take the places of lanes.
    """
    return next((shape for where, shape in _SHAPES if where.fullmatch(folder)), None)


def split_record(name: str) -> tuple[str, int] | None:
    """Give the lane's folder and the number of a record's name; nothing when it is another object's."""
    found = _RECORD.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def write_part(size: int, octets: bytes) -> bytes:
    """Write a part of an object of so many octets."""
    return encode((b"part", b"%d" % size, octets))


def read_part(data: bytes) -> tuple[int, bytes]:
    """Read what `write_part` wrote.

    Raises:
        NotFoundError: There is no such object: ``NO_OBJECT``.
        EncodingError: It cannot be read, or this is no part: ``OBJECT_UNFIT``, ``LOG_ANSWER``.
    """
    _check(data)
    match parse_canonical(data, limits=_LIMITS):
        case (b"part", bytes() as size, bytes() as octets) if size.isdigit() and len(size) <= 16:
            return int(size), octets
    raise EncodingError("not a part of an object", code="LOG_ANSWER")


def write_records(records: Sequence[bytes]) -> bytes:
    """Write records one behind the other."""
    return encode((b"records", *records))


def read_records(data: bytes) -> tuple[bytes, ...]:
    """Read what `write_records` wrote.

    Raises:
        NotFoundError: There is no such record: ``NO_OBJECT``.
        EncodingError: It cannot be read, or these are none: ``OBJECT_UNFIT``, ``LOG_ANSWER``.
    """
    _check(data)
    match parse_canonical(data, limits=_LIMITS):
        case (b"records", *items) if len(items) <= LOG_RECORDS:
            return tuple(item for item in items if isinstance(item, bytes))
    raise EncodingError("not records of a lane", code="LOG_ANSWER")


def _check(data: bytes) -> None:
    if data == ABSENT:
        raise NotFoundError("there is no such object", code="NO_OBJECT")
    if data == UNFIT:
        raise EncodingError("what lies there is no object that can be read", code="OBJECT_UNFIT")
