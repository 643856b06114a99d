"""How a network stands: what its processes, homes and logs show. Nothing is changed, and no right is decided."""

from __future__ import annotations

import http.client
import json
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maia.cli.network.children import parts_of
from maia.cli.network.description import NetworkDescription, NetworkDomain, NetworkLink
from maia.cli.network.running import read_state, runs
from maia.errors import MaiaError

if TYPE_CHECKING:
    from maia.home import Home
    from maia.log import Store

_PAGE, _MOST_RECORDS = 1000, 1_000_000
_MAX_LINES = 64 << 20
_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStanding:
    """How a process stands: ``ready`` when a service answers and a link runs, else what became of it."""

    what: str
    state: str
    address: str = ""
    pid: int | None = None
    restarts: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStanding:
    """How a domain stands: its types by owner and name, its processes, and what was refused since the network runs."""

    name: str
    types: tuple[str, ...] = ()
    parts: tuple[PartStanding, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStanding:
    """How a link stands.

    Attributes:
        source: Whose log is copied.
        target: Who copies it.
        state: Of its process.
        records: How many records it copied since the network runs.
        events: How many events.
        octets: How many octets.
        lag: How many records the source has and the target has not.
        error: The code with which its last round ended; nothing after a good one.
        parked: The codes of lanes that it cannot copy on.
    """

    source: str
    target: str
    state: str
    records: int = 0
    events: int = 0
    octets: int = 0
    lag: int = 0
    error: str = ""
    parked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStanding:
    """How all of it stands."""

    runs: bool
    since: str | None
    domains: tuple[DomainStanding, ...]
    links: tuple[LinkStanding, ...]

    @property
    def well(self) -> bool:
        """Whether every process is ready, and no link waits or failed."""
        parts = [part.state for domain in self.domains for part in domain.parts]
        return self.runs and set(parts) <= {"ready"} and not any(link.error or link.parked for link in self.links)


@dataclass(slots=True)
class Watcher:
    """Looks at a network again and again, and only at what may have changed."""

    network: NetworkDescription
    _homes: dict[str, Home] = field(default_factory=dict)
    _ends: dict[tuple[str, str], str] = field(default_factory=dict)
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def look(self) -> NetworkStanding:
        """Tell how it stands now."""
        network, state = self.network, read_state(self.network.folder)
        running, told = runs(network.folder), state.get("parts", {})
        since = state.get("since")
        parts: dict[str, PartStanding] = {}
        for part in parts_of(network):
            known: dict[str, Any] = told.get(part.name, {})
            found = known.get("state", "down") if running else "down"
            if found == "runs":
                found = "ready" if not part.address or _answers(part.address, network.domain(part.domain)) else "starts"
            parts[part.name] = PartStanding(
                what=part.what, state=found, address=part.address, pid=known.get("pid") if running else None,
                restarts=known.get("restarts", 0), said=known.get("said", "") if found != "ready" else "",
            )  # fmt: skip
        domains = tuple(
            DomainStanding(
                name=domain.name, types=self._types(domain),
                parts=tuple(parts[part.name] for part in parts_of(network) if part.domain == domain.name),
                refused=self._refused(domain, since),
            )
            for domain in network.domains
        )  # fmt: skip
        links = tuple(self._link(link, parts[f"{link.target} link {link.source}"].state) for link in network.links)
        return NetworkStanding(runs=running, since=since, domains=domains, links=links)

    def _home(self, name: str) -> Home | None:
        if name not in self._homes:
            from maia.home import Home

            try:
                self._homes[name] = Home.open(self.network.domain(name).home)
            except MaiaError:
                return None
        return self._homes[name]

    def _types(self, domain: NetworkDomain) -> tuple[str, ...]:
        home = self._home(domain.name)
        if home is None or domain.name in self._known:
            return self._known.get(domain.name, ())
        names = {bytes(key.key_id): name for name, key in home.folder.keys.items()}
        found = {f"{names.get(item.owner_id) or item.owner_id.hex()[:16]}/{item.name}" for item in home.types.names()}
        self._known[domain.name] = tuple(sorted(found))
        return self._known[domain.name]

    def _refused(self, domain: NetworkDomain, since: str | None) -> tuple[tuple[str, int], ...]:
        home = self._home(domain.name)
        if home is None or since is None or not home.audit_path.exists():
            return ()
        from maia.log import read_audit

        rows = read_audit(home.audit_path, since=datetime.fromisoformat(since))
        return tuple(sorted(Counter(row.code for row in rows if row.kind == "refuse").items()))

    def _link(self, link: NetworkLink, state: str) -> LinkStanding:
        home, source = self._home(link.target), self._home(link.source)
        counts = _copied(self.network.folder / f"{link.target}.link.{link.source}.jsonl")
        if home is None or source is None:
            return LinkStanding(source=link.source, target=link.target, state=state)
        from maia.domain import find_link, link_status

        error, lag = "", 0
        parked: tuple[str, ...] = ()
        with suppress(MaiaError):
            kept = find_link(home, link.source)
            found = link_status(home, kept)
            error, parked = found.last.get("error", ""), tuple(item.code for item in found.parked)
            lag = self._lag(link, source.log_store, home.log_store, kept.types)
        return LinkStanding(
            source=link.source, target=link.target, state=state, lag=lag, error=error, parked=parked,
            records=counts["records"], events=counts["events"], octets=counts["octets"],
        )  # fmt: skip

    def _lag(self, link: NetworkLink, source: Store, target: Store, types: tuple[str, ...]) -> int:
        from maia.log import all_lanes

        behind = 0
        for lane in all_lanes(source, types or None):
            ends = [
                self._end(name, store, lane.folder) for name, store in ((link.source, source), (link.target, target))
            ]
            behind += max(0, ends[0] - ends[1])
        return behind

    def _end(self, name: str, store: Store, folder: str) -> int:
        """Count up to the last record of a lane, from where the last look ended."""
        last = self._ends.get((name, folder), "")
        for _ in range(_MOST_RECORDS // _PAGE):
            page = [item for item in store.list_after(folder, last, limit=_PAGE) if item.endswith(".record")]
            last = page[-1] if page else last
            if len(page) < _PAGE:
                break
        self._ends[(name, folder)] = last
        number = last.removesuffix(".record")
        return int(number) + 1 if number.isdecimal() else 0


def _answers(address: str, domain: NetworkDomain) -> bool:
    where = urlsplit(address)
    connection: http.client.HTTPConnection
    if domain.tls is None:
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_SECONDS)
    else:
        context = ssl.create_default_context(cafile=str(domain.tls[0]))
        connection = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=_SECONDS, context=context)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _copied(file: Path) -> dict[str, int]:
    """Add up what the rounds of a link brought, as its process wrote it."""
    total = dict.fromkeys(("records", "events", "octets"), 0)
    try:
        with file.open("rb") as stream:
            lines = stream.read(_MAX_LINES).splitlines()
    except OSError:
        return total
    for line in lines:
        with suppress(ValueError, TypeError):
            found = json.loads(line)
            for key in total:
                total[key] += int(found.get(key, 0))
    return total
