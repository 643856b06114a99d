"""A console of the congestion charge service as a process, and browsers of a simple kind that log in to it."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
from processes import MAIA, environment, free_port

from maia import wire
from maia.principals import KeySigner, PublicKey
from maia.testing import Command, numberplate_homes

TYPE = "PITO/uk.gov.pito.Numberplate"
PAGES = ("/rights", "/why", "/graph", "/revoke", "/changes", "/live", "/evidence")


@dataclass(frozen=True)
class ChargeHome:
    """The home of the congestion charge service, with its people.

    Attributes:
        command: `maia` with this home.
        people: Their keys, by name.
    """

    command: Command
    people: dict[str, KeySigner]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.command.home

    @property
    def broker(self) -> PublicKey:
        """The broker's key."""
        return self.people["CB"].public_key

    def elsewhere(self, path: Path) -> ChargeHome:
        """Give a copy of it as it is now."""
        shutil.copytree(self.path, path)
        return ChargeHome(Command(path), self.people)


@dataclass(frozen=True)
class ConsoleProcess:
    """A running console."""

    port: int
    home: ChargeHome
    running: subprocess.Popen[bytes]
    opened: list[httpx2.Client]

    @property
    def host(self) -> str:
        """What browsers call it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self.host}"

    def challenge(self) -> bytes:
        """Fetch a challenge."""
        text = httpx2.get(f"{self.url}/login/challenge").json()["challenge"]
        return wire.decode_octets(text, length=wire.LOGIN_LENGTH)

    def form(self, signer: KeySigner, *, wish: str = "look", **other: Any) -> dict[str, str]:
        """Make what a browser sends to log in, or something that is wrong in one thing."""
        octets = other.get("challenge") or self.challenge()
        asked = wire.LoginChallenge(host=other.get("host", self.host), changes=wish == "change", challenge=octets)
        answer = wire.answer_login(asked, signer, console=other.get("console", self.home.broker).key_id)
        return {"challenge": wire.encode_octets(octets), "wish": other.get("said", wish), "answer": answer}

    def client(self, cookie: str | None = None) -> httpx2.Client:
        """Give a browser that nobody is logged in with, or one with somebody's cookie."""
        cookies = {} if cookie is None else {"maia-console": cookie}
        self.opened.append(httpx2.Client(base_url=self.url, cookies=cookies, timeout=30))
        return self.opened[-1]

    def browser(self, name: str, *, wish: str = "look") -> httpx2.Client:
        """Give a browser in which somebody is logged in."""
        client = self.client()
        answer = client.post("/login", data=self.form(self.home.people[name], wish=wish))
        assert answer.status_code == 303, answer.text
        return client


@contextmanager
def console_of(home: ChargeHome) -> Iterator[ConsoleProcess]:
    """Run a console until the block ends."""
    port, opened = free_port(), list[httpx2.Client]()
    command = [*MAIA, "serve", "console", "--home", str(home.path), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment()) as running:
        try:
            assert running.stderr is not None
            said = running.stderr.readline()
            assert b"the console serves on" in said, said + running.stderr.read()
            yield ConsoleProcess(port, home, running, opened)
        finally:
            for client in opened:
                client.close()
            running.send_signal(signal.SIGKILL)


def charge_home(root: Path) -> ChargeHome:
    """Make the home: an officer, an auditor, bob who reads some rows, and eve who has nothing."""
    homes = numberplate_homes(root)
    home = Command(homes.ccs)
    people = {name: homes.network.people[name] for name in homes.network.people}
    for name in ("officer", "anna", "bob", "eve"):
        people[name] = homes.add_key(homes.ccs, name, KeySigner.generate())
    home.do("name", "add", "officers", "--from", "CCS", "--to", "officer", "--test", "crl:CCS")
    home.do("name", "add", "auditors", "--from", "CCS", "--to", "anna")
    return ChargeHome(home, people)


def grant_bob(home: ChargeHome) -> str:
    """Let bob see what happens in one place."""
    return home.command.grant(
        "--from", "CCS", "--to", "bob", "--type", TYPE, "--action", "subscribe", "--attribute", "location='Victoria'",
        "--attribute", "timestamp",
    )  # fmt: skip


def csrf_of(page: httpx2.Response) -> str:
    """Read the token of a page's forms."""
    found = re.search(r'name="csrf" value="([A-Za-z0-9_-]+)"', page.text)
    assert found is not None, page.text
    return found[1]


class Elements(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        """Give the elements of a kind."""
        return [attributes for name, attributes in self.found if name == tag]

    def words(self) -> str:
        """Give all text, with one blank between words."""
        return " ".join(" ".join(self.text).split())
