"""The numberplate network as `maia network up` runs it: five domains, and all that passes between them passes Kent."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from gateway_world import LOOPBACK, SECONDS
from processes import MAIA, environment, free_port

import maia
from maia.authority import Action, Constraint, Tag, network_right, type_right
from maia.clients import GatewayClient, connect
from maia.testing import ATTRIBUTES, NETWORK_NAME, TYPE_NAME, Command, grant, naming

PITO, RELAY = "pito", "kent"
WANTED, OTHER, PLACE, CLAIMED = (token_hex(6).upper() for _ in range(4))
"""Two plates, where the camera stands, and where it says it stands: drawn, so that no program's text holds them."""
CLIENTS = {"pito": (), "ccs": ("camera", "bo", "so"), "billing": ("clerk",), "met": ("smith",), RELAY: ("carol",)}
KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
SERVED = {"pito": ("log", "key-manager"), "ccs": ("log", "gateway"), "billing": ("gateway",), "met": ("gateway",),
          RELAY: ("log", "gateway")}  # fmt: skip
LINKS = (("pito", RELAY), ("ccs", RELAY), (RELAY, "ccs"), (RELAY, "billing"), (RELAY, "met"))
"""Who is copied by whom: nobody but Kent has a link with anybody."""


@dataclass(frozen=True)
class NetworkWorld:
    """The homes of the network, and the file that describes it."""

    root: Path
    file: Path
    ports: dict[tuple[str, str], int] = field(default_factory=dict)

    def command(self, name: str) -> Command:
        """Give the command with somebody's home."""
        return Command(self.root / name)

    def client(self, name: str, who: str) -> GatewayClient:
        """Connect somebody to the gateway of a domain, which must be in the network."""
        home = maia.open(self.root / name).home
        return connect(
            f"http://127.0.0.1:{self.ports[name, 'gateway']}", key=home.signer(who),
            network=(maia.open(self.root / PITO).home.key("domain"), NETWORK_NAME), policy=LOOPBACK, seconds=SECONDS,
        )  # fmt: skip

    def join(self, name: str) -> set[str]:
        """Let a broker join the key groups of the type, until its keys came over Kent; give the attributes."""
        while True:
            groups = self.command(name).do("keys", "join", TYPE_NAME)["groups"]
            if all(group["start"] for group in groups):
                return {str(group["uid"]) for group in groups} - {"None"}
            time.sleep(0.2)

    def status(self) -> dict[str, Any]:
        """Ask how the network stands."""
        return Command(self.root)("network", "status", str(self.file), "--json").data

    def pids(self, name: str) -> dict[str, int]:
        """Tell which processes a domain has."""
        [domain] = [item for item in self.status()["domains"] if item["name"] == name]
        return {part["what"]: part["pid"] for part in domain["parts"] if part["pid"]}


def make_network(root: Path) -> NetworkWorld:
    """Build the homes; each has a log of its own, and nobody holds a key of the type yet."""
    ports = {(name, service): free_port() for name, services in SERVED.items() for service in services}
    world = NetworkWorld(root, root / "police.toml", ports)
    for name, clients in CLIENTS.items():
        owner = "domain" if name == PITO else PITO
        world.command(name).do(
            "domain", "init", str(root / name), "--name", name, "--network", f"{owner}/{NETWORK_NAME}", "--key"
        )
        world.command(name).keys(*clients)
    define = (flag for name, uid in ATTRIBUTES.items() for flag in ("--attribute", f"{name}:{KINDS[name]}:{uid}"))
    world.command(PITO).do("type", "define", f"domain/{TYPE_NAME}@8516", *define)
    for name in CLIENTS:
        if name != PITO:
            for known in (PITO, "key-manager"):
                shutil.copy(root / PITO / "keys" / "domain.pub", root / name / "keys" / f"{known}.pub")
            shutil.copytree(root / PITO / "types", root / name / "types", dirs_exist_ok=True)
            settings = root / name / "maia.toml"
            manager = f"http://127.0.0.1:{ports[PITO, 'key-manager']}"
            settings.write_text(f'{settings.read_text("utf-8")}\n[services]\nkey_manager = "{manager}"\n', "utf-8")
    _give(root)
    lines = []
    for name, services in SERVED.items():
        lines += [f"[domains.{name}]", *(f"{service} = {ports[name, service]}" for service in services)]
    for source, target in LINKS:
        lines += ["[[links]]", f'from = "{source}"', f'to = "{target}"', "every = 0.5"]
    world.file.write_text("\n".join(lines) + "\n", "utf-8")
    return world


