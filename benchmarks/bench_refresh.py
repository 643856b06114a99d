"""What changing keys costs the pipeline: the same rows, with all keys of the type refreshed once a second and without.

    python benchmarks/bench_refresh.py [--attributes 3] [--seconds 5] [--runs 5] [--output FOLDER]

A home publishes and delivers through the kernel, as fast as it can: it plans, enforces, seals, signs, commits, plans
again, verifies, opens, matches and screens. A key manager, in a process of its own, (a) does nothing, (b) begins an
epoch of every key group of another type each second, or (c) of the type that is published. Between (b) and (c) the
machine has the same to do, so their ratio is what the pipeline itself pays; (a) shows what the manager takes from a
small machine. Windows take turns and medians count; the time of the processor is counted too, which other work on the
machine disturbs less. The last part counts signatures and what they take of the whole.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pyarrow as pa

from maia.authority import Action, type_right
from maia.domain import HomeKeys, SealingKeys, find_type, join_key_groups, open_home_groups, open_key_manager, own_lanes
from maia.encryption import parse_parcel, verify_parcel
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, deliver_parcels, publish_batches
from maia.key_manager import KeyManager, KeySettings
from maia.log import LogDirectory
from maia.principals import Authorisation, KeySigner, Kind, Naming, issue
from maia.testing import deliver_plan, follow, publish_plan

TYPE, OTHER = "bench.Event", "bench.Other"
LEAD = timedelta(seconds=1)
PARCEL = 16_384
PARCELS = 4
WIDTH = 30
AIM = 0.97


def now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Window:
    """What one window did."""

    events: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    epochs: set[int] = field(default_factory=set)

    @property
    def rate(self) -> float:
        """Events a second, published and delivered."""
        return self.events / self.seconds

    @property
    def work_rate(self) -> float:
        """Events for each second of the processor."""
        return self.events / self.processor


@dataclass(frozen=True, slots=True)
class World:
    """The owner of two types with its manager, a home that works with the first, and one that works with the other."""

    owner: Home
    home: Home
    other: Home


def make_world(root: Path, attributes: int) -> World:
    """Make three homes over one log; each broker joins the key groups of its type."""
    domain = KeySigner.generate()
    homes = []
    for name in ("owner", "home", "other"):
        home = Home.create(root / name, HomeConfig(name=name, log="../log", history=0))
        home.new_key("client")
        if name == "owner":
            home.add_key("domain", domain)
        homes.append(home)
    world = World(*homes)
    settings = KeySettings(lead=LEAD)
    manager, _ = open_key_manager(world.owner, settings=settings)
    for home, name in ((world.home, TYPE), (world.other, OTHER)):
        _give(domain, (world.owner, home), home, name, attributes)
        type_name = find_type(world.owner, name)
        open_home_groups(world.owner, manager, type_name, at=now())
        ask = partial(_ask, manager)
        join_key_groups(home, type_name, ask, manager=manager.public_key, at=now())
    manager.close()
    time.sleep(LEAD.total_seconds() + 0.5)
    return world


def _ask(manager: KeyManager, request: bytes, evidence: Sequence[bytes]) -> bytes:
    return manager.join(request, evidence, at=now())


def _give(domain: KeySigner, homes: Sequence[Home], home: Home, name: str, attributes: int) -> None:
    """Let a domain own one more type, which a home's broker and client may use."""
    event_type = EventType(
        name=TypeName(domain.public_key, name, parse_version("1")),
        attributes=tuple(attribute(f"a{at}", str(at + 1), "string") for at in range(attributes)),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    right = type_right(domain.public_key, name, actions=[Action.PUBLISH, Action.SUBSCRIBE]).to_sexp()
    bodies: list[Authorisation | Naming] = [
        Authorisation(issuer=domain.public_key, subject=subject, delegate=False, tag=right)
        for subject in (home.broker.public_key, home.key("client"))
    ]
    bodies.append(Naming(issuer=domain.public_key, name=BROKERS, subject=home.broker.public_key))
    for one in homes:
        one.types.put(sign_event_type(event_type, domain).raw, at=now())
        for body in bodies:
            one.certificates.add(issue(body, domain))


@dataclass(slots=True)
class Arm:
    """One way to run, and its windows."""

    name: str
    windows: list[Window] = field(default_factory=list)
    rounds: int = 0

    @property
    def rate(self) -> float:
        """The median window's events a second."""
        return statistics.median(window.rate for window in self.windows)

    @property
    def work_rate(self) -> float:
        """The median window's events for each second of the processor."""
        return statistics.median(window.work_rate for window in self.windows)


def rows_of(attributes: int) -> pa.RecordBatch:
    """Make the rows of one publication."""
    columns = [
        pa.array([f"v{at}-{row}".ljust(WIDTH, "x") for row in range(PARCEL * PARCELS)]) for at in range(attributes)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f"a{at}" for at in range(attributes)])


