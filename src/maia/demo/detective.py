"""The detective's court order on a live stream: appointed, assigned, withdrawn in three ways, assigned again.

Everything reported is what happened: what Smith received comes from a streaming query that runs from the moment he is
assigned, the windows from the certificates when they were withdrawn, and the reasons from the policy engine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.authority import Rhythm
from maia.demo.views import SceneView, refused
from maia.errors import DeniedError
from maia.spark import start_spark
from maia.testing import DETECTIVE_POLICY, TYPE_NAME, DetectiveWorld, Loss, detective_world

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

CAR, OTHER = "AE05 XYZ", "BX51 ABC"
ORDER = timedelta(days=60)
# Lists hold longer than a micro-batch takes on a busy machine: plans end with them.
_LISTS = Rhythm(period=timedelta(minutes=1), lead=timedelta(seconds=20))
_TICK = 0.25
_SHOWN = 4
Say = Callable[[str], None]


@dataclass(slots=True)
class Phase:
    """One stretch of the story.

    Attributes:
        title: What people call it.
        begins: When.
        certificate: The beginning of the id of the capability in use; nothing when there is none.
        window: The window printed when the capability was withdrawn, in seconds.
        reason: The code of a refusal.
        sighted: How often the car passed.
        received: How many of these sightings Smith got.
        late: Seconds between the withdrawal and the last sighting that Smith still got.
    """

    title: str
    begins: datetime
    certificate: str | None = None
    window: float | None = None
    reason: str | None = None
    sighted: int = 0
    received: int = 0
    late: float | None = None

    @property
    def holds(self) -> str:
        """Say in a word what there is of the right."""
        if self.reason is not None:
            return refused(self.reason)
        return "revoked" if self.certificate is None else "a certificate"

    @property
    def share(self) -> str:
        """Say how many of the sightings came through."""
        return {0: "none", self.sighted: "all"}.get(self.received, "some")


@dataclass(slots=True)
class DetectiveFacts:
    """What happened, for people and for machines."""

    ends: str = ""
    equals_cap10: bool = False
    phases: list[Phase] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    trigger: float = 0.5
    batches: int = 0

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "certificate_ends": self.ends,
            "certificate_is_cap10": self.equals_cap10,
            "trigger_seconds": self.trigger,
            "micro_batches": self.batches,
            "phases": [
                {
                    "title": phase.title, "certificate": phase.certificate, "printed_window_seconds": phase.window,
                    "refused": phase.reason, "sighted": phase.sighted, "received": phase.received,
                    "received_after_withdrawal_seconds": phase.late,
                }
                for phase in self.phases
            ],
            "rows": self.rows,
        }  # fmt: skip

    def views(self) -> list[SceneView]:
        """Show the policy, what each change did to the stream, and what Smith sees: nothing that differs each time."""
        same = "the right of Cap10" if self.equals_cap10 else "another right than Cap10"
        rules = tuple((line,) for line in DETECTIVE_POLICY.splitlines())
        story = tuple((phase.title, phase.holds, phase.share) for phase in self.phases)
        cars = {tuple(str(row[name]) for name in ("numberplate", "location")): None for row in self.rows}
        return [
            SceneView(title="the policy of the Metropolitan Police", columns=("rules",), rows=rules, wide=True),
            SceneView(
                title="a live stream of sightings", columns=("what happened", "Smith's right", "sightings received"),
                rows=story, remark="each time it is put right a new certificate is issued", wide=True,
            ),
            SceneView(title="what Smith sees", columns=("numberplate", "location"), rows=tuple(cars)),
            SceneView(title="what the role became", columns=("a certificate with",), rows=((same,),)),
        ]  # fmt: skip


@dataclass(slots=True)
class _Stage:
    """The world, the query that follows it, and what it has received so far."""

    world: DetectiveWorld
    facts: DetectiveFacts
    received: list[tuple[datetime, dict[str, Any]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    query: StreamingQuery | None = None

    def each(self, rows: DataFrame, _number: int) -> None:
        """Take what a micro-batch gave."""
        found = [row.asDict() for row in rows.collect()]
        with self.lock:
            self.facts.batches += 1
            self.received += [(row["timestamp"].replace(tzinfo=UTC), row) for row in found]

    def run(self, phase: Phase, seconds: float) -> None:
        """Let cars pass for a while, and the stream take what there is before anything changes."""
        self.facts.phases.append(phase)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.world.sight([CAR, OTHER], at=_now())
            phase.sighted += 1
            time.sleep(_TICK)
        if self.query is not None:
            self.query.processAllAvailable()

    def follow(self, checkpoint: Path) -> None:
        """Start Smith's stream with what comes from now on; without a right there is none to start."""
        frame = maia.open(self.world.met.path).client("Smith").subscribe(TYPE_NAME, starting="latest")
        writer = frame.writeStream.foreachBatch(self.each).option("checkpointLocation", str(checkpoint))
        self.query = writer.trigger(processingTime="500 milliseconds").start()
        self.query.processAllAvailable()

    def beat(self, over: threading.Event) -> None:
        """Let the police sign their lists in time, whatever else happens."""
        while not over.wait(_TICK):
            self.world.service.beat(at=_now())


