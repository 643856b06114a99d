"""The stock ticker through Spark: who gets which flow, accounts that come and go, and a contract that ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.demo.views import Cell, SceneView, refused
from maia.errors import MaiaError, PlanOverError
from maia.spark import spark_errors, start_spark
from maia.testing import CONTRACTS, FLOWS, StockWorld, stock_world

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SLICE = 30
"""Seconds for which the firms pay in advance, each time."""
ACCOUNTS = 100
INVESTORS = (
    ("ann", "firm-a", ("shares", "derivatives")),
    ("bob", "firm-b", ("shares", "derivatives")),
    ("cem", "firm-c", ("commodities",)),
)
"""Each investor, the firm, and the flows for which the firm opened an account; firm A sells what it did not buy."""
_TRADES = 50
Say = Callable[[str], None]


@dataclass(slots=True)
class StockFacts:
    """What happened, for people and for machines.

    Attributes:
        contracts: What each firm bought.
        before: For each investor and flow, how many trades it could read while the contract ran, or why not.
        after: The same after its end.
        live: How many trades Bob's live stream brought while the contract ran, and after its end.
        rows: A row that each investor saw.
        exchange: How many certificates the exchange had before and after the accounts.
        accounts: How many came and went, and the seconds it took.
    """

    contracts: dict[str, tuple[str, ...]]
    before: dict[str, dict[str, int | str]] = field(default_factory=dict)
    after: dict[str, dict[str, int | str]] = field(default_factory=dict)
    live: tuple[int, int] = (0, 0)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    exchange: tuple[int, int] = (0, 0)
    accounts: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "contracts": {name: list(flows) for name, flows in self.contracts.items()},
            "trades_published_per_flow": _TRADES,
            "received": self.before,
            "received_after_contract": self.after,
            "live_stream": {"before": self.live[0], "after": self.live[1]},
            "accounts_opened_and_closed": self.accounts,
            "accounts_seconds": round(self.seconds, 2),
            "exchange_certificates": {"before": self.exchange[0], "after": self.exchange[1]},
        }

    def views(self) -> list[SceneView]:
        """Show who bought what, who reads which flow until when, and what customers see of a trade."""
        bought = tuple((firm, ", ".join(flows)) for firm, flows in self.contracts.items())
        same = "the same" if self.exchange[0] == self.exchange[1] else "others"
        live: tuple[tuple[Cell, ...], ...] = (
            ("while the contract runs", self.live[0]),
            ("after its end", self.live[1]),
        )
        churn = f"{self.accounts} accounts come and go, its certificates are {same}"
        shown = ("stock", "price", "seller", "buyer")
        trades = tuple(
            (title.partition(",")[0], *(row[name] for name in shown))
            for title, row in self.rows.items()
            if title.endswith(", shares")
        )
        return [
            SceneView(title="the exchange", columns=("firm", "bought in advance"), rows=bought, remark=churn),
            SceneView(title="Bob's live stream of derivatives", columns=("", "trades"), rows=live),
            SceneView(title="trades read", columns=("investor", *FLOWS), rows=_table(self.before), wide=True),
            SceneView(
                title="after the contracts' end", columns=("investor", *FLOWS),
                rows=_table(self.after, codes=False), wide=True,
            ),
            SceneView(title="what is in a trade of shares", columns=("investor", *shown), rows=trades, wide=True),
        ]  # fmt: skip


def _table(counts: dict[str, dict[str, int | str]], *, codes: bool = True) -> tuple[tuple[Cell, ...], ...]:
    """Give a row an investor; of a contract that is over the first reason found is told, which may be any."""
    firms = {who: firm for who, firm, _ in INVESTORS}

    def cell(found: int | str) -> Cell:
        return found if isinstance(found, int) or not found else refused(found if codes else "")

    return tuple(
        (f"{who} of {firms[who]}", *(cell(flows.get(flow, "")) for flow in FLOWS)) for who, flows in counts.items()
    )


def play_stock(folder: Path, *, say: Say) -> StockFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; homes and the shared log go there.
        say: Tells the person at the terminal what is going on.
    """
    facts = StockFacts(dict(CONTRACTS))
    say("starting Spark")
    start_spark(octets=0)
    world = stock_world(folder, now=_now().replace(microsecond=0), contract_ends=_slice())
    for who, firm, flows in INVESTORS:
        world.firms[firm].open_account(who, flows, at=_now())
    over, unpaid = threading.Event(), threading.Event()
    beats = threading.Thread(target=_beat, args=(world, over, unpaid))
    beats.start()
    try:
        _tell(world, folder, facts, unpaid, say)
    finally:
        over.set()
        beats.join()
    return facts


