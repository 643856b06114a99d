"""What ``maia.toml`` says of a home: its names, its places, its times and its services."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from maia.encoding import did_you_mean
from maia.errors import MalformedError, UsageError
from maia.home.formats import HOME_FORMAT, check_home_format

CONFIG_FILE = "maia.toml"
MAX_CONFIG = 1 << 16
DEFAULT_SILENCE = 600
DEFAULT_PLAN_AGE = 3600
DEFAULT_KEY_PERIOD = 86_400
_NUMBERS = ("grace", "skew", "key_period", "plan_age", "silence", "history", "alarm")
_TEXTS = ("name", "broker", "domain", "log", "keyed_types", "spill", "advertise", "trace", "names", *_NUMBERS)
_CHOICES = {
    "spill": ("sealed", "trusted"), "advertise": ("first", "explicit"), "trace": ("off", "on"),
    "names": ("short", "full"),
}  # fmt: skip
"""Settings with a few words to choose from, the first by default."""
_SERVICES: dict[str, str | None] = {"database": "store.db", "key_manager": None, "access_control": None, "fetch": None}
_TABLES: dict[str, tuple[str, ...]] = {"": _TEXTS, "network": ("owner", "name"), "services": tuple(_SERVICES)}
"""The settings of each table of the file; those at its top are in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeConfig:
    """What ``maia.toml`` says.

    Attributes:
        name: What people call the domain.
        broker: The name of the key that seals and signs parcels.
        domain: The name of the key that speaks for the domain and issues its certificates.
        network: Owner and network name, when clients must show ``connect``. The owner is a key's name, or a threshold
            of such names: ``2 of (met, ccs, pito)``.
        log: Where the log is: a directory, relative to the home, or the address of a store, such as
            ``s3://bucket/prefix``. Credentials for it come from the environment, never from this file.
        grace: Seconds for which a replaced key still opens.
        skew: Seconds by which clocks may differ.
        key_period: Seconds for which a key may be current in the groups that this home manages; then it changes,
            whoever came or went.
        plan_age: Seconds for which what was planned may be worked by: a frame that is evaluated again, a task that is
            tried again, a long micro-batch. After that the rights are judged anew.
        silence: Seconds beyond the time that it promised for which a key manager may be silent before keys of it seal
            nothing here; and, when it is more than 600, for how much longer what others sealed that did not hear it is
            opened.
        history: Seconds for which replaced keys are kept, at least ``grace`` after nobody can seal with them any more;
            without it, as long as the log keeps commits of their time.
        alarm: Events an hour above which the audit points a subscription out; without it, none.
        spill: How plaintext is protected that Spark writes to disk when its memory is full, and when it shuffles.
            ``sealed``: Spark encrypts it (``spark.io.encryption.enabled``), and a session that does not is refused.
            ``trusted``: the disks of Spark are encrypted or in memory already, so any session will do.
        advertise: When a publisher has to say what it will publish. ``first``: its first publication says so.
            ``explicit``: before that, by `maia advertise` or ``client.advertise``; else it is refused.
        trace: Whether the steps that events go through here are written to the file ``trace`` of the home, by name
            and count, without values: ``on`` or ``off``.
        names: How commands and calls name a type here. ``short``: without its owner, where one owner has the name.
            ``full``: with its owner, always; a name alone is refused.
        keyed_types: The network owner's type whose key hides type ids on the wire; without it they are plain.
        database: Where the domain's services keep their state: a file in the home, or a database address.
        key_manager: Address of the key manager; without one it runs in process.
        access_control: Address of the access control service; without one it runs in process.
        fetch: Hosts, ``name`` or ``name:port`` with blanks between them, that may be asked for lists, one-time answers
            and renewals when a certificate gives an address there; without it, none is.
    """

    name: str
    broker: str = "broker"
    domain: str = "domain"
    network: tuple[str, str] | None = None
    log: str = "log"
    grace: int = 30
    skew: int = 5
    key_period: int = DEFAULT_KEY_PERIOD
    plan_age: int = DEFAULT_PLAN_AGE
    silence: int = DEFAULT_SILENCE
    history: int | None = None
    alarm: int | None = None
    keyed_types: str | None = None
    spill: str = "sealed"
    advertise: str = "first"
    trace: str = "off"
    names: str = "short"
    database: str = "store.db"
    key_manager: str | None = None
    access_control: str | None = None
    fetch: str | None = None

    def to_toml(self) -> str:
        """Write the file."""
        texts = {"name": self.name, "broker": self.broker, "domain": self.domain, "log": self.log}
        lines = [f"format = {HOME_FORMAT}", *(f"{key} = {_quote(text)}" for key, text in texts.items())]
        lines += [f"grace = {self.grace}", f"skew = {self.skew}"]
        if self.key_period != DEFAULT_KEY_PERIOD:
            lines.append(f"key_period = {self.key_period}")
        if self.plan_age != DEFAULT_PLAN_AGE:
            lines.append(f"plan_age = {self.plan_age}")
        if self.silence != DEFAULT_SILENCE:
            lines.append(f"silence = {self.silence}")
        if self.history is not None:
            lines.append(f"history = {self.history}")
        if self.alarm is not None:
            lines.append(f"alarm = {self.alarm}")
        for key, choices in _CHOICES.items():
            if getattr(self, key) != choices[0]:
                lines.append(f"{key} = {_quote(getattr(self, key))}")
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
            UnavailableError: The home is of another format: ``FORMAT_NEWER``, ``FORMAT_OLDER``.
        """
        value = parse_toml(data)
        check_home_format(value.pop("format", 1), what=CONFIG_FILE)
        network, services = (_table(value, name) for name in ("network", "services"))
        for table, found in (("", value), ("network", network), ("services", services)):
            _check_table(table, found)
        if "name" not in value:
            raise _wrong("it lacks `name`, which people call the domain")
        if len(network) == 1:
            raise _wrong("`[network]` has both `owner` and `name`")
        for key, choices in _CHOICES.items():
            if value.get(key, choices[0]) not in choices:
                raise _wrong(f"`{key}` is {' or '.join(f'`{item}`' for item in choices)}, not `{value[key]}`")
        if "://" in value.get("log", ""):
            from maia.log import check_address  # noqa: PLC0415 - most homes have a directory

            try:
                check_address(value["log"])
            except UsageError as error:
                raise _wrong(f"`log`: {error.message}") from error
        pair = (network["owner"], network["name"]) if network else None
        return cls(network=pair, **value, **services)


def parse_toml(data: bytes) -> dict[str, Any]:
    """Read ``maia.toml`` of whatever format.

    Raises:
        MalformedError: It is not TOML.
    """
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"`{CONFIG_FILE}` is not TOML: {error}", code="HOMECONFIG_FILE") from error


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.pop(name, {})
    if not isinstance(found, dict):
        raise _wrong(f"`{name}` is a table: write `[{name}]` above its settings")
    return found


def _check_table(table: str, found: dict[str, Any]) -> None:
    """Refuse settings that are unknown here, or of another kind; say where they belong, or which one was meant."""
    known, place = _TABLES[table], f" in `[{table}]`" if table else ""
    for key, value in found.items():
        if key not in known:
            homes = [
                f"`[{other}]`" if other else "the top, above all tables" for other in _TABLES if key in _TABLES[other]
            ]
            where = f"; it belongs to {homes[0]}" if homes else did_you_mean(key, known)
            raise _wrong(f"there is no setting `{key}`{place}{where}")
        kind = int if key in _NUMBERS else str
        if type(value) is not kind:
            raise _wrong(f"`{key}`{place} is a {'whole number' if kind is int else 'text in quotes'}")


def _wrong(message: str) -> MalformedError:
    return MalformedError(f"`{CONFIG_FILE}`: {message}", code="HOMECONFIG_FILE")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