def _give(root: Path) -> None:
    """Sign who may what: everybody connects, and Kent may do no more than that."""
    homes = {name: maia.open(root / name).home for name in CLIENTS}
    keys = {name: home.signer("domain") for name, home in homes.items()}
    brokers = {name: home.broker for name, home in homes.items()}
    pito = keys[PITO].public_key
    connects = network_right(pito, NETWORK_NAME, [Action.CONNECT])

    def may(*actions: Action, names: tuple[str, ...] = tuple(ATTRIBUTES), **equal: str) -> Tag:
        return type_right(
            pito, TYPE_NAME, actions=actions, attributes=[ATTRIBUTES[name] for name in names],
            constraints=[Constraint(ATTRIBUTES[name], "=", value) for name, value in equal.items()],
        )  # fmt: skip

    publish, subscribe = Action.PUBLISH, Action.SUBSCRIBE
    when = ("numberplate", "timestamp")
    above = {
        "ccs": [grant(keys[PITO], keys["ccs"], tag, delegate=True) for tag in (connects, may(publish, subscribe))],
        "met": [grant(keys[PITO], keys["met"], tag, delegate=True) for tag in (connects, may(subscribe))],
        RELAY: [grant(keys[PITO], keys[RELAY], connects, delegate=True)],
        PITO: [],
    }
    above["billing"] = [
        *above["ccs"],
        *(grant(keys["ccs"], keys["billing"], tag, delegate=True) for tag in (connects, may(subscribe, names=when))),
    ]
    rights = {
        "camera": may(publish, location=PLACE),
        "bo": may(subscribe, names=when),
        "so": may(subscribe, names=("timestamp", "location")),
        "clerk": may(subscribe, names=when),
        "smith": may(subscribe, numberplate=WANTED),
    }
    for name, home in homes.items():
        made = [*above[name], grant(keys[name], brokers[name], connects), naming(keys[name], "brokers", brokers[name])]
        if name != RELAY:
            made.append(grant(keys[name], brokers[name], type_right(None, actions=[publish, subscribe])))
        for who in CLIENTS[name]:
            made.append(grant(keys[name], home.key(who), connects))
            made += [grant(keys[name], home.key(who), rights[who])] if who in rights else []
        for certificate in made:
            home.certificates.add(certificate)


class NetworkProcess:
    """`maia network up` as a process."""

    def __init__(self, file: Path, *more: str) -> None:
        """Start it."""
        self.file = file
        self._out = file.with_suffix(".out").open("w+b")
        self.running = subprocess.Popen(
            [*MAIA, "network", "up", str(file), "--json", *more], stdout=self._out, stderr=subprocess.STDOUT,
            env=environment(),
        )  # fmt: skip

    @property
    def said(self) -> list[dict[str, Any]]:
        """What it told so far, one object a line."""
        lines = self.file.with_suffix(".out").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait(self) -> dict[str, Any]:
        """Wait until all is well; the test's own limit of time ends an endless wait."""
        while True:
            assert self.running.poll() is None, self.file.with_suffix(".out").read_text("utf-8")
            found = Command(self.file.parent)("network", "status", str(self.file), "--json")
            if found.code == 0:
                return found.data
            time.sleep(0.3)

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """End it, wherever it is."""
        if self.running.poll() is None:
            self.running.send_signal(how)
        code = self.running.wait()
        self._out.close()
        return code


@contextmanager
def network_up(file: Path, *more: str, well: bool = True) -> Iterator[NetworkProcess]:
    """Run a network until the block ends; it ends its own processes."""
    process = NetworkProcess(file, *more)
    try:
        if well:
            process.wait()
        yield process
    finally:
        process.end()


def lives(pid: int) -> bool:
    """Tell whether a process is there, and no corpse."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False


def in_memory(pid: int, *words: bytes) -> set[bytes]:
    """Tell which words the memory of a process holds, as the kernel shows it."""
    found: set[bytes] = set()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines():
            place = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if place is None:
                continue
            start, end = (int(text, 16) for text in place.groups())
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except (OSError, ValueError, OverflowError):
                continue
            found |= {word for word in words if word in data}
    return found
