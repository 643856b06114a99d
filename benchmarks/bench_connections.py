"""What thousands of slow, silent and greedy connections cost the other clients of a service.

    python benchmarks/bench_connections.py [--connections 10000] [--asks 300] [--output docs/reference/benchmarks]

Writes ``connections.md`` into the output folder. A key manager runs as a process of its own. One client with a session
asks it for its status, and another one for its health, over and over: first alone, then beside each kind of crowd, all
of whose connections are open and go on saying a little. Everything is on this machine, and the crowd's own work is on
the same cores, so what is told is more than what the service itself is slowed down by.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from maia.clients import AddressPolicy, KeyManagerClient
from maia.testing import CROWDS, crowd, make_room, managed_type, served

AIM = 2.0
QUIET = "alone"


@dataclass(frozen=True, slots=True)
class Answers:
    """How long answers took, in milliseconds: of a session that runs, and of a health check."""

    session: list[float]
    health: list[float]


def quantile(values: Sequence[float], share: float) -> float:
    """Take a value of the ordered list."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def timed(ask: Callable[[], object]) -> float:
    """Give how long an answer takes, in milliseconds."""
    begun = time.perf_counter()
    ask()
    return (time.perf_counter() - begun) * 1e3


def measure(client: KeyManagerClient, port: int, asks: int, drip: Callable[[], None] = lambda: None) -> Answers:
    """Ask in turn; between some of the questions the crowd says a little more."""
    found = Answers([], [])

    def health() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            answer.read()

    for number in range(asks):
        if number % 50 == 0:
            drip()
        found.session.append(timed(client.status))
        found.health.append(timed(health))
    return found


def run(connections: int, asks: int, root: Path) -> dict[str, Answers]:
    """Measure alone, before and after, and beside each kind of crowd."""
    make_room(connections)
    clinic = managed_type(root / "clinic")
    found: dict[str, Answers] = {}
    with served("key-manager", clinic.path) as port:
        url, policy = f"http://127.0.0.1:{port}", AddressPolicy(loopback=True)
        with KeyManagerClient(url, signer=clinic.owner, server_key=clinic.owner.public_key, policy=policy) as client:
            measure(client, port, 50)
            found[QUIET] = measure(client, port, asks)
            for kind, text in CROWDS.items():
                with crowd(port, text, connections) as drip:
                    found[kind] = measure(client, port, asks, drip)
                print(f"{kind}: p99 {quantile(found[kind].session, 0.99):.1f} ms", flush=True)
            found[f"{QUIET}, afterwards"] = measure(client, port, asks)
    return found


def page(connections: int, asks: int, found: dict[str, Answers], load: float) -> str:
    """Write the report."""
    quiet = found[QUIET]
    base = quantile(quiet.session, 0.99), quantile(quiet.health, 0.99)
    crowded = [kind for kind in found if kind in CROWDS]
    worst = max(quantile(found[kind].session, 0.99) / base[0] for kind in crowded)
    verdict = "kept" if worst <= AIM else "missed"
    busy = load > 0.3 * (os.cpu_count() or 1)
    rows = "\n".join(
        f"| {kind} | {quantile(some.session, 0.5):.1f} | {quantile(some.session, 0.99):.1f} "
        f"| {quantile(some.session, 0.99) / base[0]:.2f} | {quantile(some.health, 0.5):.1f} "
        f"| {quantile(some.health, 0.99):.1f} | {quantile(some.health, 0.99) / base[1]:.2f} |"
        for kind, some in found.items()
    )
    told = (
        "**The machine was busy with other work during this run**, so the figures are no more than a sign of the order."
        if busy
        else "Nothing else ran on the machine."
    )
    return f"""# Benchmark: thousands of connections

Written by `benchmarks/bench_connections.py`; run it again to renew it.

{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}; load {load:.1f} when it began. {told}

{connections:,} connections of each kind on loopback to one key manager, {asks} answers each of a session that runs and
of a health check beside them. The crowd is driven by the same machine.

**p99 of a session beside the worst crowd: {worst:.2f} x of what it is alone**
(aim: at most {AIM:.0f}, {verdict}).

| beside | session p50, ms | p99, ms | of alone | health p50, ms | p99, ms | of alone |
|---|---:|---:|---:|---:|---:|---:|
{rows}
"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--asks", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = run(asked.connections, asked.asks, Path(folder))
    written = page(asked.connections, asked.asks, found, load)
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "connections.md").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
