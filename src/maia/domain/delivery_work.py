"""What the workers of a delivery job do: open, screen and seal the segments of one micro-batch.

Nothing leaves a worker after opening but sealed files and counts; what it is given holds no key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.domain.trace import Trace
from maia.events import ClosedAttributes, ValueType
from maia.kernel import Clock, DeliverPlan, DeliveryPlan, MakeKeys, hidden_demands, omit_closed
from maia.log import (
    Commit,
    DeadLetter,
    HiddenColumn,
    LogDirectory,
    LogFile,
    Moved,
    MovedRows,
    OutboxFile,
    OutboxWriter,
    chain_hash,
    deliver_segment,
)

MakeSecret = Callable[[], bytes]
"""Builds, where it is called, the secret that seals the outbox; it carries no key."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """One segment of the log to deliver."""

    commit: int
    lane: str
    file: LogFile
    moved: Moved | MovedRows | None = None

    @property
    def type_id(self) -> str:
        """The id of the type, in hex."""
        return self.lane.partition("/")[0]

    @property
    def origin(self) -> str:
        """Whose lane it is, in hex."""
        return self.lane.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Group:
    """The files that one task works on, in order."""

    number: int
    files: tuple[FileTask, ...]


@dataclass(slots=True)
class Report:
    """What one task did: names, counts and sealed files, no values."""

    files: list[OutboxFile] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    delivered: dict[str, int] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Write the report for its way back to the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a report of one of our own workers."""
        value = json.loads(text)
        return cls(
            files=[OutboxFile(**item) for item in value["files"]],
            dead=[DeadLetter(**item) for item in value["dead"]],
            delivered=value["delivered"],
            chains=value["chains"],
        )


Run = Callable[["Work", Sequence[Group]], Iterable[Report]]


@dataclass(frozen=True, slots=True)
class Work:
    """All that a worker needs for one micro-batch, but the keys."""

    batch: int
    log: str
    outbox: str
    plans: dict[str, tuple[DeliverPlan, ...]]
    make_keys: MakeKeys
    make_secret: MakeSecret
    clock: Clock
    trace: Path | None = None

    def deliver(self, group: Group) -> Report:
        """Open, screen and seal the files of a group.

        Raises:
            PlanOverError: The plans are over; they are made again.
            MaiaError: The log is damaged, or the system refused to write.
        """
        report = Report()
        keys = self.make_keys()
        writer = OutboxWriter(Path(self.outbox), self.batch, group.number, self.make_secret())
        log = LogDirectory(self.log)
        chains: dict[str, set[str]] = {}
        compiled: dict[int, DeliveryPlan] = {}
        told: set[tuple[str, int]] = set()
        trace = Trace(path=self.trace, operation="deliver")
        for task, plan in ((item, plan) for item in group.files for plan in self.plans[item.type_id]):
            if id(plan) not in compiled:
                compiled[id(plan)] = plan.compiled()
            versions = {item.identity: item.event_type for item in plan.subscriptions}
            hidden = {item.identity: hidden_demands(item.clauses, plan.kinds) for item in plan.subscriptions}
            outcomes = deliver_segment(
                plan, log.parcels(task.lane, task.file, at=task.moved), keys, file=task.file, origin=task.origin,
                clock=self.clock, compiled=compiled[id(plan)], tell=trace.tell,
            )  # fmt: skip
            trace.name = task.file.path
            for index, outcome in enumerate(outcomes):
                trace.write(at=self.clock())
                opened = outcome.opened
                if opened is None or outcome.refused is not None:
                    letter = DeadLetter(
                        task.commit, task.file.path, index, task.origin, str(outcome.refused), outcome.events
                    )
                    # A child's parcel of an origin without a right on the parent is none of the parent's, and others
                    # that are refused to readers of both are told once.
                    none = plan.reads_child(task.type_id) and letter.code == "ORIGIN_NOT_PROVEN"
                    if not none and (letter.file, letter.parcel) not in told:
                        told.add((letter.file, letter.parcel))
                        report.dead.append(letter)
                    continue
                for delivery in outcome.deliveries:
                    version = versions[delivery.subscription]
                    omits = version.options.closed is ClosedAttributes.OMIT
                    writer.add(
                        delivery.subscription, version, opened.name, opened.header.stamp, delivery.rows,
                        omit_closed(delivery) if omits else delivery.batch,
                        _hidden(opened.batch, hidden[delivery.subscription], plan.kinds, delivery.rows),
                    )  # fmt: skip
                    count = report.delivered.get(delivery.subscription, 0) + len(delivery.rows)
                    report.delivered[delivery.subscription] = count
                    found = chains.setdefault(delivery.subscription, set())
                    found.update(chain_hash(clause.chain) for clause in delivery.clauses)
        report.files = writer.close()
        report.chains = {name: sorted(found) for name, found in chains.items()}
        return report


def _hidden(
    batch: pa.RecordBatch, uids: frozenset[str], kinds: Mapping[str, ValueType], rows: npt.NDArray[np.int64]
) -> dict[str, HiddenColumn]:
    """Take from a transit batch what is asked of rows and need not be shown in them."""
    taken = pa.array(rows)
    return {uid: (kinds[uid], batch[uid].take(taken)) for uid in sorted(uids.intersection(batch.schema.names))}


def run_groups(work: Work, groups: Sequence[Group]) -> Iterator[Report]:
    """Run groups in this process, one after the other."""
    return (work.deliver(group) for group in groups)


def group_files(commits: Sequence[Commit], log: LogDirectory) -> list[Group]:
    """Make one group per segment, with where it lies now."""
    tasks = [
        FileTask(commit.sequence, commit.lane, file, log.place_of(commit.lane, file))
        for commit in commits
        for file in commit.files
    ]
    return [Group(number, (task,)) for number, task in enumerate(tasks)]