def pass_through(home: Home, rows: pa.RecordBatch, window: Window) -> None:
    """Publish the rows and deliver them, without Spark."""
    log, name = LogDirectory(home.log_path), secrets.token_hex(8)
    plan = publish_plan(home, TYPE, as_="client", version=None, publication=name, at=now(), max_events=PARCEL)
    writer = log.writer(name, plan.sealing.type_id, 0, home.broker.public_key.key_id, at=now())
    for sealed in publish_batches(plan, 0, iter([rows]), home.broker, SealingKeys(home), home.next_stamp):
        assert sealed.parcel is not None
        window.epochs.add(sealed.parcel.header.epoch)
        writer.add(sealed.parcel)
    file = writer.close()
    assert file is not None
    evidence = plan.sealing.evidence.hex()
    commit = own_lanes(home, log).commit(name, plan.sealing.type_id.hex(), (file,), evidence=evidence, at=now())
    reading = deliver_plan(home, TYPE, as_="client", commits=[commit], at=now(), history=True)
    for outcome in deliver_parcels(reading, log.parcels(commit.lane, file), HomeKeys(str(home.path))(), clock=now):
        if outcome.refused is not None:
            raise SystemExit(f"lost {outcome.events} events: {outcome.refused}")
        window.events += outcome.delivered


