"""The same rows five ways: plain Parquet, Maia in its three modes, and Spark's own encryption value by value.

(a) ``parquet``: a plain Parquet log, written and read with the same filter and projection in plain Spark.
(b) ``plain``, (c) ``attribute``, (d) ``event``: Maia in these modes, with types checked, rights proven, parcels signed
and verified, subscriptions matched, cells screened and an audit written; plain mode leaves out the encryption alone.
(e) ``per value``: `aes_encrypt` and `aes_decrypt` on each value, and a Parquet log.

With one subscription Maia reads through its data source. With more it reads the log as plain Spark does and sends it
through the stage `deliver`, which writes no audit and does not look for repetitions: that is left to the jobs.

Arms take turns, so that what else the machine does meets all of them. The first round warms up and is not counted; in
it every arm must show all events.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import maia
from maia.bench.homes import READER, TYPE, WRITER, frame_of, make_domain, plan_of
from maia.domain import Domain, HomeKeys
from maia.errors import UsageError
from maia.events import EncryptionMode
from maia.spark import deliver, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARQUET, PER_VALUE = "parquet", "per value"
ARMS = (PARQUET, "plain", "attribute", "event", PER_VALUE)
_KEY = "unhex('000102030405060708090a0b0c0d0e0f')"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Laps:
    """Times of one arm in seconds, a number for each round."""

    write: list[float] = field(default_factory=list)
    reads: dict[int, list[float]] = field(default_factory=dict)

    def total(self, subscriptions: int) -> float:
        """Return the mean time of writing and of reading for so many subscriptions."""
        return fmean(self.write) + fmean(self.reads[subscriptions])


@dataclass(frozen=True, slots=True)
class Throughput:
    """What all arms took for one number of attributes."""

    events: int
    attributes: int
    subscriptions: tuple[int, ...]
    arms: dict[str, Laps]

    def ratio(self, arm: str, subscriptions: int = 1, *, to: str = PARQUET) -> float:
        """Return the throughput of an arm as a share of another's."""
        return self.arms[to].total(subscriptions) / self.arms[arm].total(subscriptions)


class Arm:
    """One way to keep rows and to show them to subscriptions."""

    def __init__(self, name: str, rows: DataFrame, folder: Path) -> None:
        """Prepare what is not measured: the rows, and for Maia's arms a home."""
        if name not in ARMS:
            raise UsageError(f"there is no arm `{name}`")
        self.name = name
        self._rows = rows
        self._path = folder / name.replace(" ", "-")
        self._domain: Domain | None = None
        if name not in {PARQUET, PER_VALUE}:
            self._domain = make_domain(self._path, len(rows.columns), EncryptionMode(name))

    def clear(self) -> None:
        """Throw away what was written before; of a home its log, and its own record of what it committed there."""
        if self._domain is None:
            shutil.rmtree(self._path, ignore_errors=True)
            return
        for path in (self._domain.home.log_path, self._path / "lanes"):
            shutil.rmtree(path, ignore_errors=True)
        self._domain = maia.open(self._path)

    def write(self) -> None:
        """Write all rows."""
        if self._domain is not None:
            self._domain.client(WRITER).publish(self._rows, TYPE)
        elif self.name == PARQUET:
            self._rows.write.parquet(str(self._path))
        else:
            sealed = [f"aes_encrypt({name}, {_KEY}) as {name}" for name in self._rows.columns]
            self._rows.selectExpr(*sealed).write.parquet(str(self._path))

    def show(self, subscriptions: int = 1) -> DataFrame:
        """Return what the subscriptions get; with several, ``_subscription`` says who."""
        names = self._rows.columns
        if self._domain is not None:
            if subscriptions == 1:
                return self._domain.client(READER).read(TYPE, where="a0 any")
            parcels = session().read.parquet(str(self._domain.home.log_path / "type=*" / "origin=*" / "date=*"))
            shown = deliver(parcels, plan_of(self._domain, subscriptions), HomeKeys(str(self._domain.path)))
            return shown.select("_subscription", *names)
        seen = session().read.parquet(str(self._path))
        if self.name == PER_VALUE:
            seen = seen.selectExpr(*[f"cast(aes_decrypt({name}, {_KEY}) as string) as {name}" for name in names])
        if subscriptions == 1:
            return seen.where("a0 is not null")
        named = ["concat('s', lpad(id, 2, '0')) as _subscription", "concat('v0-', lpad(id, 2, '0'), '-') as _begin"]
        wanted = session().range(subscriptions).selectExpr(*named).hint("broadcast")
        matched = seen.join(wanted, seen["a0"].startswith(wanted["_begin"]))
        return matched.select("_subscription", *names)


def measure(
    events: int,
    attributes: int,
    *,
    folder: Path,
    runs: int = 5,
    subscriptions: Sequence[int] = (1,),
    slow_runs: int = 2,
    arms: Sequence[str] = ARMS,
    say: Say = lambda _: None,
) -> Throughput:
    """Measure the arms on the same rows, taking turns.

    Args:
        events: How many rows.
        attributes: How many columns.
        folder: Where to write; a new one for each call.
        runs: How many rounds count.
        subscriptions: For how many subscriptions to read; each number is a reading of its own.
        slow_runs: How many rounds of the arm value by value count; it takes ten times as long as the others.
        arms: Which arms.
        say: Told what is being measured.

    Raises:
        UsageError: An arm does not show each event once.
    """
    rows = frame_of(events, attributes)
    ways = [Arm(name, rows, folder) for name in arms]
    found = {name: Laps(reads={many: [] for many in subscriptions}) for name in arms}
    for number in range(runs + 1):
        for way in ways:
            if way.name == PER_VALUE and number > slow_runs:
                continue
            say(f"{attributes} attributes, round {number} of {runs}: {way.name}")
            way.clear()
            laps = found[way.name]
            took = _timed(way.write)
            if number:
                laps.write.append(took)
            for many in subscriptions:
                if not number and way.show(many).count() != events:
                    raise UsageError(f"the arm `{way.name}` does not show each event once")
                took = _timed(lambda way=way, many=many: drain(way.show(many)))  # type: ignore[misc]
                if number:
                    laps.reads[many].append(took)
    for way in ways:
        way.clear()
    rows.unpersist()
    return Throughput(events, attributes, tuple(subscriptions), found)


def drain(seen: DataFrame) -> None:
    """Make all rows and keep none."""
    seen.write.format("noop").mode("overwrite").save()


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
