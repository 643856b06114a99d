"""What a domain's inner policy costs: activation and withdrawal by the number of active roles.

    python benchmarks/bench_policy.py [--largest 100000] [--rounds 30] [--output docs/reference/benchmarks]

Writes ``policy.md`` and ``policy.svg`` into the output folder. The alternative, in the same run on the same facts, is
to derive everything anew after a change, by Maia's own engine and by clingo. Times are medians of processor time.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import clingo

from maia.policy import PolicyEngine, parse_policy
from maia.testing import stock_world

RULES = """
detective(self)   <-  sworn(self)* , ?open('station')*
npTracker(plate)  <-  courtOrder(case, plate)* , detective(self)* , ?caseAssignment(self, case)*
npTracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
"""
SAME_RULES = """
detective(S)      :- sworn(S), open(station).
tracker(S, P)     :- order(C, P), detective(S), assigned(S, C).
"""
REFERRALS = """
treating(d, p)    <-  admitted(d, p)*
treating(e, p)    <-  treating(d, p)* , referral(d, e, p)*
"""
CHAIN = 1_000
ACCOUNTS = 400
NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
ANEW_LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One size: seconds of processor time."""

    roles: int
    activate: float
    single: float
    wide: float
    anew: float | None
    clingo: float


def timed(work: Callable[[], object]) -> float:
    """Run once and return the seconds of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def station(people: int) -> PolicyEngine:
    """Let so many detectives be sworn, each with an order and an assignment of its own; nobody is active yet."""
    engine = PolicyEngine(parse_policy(RULES))
    engine.observe("open('station')")
    for number in range(people):
        engine.appoint(f"sworn('d{number}')")
        engine.appoint(f"courtOrder('c{number}', 'P{number}')")
        engine.observe(f"caseAssignment('d{number}', 'c{number}')")
    return engine


def activate_all(engine: PolicyEngine, people: int) -> None:
    """Activate both roles of each detective."""
    for number in range(people):
        engine.activate(f"detective('d{number}')", principal=f"d{number}")
        engine.activate(f"npTracker('P{number}')", principal=f"d{number}")


def by_clingo(people: int) -> int:
    """Derive all roles anew, and return how many there are."""
    facts = [f"sworn({each}). order({each}, {each}). assigned({each}, {each})." for each in range(people)]
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join((SAME_RULES, "open(station).", *facts)))
    control.ground([("base", [])])
    return sum(1 for _ in control.symbolic_atoms.by_signature("tracker", 2))


def measure(roles: int, rounds: int, dice: random.Random) -> Row:
    """Measure one size; half the roles are detectives, half trackers."""
    people = roles // 2
    engine = station(people)
    whole = timed(lambda: activate_all(engine, people))
    if len(engine.roles()) != 2 * people:
        raise SystemExit("not every role was activated")
    single = []
    for number in dice.sample(range(people), min(rounds, people)):
        fact = f"caseAssignment('d{number}', 'c{number}')"
        fallen: list[int] = []
        single.append(timed(lambda fact=fact, fallen=fallen: fallen.append(len(engine.retract(fact).fallen))))  # type: ignore[misc]
        if fallen != [1]:
            raise SystemExit(f"{fallen} roles fell with one assignment")
        engine.observe(fact)
        engine.activate(f"npTracker('P{number}')", principal=f"d{number}")
    gone: list[int] = []
    wide = timed(lambda: gone.append(len(engine.retract("open('station')").fallen)))
    if gone != [2 * people]:
        raise SystemExit(f"{gone} roles fell with the station")
    anew = None
    if roles <= ANEW_LIMIT:
        anew = timed(lambda: activate_all(station(people), people))
    found: list[int] = []
    solver = timed(lambda: found.append(by_clingo(people)))
    if found != [people]:
        raise SystemExit(f"clingo derived {found} trackers of {people}")
    return Row(
        roles=roles,
        activate=whole / (2 * people),
        single=statistics.median(single),
        wide=wide,
        anew=anew,
        clingo=solver,
    )


def referral_chain() -> float:
    """Withdraw the admission under a chain of referrals and return the seconds it took for all to fall."""
    engine = PolicyEngine(parse_policy(REFERRALS))
    engine.appoint("admitted('d0', 'p')")
    engine.activate("treating('d0', 'p')", principal="d0")
    for number in range(1, CHAIN):
        engine.appoint(f"referral('d{number - 1}', 'd{number}', 'p')")
        engine.activate(f"treating('d{number}', 'p')", principal=f"d{number}")
    fallen: list[int] = []
    spent = timed(lambda: fallen.append(len(engine.retract("admitted('d0', 'p')").fallen)))
    if fallen != [CHAIN]:
        raise SystemExit(f"{fallen} of {CHAIN} referrals fell")
    return spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Accounts opened and closed: seconds of the clock for one of them, early and late, and what the owner holds."""

    accounts: int
    batch: int
    early: float
    late: float
    before: int
    after: int


