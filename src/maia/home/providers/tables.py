"""Facts from a file that people edit: CSV, one fact a line, or TOML.

The file is read again whenever it has changed. A file that is missing, too large or not well-formed answers nothing,
rather than the part of it that could be read.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from maia.errors import MaiaError, UnavailableError
from maia.home.files import read_file
from maia.policy import Atom, Constant, Predicate

MAX_FILE = 8 << 20
_State = tuple[int, int, int]


@dataclass(slots=True)
class FileFacts:
    """The facts of one predicate in a file: ``.toml`` with ``facts = [["smith", "c1"]]``, or CSV without a header."""

    predicate: Predicate
    path: Path
    _seen: tuple[_State, frozenset[Atom]] | None = field(default=None, init=False)

    def ask(self, fact: Atom, *, at: datetime) -> bool:
        """Tell whether the file has the fact."""
        return fact in self.facts(at=at)

    def facts(self, *, at: datetime) -> frozenset[Atom]:  # noqa: ARG002 - a file tells what is
        """Read the facts, anew when the file has changed.

        Raises:
            UnavailableError: The file cannot be read, or is not well-formed.
        """
        state = self._state()
        if self._seen is None or self._seen[0] != state:
            rows = read_rows(self.path, columns=self.predicate.arity)
            found = frozenset(Atom(self.predicate.name, tuple(map(Constant, row))) for row in rows)
            # INVARIANT: the state is older than the content, so a change in between is seen at the next look.
            self._seen = (state, found)
        return self._seen[1]

    def _state(self) -> _State:
        try:
            found = self.path.stat()
        except (OSError, ValueError) as error:
            raise UnavailableError("a file of facts is not there", code="PROVIDER_FAILED") from error
        return found.st_mtime_ns, found.st_size, found.st_ino


def read_terminals(path: Path) -> Mapping[str, str]:
    """Read who sits where: a file with the two columns name and address."""
    return {row[0]: row[1] for row in read_rows(path, columns=2)}


def read_rows(path: Path, *, columns: int) -> list[tuple[str, ...]]:
    """Read the rows of a file.

    Raises:
        UnavailableError: It cannot be read, or some row has other columns.
    """
    try:
        rows = _parsed(read_file(path, limit=MAX_FILE).decode("utf-8"), toml=path.suffix == ".toml")
    except (UnicodeError, csv.Error, tomllib.TOMLDecodeError, KeyError, RecursionError) as error:
        raise UnavailableError("a file of facts cannot be read", code="PROVIDER_VALUE") from error
    except MaiaError as error:
        raise UnavailableError("a file of facts cannot be read", code="PROVIDER_FAILED") from error
    if not isinstance(rows, list) or not all(_is_row(row, columns) for row in rows):
        raise UnavailableError("a file of facts has a row of another form", code="PROVIDER_VALUE")
    return [tuple(cell.strip() for cell in row) for row in rows]


def _parsed(text: str, *, toml: bool) -> object:
    if toml:
        return tomllib.loads(text)["facts"]
    return [row for row in csv.reader(io.StringIO(text), strict=True) if row]


def _is_row(row: object, columns: int) -> bool:
    return isinstance(row, list) and len(row) == columns and all(isinstance(cell, str) and cell for cell in row)