def _beat(world: StockWorld, over: threading.Event, unpaid: threading.Event) -> None:
    """Let the firms sign their lists in time, and pay for a further slice every few seconds until they stop paying."""
    paid = time.monotonic()
    while not over.wait(0.5):
        for firm in world.firms.values():
            firm.service.beat(at=_now())
        if not unpaid.is_set() and time.monotonic() - paid > SLICE / 3:
            paid = time.monotonic()
            for firm in world.firms.values():
                for flow in tuple(firm.contract):
                    world.sell(firm, flow, ends=_slice())


def _slice() -> datetime:
    return _now().replace(microsecond=0) + timedelta(seconds=SLICE)


def _tell(world: StockWorld, folder: Path, facts: StockFacts, unpaid: threading.Event, say: Say) -> None:
    live = _Live(folder, world.firms["firm-b"].home.path)
    live.start()
    try:
        say("three flows are traded, three investors follow them")
        _trade(world)
        facts.live = (live.settle(), 0)
        facts.before = _look(world, facts)
        unpaid.set()
        say(f"nobody pays any more; firm B opens and closes {ACCOUNTS} accounts")
        time.sleep(1)  # whoever was paying has paid
        _churn(world, facts)
        ends = max(
            item.body.period.not_after or _now() for firm in world.firms.values() for item in firm.contract.values()
        )
        left = (ends + timedelta(seconds=1) - _now()).total_seconds()
        if left > 0:
            say("waiting for the contracts to end")
            time.sleep(left)
        _trade(world)
        facts.live = (facts.live[0], live.settle() - facts.live[0])
        facts.after = _look(world, None)
    finally:
        if live.query is not None:
            live.query.stop()


def _trade(world: StockWorld) -> None:
    for flow in FLOWS:
        world.trade(flow, [f"{flow[:3].upper()}{number}" for number in range(_TRADES)], at=_now())
        time.sleep(0.002)


def _look(world: StockWorld, facts: StockFacts | None) -> dict[str, dict[str, int | str]]:
    """Read flows as every investor: how many trades, or the code of the refusal."""
    counts: dict[str, dict[str, int | str]] = {}
    for who, name, flows in INVESTORS:
        counts[who] = {}
        for flow in flows:
            try:
                with spark_errors():
                    seen = maia.open(world.firms[name].home.path).client(who).read(FLOWS[flow])
                    rows = [row.asDict() for row in seen.collect()]
            except MaiaError as error:
                counts[who][flow] = error.code
                continue
            counts[who][flow] = len(rows)
            if facts is not None and rows:
                facts.rows[f"{who} of {name}, {flow}"] = rows[0]
    return counts


@dataclass(slots=True)
class _Live:
    """Bob's stream, which runs all the while."""

    folder: Path
    home: Path
    times: list[datetime] = field(default_factory=list)
    query: StreamingQuery | None = None

    def start(self) -> None:
        """Follow derivatives, from where the stream was."""
        frame = maia.open(self.home).client("bob").subscribe(FLOWS["derivatives"])
        writer = frame.writeStream.foreachBatch(self.each).option("checkpointLocation", str(self.folder / "checkpoint"))
        self.query = writer.trigger(processingTime="500 milliseconds").start()

    def each(self, rows: DataFrame, _number: int) -> None:
        """Take what a micro-batch gave."""
        self.times += [row["time"].replace(tzinfo=UTC) for row in rows.collect()]

    def settle(self) -> int:
        """Let the stream take what there is, and say how much it has taken so far."""
        while self.query is not None:
            try:
                with spark_errors():
                    self.query.processAllAvailable()
                break
            except PlanOverError:  # a slice ended in the middle of a micro-batch: go on, if a new one was paid for
                self.query = None
                with suppress(MaiaError):
                    self.start()
        return len(self.times)


def _churn(world: StockWorld, facts: StockFacts) -> None:
    """Let accounts come and go at one firm, and count what the exchange has of it."""
    before, start = world.exchange_certificates(), time.perf_counter()
    firm = world.firms["firm-b"]
    for number in range(ACCOUNTS):
        firm.open_account(f"account-{number}", ("shares",), at=_now())
        firm.close_account(f"account-{number}", at=_now())
    facts.accounts, facts.seconds = ACCOUNTS, time.perf_counter() - start
    facts.exchange = (before, world.exchange_certificates())


def _now() -> datetime:
    return datetime.now(UTC)