def keep_refreshing(path: str, mode: Synchronized[int], done: Synchronized[int]) -> None:
    """Begin an epoch of every group of one type each second: of none, the other, or the one that is published."""
    home = Home.open(path)
    manager, _ = open_key_manager(home, settings=KeySettings(lead=LEAD))
    names = {1: find_type(home, OTHER).type_id, 2: find_type(home, TYPE).type_id}
    groups = [status.group for status in manager.status() if status.members]
    due = time.monotonic()
    while mode.value >= 0:
        chosen = [group for group in groups if group.type_id == names.get(mode.value)]
        for group in chosen:
            manager.refresh(group, at=now())
        done.value += bool(chosen)
        due = max(due + 1, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    manager.close()


def run_window(home: Home, rows: pa.RecordBatch, seconds: float) -> Window:
    """Pass rows through for a while."""
    window = Window()
    start, work = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        pass_through(home, rows, window)
    window.seconds, window.processor = time.perf_counter() - start, time.process_time() - work
    return window


def measure(world: World, rows: pa.RecordBatch, seconds: float, runs: int) -> list[Arm]:
    """Let the three arms take turns."""
    context = multiprocessing.get_context("spawn")
    mode, done = context.Value("i", 0), context.Value("i", 0)
    child = context.Process(target=keep_refreshing, args=(str(world.owner.path), mode, done))
    child.start()
    arms = [Arm("no refresh"), Arm("refresh of another type's keys"), Arm("refresh of this type's keys")]
    try:
        for _ in range(runs):
            for number, arm in enumerate(arms):
                mode.value = number
                time.sleep(LEAD.total_seconds() + 1)  # until epochs that were announced before are in force
                before = done.value
                arm.windows.append(run_window(world.home, rows, seconds))
                arm.rounds += done.value - before
    finally:
        mode.value = -1
        child.join(30)
    return arms


def signing_cost(home: Home, rows: pa.RecordBatch) -> tuple[float, float, float]:
    """Time one signature, one verification, and the sealing of one parcel, in milliseconds; the best of many."""
    plan = publish_plan(home, TYPE, as_="client", version=None, publication="signing", at=now(), max_events=PARCEL)
    one = rows.slice(0, PARCEL)
    parcels, sealing = [], []
    for _ in range(10):
        start = time.perf_counter()
        parcels += publish_batches(plan, 0, iter([one]), home.broker, SealingKeys(home), home.next_stamp)
        sealing.append(time.perf_counter() - start)
    data = parcels[0].parcel.to_bytes()  # type: ignore[union-attr]
    signer, body = KeySigner.generate(), bytes(600)

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(200):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return 1000 * min(times)

    parsed = parse_parcel(data)
    return best(lambda: signer.sign(Kind.PARCEL, body)), best(lambda: verify_parcel(parsed)), 1000 * min(sealing)


def following_cost(world: World) -> tuple[float, float]:
    """Time what it takes a home to take up a new epoch of all groups, and to find nothing new: in milliseconds."""
    manager, _ = open_key_manager(world.owner, settings=KeySettings(lead=LEAD))
    type_id = find_type(world.owner, TYPE).type_id
    groups = [status.group for status in manager.status() if status.members and status.group.type_id == type_id]
    news: list[float] = []
    idle: list[float] = []
    for _ in range(20):
        for group in groups:
            manager.refresh(group, at=now())
        for times in (news, idle):
            start = time.process_time()
            follow(world.home, at=now())
            times.append(1000 * (time.process_time() - start))
    manager.close()
    return statistics.median(news), statistics.median(idle)


def report(
    arms: list[Arm], costs: tuple[float, float, float], following: tuple[float, float], attributes: int, output: Path
) -> str:
    """Write the page and return it."""
    idle, other, own = arms
    sign, verify, seal = costs
    intro = (
        f"{attributes} attributes of {WIDTH} characters, parcels of {PARCEL:,} events, published and delivered through "
        "the kernel, while a key manager in a process of its own begins a new epoch of every key group of one type "
        f"each second. {len(idle.windows)} windows each, in turns; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}. Regenerate with `make bench`."
    )
    lines = ["# Changing keys", "", intro, ""]
    lines += ["| windows | events | events/s | lowest | highest | events/s of processor | refreshes/s | epochs used |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for arm in arms:
        lowest, highest = (pick(window.rate for window in arm.windows) for pick in (min, max))
        total, seconds = (sum(getattr(window, name) for window in arm.windows) for name in ("events", "seconds"))
        epochs = sum(len(window.epochs) for window in arm.windows)
        lines.append(
            f"| {arm.name} | {total:,} | {arm.rate:,.0f} | {lowest:,.0f} | {highest:,.0f} | {arm.work_rate:,.0f} | "
            f"{arm.rounds / seconds:.2f} | {epochs} |"
        )
    verdict = (
        f"With new keys each second the pipeline keeps **{own.work_rate / other.work_rate:.3f}** of its throughput by "
        f"the time of the processor and **{own.rate / other.rate:.3f}** by the clock (aim: at least {AIM}), against "
        f"the same manager busy with another type; {own.rate / idle.rate:.3f} by the clock against one that sleeps. "
        "No event was refused or lost."
    )
    alone = (
        f"By itself, taking up a new epoch of all {attributes} attribute keys (reading, verifying, applying, keeping) "
        f"takes {following[0]:.1f} ms of the processor, and finding nothing new {following[1]:.1f} ms: once a second, "
        f"{(following[0] - following[1]) / 1000:.1%} of one core."
    )
    signing = (
        "One signature a parcel, made once and verified once by each broker that reads it, separates writing from "
        f"reading. Signing takes {sign:.3f} ms; verifying takes {verify:.3f} ms, digests of all blocks included; "
        f"enforcing and sealing a parcel takes {seal:.1f} ms. That is one signature for {PARCEL:,} events, and "
        f"{sign / seal:.2%} of publishing them."
    )
    lines += ["", verdict, "", alone, "", "## Signing", "", signing, ""]
    text = "\n".join(lines)
    (output / "refresh.md").write_text(text, encoding="utf-8")
    return text


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--attributes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world, rows = make_world(Path(folder), asked.attributes), rows_of(asked.attributes)
        pass_through(world.home, rows, Window())  # warms up
        arms = measure(world, rows, asked.seconds, asked.runs)
        costs = signing_cost(world.home, rows)
        print(report(arms, costs, following_cost(world), asked.attributes, asked.output))


if __name__ == "__main__":
    main()
