"""Takes typed fields out of a request object, or says which one is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from maia.errors import MalformedError

T = TypeVar("T")
Json = Mapping[str, object]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class VerbAnswer:
    """What a verb answers that has more to say than a result."""

    result: str
    reason: str | None = None

    def to_json(self) -> dict[str, object]:
        """Write the fields of the answer."""
        told: dict[str, object] = {"result": self.result, "reason": self.reason}
        return {name: value for name, value in told.items() if value is not None}


def wrong(name: str, expected: str) -> MalformedError:
    """Make the error for a field that is missing or of another type."""
    return MalformedError(f"field `{name}` is not {expected}", code="REQUEST_FIELD")


def field(request: Json, name: str, kind: type[T], default: object = _ABSENT) -> T:
    """Take a field of one type; booleans are not integers here."""
    value = request.get(name, default)
    if value is _ABSENT or not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise wrong(name, f"a {kind.__name__}")
    return value


def objects(request: Json, name: str, *, required: bool = True) -> list[Json]:
    """Take a list of objects."""
    value = request.get(name, None if required else [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise wrong(name, "a list of objects")
    return value


def instant(value: object, name: str = "at") -> datetime:
    """Read an ISO 8601 instant in UTC or a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong(name, "a time")
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
        return _EPOCH + timedelta(seconds=value)
    except (ValueError, OverflowError) as error:
        raise wrong(name, "a time") from error


def optional_instant(request: Json, name: str) -> datetime | None:
    """Read an instant that may be absent."""
    return None if request.get(name) is None else instant(request[name], name)
