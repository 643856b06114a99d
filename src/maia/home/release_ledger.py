"""What a domain released to whom: a file that only grows, and the secret of its pseudonyms.

    releases/ledger      one JSON object a line: a type that was defined for releases; a release begun, with where it
                         begins and ends in the log; then that it is done, or was given up
    releases/secret      32 octets, made once (0600); whoever loses it gives other pseudonyms from then on

Rules kept here:

- a release is in the ledger, with the stretch of the log that it covers, before anything leaves. One that was begun and
  not done is done first, over the same stretch and under the same name, so that a kill neither repeats nor loses rows.
  Nobody knows whether it left, so it is done again as it was begun, and in no other way; or it is given up, and what
  it covers counts as released;
- every stretch of a lane is counted at most once for a destination, by whatever rule and of whatever type that is read
  there: of two counts over rows that both cover, one can be taken from the other, and what is left may be one person;
- a ledger that cannot be read releases nothing; a last line without its end was never acknowledged, and is cut off.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from maia.errors import EncodingError, UnavailableError
from maia.home.files import PRIVATE_FILE, PRIVATE_FOLDER, locked, make_folder, read_file, write_file
from maia.policy import release

_FOLDER = "releases"
_MAX_LEDGER = 256 << 20
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """One release.

    Attributes:
        number: Its place in the ledger, from 1.
        at: When it was begun.
        to: For whom, as rules write it.
        type: The type that was read, as it is called here.
        type_id: Which type that is, in hex.
        form: ``rows`` or ``counts``.
        attributes: What left, by name.
        withheld: Those of them that the reader's own right closes, so that they are null.
        reader: The client that read and published.
        target: The released type, or the file.
        publication: What it is called in the log; empty for a file.
        rules: What the rules said, as a digest.
        after: Where it begins in the log, lane by lane.
        upto: Where it ends in the log, lane by lane.
        rows: How many rows or counts left.
        groups: Of counts, how many groups were too small.
        state: ``begun``, ``done`` or ``abandoned``.
    """

    number: int = 0
    at: datetime
    to: str
    type: str
    type_id: str
    form: str
    attributes: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    reader: str
    target: str
    publication: str = ""
    rules: str = ""
    after: Mapping[str, str] = field(default_factory=dict)
    upto: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    groups: int = 0
    state: str = "begun"

    @property
    def begun(self) -> bool:
        """Whether nobody knows yet what became of it."""
        return self.state == "begun"

    @property
    def done(self) -> bool:
        """Whether what it covers has left."""
        return self.state == "done"

    @property
    def counts(self) -> bool:
        """Whether what it covers counts as released: it left, or was given up and may have."""
        return self.state in ("done", "abandoned")

    def same_series(self, other: ReleaseEntry) -> bool:
        """Tell whether two releases cover one after the other the same type for the same destination."""
        return (self.to, self.type_id, self.form) == (other.to, other.type_id, other.form)

    def counts_too(self, other: ReleaseEntry) -> bool:
        """Tell whether two releases are counts for one destination, of two types."""
        return (self.to, self.form) == (other.to, "counts") and self.type_id != other.type_id

    def same_release(self, other: ReleaseEntry) -> bool:
        """Tell whether two releases over one stretch let the same out to the same place."""
        ours, theirs = ((one.rules, one.target, one.reader, one.withheld) for one in (self, other))
        return self.same_series(other) and ours == theirs


class ReleaseLedger:
    """The releases of one home."""

    def __init__(self, home: Path) -> None:
        """Use the ledger of a home; it is made with the first release."""
        self._folder = home / _FOLDER
        self._path = self._folder / "ledger"

    def entries(self) -> tuple[ReleaseEntry, ...]:
        """List the releases, oldest first.

        Raises:
            EncodingError: The ledger is damaged: ``RELEASE_LEDGER``.
        """
        return tuple(self._read()[0].values())

    def defined(self) -> frozenset[str]:
        """List the types that were defined here for releases, by their ids in hex.

        Raises:
            EncodingError: The ledger is damaged: ``RELEASE_LEDGER``.
        """
        return frozenset(self._read()[1])

    def define(self, type_id: str) -> None:
        """Say that a type was defined here for releases; within `turn`."""
        if type_id not in self.defined():
            self._append({"defined": type_id, "v": _FORMAT})

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep other processes of this home from releasing until the block ends."""
        make_folder(self._folder, mode=PRIVATE_FOLDER)
        with locked(self._path):
            yield

    def begin(self, entry: ReleaseEntry) -> ReleaseEntry:
        """Put a release into the ledger before anything leaves; within `turn`."""
        made = replace(entry, number=len(self.entries()) + 1, state="begun")
        value = asdict(made) | {"at": made.at.astimezone(UTC).isoformat(), "v": _FORMAT}
        self._append({name: item for name, item in value.items() if name not in ("state", "rows", "groups")})
        return made

    def finish(self, entry: ReleaseEntry, *, rows: int, groups: int) -> ReleaseEntry:
        """Say that a release is done; within `turn`."""
        self._append({"done": entry.number, "rows": rows, "groups": groups, "v": _FORMAT})
        return replace(entry, rows=rows, groups=groups, state="done")

    def abandon(self, entry: ReleaseEntry) -> ReleaseEntry:
        """Say that a release that was begun is given up; within `turn`."""
        self._append({"abandoned": entry.number, "v": _FORMAT})
        return replace(entry, state="abandoned")

    def _read(self) -> tuple[dict[int, ReleaseEntry], set[str]]:
        found: dict[int, ReleaseEntry] = {}
        defined: set[str] = set()
        if self._path.exists():
            *lines, _ = read_file(self._path, limit=_MAX_LEDGER).split(b"\n")
            for line in lines:
                _take(found, defined, line)
        return found, defined

    def _append(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, sort_keys=True).encode() + b"\n"
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
            try:
                size = os.fstat(descriptor).st_size
                whole = os.pread(descriptor, size, 0).rfind(b"\n") + 1
                os.ftruncate(descriptor, whole)
                os.pwrite(descriptor, line, whole)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise UnavailableError("the ledger of releases cannot be written", code="RELEASE_UNWRITTEN") from error


