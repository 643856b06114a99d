"""Files of rows, before Spark reads them: what they are, and whether their columns are those of a version.

CSV is that of RFC 4180: quotes within quotes are doubled, and a quoted value may hold line breaks.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence
from pathlib import Path

from maia.errors import MalformedError, NotFoundError, UsageError
from maia.events import EventType

FORMATS = ("csv", "json", "parquet")
_MAX_HEADER = 1 << 20
_CHUNK = 1 << 20


def guess_format(source: str, wanted: str | None) -> str:
    """Take the format that was asked for, or tell it by the name of the file; standard input is JSON lines.

    Raises:
        UsageError: It is unknown.
    """
    endings = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
    found = wanted or ("json" if source == "-" else endings.get(Path(source).suffix.lower()))
    if found not in FORMATS:
        raise UsageError(f"say what `{source}` is with --format: csv, json or parquet", code="INPUT_FORMAT")
    if source == "-" and found != "json":
        raise UsageError("standard input is read as JSON lines only", code="INPUT_FORMAT")
    if source != "-" and not Path(source).exists():
        raise NotFoundError(f"no file `{source}`", code="NO_SUCH_FILE")
    return found


def check_columns(names: Sequence[str], event_type: EventType) -> None:
    """Refuse columns that are no attributes, or stand there twice.

    Raises:
        MalformedError: There is such a column.
    """
    known = [item.name for item in event_type.attributes]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(f'`{item}`' for item in known)}"
            version = event_type.name.version.text
            raise MalformedError(f"version {version} has no attribute `{name}`{hint}", code="NO_ATTRIBUTE")
    twice = {name for name in names if list(names).count(name) > 1}
    if twice:
        raise MalformedError(f"column `{min(twice)}` stands there twice", code="INPUT_HEADER")


def read_header(path: Path, event_type: EventType) -> list[str]:
    """Read and check the first line of a CSV file.

    Raises:
        MalformedError: There is none, or it names what is no attribute.
    """
    if not path.is_file():
        raise UsageError(f"`{path}` is no file; a folder can be read as Parquet only", code="INPUT_FORMAT")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader([file.readline(_MAX_HEADER)]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise MalformedError(f"the first line of `{path}` is no CSV header in UTF-8", code="INPUT_HEADER") from error
    if not names:
        raise MalformedError(f"`{path}` has no header line", code="INPUT_HEADER")
    check_columns(names, event_type)
    return names


def breaks_lines(path: Path) -> bool:
    """Tell whether a quoted value of a CSV file may go on in the next line.

    Spark then reads the file as a whole and not in parts, so it is asked for only where it is needed.
    """
    odd = False
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            first, *rest = chunk.replace(b"\r", b"\n").split(b"\n")
            odd ^= bool(first.count(b'"') % 2)
            if rest:
                *lines, last = rest
                if odd or (b'"' in chunk and any(line.count(b'"') % 2 for line in lines)):
                    return True
                odd = bool(last.count(b'"') % 2)
    return False
