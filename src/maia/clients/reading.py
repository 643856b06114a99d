"""Reading a service's answers: every field is looked at, and what has another shape is an error of Maia's.

The answer was proven to be the service's before; this is against services that are wrong, not against others.
"""

from __future__ import annotations

from datetime import datetime

from maia import wire
from maia.errors import MalformedError

MAX_BLOB = 1 << 20


def read_table(value: object) -> dict[str, object]:
    """Read an object."""
    if not isinstance(value, dict):
        raise MalformedError("an answer of another shape", code="ANSWER")
    return value


def read_list(table: dict[str, object], name: str) -> list[dict[str, object]]:
    """Read a field that is a list of objects."""
    value = table.get(name)
    if not isinstance(value, list):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return [read_table(item) for item in value]


def read_text(table: dict[str, object], name: str) -> str:
    """Read a field that is a text."""
    value = table.get(name)
    if not isinstance(value, str):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value


def read_blob(table: dict[str, object], name: str) -> bytes:
    """Read a field that is octets."""
    return wire.decode_blob(read_text(table, name), limit=MAX_BLOB)


def read_number(table: dict[str, object], name: str) -> int:
    """Read a field that is a whole number."""
    value = table.get(name)
    if type(value) is not int:
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value


def read_instant(table: dict[str, object], name: str) -> datetime | None:
    """Read a field that is an instant, or nothing."""
    if table.get(name) is None:
        return None
    try:
        found = datetime.fromisoformat(read_text(table, name))
    except ValueError as error:
        raise MalformedError(f"`{name}` is no instant", code="ANSWER") from error
    if found.tzinfo is None:
        raise MalformedError(f"`{name}` is no instant", code="ANSWER")
    return found


def read_texts(table: dict[str, object], name: str) -> tuple[str, ...]:
    """Read a field that is a list of texts."""
    value = table.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return tuple(value)


def read_blobs(table: dict[str, object], name: str) -> tuple[bytes, ...]:
    """Read a field that is a list of octets."""
    return tuple(wire.decode_blob(text, limit=MAX_BLOB) for text in read_texts(table, name))
