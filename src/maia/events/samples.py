"""Attributes from a sample of rows that carry no schema: CSV or JSON.

Rules kept here: a type is taken when every value of the column can be read as it; a column that holds integers and
fractions is of floats; anything else is text. Numbers with a leading zero are text. What nobody could publish is named,
all of it at once: columns that are nested, mixed or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime

from maia.errors import MalformedError
from maia.events.attributes import Attribute, AttributeType
from maia.events.uids import UidPolicy

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,300})\.[0-9]{1,300}([eE][-+]?[0-9]{1,3})?")
_NESTED = "is nested, which events do not hold"


def attributes_of_rows(
    rows: Iterable[Mapping[str, object]], *, uids: UidPolicy, texts: bool, assume_utc: bool = False
) -> tuple[Attribute, ...]:
    """Infer the attributes of a sample.

    Args:
        rows: The rows, by column name; ``None`` is null.
        uids: Where uids come from.
        texts: Whether all values are texts, as in CSV, so that numbers and booleans are read from them.
        assume_utc: Take instants without a time zone for UTC.

    Raises:
        MalformedError: Columns do not fit; the message names each of them: ``SCHEMA_TYPE``.

    >>> from maia.events.uids import SequenceUids
    >>> rows = [{"plate": "AE05", "speed": "31"}, {"plate": "B2", "speed": "7.5"}]
    >>> [(item.name, item.type.value) for item in attributes_of_rows(rows, uids=SequenceUids(), texts=True)]
    [('plate', 'string'), ('speed', 'float')]
    """
    kinds: dict[str, set[AttributeType | str]] = {}
    for row in rows:
        for name, value in row.items():
            found = kinds.setdefault(str(name), set())
            if value is not None and not (texts and value == ""):
                found.add(_kind(value, texts=texts, assume_utc=assume_utc))
    if not kinds:
        raise MalformedError("the sample has no columns", code="SCHEMA_FORM")
    taken: set[str] = set()
    made, bad = [], []
    for name, found in kinds.items():
        kind = _common(found)
        if not isinstance(kind, AttributeType):
            bad.append(f"column `{name}` {kind}")
            continue
        uid = uids.next_uid(taken)
        taken.add(uid)
        made.append(Attribute(name=name, uid=uid, type=kind))
    if bad:
        raise MalformedError("; ".join(bad), code="SCHEMA_TYPE")
    return tuple(made)


def _kind(value: object, *, texts: bool, assume_utc: bool) -> AttributeType | str:
    if isinstance(value, bool):
        return AttributeType.BOOLEAN
    if isinstance(value, int):
        return AttributeType.INTEGER if -(1 << 63) <= value < 1 << 63 else "holds integers beyond 64 bits"
    if isinstance(value, float):
        return AttributeType.FLOAT
    if not isinstance(value, str):
        return _NESTED
    if texts:
        if _INTEGER.fullmatch(value):
            return AttributeType.INTEGER
        if _FLOAT.fullmatch(value):
            return AttributeType.FLOAT
        if value in ("true", "false"):
            return AttributeType.BOOLEAN
    return _time(value, assume_utc=assume_utc)


def _time(value: str, *, assume_utc: bool) -> AttributeType | str:
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            date.fromisoformat(value)
            return AttributeType.DATE
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", value):
            zoned = datetime.fromisoformat(value).tzinfo is not None
            return AttributeType.TIMESTAMP if zoned or assume_utc else "holds times without a time zone"
    except ValueError:
        pass
    return AttributeType.STRING


def _common(found: set[AttributeType | str]) -> AttributeType | str:
    problems = sorted(str(item) for item in found if not isinstance(item, AttributeType))
    if problems:
        return problems[0]
    if not found:
        return "is empty in the sample, so nothing says its type"
    if len(found) == 1:
        return found.pop()
    if found == {AttributeType.INTEGER, AttributeType.FLOAT}:
        return AttributeType.FLOAT
    if AttributeType.STRING in found or found & {AttributeType.DATE, AttributeType.TIMESTAMP}:
        return AttributeType.STRING
    return f"mixes {' and '.join(sorted(str(item.value) for item in found if isinstance(item, AttributeType)))}"
