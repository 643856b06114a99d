"""Who may hold keys: brokers of domains, on rights that choose no rows; and what readers make of an origin's right."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from maia.testing import Command

TYPE = "pito/Sighting"


class World:
    """PITO's home with its key manager as a real process, and another organisation's home that would join."""

    def __init__(self, root: Path) -> None:
        """Make both homes, with each other's public keys and PITO's type, and run the manager."""
        self.pito, self.met = Command(root / "pito"), Command(root / "met")
        for command, name in ((self.pito, "pito"), (self.met, "met")):
            command.do("domain", "init", str(command.home), "--name", name, "--key")
        define = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
        self.pito.do("type", "define", "domain/Sighting@1", *define)
        for source, target, name in ((self.pito, self.met, "pito"), (self.met, self.pito, "met")):
            shutil.copy(source.home / "keys" / "domain.pub", target.home / "keys" / f"{name}.pub")
        shutil.copy(self.pito.home / "keys" / "domain.pub", self.met.home / "keys" / "key-manager.pub")
        shutil.copytree(self.pito.home / "types", self.met.home / "types", dirs_exist_ok=True)
        self.met.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
        self.met.grant("--from", "domain", "--to", "broker", "--type", "*", "--blanket")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        serve = [sys.executable, "-m", "maia.cli", "serve", "key-manager", "--port", str(port)]
        self.running = subprocess.Popen([*serve, "--home", str(self.pito.home)], stderr=subprocess.DEVNULL)
        while not self._ready():
            time.sleep(0.05)
        settings = self.met.home / "maia.toml"
        settings.write_text(f'{settings.read_text("utf-8")}\n[services]\nkey_manager = "{self.url}"\n', "utf-8")

    def _ready(self) -> bool:
        assert self.running.poll() is None
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{self.url}/readyz").status_code == 200
        return False

    def give(self, *right: str) -> None:
        """PITO gives the Met a right that it may pass on; the certificate travels to the Met's home."""
        self.pito.grant("--from", "domain", "--to", "met", "--type", "domain/Sighting", *right, "--delegate")
        self.travel()

    def travel(self) -> None:
        """Bring PITO's certificates to the Met."""
        shutil.copytree(self.pito.home / "certificates", self.met.home / "certificates", dirs_exist_ok=True)

    def join(self) -> tuple[int, str, set[str]]:
        """Let the Met's broker join: exit code, what was said, and the attributes whose keys it got."""
        ran = self.met("keys", "join", TYPE, "--json")
        groups = ran.data.get("groups", ()) if ran.code == 0 else ()
        return ran.code, str(ran.data.get("message", "")), {str(group["uid"]) for group in groups} - {"None"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give the two homes, and end the manager."""
    made = World(tmp_path)
    yield made
    made.running.send_signal(signal.SIGKILL)
    made.running.wait()


@pytest.mark.slow
def test_a_right_on_some_rows_brings_no_key(world: World) -> None:
    """A3: whoever is limited to Victoria and calls its own key a broker gets no key of a whole column."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria")
    code, said, keys = world.join()
    assert (code, keys) == (3, set())
    assert "CONSTRAINED_RIGHT" in said


@pytest.mark.slow
def test_a_domain_that_is_trusted_to_enforce_gets_keys(world: World) -> None:
    """The link that sets the demand says so, signed; nobody below can say it of a demand that was set above."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria")
    said_itself = ("--attribute", "plate", "--attribute", "place=Victoria", "--enforced", "--blanket")
    world.met.grant("--from", "domain", "--to", "broker", "--type", TYPE, "--action", "subscribe", *said_itself)
    assert world.join()[0] == 3
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria", "--enforced")
    code, said, keys = world.join()
    assert (code, keys) == (0, {"1", "2"}), said


@pytest.mark.slow
def test_who_is_no_domain_has_no_brokers(world: World) -> None:
    """A right that may be passed on makes nobody a domain; the owner's word does."""
    world.give("--action", "subscribe", "--attribute", "plate")
    code, said, keys = world.join()
    assert (code, keys) == (3, set())
    assert "NOT_A_DOMAIN" in said
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.travel()
    code, said, keys = world.join()
    assert (code, keys) == (0, {"1"}), said


@pytest.mark.slow
def test_a_right_for_the_brokers_of_a_domain_brings_keys(world: World) -> None:
    """B13: who gives to `met: brokers` takes the Met for a domain; no other step is needed."""
    world.pito.grant(
        "--from", "domain", "--to", "met: brokers", "--type", "domain/Sighting", "--action", "subscribe",
        "--attribute", "place",
    )  # fmt: skip
    world.travel()
    code, said, keys = world.join()
    assert (code, keys) == (0, {"2"}), said


def test_granting_some_rows_to_a_domain_says_what_it_means(maia_command: Command) -> None:
    """`maia grant` warns that such a right brings no keys, and that `--enforced` brings whole columns."""
    maia = maia_command
    maia.keys("pito", "met")
    maia.do("type", "define", "pito/Sighting@1", "--attribute", "plate:string:1", "--attribute", "place:string:2")
    right = ("--from", "pito", "--to", "met", "--type", "pito/Sighting", "--action", "subscribe", "--attribute",
             "place=Victoria")  # fmt: skip
    assert maia("grant", *right, "--delegate", "--json").data["warnings"] == ["UNENFORCEABLE_FOR_DOMAIN"]
    assert maia("grant", *right, "--delegate", "--enforced", "--json").data["warnings"] == ["DOMAIN_ENFORCES"]
    assert maia("grant", *right, "--json").data["warnings"] == []
    plain = maia("grant", *right[:-1], "place", "--delegate", "--enforced", "--json")
    assert (plain.code, plain.data["error"]) == (2, "RIGHT_OPTIONS")
