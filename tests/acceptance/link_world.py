"""Three domains of one network, each with its own log: one publishes, one only carries, one reads."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway_world import Between
from processes import MAIA, Service, environment, free_port

import maia
from maia.authority import Action, network_right
from maia.encryption import Keyring
from maia.events import Options
from maia.principals import Certificate, KeySigner, TestKind
from maia.testing import (
    NETWORK_NAME,
    TYPE_NAME,
    Command,
    NumberplateHomes,
    grant,
    listing,
    numberplate_homes,
    online,
    publish_here,
    publish_plan,
    read_here,
)

PLATE, PLACE = "AE05 XYZ", "Victoria"
EVENTS, FORKED = 12, 5
"""How many events there are, and from which on their publisher signed two truths."""


@dataclass(frozen=True)
class LinkWorld:
    """The congestion charge service publishes, Kent carries without a right to the type, and the Met reads."""

    homes: NumberplateHomes
    kent: Path
    past: Path
    """A home of the publisher that was restored from the past and went on: it signs another end of its lane."""
    capabilities: dict[str, Certificate]

    @property
    def ccs(self) -> Path:
        """The home that publishes."""
        return self.homes.ccs

    @property
    def met(self) -> Path:
        """The home that reads."""
        return self.homes.met

    @property
    def broker(self) -> KeySigner:
        """The key whose lane it is."""
        return self.homes.network.people["CB"]

    def publish(self, count: int, *, past: bool = False) -> None:
        """Publish sightings of a plate, one event and one commit each, and say where the lane ends."""
        home, begun = maia.open(self.past if past else self.ccs).home, datetime.now(UTC)
        plan = publish_plan(home, TYPE_NAME, as_="CCTV", publication="sightings", at=begun, max_events=1)
        for _ in range(count):
            at = datetime.now(UTC)
            row = {"numberplate": PLATE, "timestamp": at.replace(microsecond=0), "location": PLACE}
            publish_here(home, TYPE_NAME, [row], as_="CCTV", at=at, plan=plan)
        Command(home.path).do("log", "reassert")

    def publish_rows(self, *parts: list[str]) -> None:
        """Publish sightings of plates, each list of them in a commit and a segment of its own."""
        home = maia.open(self.ccs).home
        for plates in parts:
            at = datetime.now(UTC)
            rows = [
                {"numberplate": plate, "timestamp": at.replace(microsecond=0), "location": PLACE} for plate in plates
            ]
            publish_here(home, TYPE_NAME, rows, as_="CCTV", at=at)
        Command(home.path).do("log", "reassert")

    def relay(self, root: Path, *labels: bytes) -> Path:
        """Give a home of Kent that knows the type and holds the keys of some attributes."""
        shutil.copytree(self.kent, root / "kent")
        kent = root / "kent"
        self.homes.add(kent, *self.homes.network.certificates.values())
        self.homes.define(kent, self.homes.event_type, self.homes.network.people["PITO"])
        all_keys, some = maia.open(self.ccs).home.keyring(), Keyring()
        for group in all_keys.groups():
            if group.label in labels:
                for epoch in all_keys.epochs(group):
                    some.add(group, epoch, all_keys.key(group, epoch) or b"")
        maia.open(kent).home.save_keyring(some)
        return kent

    def reader(self, root: Path) -> Command:
        """Give a home of the Met that has seen nothing yet, with a log of its own."""
        shutil.copytree(self.met, root / "met")
        return Command(root / "met")

    def revoke(self, *homes: Path) -> None:
        """Let PITO revoke what lets Kent connect, and let homes hear of it."""
        raw = self._list(2, self.capabilities["domain"])
        for home in homes:
            file = home.parent / "revoked.crl"
            file.write_bytes(raw)
            Command(home).do("statement", "add", str(file))

    def _list(self, sequence: int, *certificates: Certificate) -> bytes:
        return listing(TestKind.CRL, self.homes.network.people["PITO"], certificates, sequence=sequence).raw


def make_world(root: Path, *, options: Options | None = None, events: int = EVENTS) -> LinkWorld:
    """Build the homes; nobody shares a log with anybody."""
    homes = numberplate_homes(root, options=options, network=True, since=timedelta(minutes=30))
    for folder in (homes.ccs, homes.met):
        settings = folder / "maia.toml"
        settings.write_text(settings.read_text("utf-8").replace('log = "../log"', 'log = "log"'), "utf-8")
    pito, kent = homes.network.people["PITO"], root / "kent"
    Command(kent).do("domain", "init", str(kent), "--name", "kent", "--network", f"PITO/{NETWORK_NAME}", "--key")
    home = maia.open(kent).home
    home.add_public_key("PITO", pito.public_key)
    home.add_public_key("CB", homes.network.key("CB"))
    connect = network_right(pito.public_key, NETWORK_NAME, [Action.CONNECT])
    made = {
        "domain": grant(pito, home.key("domain"), connect, delegate=True, tests=(online(TestKind.CRL, pito),)),
        "broker": grant(home.signer("domain"), home.broker, connect),
    }
    for certificate in made.values():
        home.certificates.add(certificate)
    world = LinkWorld(homes, kent, root / "past", made)
    for path in (homes.met, homes.ccs):
        maia.open(path).home.add_public_key("KB", home.broker.public_key)
    # Only Kent has the list that says that it is not revoked: it shows it to whom it meets.
    (root / "good.crl").write_bytes(world._list(1))
    Command(world.kent).do("statement", "add", str(root / "good.crl"))
    if events < EVENTS:
        if events:
            world.publish(events)
        return world
    world.publish(FORKED)
    shutil.copytree(world.ccs, world.past)
    for past in (False, True):
        world.publish(EVENTS - FORKED, past=past)
    return world


class LogProcess(Service):
    """`maia serve log` as a process, known by further names to whoever comes over somebody in between."""

    def __init__(self, home: Path, *names: str) -> None:
        """Start it."""
        self.port = free_port()
        more = [part for name in names for part in ("--name", name)]
        self.running = subprocess.Popen(
            [*MAIA, "serve", "log", "--port", str(self.port), "--home", str(home), *more], stderr=subprocess.PIPE,
            env=environment(),
        )  # fmt: skip


@contextmanager
def serving_log(home: Path, *names: str) -> Iterator[LogProcess]:
    """Serve a home's log until the block ends; then it is killed if it still runs."""
    service = LogProcess(home, *names)
    try:
        service.wait()
        yield service
    finally:
        service.kill()


