"""The versions of what a home keeps: told by name, never guessed, and never taken for damage.

    maia.toml                 format = 2: the layout of the home, and of its files of one number (stamps, clock)
    keyring, groups           a first line `maia/2 keyring`, `maia/2 groups` before what is sealed
    keys, statements, key-uses, proofs, certificates, definitions, outboxes, entries of the audit, names, log-begins
                              carry a number of their own, see where they are read

Rules kept here:

- what is of a later format than this Maia knows is refused as ``FORMAT_NEWER``, with its name, its format and the Maia
  that refuses; it is not touched;
- a home of an earlier format is refused as ``FORMAT_OLDER`` until `maia domain migrate` has brought it here. Whoever
  cannot read it does not call it damaged, and asks for no new key.
"""

from __future__ import annotations

import re
from pathlib import Path

from maia.errors import UnavailableError
from maia.version import __version__

HOME_FORMAT = 2
"""The layout of homes that this Maia makes; 1 is what had no number."""
LOG_BEFORE = "log-before-lanes"
"""The note of a home of an earlier format that its log is to be migrated."""
FILE_FORMAT = 2
"""The format of sealed files; 1 is what had no first line."""
_HEAD = re.compile(rb"maia/([1-9][0-9]{0,5}) ([a-z-]{1,32})\n")
_LONGEST_HEAD = 64


def newer_format(what: str, *, found: int, known: int) -> UnavailableError:
    """Make the refusal of what a later Maia wrote."""
    return UnavailableError(
        f"`{what}` is of format {found}, and Maia {__version__} knows formats up to {known}: a newer Maia wrote it, "
        "use that one; nothing was changed",
        code="FORMAT_NEWER",
    )


def older_format(what: str, *, found: int, known: int) -> UnavailableError:
    """Make the refusal of what an earlier Maia wrote, which can be migrated."""
    return UnavailableError(
        f"`{what}` is of format {found}, and Maia {__version__} works with format {known}: stop what runs on this "
        "home, keep a copy, and run `maia domain migrate`; nothing is damaged",
        code="FORMAT_OLDER",
    )


def check_home_format(found: object, *, what: str) -> None:
    """Refuse a home of another format than this Maia's; a home without a number is of format 1.

    Raises:
        UnavailableError: It is: ``FORMAT_NEWER``, ``FORMAT_OLDER``.
    """
    number = found if type(found) is int else 1
    if number > HOME_FORMAT:
        raise newer_format(what, found=number, known=HOME_FORMAT)
    if number < HOME_FORMAT:
        raise older_format(what, found=number, known=HOME_FORMAT)


def with_head(kind: str, data: bytes) -> bytes:
    """Put the first line before what is kept.

    >>> with_head("keyring", b"sealed").splitlines()
    [b'maia/2 keyring', b'sealed']
    """
    return b"maia/%d %s\n" % (FILE_FORMAT, kind.encode("ascii")) + data


def without_head(kind: str, data: bytes, path: Path) -> bytes:
    """Take the first line off; what has none is handed on as it is, for its reader to refuse.

    Raises:
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    found = _HEAD.match(data, 0, _LONGEST_HEAD)
    if found is None or found[2] != kind.encode("ascii"):
        return data
    if int(found[1]) > FILE_FORMAT:
        raise newer_format(str(path), found=int(found[1]), known=FILE_FORMAT)
    return data[found.end() :]


def has_head(kind: str, data: bytes) -> bool:
    """Tell whether a file has its first line."""
    found = _HEAD.match(data, 0, _LONGEST_HEAD)
    return found is not None and found[2] == kind.encode("ascii")
