"""How long a revocation takes: windows printed beforehand against windows measured, for every way to lose a right.

    python benchmarks/bench_revocation.py [--worlds 21] [--readers 40] [--output docs/reference/benchmarks]

Writes ``revocation.md`` (tables) into the output folder and ``revocation.svg`` (plot) into that of images. The first
part runs the delivery job in simulated time, without Spark, with 8 rights of each kind a world; in every third world
the link to the issuers is cut for a while. The second part is a streaming query in Spark with the default trigger of
one second and active revocation in real time: readers are withdrawn one after the other at random instants while events
go on.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from revocation_trials import KINDS, Trial, Way, play

from maia.authority import Action, Rhythm, type_right
from maia.domain import Domain, OwnKeyManager, Wanted, delivery_job, ensure_keys
from maia.encryption import Keyring
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import milliseconds
from maia.log import NoticeLog, Outbox, OutboxCommit
from maia.principals import Certificate, CertificateId, KeySigner, TestKind
from maia.spark import session
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    TYPE_VERSION,
    StatementPublisher,
    grant,
    numberplate_network,
    online,
    publish_here,
)

PER_WAY = 8
BEATS = Rhythm(period=timedelta(seconds=5), lead=timedelta(seconds=2))


@dataclass(frozen=True, slots=True)
class Live:
    """What the streaming query did.

    Attributes:
        windows: For each reader, seconds between its revocation and the stamp of its last event; zero when none came.
        handed: Seconds between its revocation and the moment at which its last event was handed over.
        batches: How long each micro-batch took, in seconds.
        printed: The longest window, in seconds: what is left of lists that were signed, and the skew of clocks.
        events: How many events were delivered.
    """

    windows: list[float]
    handed: list[float]
    batches: list[float]
    printed: float
    events: int


class TimedOutbox(Outbox):
    """Remembers when each micro-batch was handed over."""

    times: ClassVar[dict[int, datetime]] = {}

    def commit(self, made: OutboxCommit) -> bool:
        """Commit, and look at the clock."""
        done = super().commit(made)
        self.times[made.batch] = datetime.now(UTC)
        return done

    def last(self, name: str, secret: bytes) -> datetime:
        """Tell when a subscription got something for the last time."""
        return next(
            self.times[batch]
            for batch in sorted(self.times, reverse=True)
            if any(rows.num_rows for rows in self.read(name, secret, after=batch - 1))
        )


def simulate(worlds: int) -> list[Trial]:
    """Run worlds in simulated time."""
    found: list[Trial] = []
    for seed in range(worlds):
        with tempfile.TemporaryDirectory() as folder:
            found += play(Path(folder) / "net", seed=seed, per_way=PER_WAY, cut=seed % 3 == 2).trials
        print(f"world {seed + 1} of {worlds}", flush=True)
    return found


def stream(readers: int, root: Path) -> Live:
    """Withdraw readers of a live stream one after the other."""
    start = datetime.now(UTC).replace(microsecond=0)
    network = numberplate_network(now=start)
    people = network.people
    definition = EventType(
        name=TypeName(network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, uid, KINDS[name]) for name, uid in ATTRIBUTES.items()),
    )
    signed = sign_event_type(definition, people["PITO"])
    ccs = Home.create(root / "ccs", HomeConfig(name="ccs", broker="CB", log="../log"), broker=people["CB"])
    met = Home.create(root / "met", HomeConfig(name="met", broker="MB", log="../log"), broker=people["MB"])
    ccs.add_key("CCTV", people["CCTV"])
    for home in (ccs, met):
        home.add_public_key("PITO", network.key("PITO"))
        for certificate in network.certificates.values():
            home.certificates.add(certificate)
        home.types.put(signed.raw, at=start)
    ensure_keys(ccs, OwnKeyManager(ccs), definition, at=start)
    met.save_keyring(Keyring.from_bytes(ccs.keyring().to_bytes()))
    lister = KeySigner.generate()
    rights: dict[str, Certificate] = {}
    tag = type_right(network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE])
    for number in range(readers):
        signer = KeySigner.generate()
        met.add_key(f"r{number}", signer)
        rights[f"r{number}"] = grant(
            people["Met"], signer, tag, valid=(start, start + timedelta(hours=1)),
            tests=[online(TestKind.CRL, lister)],
        )  # fmt: skip
        met.certificates.add(rights[f"r{number}"])
    issuer = StatementPublisher(notices=NoticeLog(met.log_path, own=met.path / "lanes"), signer=lister, rhythm=BEATS)
    return _run(ccs, met, issuer, rights, root)


def _run(ccs: Home, met: Home, issuer: StatementPublisher, rights: dict[str, Certificate], root: Path) -> Live:
    rng = random.Random(5)
    withdrawn: dict[CertificateId, datetime | None] = {}
    revoked: dict[str, datetime] = {}
    wanted = tuple(Wanted(name=name, as_=name, type=TYPE_NAME) for name in rights)
    job = delivery_job(Domain.open(met.path), wanted)
    outbox = job.outbox = TimedOutbox(job.outbox.path)

    def tick() -> None:
        issuer.publish(withdrawn, at=datetime.now(UTC))
        now = datetime.now(UTC)
        rows = [{"numberplate": "P", "timestamp": now, "location": "Victoria"}] * 20
        publish_here(ccs, TYPE_NAME, rows, as_="CCTV", at=now)

    tick()
    query = job.start(session(spark_log_level="OFF"), root / "checkpoint")
    while job.outbox.head() is None:
        tick()
        time.sleep(0.2)
    for name, right in rights.items():
        ends = time.monotonic() + rng.uniform(0.8, 2.0)
        while time.monotonic() < ends:
            tick()
            time.sleep(0.1)
        revoked[name] = datetime.now(UTC)
        withdrawn[right.certificate_id] = None
        issuer.withdraw(withdrawn, at=revoked[name])
    for _ in range(10):
        tick()
        time.sleep(0.5)
    query.processAllAvailable()
    progress = [item for item in query.recentProgress if item["numInputRows"]]
    query.stop()
    windows, handed, events = [], [], 0
    lengths = [item["durationMs"]["triggerExecution"] / 1000 for item in progress]
    for name, instant in revoked.items():
        stamps = [
            stamp for batch in job.outbox.read(name, job.make_secret()) for stamp in batch.column("_stamp").to_pylist()
        ]
        events += len(stamps)
        windows.append(max((max(stamps) - milliseconds(instant)) / 1000, 0.0))
        handed.append(max((outbox.last(name, job.make_secret()) - instant).total_seconds(), 0.0))
    printed = BEATS.window.total_seconds() + met.config.skew
    return Live(windows, handed, lengths, printed, events)


def quantile(values: Sequence[float], share: float) -> float:
    """Take a value of the ordered list."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def live_section(live: Live) -> list[str]:
    """Write the part about the streaming query."""
    batch = statistics.median(live.batches)
    p99 = quantile(live.handed, 0.99)
    return [
        "## Active revocation on the embedded default, in real time",
        "",
        "A streaming query in Spark, `local[*]`, trigger of one second; each reader is revoked by a message in",
        "the log, at a random instant. Measured is the time to the moment at which its last event was handed over.",
        "",
        "| figure | value |",
        "|---|---:|",
        f"| readers revoked | {len(live.windows)} |",
        f"| events delivered | {live.events:,} |",
        f"| micro-batches | {len(live.batches)} |",
        f"| micro-batch, median s | {batch:.2f} |",
        f"| micro-batch, longest s | {max(live.batches):.2f} |",
        f"| to the stamp of the last event, longest s | {max(live.windows):.3f} |",
        f"| to the hand-over of the last event, median s | {statistics.median(live.handed):.2f} |",
        f"| to the hand-over of the last event, p99 s | {p99:.2f} |",
        f"| p99 in micro-batches (aim: 2 or less) | {p99 / max(batch, 1.0):.2f} |",
        f"| printed window and skew, s | {live.printed:.1f} |",
        f"| handed over after it | {sum(seconds > live.printed for seconds in live.handed)} |",
        "",
        "A micro-batch is planned with what the log says at that moment. An event stamped after the revocation is",
        "in no plan that still has the right. A micro-batch that was planned before is handed over within the term of",
        "its plans, or planned anew; what was written by plans that ended on the way counts for nothing.",
    ]


