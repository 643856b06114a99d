"""What ``maia.toml`` says of a home: its names, its places, its times and its services."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maia.encoding import did_you_mean, printable
from maia.errors import MalformedError

CONFIG_FILE = "maia.toml"
MAX_CONFIG = 1 << 16
_NUMBERS = ("grace", "skew", "history", "alarm")
_TEXTS = ("name", "broker", "domain", "log", "keyed_types", "spill", *_NUMBERS)
_SPILLS = ("sealed", "trusted")
_SERVICES: dict[str, str | None] = {"database": "store.db", "key_manager": None, "access_control": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeConfig:
    """What ``maia.toml`` says.

    Attributes:
        name: What people call the domain.
        broker: The name of the key that seals and signs parcels.
        domain: The name of the key that speaks for the domain and issues its certificates.
        network: Owner's key name and network name, when clients must show ``connect``.
        log: The log's directory, relative to the home.
        grace: Seconds for which a replaced key still opens.
        skew: Seconds by which clocks may differ.
        history: Seconds for which replaced keys are kept, at least ``grace``; without it, as long as the log keeps
            commits of their time.
        alarm: Events an hour above which the audit points a subscription out; without it, none.
        spill: How plaintext is protected that Spark writes to disk when its memory is full, and when it shuffles.
            ``sealed``: Spark encrypts it (``spark.io.encryption.enabled``), and a session that does not is refused.
            ``trusted``: the disks of Spark are encrypted or in memory already, so any session will do.
        keyed_types: The network owner's type whose key hides type ids on the wire; without it they are plain.
        database: Where the domain's services keep their state: a file in the home, or a database address.
        key_manager: Address of the key manager; without one it runs in process.
        access_control: Address of the access control service; without one it runs in process.
    """

    name: str
    broker: str = "broker"
    domain: str = "domain"
    network: tuple[str, str] | None = None
    log: str = "log"
    grace: int = 30
    skew: int = 5
    history: int | None = None
    alarm: int | None = None
    keyed_types: str | None = None
    spill: str = "sealed"
    database: str = "store.db"
    key_manager: str | None = None
    access_control: str | None = None

    def to_toml(self) -> str:
        """Write the file."""
        texts = {"name": self.name, "broker": self.broker, "domain": self.domain, "log": self.log}
        lines = [f"{key} = {_quote(text)}" for key, text in texts.items()]
        lines += [f"grace = {self.grace}", f"skew = {self.skew}"]
        if self.history is not None:
            lines.append(f"history = {self.history}")
        if self.alarm is not None:
            lines.append(f"alarm = {self.alarm}")
        if self.spill != "sealed":
            lines.append(f"spill = {_quote(self.spill)}")
        if self.keyed_types is not None:
            lines.append(f"keyed_types = {_quote(self.keyed_types)}")
        if self.network is not None:
            lines += ["", "[network]", f"owner = {_quote(self.network[0])}", f"name = {_quote(self.network[1])}"]
        services = {key: getattr(self, key) for key in _SERVICES if getattr(self, key) != _SERVICES[key]}
        if services:
            lines += ["", "[services]", *(f"{key} = {_quote(text)}" for key, text in services.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, data: bytes) -> HomeConfig:
        """Read the file.

        Raises:
            MalformedError: It is not TOML, or has unknown or ill-typed settings.
        """
        try:
            value = tomllib.loads(data.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"`{CONFIG_FILE}` is not TOML: {error}", code="HOMECONFIG_FILE") from error
        network = _table(value, "network", ("owner", "name"))
        services = _table(value, "services", _SERVICES)
        _check_known(value, (*_TEXTS, "network", "services"))
        if "name" not in value:
            raise _wrong("lacks the setting `name`")
        if len(network) == 1:
            raise _wrong("names half a network: `owner` and `name` go together")
        if value.get("spill", "sealed") not in _SPILLS:
            raise _wrong(f"has `spill = {value['spill']!r}`; it is {' or '.join(_SPILLS)}")
        pair = (network["owner"], network["name"]) if network else None
        return cls(network=pair, **value, **services)


def _table(value: dict[str, object], name: str, known: Iterable[str]) -> dict[str, Any]:
    """Take a table out of the settings."""
    table = value.pop(name, {})
    if not isinstance(table, dict):
        raise _wrong(f"has `{name}`, which is a table: `[{name}]`")
    _check_known(table, known, where=f"[{name}] ")
    return table


def _check_known(table: dict[str, object], known: Iterable[str], *, where: str = "") -> None:
    """Refuse a setting that is unknown, with the nearest one, or of another kind than it must be."""
    words = tuple(known)
    for key, value in table.items():
        if key not in words:
            raise _wrong(f"has the unknown setting `{where}{printable(key)}`{did_you_mean(key, words)}")
        wanted = int if key in _NUMBERS else str
        if type(value) is not wanted:
            raise _wrong(f"has `{where}{key}`, which is {'a whole number' if wanted is int else 'a text'}")


def _wrong(what: str) -> MalformedError:
    return MalformedError(f"`{CONFIG_FILE}` {what}", code="HOMECONFIG_FILE")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
