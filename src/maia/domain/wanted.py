"""The subscriptions that a home keeps, in ``subscriptions.toml``.

format = 1

[[subscription]]
name = "billing"
as = "BO"
type = "uk.gov.pito.Numberplate"
where = "numberplate != ''"

A subscription that its client ended stays as ``[[ended]]``, format 2: what it was delivered lies in the outbox under
its name, so nobody else gets that name, and its client gets it back with the same type and filter alone.

``key`` is the hash of the client's key, in hex. Names of keys are given again, so it is the key that reads what was
delivered; of a subscription without one, from before keys were kept or written by hand, nobody does.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from maia.errors import MalformedError, UsageError
from maia.home import newer_format
from maia.principals import PublicKey

SUBSCRIPTIONS_FILE = "subscriptions.toml"
_FORMAT, _FORMAT_WITH_ENDED = 1, 2
_MAX_FILE = 16 << 20
_MAX_SUBSCRIPTIONS = 100_000
_OF_CLIENT, _OCTETS_OF_CLIENT = 1000, 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A subscription as a home keeps it: a name, the client's key name, the type, a filter, a version, and the key."""

    name: str
    as_: str
    type: str
    where: str = ""
    version: str | None = None
    key: str = ""

    def is_of(self, key: PublicKey) -> bool:
        """Tell whether it was kept for the holder of a key, and not only for somebody of the same name."""
        return self.key == key.key_id.hex()


def read_subscriptions(home: Path) -> tuple[Wanted, ...]:
    """Read the subscriptions that a home keeps; none when it keeps none.

    Raises:
        MalformedError: The file is not what it should be: ``SUBSCRIPTIONS``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    return read_wanted(home)[0]


def read_wanted(home: Path) -> tuple[tuple[Wanted, ...], tuple[Wanted, ...]]:
    """Read the subscriptions that a home keeps, and those that were ended."""
    path = home / SUBSCRIPTIONS_FILE
    if not path.exists():
        return (), ()
    with path.open("rb") as file:
        data = file.read(_MAX_FILE + 1)
    try:
        value = tomllib.loads(data.decode("utf-8"))
        form, items = value.pop("format", _FORMAT), value.pop("subscription", [])
        if type(form) is int and form > _FORMAT_WITH_ENDED:
            raise newer_format(SUBSCRIPTIONS_FILE, found=form, known=_FORMAT_WITH_ENDED)
        over = value.pop("ended", []) if form == _FORMAT_WITH_ENDED else []
        found, ended = (tuple(Wanted(as_=item.pop("as"), **item) for item in part) for part in (items, over))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedError(f"`{SUBSCRIPTIONS_FILE}` is not a list of subscriptions", code="SUBSCRIPTIONS") from error
    if value or form not in (_FORMAT, _FORMAT_WITH_ENDED):
        raise MalformedError(
            f"`{SUBSCRIPTIONS_FILE}` has `format`, `[[subscription]]` and `[[ended]]`, no more", code="SUBSCRIPTIONS"
        )
    whole = (*found, *ended)
    if len(data) > _MAX_FILE or len(whole) > _MAX_SUBSCRIPTIONS or len({item.name for item in whole}) != len(whole):
        raise MalformedError(
            f"`{SUBSCRIPTIONS_FILE}` has too many subscriptions, or a name twice", code="SUBSCRIPTIONS"
        )
    return found, ended


def to_toml(kept: Sequence[Wanted], ended: Sequence[Wanted]) -> bytes:
    """Write the file."""
    lines = [f"format = {_FORMAT_WITH_ENDED if ended else _FORMAT}", ""]
    for table, items in (("subscription", kept), ("ended", ended)):
        for item in items:
            lines += [f"[[{table}]]", *entry_lines(item), ""]
    return "\n".join(lines).encode()


def check_file(data: bytes, count: int) -> None:
    """Refuse to write a file that `read_wanted` would not read.

    Raises:
        UsageError: It has too many subscriptions, or is too large: ``TOO_MANY_SUBSCRIPTIONS``.
    """
    # SECURITY: nobody is delivered anything from a file that cannot be read.
    if len(data) > _MAX_FILE or count > _MAX_SUBSCRIPTIONS:
        raise UsageError(
            f"a home keeps at most {_MAX_SUBSCRIPTIONS} subscriptions in {_MAX_FILE >> 20} MiB, with those that ended",
            code="TOO_MANY_SUBSCRIPTIONS",
        )


def check_client(wanted: Wanted, whole: Sequence[Wanted]) -> None:
    """Refuse a client one more than it may have, with those that it ended, since they stay.

    Raises:
        UsageError: They are too many, or too large together: ``TOO_MANY_SUBSCRIPTIONS``.
    """
    mine = [item for item in whole if item.key == wanted.key and item.name != wanted.name] + [wanted]
    if len(mine) > _OF_CLIENT or len(to_toml((), mine)) > _OCTETS_OF_CLIENT:
        raise UsageError(
            f"a client has at most {_OF_CLIENT} subscriptions in {_OCTETS_OF_CLIENT >> 10} KiB, with those that ended",
            code="TOO_MANY_SUBSCRIPTIONS",
        )


def entry_lines(wanted: Wanted) -> list[str]:
    """Write the lines of one subscription."""
    fields = {"name": wanted.name, "as": wanted.as_, "type": wanted.type, "where": wanted.where, "key": wanted.key}
    lines = [f"{key} = {toml_text(text)}" for key, text in fields.items() if text]
    if wanted.version is not None:
        lines.append(f"version = {toml_text(wanted.version)}")
    return lines


def toml_text(text: str) -> str:
    """Quote a text of somebody's for TOML, which takes what JSON takes but for one control character.

    >>> odd = "name = " + chr(127)
    >>> tomllib.loads(f"where = {toml_text(odd)}") == {"where": odd}
    True
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_wanted(wanted: Sequence[Wanted]) -> str:
    """Write subscriptions for their way to another process of this home."""
    return json.dumps([asdict(item) for item in wanted])


def parse_wanted(text: str) -> tuple[Wanted, ...]:
    """Read what `write_wanted` wrote."""
    return tuple(Wanted(**item) for item in json.loads(text))