def page(trials: Sequence[Trial], live: Live | None, load: float) -> str:
    """Write the report."""
    broken = sum(trial.printed is None or trial.measured > trial.printed for trial in trials)
    lines = [
        "# Revocation",
        "",
        "Windows between the revocation of a right and the stamp of the last event that its holder still got, against",
        "the window that was printed for the certificate at that moment. Made by `benchmarks/bench_revocation.py`.",
        "",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.",
        f"Load when it began: {load:.1f}.",
        "",
        "## All ways to lose a right, in simulated time",
        "",
        f"{len(trials):,} trials on the delivery job; in every third world the link to the issuers is cut for a while.",
        f"Events delivered after the printed window: **{broken}**.",
        "",
        "| way | trials | printed, longest s | measured, median s | p99 s | longest s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for way in Way:
        own = [trial for trial in trials if trial.way is way]
        measured = [trial.measured.total_seconds() for trial in own]
        printed = max(trial.printed.total_seconds() for trial in own if trial.printed is not None)
        lines.append(
            f"| {way.value} | {len(own)} | {printed:.2f} | {statistics.median(measured):.2f} "
            f"| {quantile(measured, 0.99):.2f} | {max(measured):.2f} |"
        )
    lines += ["", "![Measured against printed windows](../../images/revocation.svg)", ""]
    if live is not None:
        lines += live_section(live)
    return "\n".join(lines) + "\n"


def plot(trials: Sequence[Trial], path: Path) -> None:
    """Measured over printed windows, one point a trial; the line is equality."""
    import matplotlib as mpl  # noqa: PLC0415 - only the plot needs it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "maia"
    figure, axes = plt.subplots(figsize=(7, 4.8))
    for way in Way:
        own = [trial for trial in trials if trial.way is way and trial.printed is not None]
        axes.scatter(
            [trial.printed.total_seconds() for trial in own if trial.printed is not None],
            [trial.measured.total_seconds() for trial in own], s=9, alpha=0.6, label=way.value,
        )  # fmt: skip
    longest = max(trial.printed.total_seconds() for trial in trials if trial.printed is not None)
    axes.plot([0, longest], [0, longest], "k--", linewidth=0.8, label="printed = measured")
    axes.set(xlabel="printed window, s", ylabel="measured window, s")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Revocation: printed against measured windows.")
    parser.add_argument("--worlds", type=int, default=21, help="worlds of 48 trials each")
    parser.add_argument("--readers", type=int, default=40, help="readers of the live stream; 0 leaves it out")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args()
    live, load = None, os.getloadavg()[0]
    if arguments.readers:
        with tempfile.TemporaryDirectory() as folder:
            live = stream(arguments.readers, Path(folder))
    trials = simulate(arguments.worlds)
    written = page(trials, live, load)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "revocation.md").write_text(written, encoding="utf-8")
    arguments.images.mkdir(parents=True, exist_ok=True)
    plot(trials, arguments.images / "revocation.svg")
    print(written)


if __name__ == "__main__":
    main()