def play_detective(folder: Path, *, say: Say) -> DetectiveFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; homes and the shared log go there.
        say: Tells the person at the terminal what is going on.
    """
    say("starting Spark")
    start_spark(octets=0)
    world = detective_world(folder, now=_now().replace(microsecond=0), seed=None, rhythm=_LISTS)
    stage = _Stage(world, DetectiveFacts())
    over = threading.Event()
    beats = threading.Thread(target=stage.beat, args=(over,))
    beats.start()
    try:
        _tell(stage, folder / "checkpoint", say)
    finally:
        over.set()
        beats.join()
        if stage.query is not None:
            stage.query.stop()
    _count(stage)
    return stage.facts


def _tell(stage: _Stage, checkpoint: Path, say: Say) -> None:
    world, facts = stage.world, stage.facts
    world.appoint((Loss.ORDER, Loss.STATUS), at=_now(), order_until=(_now() + ORDER).replace(microsecond=0))
    phase = Phase("court order and detective, not on the case", _now())
    try:
        world.activate(at=_now())
    except DeniedError as error:
        phase.reason = error.code
    stage.run(phase, 1.5)
    say("Smith is assigned to the case")
    world.appoint((Loss.CASE,), at=_now())
    made = world.activate(at=_now())
    cap10 = world.network.certificates["Cap10"].body
    body = made.body
    facts.equals_cap10 = (body.issuer, body.subject, getattr(body, "tag", None)) == (
        cap10.issuer, cap10.subject, getattr(cap10, "tag", None),
    )  # fmt: skip
    facts.ends = "" if body.period.not_after is None else body.period.not_after.isoformat()
    stage.follow(checkpoint)
    stage.run(_held("assigned to the case", world), 2)
    for loss in (Loss.CASE, Loss.STATUS, Loss.ORDER):
        say(loss.title)
        at = _now()
        revocation = world.lose(loss, at=at)
        window = world.exposure(revocation).window
        stage.run(Phase(loss.title, at, window=None if window is None else window.total_seconds()), 2)
        world.appoint((loss,), at=_now(), order_until=(_now() + ORDER).replace(microsecond=0))
        world.activate(at=_now())
        stage.run(_held("put right, a new certificate", world), 1.5)


def _held(title: str, world: DetectiveWorld) -> Phase:
    identity = None if world.certificate is None else world.certificate.certificate_id.hex()[:8]
    return Phase(title, _now(), certificate=identity)


def _count(stage: _Stage) -> None:
    """Give each sighting to the phase in which it was made."""
    phases = stage.facts.phases
    for instant, _ in stage.received:
        current = [phase for phase in phases if phase.begins <= instant]
        if current:
            current[-1].received += 1
            if current[-1].window is not None:
                late = (instant - current[-1].begins).total_seconds()
                current[-1].late = max(late, current[-1].late or 0.0)
    for phase in phases:
        if phase.window is not None and phase.late is None:
            phase.late = 0.0
    last = [row for _, row in stage.received[-_SHOWN:]]
    stage.facts.rows = [
        {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        for row in last
    ]


def _now() -> datetime:
    return datetime.now(UTC)