def release_secret(home: Path) -> bytes:
    """Give the secret of a home's pseudonyms; it is made when the first pseudonym is.

    Raises:
        EncodingError: The file is damaged: ``RELEASE_SECRET``.
    """
    path = home / _FOLDER / "secret"
    if not path.exists():
        make_folder(path.parent, mode=PRIVATE_FOLDER)
        write_file(path, secrets.token_bytes(release.SECRET_LENGTH), mode=PRIVATE_FILE, replace=False)
    found = read_file(path, limit=release.SECRET_LENGTH)
    if len(found) != release.SECRET_LENGTH:
        raise EncodingError("the secret of pseudonyms is damaged", code="RELEASE_SECRET")
    return found


def _take(found: dict[int, ReleaseEntry], defined: set[str], line: bytes) -> None:
    """Take a line in; one that is none, or out of order, is damage."""
    try:
        value = json.loads(line)
        whole = value.pop("v") == _FORMAT
        if "done" in value:
            number, rows, groups = value["done"], int(value["rows"]), int(value["groups"])
            found[number] = replace(found[number], rows=rows, groups=groups, state="done")
        elif "abandoned" in value:
            entry = found[value["abandoned"]]
            whole = whole and entry.begun
            found[entry.number] = replace(entry, state="abandoned")
        elif "defined" in value:
            defined.add(bytes.fromhex(value["defined"]).hex())
        else:
            names = {name: tuple(value[name]) for name in ("attributes", "withheld")}
            entry = ReleaseEntry(**{**value, **names, "at": datetime.fromisoformat(value["at"])})
            whole = whole and entry.number == len(found) + 1
            found[entry.number] = entry
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged() from error
    if not whole:
        raise _damaged()


def _damaged() -> EncodingError:
    return EncodingError("the ledger of releases is damaged, so nothing is released", code="RELEASE_LEDGER")