def churn(accounts: int, batch: int) -> Churn:
    """Open and close accounts at a brokerage firm: enrolment, role, certificate, withdrawal, all durable."""
    with tempfile.TemporaryDirectory() as folder:
        world = stock_world(Path(folder), now=NOW, contract_ends=NOW + timedelta(days=30))
        firm = world.firms["firm-b"]
        before = world.exchange_certificates()
        spent = []
        for first in range(0, accounts, batch):
            names = [f"c{number}" for number in range(first, min(accounts, first + batch))]
            at = NOW + timedelta(milliseconds=10 * first)
            start = time.perf_counter()
            handed = firm.open_accounts(dict.fromkeys(names, ("shares",)), at=at)
            firm.close_accounts(names, at=at)
            spent.append((time.perf_counter() - start) / len(names))
            if not all(handed.values()):
                raise SystemExit("an account without a certificate")
        part = max(1, len(spent) // 4)
        return Churn(
            accounts=accounts,
            batch=batch,
            early=statistics.fmean(spent[:part]),
            late=statistics.fmean(spent[-part:]),
            before=before,
            after=world.exchange_certificates(),
        )


def slope(rows: Sequence[Row], value: Callable[[Row], float]) -> float:
    """Fit time to roles^b and return b: 1 is linear, 0 constant."""
    xs = [math.log(row.roles) for row in rows]
    ys = [math.log(value(row)) for row in rows]
    return statistics.linear_regression(xs, ys).slope


def text(rows: Sequence[Row], chain: float, churns: Sequence[Churn]) -> str:
    """Write the page."""
    lines = [
        "# Benchmark: policy",
        "",
        "Written by `benchmarks/bench_policy.py`; run it again to renew it.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}. Processor time; the",
        "ratios are of one run on the same facts.",
        "",
        "## Activation and revocation",
        "",
        "The detective's rules: half of the active roles are detectives, half trackers with an order, a detective and",
        "an assignment under them. *Activate* is one role, *one falls* the revocation of one assignment, *all fall*",
        "the revocation of what every role stands on. *Anew* derives everything from the facts instead of revoking:",
        "by Maia's engine, and by clingo.",
        "",
        "| active roles | activate, µs | one falls, µs | all fall, µs a role | anew / one | clingo anew / one |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.roles:,} | {row.activate * 1e6:.0f} | {row.single * 1e6:.0f} | {row.wide / row.roles * 1e6:.1f} | "
        f"{'' if row.anew is None else f'{row.anew / row.single:,.0f}×'} | {row.clingo / row.single:,.0f}× |"
        for row in rows
    ]
    lines += [
        "",
        f"Fitted to roles^b: activating one role b = {slope(rows, lambda row: row.activate):.2f},",
        f"one falling b = {slope(rows, lambda row: row.single):.2f},",
        f"all falling b = {slope(rows, lambda row: row.wide):.2f}.",
        "",
        f"A chain of {CHAIN:,} referrals falls in {chain * 1e3:.1f} ms when the first admission ends.",
        "",
        "![Time by active roles](policy.svg)",
        "",
        "## Accounts opened and closed",
        "",
        "At one brokerage firm, each account is opened (invitation, proof of the key, enrolment, role, certificate)",
        "and closed (revocation of everything) on SQLite, durable in the register before anything is handed out. A",
        "firm may do so for many customers in one transaction; customers keep their keys and certificates themselves.",
        "",
        "| accounts | in one transaction | a second, first quarter | a second, last quarter | owner's certificates |",
        "|---:|---:|---:|---:|---:|",
        *(
            f"| {each.accounts:,} | {each.batch} | {1 / each.early:.0f} | {1 / each.late:.0f} | "
            f"{each.before} → {each.after} |"
            for each in churns
        ),
        "",
        "Aim: 100 a second, with no growth in what the owner of the types, the exchange, has issued or holds.",
        "",
    ]
    return "\n".join(lines)


def plot(rows: Sequence[Row], target: Path) -> None:
    """Draw the curves."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "maia"
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6.4, 4))
    sizes = [row.roles for row in rows]
    axes.loglog(sizes, [row.activate * 1e6 for row in rows], marker="o", label="activate one")
    axes.loglog(sizes, [row.single * 1e6 for row in rows], marker="s", label="one falls")
    axes.loglog(sizes, [row.wide * 1e6 for row in rows], marker="^", label="all fall")
    axes.loglog(sizes, [row.clingo * 1e6 for row in rows], marker="x", linestyle="--", label="all anew, clingo")
    axes.set_xlabel("active roles")
    axes.set_ylabel("µs of processor time")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None, "Creator": None})
    lines = target.read_text("utf-8")
    start, end = lines.index(" <metadata>"), lines.index("</metadata>") + len("</metadata>\n")
    target.write_text(lines[:start] + lines[end:], "utf-8")


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--accounts", type=int, default=ACCOUNTS)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    chosen = parser.parse_args()
    dice = random.Random(6)
    rows = []
    size = 100
    while size <= chosen.largest:
        rows.append(measure(size, chosen.rounds, dice))
        print(f"{size:,} roles done", flush=True)
        size *= 10
    page = text(rows, referral_chain(), [churn(chosen.accounts, batch) for batch in (1, 10, 100)])
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "policy.md").write_text(page, "utf-8")
    plot(rows, chosen.output / "policy.svg")
    print(page)


if __name__ == "__main__":
    main()
