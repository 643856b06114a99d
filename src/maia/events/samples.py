"""Attributes from a sample of rows that carry no schema: CSV or JSON.

Rules kept here: a type is taken when every value of the column can be read as it; a column that holds integers and
fractions is of floats; anything else is text. Numbers with a leading zero are text. What nobody could publish is named,
all of it at once, with what to do: columns that are mixed or empty. Objects are structs, lists are arrays. Columns are
counted, and depth is bounded, while rows are read: samples come from others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, TypeAlias

from maia.errors import MalformedError
from maia.events.attributes import Attribute, check_count
from maia.events.uids import UidPolicy
from maia.events.value_types import MAX_TYPE_DEPTH, ArrayOf, AttributeType, StructOf, ValueType

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_MOST_KINDS = 64
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,300})\.[0-9]{1,300}([eE][-+]?[0-9]{1,3})?")


def attributes_of_rows(
    rows: Iterable[Mapping[str, object]],
    *,
    uids: UidPolicy,
    texts: bool,
    assume_utc: bool = False,
    chosen: Mapping[str, ValueType | None] | None = None,
) -> tuple[Attribute, ...]:
    """Infer the attributes of a sample.

    Args:
        rows: The rows, by column name; ``None`` is null.
        uids: Where uids come from.
        texts: Whether all values are texts, as in CSV, so that numbers and booleans are read from them.
        assume_utc: Take instants without a time zone for UTC.
        chosen: The types of columns that nothing is inferred of; ``None`` leaves a column out.

    Raises:
        MalformedError: Columns do not fit, and the message names each of them (``SCHEMA_TYPE``); or there are too many
            (``TOO_MANY_ATTRIBUTES``).

    >>> from maia.events.uids import SequenceUids
    >>> rows = [{"plate": "AE05", "speed": "31"}, {"plate": "B2", "speed": "7.5"}]
    >>> [(item.name, item.type.value) for item in attributes_of_rows(rows, uids=SequenceUids(), texts=True)]
    [('plate', 'string'), ('speed', 'float')]
    """
    kinds: dict[str, set[_Found]] = {}
    for row in rows:
        for name, value in row.items():
            found = kinds.setdefault(str(name), set())
            if not (texts and value == ""):
                _add(found, _kind(value, texts=texts, assume_utc=assume_utc))
        check_count(len(kinds))
    if not kinds:
        raise MalformedError("the sample has no columns", code="SCHEMA_FORM")
    taken: set[str] = set()
    made, bad = [], []
    for name, found in kinds.items():
        kind = (chosen or {}).get(name) or _common(found) or _EMPTY
        if chosen is not None and name in chosen and chosen[name] is None:
            continue
        if isinstance(kind, _Problem):
            bad.append(f"column `{name}` {kind.text}")
            continue
        uid = uids.next_uid(taken)
        taken.add(uid)
        made.append(Attribute(name=name, uid=uid, type=kind))
    if bad:
        raise MalformedError("; ".join(bad), code="SCHEMA_TYPE")
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why values have no type, and what to do about it."""

    text: str


_Found: TypeAlias = ValueType | _Problem | None
"""The type of a value, a problem, or nothing: a null and an empty array say nothing about their type."""

_EMPTY = _Problem(
    "is empty in the sample, so nothing says its type: leave it out, or say its type (--without, --attribute)"
)
_NAIVE = _Problem("holds times without a time zone: give them a zone, or say --assume-utc (`assume_utc=True`)")
_BEYOND = _Problem("holds integers beyond 64 bits: write them as texts")
_DEEP = _Problem(f"is nested beyond what a definition holds: a type is at most {MAX_TYPE_DEPTH} deep")
_FOREIGN = _Problem("holds values that events do not hold: cast them, or leave the column out")


def _add(found: set[_Found], kind: _Found) -> None:
    """Note one more type; of many, the one that holds them all."""
    found.add(kind)
    if len(found) > _MOST_KINDS:
        common = _common(found)
        found.clear()
        found.add(common)


def _kind(value: object, *, texts: bool, assume_utc: bool, depth: int = 1) -> _Found:
    if depth > MAX_TYPE_DEPTH:
        return _DEEP
    match value:
        case None:
            return None
        case bool():
            return AttributeType.BOOLEAN
        case int():
            return AttributeType.INTEGER if -(1 << 63) <= value < 1 << 63 else _BEYOND
        case float():
            return AttributeType.FLOAT
        case list():
            found: set[_Found] = set()
            for item in value:
                _add(found, _kind(item, texts=texts, assume_utc=assume_utc, depth=depth + 1))
            return _array(_common(found))
        case dict():
            inside = partial(_kind, texts=texts, assume_utc=assume_utc, depth=depth + 1)
            return _struct({str(name): inside(item) for name, item in value.items()})
        case str():
            return _text(value, assume_utc=assume_utc) if texts else _time(value, assume_utc=assume_utc)
        case _:
            return _FOREIGN


def _text(value: str, *, assume_utc: bool) -> _Found:
    if _INTEGER.fullmatch(value):
        return AttributeType.INTEGER
    if _FLOAT.fullmatch(value):
        return AttributeType.FLOAT
    return AttributeType.BOOLEAN if value.lower() in ("true", "false") else _time(value, assume_utc=assume_utc)


def _time(value: str, *, assume_utc: bool) -> _Found:
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            date.fromisoformat(value)
            return AttributeType.DATE
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", value):
            zoned = datetime.fromisoformat(value).tzinfo is not None
            return AttributeType.TIMESTAMP if zoned or assume_utc else _NAIVE
    except ValueError:
        pass
    return AttributeType.STRING


def _common(found: set[_Found]) -> _Found:
    """Find the type that holds all values of some types, or say why there is none."""
    problems = sorted(item.text for item in found if isinstance(item, _Problem))
    if problems:
        return _Problem(problems[0])
    kinds = {item for item in found if item is not None and not isinstance(item, _Problem)}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else None
    if kinds == {AttributeType.INTEGER, AttributeType.FLOAT}:
        return AttributeType.FLOAT
    structs = [item for item in kinds if isinstance(item, StructOf)]
    if len(structs) == len(kinds):
        names = sorted({name for kind in structs for name, _ in kind.fields})
        return _struct({name: _common({dict(kind.fields).get(name) for kind in structs}) for name in names})
    arrays = [item for item in kinds if isinstance(item, ArrayOf)]
    if len(arrays) == len(kinds):
        return _array(_common({item.element for item in arrays}))
    if not structs and not arrays and kinds & {AttributeType.STRING, AttributeType.DATE, AttributeType.TIMESTAMP}:
        return AttributeType.STRING
    return _Problem(f"mixes {' and '.join(sorted(item.value for item in kinds))}: make it one of them")


def _array(element: _Found) -> _Found:
    if element is None:
        return None
    return _Problem(f"holds an array that {element.text}") if isinstance(element, _Problem) else _made(ArrayOf, element)


def _struct(parts: Mapping[str, _Found]) -> _Found:
    wrong = [f"holds a field `{name}` that {kind.text}" for name, kind in parts.items() if isinstance(kind, _Problem)]
    known = tuple((name, kind) for name, kind in parts.items() if kind is not None and not isinstance(kind, _Problem))
    if wrong or not known:
        return _Problem(wrong[0]) if wrong else None
    return _made(StructOf, known)


def _made(make: Callable[[Any], ValueType], inside: object) -> _Found:
    try:
        return make(inside)
    except MalformedError as error:
        return _Problem(f"is nested beyond what a definition holds: {error.message}")
