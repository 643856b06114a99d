"""What ``maia.toml`` says of a home: its names, its places, its times and its services."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from maia.errors import MalformedError

CONFIG_FILE = "maia.toml"
MAX_CONFIG = 1 << 16
DEFAULT_SILENCE = 600
_NUMBERS = ("grace", "skew", "silence", "history", "alarm")
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
        silence: Seconds beyond the time that it promised for which a key manager may be silent before keys of it seal
            nothing here.
        history: Seconds for which replaced keys are kept, at least ``grace``; without it, as long as the log keeps
            commits of their time.
        alarm: Events an hour above which the audit points a subscription out; without it, none.
        spill: ``sealed`` when what leaves Spark's memory must be sealed by Spark, ``trusted`` when the disks that it
            spills to are protected otherwise.
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
    silence: int = DEFAULT_SILENCE
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
        if self.silence != DEFAULT_SILENCE:
            lines.append(f"silence = {self.silence}")
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
        network = value.pop("network", {})
        services = value.pop("services", {})
        if not (
            _all_known(value, _TEXTS)
            and isinstance(network, dict)
            and _all_known(network, ("owner", "name"))
            and len(network) != 1
            and isinstance(services, dict)
            and _all_known(services, _SERVICES)
            and "name" in value
            and value.get("spill", "sealed") in _SPILLS
        ):
            raise MalformedError(f"`{CONFIG_FILE}` has a setting that is unknown or wrong", code="HOMECONFIG_FILE")
        pair = (network["owner"], network["name"]) if network else None
        return cls(network=pair, **value, **services)


def _all_known(table: dict[str, object], known: Iterable[str]) -> bool:
    right = all(type(value) is (int if key in _NUMBERS else str) for key, value in table.items())
    return right and table.keys() <= set(known)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
