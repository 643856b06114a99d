"""What a network file says: domains with their homes and ports, and who copies whose log.

    [domains.ccs]
    home = "ccs"            # from the file's folder; the domain's name where it is left out
    log = 28474             # the port of `maia serve log`
    gateway = 28473         # likewise `gateway`, `key-manager` and `acs`

    [[links]]
    from = "ccs"
    to = "kent"
    types = ["Numberplate"] # all, where it is left out
    every = 0.5             # seconds

It says nothing about rights: those are in the homes.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maia.encoding import did_you_mean
from maia.errors import MalformedError, NotFoundError

SERVICES = ("log", "gateway", "key-manager", "acs")
"""What a domain may serve, as `maia serve` calls it."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_MAX_FILE = 1 << 20
_MOST = 64
_DOMAIN = ("home", "tls-cert", "tls-key")
_LINK = ("from", "to", "types", "every")
_PORTS = range(1, 65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkDomain:
    """A domain of the network.

    Attributes:
        name: What the file calls it.
        home: Its home.
        ports: What it serves, and on which port of this machine.
        tls: Certificate chain and private key of what it serves (PEM); without them it serves this machine alone.
    """

    name: str
    home: Path
    ports: tuple[tuple[str, int], ...] = ()
    tls: tuple[Path, Path] | None = None

    def address(self, service: str) -> str:
        """Tell where a service of it is reached."""
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{dict(self.ports)[service]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLink:
    """Who copies whose log, what of it, and how often it looks."""

    source: str
    target: str
    types: tuple[str, ...] = ()
    every: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkDescription:
    """A network file, read."""

    file: Path
    domains: tuple[NetworkDomain, ...]
    links: tuple[NetworkLink, ...]

    @property
    def folder(self) -> Path:
        """Where what runs keeps its output."""
        return self.file.with_suffix(".running")

    def domain(self, name: str) -> NetworkDomain:
        """Find a domain of it."""
        return next(item for item in self.domains if item.name == name)


def read_network(file: Path) -> NetworkDescription:
    """Read a network file.

    Raises:
        NotFoundError: There is none: ``NO_SUCH_FILE``.
        MalformedError: It describes no network: ``NETWORK_FILE``.
    """
    if not file.is_file():
        raise NotFoundError(f"no file `{file}`", code="NO_SUCH_FILE")
    with file.open("rb") as stream:
        raw = stream.read(_MAX_FILE + 1)
    try:
        value = tomllib.loads(raw.decode("utf-8")) if len(raw) <= _MAX_FILE else None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(f"it is not TOML: {error}") from error
    if value is None:
        raise _wrong("it is too large")
    _known(value, ("domains", "links"), "the file")
    tables, links = value.get("domains"), value.get("links", [])
    if not isinstance(tables, dict) or not 0 < len(tables) <= _MOST:
        raise _wrong(f"it names from 1 to {_MOST} domains, each in a table `[domains.NAME]`")
    if not isinstance(links, list) or len(links) > _MOST:
        raise _wrong(f"it has at most {_MOST} links, each in a table `[[links]]`")
    root = file.resolve().parent
    domains = {name: _domain(root, name, table) for name, table in tables.items()}
    _once([port for item in domains.values() for _, port in item.ports], "port")
    _once([item.home.resolve() for item in domains.values()], "home")
    made = tuple(_link(domains, item) for item in links)
    _once([f"{item.source} to {item.target}" for item in made], "link")
    return NetworkDescription(file=file, domains=tuple(domains.values()), links=made)


def _domain(root: Path, name: str, table: Any) -> NetworkDomain:  # noqa: ANN401 - as TOML gives it
    where = f"`[domains.{name}]`"
    if not _NAME.fullmatch(name):
        raise _wrong(f"{where}: a name has at most 31 small letters, digits and `-`")
    _known(table, (*_DOMAIN, *SERVICES), where)
    for key in _DOMAIN:
        if not isinstance(table.get(key, ""), str):
            raise _wrong(f"{where}: `{key}` is a path")
    for key in SERVICES:
        port = table.get(key, 1)
        if isinstance(port, bool) or not isinstance(port, int) or port not in _PORTS:
            raise _wrong(f"{where}: `{key}` is a port")
    if ("tls-cert" in table) != ("tls-key" in table):
        raise _wrong(f"{where}: TLS needs `tls-cert` and `tls-key`")
    return NetworkDomain(
        name=name, home=root / table.get("home", name),
        ports=tuple((key, table[key]) for key in SERVICES if key in table),
        tls=(root / table["tls-cert"], root / table["tls-key"]) if "tls-cert" in table else None,
    )  # fmt: skip


def _link(domains: dict[str, NetworkDomain], table: Any) -> NetworkLink:  # noqa: ANN401 - as TOML gives it
    _known(table, _LINK, "`[[links]]`")
    ends = [table.get(key) for key in ("from", "to")]
    for end in ends:
        if not isinstance(end, str) or end not in domains:
            near = did_you_mean(end, domains) if isinstance(end, str) else ""
            raise _wrong(f"`[[links]]`: `from` and `to` are domains of the file, and `{end}` is none{near}")
    source, target = ends
    if source == target:
        raise _wrong(f"`[[links]]`: `{source}` has its own log already")
    if "log" not in dict(domains[source].ports):
        raise _wrong(f"`[[links]]`: `{source}` serves no log: give it a port, `log = …`")
    types, every = table.get("types", []), table.get("every", 1.0)
    if not isinstance(types, list) or not all(isinstance(item, str) for item in types):
        raise _wrong("`[[links]]`: `types` are names")
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0.05 <= every <= 3600:
        raise _wrong("`[[links]]`: `every` is from 0.05 to 3600 seconds")
    return NetworkLink(source=source, target=target, types=tuple(types), every=float(every))


def _known(table: Any, keys: tuple[str, ...], where: str) -> None:  # noqa: ANN401 - as TOML gives it
    if not isinstance(table, dict):
        raise _wrong(f"{where} is a table")
    for key in table:
        if key not in keys:
            raise _wrong(f"{where} has no `{key}`{did_you_mean(key, keys)}")


def _once(items: list[Any], what: str) -> None:
    for item, count in Counter(items).items():
        if count > 1:
            raise _wrong(f"{what} {item} stands there twice")


def _wrong(why: str) -> MalformedError:
    return MalformedError(f"the network file: {why}", code="NETWORK_FILE")
