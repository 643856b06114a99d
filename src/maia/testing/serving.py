"""A home that manages the keys of a type, and its services as real processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.authority import Action, type_right
from maia.domain import open_home_groups, open_key_manager
from maia.events import EventType, TypeId, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS
from maia.key_manager import KeySettings
from maia.principals import KeySigner
from maia.testing.building import grant, naming


@dataclass(frozen=True, slots=True)
class ManagedType:
    """A home that owns a type and manages its keys: `clinic.Result`, with a patient and a value."""

    path: Path
    owner: KeySigner
    broker: KeySigner
    type_id: TypeId
    name: str


def managed_type(path: Path) -> ManagedType:
    """Make the home in a folder that is not there yet."""
    begun = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
    home = Home.create(path, HomeConfig(name="clinic"))
    owner, broker = KeySigner.generate(), home.broker
    home.add_key("domain", owner)
    home.certificates.add(naming(owner, BROKERS, broker))
    both = type_right(owner.public_key, actions=[Action.SUBSCRIBE, Action.PUBLISH])
    home.certificates.add(grant(owner, broker, both))
    event_type = EventType(
        name=TypeName(owner.public_key, "clinic.Result", parse_version("1")),
        attributes=(attribute("patient", "11", "string"), attribute("value", "12", "integer")),
    )
    home.types.put(sign_event_type(event_type, owner).raw, at=begun)
    manager, _ = open_key_manager(home, settings=KeySettings(lead=timedelta(0)))
    open_home_groups(home, manager, event_type.name, at=begun)
    manager.close()
    return ManagedType(path, owner, KeySigner.generate(), event_type.type_id, "clinic.Result")


@contextmanager
def served(what: str, home: Path) -> Iterator[int]:
    """Run `maia serve` while the block lasts, from the moment it is ready; give its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "maia.cli", "serve", what, "--home", str(home), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - this very program
    try:
        while process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz"):
                    break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
