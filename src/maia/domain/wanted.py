"""The subscriptions that a home keeps, in ``subscriptions.toml``.

format = 1

[[subscription]]
name = "billing"
as = "BO"
type = "uk.gov.pito.Numberplate"
where = "numberplate != ''"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from maia.errors import MalformedError
from maia.home import newer_format

SUBSCRIPTIONS_FILE = "subscriptions.toml"
_FORMAT = 1
_MAX_FILE = 16 << 20
_MAX_SUBSCRIPTIONS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A subscription as a home keeps it: a name, the client's key name, the type, a filter and a version."""

    name: str
    as_: str
    type: str
    where: str = ""
    version: str | None = None


def read_subscriptions(home: Path) -> tuple[Wanted, ...]:
    """Read the subscriptions that a home keeps; none when it keeps none.

    Raises:
        MalformedError: The file is not what it should be: ``SUBSCRIPTIONS``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    path = home / SUBSCRIPTIONS_FILE
    if not path.exists():
        return ()
    with path.open("rb") as file:
        data = file.read(_MAX_FILE + 1)
    try:
        value = tomllib.loads(data.decode("utf-8"))
        form, items = value.pop("format", _FORMAT), value.pop("subscription", [])
        if type(form) is int and form > _FORMAT:
            raise newer_format(SUBSCRIPTIONS_FILE, found=form, known=_FORMAT)
        found = tuple(Wanted(as_=item.pop("as"), **item) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedError(f"`{SUBSCRIPTIONS_FILE}` is not a list of subscriptions", code="SUBSCRIPTIONS") from error
    if value or form != _FORMAT:
        raise MalformedError(
            f"`{SUBSCRIPTIONS_FILE}` has `format = 1` and `[[subscription]]`, no more", code="SUBSCRIPTIONS"
        )
    if len(data) > _MAX_FILE or len(found) > _MAX_SUBSCRIPTIONS or len({item.name for item in found}) != len(found):
        raise MalformedError(
            f"`{SUBSCRIPTIONS_FILE}` has too many subscriptions, or a name twice", code="SUBSCRIPTIONS"
        )
    return found


def write_wanted(wanted: Sequence[Wanted]) -> str:
    """Write subscriptions for their way to another process of this home."""
    return json.dumps([asdict(item) for item in wanted])


def parse_wanted(text: str) -> tuple[Wanted, ...]:
    """Read what `write_wanted` wrote."""
    return tuple(Wanted(**item) for item in json.loads(text))
