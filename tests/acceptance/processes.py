"""`maia` as processes of its own: commands that end, and services that are killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maia.clients import AccessControlClient, AddressPolicy
from maia.principals import PublicKey, Signer

MAIA = (str(Path(sys.executable).with_name("maia")),)


def environment(**more: str) -> dict[str, str]:
    """Give a process what it needs, and no passphrase of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    return kept | {"NO_COLOR": "1", "COLUMNS": "200"} | more


def run_maia(*args: str, home: Path, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a command in a process of its own; it must succeed, and says what it did as JSON."""
    ran = subprocess.run(
        [*MAIA, *args, "--home", str(home), "--json"],
        capture_output=True, text=True, check=False, env=dict(env or environment()),
    )  # fmt: skip
    assert ran.returncode == 0, f"`maia {' '.join(args)}` ended with {ran.returncode}: {ran.stdout}{ran.stderr}"
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def free_port() -> int:
    """Find a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Service:
    """One running service of a home."""

    def __init__(self, what: str, home: Path, *, database: str | None = None, port: int | None = None) -> None:
        """Start it."""
        self.port = free_port() if port is None else port
        place = ["--home", str(home)] + ([] if database is None else ["--database", database])
        self.running = subprocess.Popen(
            [*MAIA, "serve", what, "--port", str(self.port), *place], stderr=subprocess.PIPE, env=environment()
        )

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def state(self, path: str) -> int:
        """Ask for its health; 0 while it does not listen."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0

    def wait(self, path: str = "/readyz") -> None:
        """Wait until it leads, or until it lives; the test's own limit of time ends an endless wait."""
        while self.state(path) != 200:
            assert self.running.poll() is None, self.running.stderr and self.running.stderr.read().decode()
            time.sleep(0.05)

    def client(self, signer: Signer, server: PublicKey) -> AccessControlClient:
        """Give somebody's client of an access control service."""
        return AccessControlClient(self.url, signer=signer, server_key=server, policy=AddressPolicy(loopback=True))

    def kill(self) -> None:
        """End it with -9, wherever it is."""
        if self.running.poll() is None:
            self.running.send_signal(signal.SIGKILL)
            self.running.wait()
        if self.running.stderr is not None:
            self.running.stderr.close()


@contextmanager
def serving(
    what: str, home: Path, *, database: str | None = None, port: int | None = None, until: str = "/readyz"
) -> Iterator[Service]:
    """Run a service until the block ends; then it is killed if it still runs. A standby lives and is not ready."""
    service = Service(what, home, database=database, port=port)
    try:
        service.wait(until)
        yield service
    finally:
        service.kill()
