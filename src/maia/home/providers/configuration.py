"""The providers of a home, as ``policy/providers.toml`` declares them:

    every = 5                       # seconds between looks; bounds how long a change stays unseen

    [[predicate]]
    name = "on_duty"
    arity = 1
    kind = "sql"                    # sql, file, http, hours, location, emergency
    database = "roster.db"          # a file beside this one, or postgresql://...
    ask = "select 1 from roster where officer = ? and on_duty"
    list = "select officer from roster where on_duty"

What is misspelt, missing or too much is refused as a whole: half a policy is none.
"""  # noqa: D415 - the example ends the sentence

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from maia.errors import MalformedError, NotFoundError, UsageError
from maia.home.files import read_file
from maia.home.folder import Folder
from maia.home.providers.emergency import EmergencyFlag
from maia.home.providers.fetching import FetchLimits
from maia.home.providers.http import HttpFacts
from maia.home.providers.sql import SqlFacts
from maia.home.providers.tables import FileFacts, read_terminals
from maia.policy import Environment, Hours, Places, Predicate, Provider

PROVIDERS_FILE = "providers.toml"
_MAX_FILE = 1 << 20
_MAX_ARITY = 16
_MAX_SECONDS = 3.0
_DAYS = {"mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "sun": 7}
_Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The declared providers, and how often they are looked at."""

    environment: Environment
    every: timedelta


def read_providers(folder: Path) -> ProviderConfig:
    """Read the providers that a folder declares; none when it declares none.

    Raises:
        MalformedError: The file is not what it should be: ``PROVIDER_CONFIG``.
    """
    path = folder / PROVIDERS_FILE
    if not path.exists():
        return ProviderConfig(Environment(), timedelta(seconds=5))
    try:
        value = tomllib.loads(read_file(path, limit=_MAX_FILE).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"`{PROVIDERS_FILE}` is not TOML: {error}", code="PROVIDER_CONFIG") from error
    every, tables = value.pop("every", 5), value.pop("predicate", [])
    if value or type(every) is not int or not 1 <= every <= 86_400 or not isinstance(tables, list):
        raise MalformedError(f"`{PROVIDERS_FILE}` has `every` and `[[predicate]]`, no more", code="PROVIDER_CONFIG")
    try:
        environment = Environment(_provider(dict(table), folder) for table in tables)
    except UsageError as error:
        raise MalformedError(f"`{PROVIDERS_FILE}`: {error.message}", code="PROVIDER_CONFIG") from error
    return ProviderConfig(environment, timedelta(seconds=every))


def _provider(table: _Table, folder: Path) -> Provider:
    name, kind = table.pop("name", ""), table.pop("kind", "")
    make = _KINDS.get(kind) if isinstance(kind, str) else None
    if make is None or not isinstance(name, str) or not name:
        raise UsageError(f"a predicate has a name, and a kind of {', '.join(_KINDS)}")
    try:
        provider = make(name, table, folder)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"`{name}` has a setting that is missing or wrong") from error
    if table:
        raise UsageError(f"`{name}` has the unknown setting `{min(table)}`")
    return provider


def _sql(name: str, table: _Table, folder: Path) -> Provider:
    database, listed = _text(table, "database"), table.pop("list", None)
    if "://" not in database:
        database = str(folder / database)
    if listed is not None and not isinstance(listed, str):
        raise UsageError(f"`{name}` has a setting that is missing or wrong")
    return SqlFacts(
        predicate=_predicate(name, table), database=database, ask_sql=_text(table, "ask"), list_sql=listed,
        seconds=_seconds(table, 2.0),
    )  # fmt: skip


def _file(name: str, table: _Table, folder: Path) -> Provider:
    return FileFacts(_predicate(name, table), folder / _text(table, "path"))


def _http(name: str, table: _Table, _folder: Path) -> Provider:
    hosts, loopback = _texts(table, "hosts"), table.pop("loopback", False)
    if type(loopback) is not bool:
        raise UsageError(f"`{name}` has a setting that is missing or wrong")
    limits = FetchLimits(hosts=frozenset(hosts), loopback=loopback, seconds=_seconds(table, _MAX_SECONDS))
    return HttpFacts(predicate=_predicate(name, table), url=_text(table, "url"), limits=limits)


def _hours(name: str, table: _Table, _folder: Path) -> Provider:
    days = _texts(table, "days") if "days" in table else list(_DAYS)
    holidays = _texts(table, "holidays") if "holidays" in table else []
    return Hours(
        name=name, zone=_text(table, "zone"), start=time.fromisoformat(_text(table, "from")),
        end=time.fromisoformat(_text(table, "to")), days=frozenset(_DAYS[day] for day in days),
        holidays=frozenset(map(date.fromisoformat, holidays)),
    )  # fmt: skip


def _location(name: str, table: _Table, folder: Path) -> Provider:
    networks = {
        place: tuple(ip_network(item) for item in found) for place, found in dict(table.pop("networks")).items()
    }
    return Places(name=name, networks=networks, terminals=partial(read_terminals, folder / _text(table, "terminals")))


def _emergency(name: str, table: _Table, folder: Path) -> Provider:
    keys, names = Folder(folder.parent), _texts(table, "by")
    try:
        by = frozenset(keys.key(text) for text in names)
    except NotFoundError as error:
        raise UsageError(f"`by` of `{name}`: {error.message}") from error
    path = folder / (_text(table, "path") if "path" in table else f"{name}.jsonl")
    return EmergencyFlag(path=path, by=by, name=name)


_KINDS: dict[str, Callable[[str, _Table, Path], Provider]] = {
    "sql": _sql, "file": _file, "http": _http, "hours": _hours, "location": _location, "emergency": _emergency,
}  # fmt: skip


def _predicate(name: str, table: _Table) -> Predicate:
    arity = table.pop("arity")
    if type(arity) is not int or not 0 <= arity <= _MAX_ARITY:
        raise UsageError(f"`{name}` has 0 to {_MAX_ARITY} parameters")
    return Predicate(name, arity)


def _text(table: _Table, key: str) -> str:
    value = table.pop(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"`{key}` is a text")
    return value


def _texts(table: _Table, key: str) -> list[str]:
    value = table.pop(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"`{key}` is a list of texts")
    return value


def _seconds(table: _Table, default: float) -> float:
    value = table.pop("seconds", default)
    if type(value) not in {int, float} or not 0 < value <= _MAX_SECONDS:
        raise UsageError(f"`seconds` is at most {_MAX_SECONDS:g}")
    return float(value)