class Stop(Between):
    """Carries octets until a request for something comes so many times; then it holds it, for ever."""

    def __init__(self, what: bytes, count: int) -> None:
        """Count requests that say ``what``."""
        super().__init__()
        self.held = threading.Event()
        self._what, self._left = what, count
        self.change = self._hold

    def _hold(self, data: bytes, up: bool) -> bytes:
        if up and self._what in data:
            self._left -= 1
            if self._left == 0:
                self.held.set()
                threading.Event().wait()
        return data


def pulling(home: Path, name: str) -> subprocess.Popen[bytes]:
    """Start `maia link pull` as a process."""
    return subprocess.Popen(
        [*MAIA, "link", "pull", name, "--home", str(home), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    )  # fmt: skip


def pull(home: Path, name: str) -> dict[str, Any]:
    """Run `maia link pull` as a process to its end; it must succeed."""
    with pulling(home, name) as process:
        out, err = process.communicate()
    assert process.returncode == 0, f"{out!r} {err!r}"
    found: dict[str, Any] = json.loads(out)
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with -9 and let go of it."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.communicate()


def smith_reads(home: Path) -> list[dict[str, object]]:
    """Read what Smith of the Met sees, in the order of the log."""
    return read_here(maia.open(home).home, TYPE_NAME, as_="Smith")


def log_of(home: Path) -> Path:
    """Tell where a home's log lies."""
    return maia.open(home).home.log_path


def records(home: Path) -> list[Path]:
    """List the records of event lanes in a home's log."""
    return sorted(log_of(home).glob("type=*/origin=*/*.record"))


def segments(home: Path) -> list[Path]:
    """List the segments in a home's log."""
    return sorted(log_of(home).glob("type=*/origin=*/date=*/*"))
