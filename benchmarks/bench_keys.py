"""What key groups cost: wrapped keys, octets and time a change, the cure for collusion, and what the rules save.

    python benchmarks/bench_keys.py [--largest 65536] [--rounds 12] [--output docs/reference/benchmarks]
                                    [--images docs/images]

Writes ``keys.md`` (tables) into the output folder, and the plots ``keys-changes.svg``, ``keys-refreshes.svg`` and
``keys-groups.svg`` into the folder of images. Counts and octets are means over random changes; times are medians of
processor time. The tree without the cure runs in the same process on the same changes, and the naive policy on the same
churn.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from maia.encryption import (
    ChangeKind,
    GroupChange,
    KeyGroupId,
    KeyTree,
    RekeyMessage,
    TreeMember,
    TreeNode,
    parse_rekey,
    plan_refreshes,
    verify_rekey,
)
from maia.encryption.tree_secrets import TreeSecrets
from maia.events import TypeId
from maia.kernel import key_groups_needed
from maia.principals import KeySigner

MANAGER = KeySigner(bytes([1]) * 32)
GROUP = KeyGroupId(TypeId(bytes(32)), b"3265")
BATCH = 16
HOUR = 3_600_000
DAY = 24 * HOUR
T = TypeVar("T")
STUDENT = 2.045  # 95 %, 29 degrees of freedom
RUNS = 30
ATTRIBUTES = (1, 2, 5, 10, 20)


class PlainSecrets(TreeSecrets):
    """Secrets as first published: only the nearest neighbour of an evicted member changes. Open to collusion."""

    __slots__ = ()

    def _exposed(self, evicted: Iterable[int], height: int) -> frozenset[TreeNode]:
        nearest = set()
        for slot in evicted:
            beside = (TreeNode(level, slot >> level).sibling for level in range(height))
            nearest |= {next((node for node in beside if self.get(node) is not None), TreeNode(0, slot))}
        return frozenset(nearest)


class PlainTree(KeyTree):
    """The tree without the cure."""

    __slots__ = ()

    def __init__(self, group: KeyGroupId) -> None:
        """Start without members and without a key."""
        super().__init__(group)
        self._secrets = PlainSecrets(self._context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one kind of change costs."""

    keys: float
    octets: float
    manager: float
    member: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One size."""

    size: int
    state: int
    build: float
    join: Cost
    leave: Cost
    plain: Cost
    batch: Cost | None


class Bench:
    """A group with one member who listens."""

    def __init__(self, size: int, kind: type[KeyTree]) -> None:
        self.random = random.Random(size)
        self.tree = kind(GROUP)
        self.names = [b"m%d" % number for number in range(size)]
        self.next = size
        self.witness = TreeMember(GROUP, b"m0", self.key(b"m0"))
        self.build, message = timed(lambda: self.rekey(self.names, ()))
        self.follow(message)

    def key(self, name: bytes) -> bytes:
        """Give the key that a member shares with the manager."""
        return name.ljust(32, b".")

    def rekey(self, joins: Sequence[bytes], leaves: Sequence[bytes]) -> RekeyMessage:
        """Begin an epoch."""
        new = {name: self.key(name) for name in joins}
        return self.tree.rekey(MANAGER, start=self.tree.number + 1, joins=new, leaves=leaves)

    def follow(self, message: RekeyMessage) -> float:
        """Let the witness read, verify and apply a message; return the seconds."""
        octets = message.to_bytes()
        spent, epoch = timed(lambda: self.witness.apply(verify_rekey(parse_rekey(octets), MANAGER.public_key)))
        assert epoch is not None
        assert epoch.key == self.tree.key
        return spent

    def change(self, joins: int, leaves: int) -> Cost:
        """Change a number of random members at once."""
        gone = self.random.sample(self.names[1:], leaves)
        new = [b"m%d" % (self.next + number) for number in range(joins)]
        self.next += joins
        spent, message = timed(lambda: self.rekey(new, gone))
        left = set(gone)
        self.names = [name for name in self.names if name not in left] + new
        return Cost(
            keys=len(message.rekey.keys), octets=len(message.to_bytes()), manager=spent, member=self.follow(message)
        )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Run once; return the processor seconds and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def mean(costs: Sequence[Cost]) -> Cost:
    """Mean counts and median times."""
    return Cost(
        keys=statistics.fmean(cost.keys for cost in costs),
        octets=statistics.fmean(cost.octets for cost in costs),
        manager=statistics.median(cost.manager for cost in costs),
        member=statistics.median(cost.member for cost in costs),
    )


def measure(size: int, rounds: int) -> Row:
    """Measure one size: a leave and a join in turn, so that the group is full before every leave."""
    cured, plain = Bench(size, KeyTree), Bench(size, PlainTree)
    leaves, joins, without = [], [], []
    state = cured.witness.keys_held
    for _ in range(rounds):
        leaves.append(cured.change(0, 1))
        joins.append(cured.change(1, 0))
        without.append(plain.change(0, 1))
        plain.change(1, 0)
    batch = mean([cured.change(BATCH, BATCH) for _ in range(max(rounds // 3, 2))]) if size > 2 * BATCH else None
    return Row(
        size=size,
        state=state,
        build=cured.build,
        join=mean(joins),
        leave=mean(leaves),
        plain=mean(without),
        batch=batch,
    )


def fit(rows: Sequence[Row], value: Callable[[Row], float]) -> tuple[float, float, float]:
    """Fit a + b·log2 n; return a, b and R²."""
    logs, values = [math.log2(row.size) for row in rows], [value(row) for row in rows]
    slope, intercept = statistics.linear_regression(logs, values)
    middle = statistics.fmean(values)
    rest = sum((y - intercept - slope * x) ** 2 for x, y in zip(logs, values, strict=True))
    return intercept, slope, 1 - rest / (sum((y - middle) ** 2 for y in values) or 1)


def churn(seed: int, *, brokers: int, days: int) -> list[GroupChange]:
    """Brokers that come and go: a day inside, two hours out, on credentials of a week; one in 200 stays is revoked."""
    rng = random.Random(seed)
    changes: list[GroupChange] = []
    for number in range(brokers):
        name, at = b"b%d" % number, int(rng.uniform(0, DAY))
        offset = int(rng.uniform(0, 7 * DAY))
        while at < days * DAY:
            begin = at - (at + offset) % (7 * DAY)
            end = at + int(rng.expovariate(1 / DAY)) + 1
            while True:
                changes.append(
                    GroupChange(
                        at=at, kind=ChangeKind.JOIN, member=name, valid_from=begin, valid_to=begin + 7 * DAY + HOUR
                    )
                )
                begin += 7 * DAY
                if begin >= end:
                    break
                at = begin  # renewed an hour before it ends
            kind = ChangeKind.REVOKE if rng.random() < 1 / 200 else ChangeKind.LEAVE
            changes.append(GroupChange(at=end, kind=kind, member=name))
            at = end + int(rng.expovariate(1 / (2 * HOUR))) + 1
            if kind is ChangeKind.REVOKE:
                offset = -at  # back on a new credential
    return changes


def naive(changes: Iterable[GroupChange], *, period: int, until: int) -> int:
    """Count refreshes at every join and leave and whenever the period is over. Renewals are not counted."""
    inside: set[bytes] = set()
    last, count = 0, 0
    for change in sorted(changes, key=lambda change: change.at):
        if change.at > until:
            break
        joins = change.kind is ChangeKind.JOIN
        if joins == (change.member in inside):
            continue
        inside ^= {change.member}
        count += (change.at - last - 1) // period + 1 if last else 1
        last = change.at
    return count + (until - last) // period


def saved(*, brokers: int = 50, days: int = 30) -> list[tuple[str, float, float, float, float]]:
    """Compare the rules with the naive policy over runs of churn: means, saving and its 95 % half-width."""
    found = []
    for label, period in (("6 hours", 6 * HOUR), ("a day", DAY), ("a week", 7 * DAY)):
        pairs = []
        for seed in range(RUNS):
            changes = churn(seed, brokers=brokers, days=days)
            rules = len(plan_refreshes(changes, period=period, until=days * DAY))
            pairs.append((naive(changes, period=period, until=days * DAY), rules))
        savings = [1 - rules / plainly for plainly, rules in pairs]
        half = STUDENT * statistics.stdev(savings) / math.sqrt(RUNS)
        plainly, rules = (statistics.fmean(column) for column in zip(*pairs, strict=True))
        found.append((label, plainly, rules, statistics.fmean(savings), half))
    return found


def page(rows: Sequence[Row], savings: Sequence[tuple[str, float, float, float, float]], images: str) -> str:
    """Write the tables; ``images`` leads from the page to the plots."""
    lines = [
        "# Benchmark: keys",
        "",
        "Written by `benchmarks/bench_keys.py`; run it again to renew it.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}.",
        "The machine was shared: counts and octets are exact, times are not.",
        "",
        "## One change",
        "",
        "Every change is one signed message. *Keys* are the wrapped keys in it, *octets* its size, *made* and",
        "*read* milliseconds of processor time to make it and to verify and apply it. *Plain* are the keys of",
        "a leave without the cure for collusion (threat T40): there, an evicted member and a later one together find",
        "the keys in between.",
        "",
        "| members | stored | join: keys | octets | made | read | leave: keys | octets | made | read | plain |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.size:,} | {row.state} | {row.join.keys:.1f} | {row.join.octets:,.0f} | {1000 * row.join.manager:.2f} "
        f"| {1000 * row.join.member:.2f} | {row.leave.keys:.1f} | {row.leave.octets:,.0f} "
        f"| {1000 * row.leave.manager:.2f} | {1000 * row.leave.member:.2f} | {row.plain.keys:.1f} |"
        for row in rows
    ]
    lines += ["", "Fit to a + b·log2 n:", "", "| what | a | b | R² |", "|---|---:|---:|---:|"]
    fits: dict[str, Callable[[Row], float]] = {
        "keys stored by a member": lambda row: row.state,
        "wrapped keys, join": lambda row: row.join.keys,
        "wrapped keys, leave": lambda row: row.leave.keys,
        "wrapped keys, leave, plain": lambda row: row.plain.keys,
        "octets, join": lambda row: row.join.octets,
        "octets, leave": lambda row: row.leave.octets,
    }
    for name, value in fits.items():
        intercept, slope, quality = fit(rows, value)
        lines.append(f"| {name} | {intercept:.2f} | {slope:.2f} | {quality:.4f} |")
    worst = max(row.plain.keys / (2 * math.log2(row.size)) for row in rows)
    largest = rows[-1]
    cure, twice = largest.leave.keys - largest.plain.keys, 2 * math.log2(largest.size)
    quality = fit(rows, lambda row: row.leave.keys)[2]
    lines += [
        "",
        "Aim: a leave costs at most 2·log2 n wrapped keys plus the cost of the cure, with R² of at least 0.98.",
        f"Measured: without the cure at most {worst:.2f} times 2·log2 n. At {largest.size:,} members a leave wraps",
        f"{largest.leave.keys:.1f} keys, {cure:.1f} of them for the cure, where 2·log2 n is {twice:.0f};",
        f"R² is {quality:.4f}.",
        "",
        f"A manager keeps the whole tree. It made one of {largest.size:,} members in {largest.build:.1f} seconds.",
        "",
        f"![Wrapped keys by members]({images}/keys-changes.svg)",
        "",
        f"## A batch: {BATCH} leaves and {BATCH} joins in one message",
        "",
        "| members | keys | octets | manager, ms | member, ms | keys, one by one |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.size:,} | {row.batch.keys:.1f} | {row.batch.octets:,.0f} | {1000 * row.batch.manager:.2f} "
        f"| {1000 * row.batch.member:.2f} | {BATCH * (row.join.keys + row.leave.keys):.0f} |"
        for row in rows
        if row.batch is not None
    ]
    lines += [
        "",
        "## Refreshes saved by the rules",
        "",
        f"50 brokers over 30 days, {RUNS} runs: a day inside and two hours out on average, credentials of a week that",
        "are renewed, one stay in 200 ends by revocation. *Naive* refreshes at every join, every leave, every period.",
        "",
        "| period | naive | rules | saved | 95 % confidence |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {label} | {plainly:,.0f} | {rules:,.0f} | {100 * share:.1f} % | ± {100 * half:.2f} % |"
        for label, plainly, rules, share, half in savings
    ]
    lines += ["", f"![Refreshes by period]({images}/keys-refreshes.svg)"]
    lines += [
        "",
        "## Key groups for n attributes",
        "",
        "Attribute keys against one type for each set of attributes.",
        "",
        "| attributes | attribute keys | emulated |",
        "|---:|---:|---:|",
    ]
    lines += [
        f"| {n} | {key_groups_needed(n, emulated=False)} | {key_groups_needed(n, emulated=True):,} |"
        for n in ATTRIBUTES
    ]
    lines += ["", f"![Key groups by attributes]({images}/keys-groups.svg)"]
    return "\n".join(lines) + "\n"


@contextmanager
def drawing(path: Path, **labels: str) -> Iterator[Any]:
    """Give axes, and write them as they are then; the same data give the same octets."""
    import matplotlib as mpl  # noqa: PLC0415 - only the plots need it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "maia"
    figure, axes = plt.subplots(figsize=(7, 4.2))
    yield axes
    axes.set(**labels)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def plot(rows: Sequence[Row], savings: Sequence[tuple[str, float, float, float, float]], folder: Path) -> None:
    """Draw wrapped keys over the size of the group, refreshes by period, and key groups by attributes."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [row.size for row in rows]
    with drawing(folder / "keys-changes.svg", xlabel="members", ylabel="wrapped keys in the message") as axes:
        axes.plot(sizes, [row.leave.keys for row in rows], marker="o", label="leave")
        axes.plot(sizes, [row.plain.keys for row in rows], marker="o", label="leave, without the cure")
        axes.plot(sizes, [row.join.keys for row in rows], marker="s", label="join")
        axes.plot(sizes, [row.state for row in rows], "--", label="keys a member stores")
        axes.plot(sizes, [2 * math.log2(size) for size in sizes], ":", color="black", label="2·log2 n")
        axes.set_xscale("log", base=2)
    places = range(len(savings))
    with drawing(folder / "keys-refreshes.svg", xlabel="refresh period", ylabel="refreshes in 30 days") as axes:
        axes.bar([place - 0.2 for place in places], [item[1] for item in savings], 0.4, label="naive")
        axes.bar([place + 0.2 for place in places], [item[2] for item in savings], 0.4, label="rules 16.04 and 16.05")
        axes.set_xticks(list(places), [item[0] for item in savings])
        axes.set_yscale("log")
    with drawing(folder / "keys-groups.svg", xlabel="attributes", ylabel="key groups") as axes:
        for emulated, label in ((True, "one type for each set of attributes"), (False, "attribute keys")):
            counts = [key_groups_needed(n, emulated=emulated) for n in ATTRIBUTES]
            axes.plot(ATTRIBUTES, counts, marker="o", label=label)
        axes.set_yscale("log", base=2)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Cost of key groups.")
    parser.add_argument("--largest", type=int, default=65_536, help="largest number of members, a power of two")
    parser.add_argument("--rounds", type=int, default=12, help="changes measured at each size")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args()
    rows = []
    for power in range(1, arguments.largest.bit_length()):
        rows.append(measure(1 << power, arguments.rounds))
        print(rows[-1], flush=True)
    savings = saved()
    images = Path(os.path.relpath(arguments.images, arguments.output)).as_posix()
    written = page(rows, savings, images)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "keys.md").write_text(written, encoding="utf-8")
    plot(rows, savings, arguments.images)
    print(written)


if __name__ == "__main__":
    main()
