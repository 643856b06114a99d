"""Reading a stretch of the log for one client: planned on the driver, run file by file where the keys are.

Rules kept here:

- a plan holds clauses and places, no key; a task opens the home's keys where it runs, or its order (`orders`);
- small files share a task, so that a task costs about the same whatever the sizes of files;
- what was delivered, refused and withheld of each file is in the audit, also when the reader leaves before the end. No
  file is opened for a read whose intent is not there already;
- a plan that is over opens nothing, and so does one whose rights the home has heard to be withdrawn since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from maia.domain.operations import Operation, audit_of, code_of, intent_to_read
from maia.domain.origins import origin_of, stamps_of
from maia.domain.possession import ProvenClient
from maia.domain.workplaces import BesideHome, Workplace
from maia.encoding import counted
from maia.errors import EncodingError, PlanOverError, UnavailableError
from maia.home import Home
from maia.kernel import FILTER_CONTRADICTS_RIGHT, Clock, DeliverPlan, Delivery, Opened, Outcome, contradicts_right
from maia.log import (
    EVENT,
    OK,
    STAMP,
    STOPPED,
    AuditRow,
    Commit,
    LogDirectory,
    LogFile,
    Moved,
    MovedRows,
    chain_hash,
    deliver_segment,
)

_FILE_COST = 4 << 20
_MAX_TASK = 64 << 20


@dataclass(frozen=True, slots=True)
class LogPart:
    """One segment of a lane, and where it lay when that was planned, unless where it was committed."""

    lane: str
    file: LogFile
    moved: Moved | MovedRows | None = None

    @property
    def origin(self) -> str:
        """Whose lane it is, in hex."""
        return self.lane.partition("/")[2]


def refusal(commit: Commit, plan: DeliverPlan) -> str:
    """Tell why nothing of a commit is opened; empty when its origin had the right then and it is as it must be."""
    if commit.wrong:
        return commit.wrong
    return "" if plan.admits(origin_of(commit), *stamps_of(commit)) else "ORIGIN_NOT_PROVEN"


def parts_of(commits: Sequence[Commit], plan: DeliverPlan, log: LogDirectory | None = None) -> list[LogPart]:
    """List the segments of the commits that may be opened and have what is wanted, in the order of the log.

    With a log it is told where each of them lies now, so that nobody who reads one has to go through its lane.
    """
    return [
        LogPart(commit.lane, file, None if log is None else log.place_of(commit.lane, file))
        for commit in commits
        if not refusal(commit, plan)
        for file in commit.files
        if plan.wants(file.first_stamp, file.last_stamp)
    ]


def begin_read(
    home: Home,
    plan: DeliverPlan,
    commits: Sequence[Commit],
    client: ProvenClient,
    *,
    attributes: Sequence[str] | None,
    parts: int,
    at: datetime,
    process: str | None = None,
) -> int:
    """Put into the audit what a client is going to read, and which commits are refused as a whole; return its number.

    Args:
        home: Whose audit.
        plan: With the client's one subscription.
        commits: The part of the log.
        client: Whose key was proven.
        attributes: Which attributes it asked for.
        parts: How many tasks will read.
        at: Now.
        process: The process without which they do not; this one by default.
    """
    events = sum(commit.events for commit in commits)
    lanes = len({commit.lane for commit in commits})
    source = f"{counted(len(commits), 'commit')} of {counted(lanes, 'lane')}"
    intent = intent_to_read(plan, client, attributes=attributes, source=source, events=events, at=at)
    audit = audit_of(home)
    operation = Operation(audit, audit.begin(intent, parts=parts, process=process), intent)
    refused = [
        AuditRow(
            at=at, kind="refuse", principal=intent.principal, type_id=intent.type_id,
            source=f"commit {commit.sequence} of {commit.lane}", subject=client.name, code=code, events=commit.events,
        )
        for commit in commits
        if (code := refusal(commit, plan))
    ]  # fmt: skip
    notices = [replace(intent, kind="notice", code=FILTER_CONTRADICTS_RIGHT, events=0)]
    told = [*refused, *(notices if contradicts_right(plan.subscriptions[0]) else ())]
    if parts:
        audit.tell(operation.number, told)
    else:
        operation.end(OK, rows=told)
    return operation.number


def share_out(parts: Sequence[LogPart], *, cores: int) -> list[tuple[LogPart, ...]]:
    """Put neighbouring small files into one task, as Spark does with its own: a file costs as much as some octets do.

    Every core here gets work when there are files enough; no task gets much more than a large file.
    """
    costs = [part.file.size + _FILE_COST for part in parts]
    room = min(_MAX_TASK, max(_FILE_COST, sum(costs) // cores))
    groups: list[list[LogPart]] = []
    used = room
    for part, cost in zip(parts, costs, strict=True):
        if used + cost > room:
            groups.append([])
            used = 0
        groups[-1].append(part)
        used += cost
    return [tuple(group) for group in groups]


def scan(
    place: Home | Workplace,
    plan: DeliverPlan,
    parts: Sequence[LogPart],
    *,
    client: str,
    columns: Sequence[str] | None,
    with_event_id: bool,
    clock: Clock,
    operation: int,
    part: int = 0,
    lenient: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Open, match and screen files for one client, and tell the audit what became of them, however it ends.

    Args:
        place: Where this runs: the home whose keys open them, or what stands for it there.
        plan: With the client's one subscription.
        parts: The files.
        client: What the client is called here.
        columns: Which columns to give, in which order; all when there are none.
        with_event_id: Add ``_event`` and ``_stamp``.
        clock: Tells what time it is where this runs.
        operation: The intent, by its number in the audit.
        part: Which part of it this is.
        lenient: Pass by a segment that is damaged or missing, with an alarm in the audit, as a reader without an
            offset may: the others come, and this one comes when it is there again.

    Raises:
        PlanOverError: The plan is over, or a right behind it was withdrawn: ``PLAN_OVER``.
    """
    at, here = clock(), BesideHome(place) if isinstance(place, Home) else place
    keys, compiled, log = here.keys(), plan.compiled(columns), LogDirectory(here.store)
    told, code = _Told(place=here, plan=plan, client=client, at=at), STOPPED
    trace = here.trace("read")
    try:
        here.check(plan.term, at=at)
        for item in parts:
            parcels = log.parcels(item.lane, item.file, at=item.moved)
            trace.name = item.file.path
            outcomes = deliver_segment(
                plan, parcels, keys, file=item.file, origin=item.origin, clock=clock, compiled=compiled, tell=trace.tell
            )
            for outcome in told.outcomes(outcomes, item, lenient=lenient):
                trace.write(at=clock())
                for delivery in outcome.deliveries:
                    told.delivered(delivery)
                    batch = delivery.batch
                    if with_event_id and outcome.opened is not None:
                        batch = _with_event_id(batch, outcome.opened, delivery.rows)
                    yield batch if columns is None else batch.select(list(columns))
        code = OK
    except BaseException as error:
        code = code_of(error)
        raise
    finally:
        told.end(operation, part, code)


@dataclass(slots=True, kw_only=True)
class _Told:
    """What the audit is told of one task."""

    place: Workplace
    plan: DeliverPlan
    client: str
    at: datetime
    rows: list[AuditRow] = field(default_factory=list)
    file: str = ""
    count: int = 0
    seen: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    chains: set[str] = field(default_factory=set)

    def outcomes(self, outcomes: Iterator[Outcome], part: LogPart, *, lenient: bool) -> Iterator[Outcome]:
        """Go through a file; where one may be passed by, one that cannot be read ends with an alarm."""
        self.close()
        self.file = part.file.path
        try:
            for outcome in outcomes:
                self.seen += outcome.events
                if outcome.refused is None:
                    yield outcome
                else:
                    self.refused[outcome.refused] += outcome.events
        except PlanOverError:
            raise  # nothing is wrong with the segment
        except (UnavailableError, EncodingError) as error:
            if not lenient:
                raise
            alarm = replace(self._row("alarm", error.code, part.file.events), source=part.lane)
            broker, type_id = self.place.broker.fingerprint, part.lane.partition("/")[0]
            self.rows.append(replace(alarm, principal=broker, type_id=type_id))

    def delivered(self, delivery: Delivery) -> None:
        """Count what is handed out next."""
        self.count += delivery.batch.num_rows
        self.chains.update(chain_hash(clause.chain) for clause in delivery.clauses)

    def close(self) -> None:
        """Sum up a file."""
        if self.file:
            chains = tuple(sorted(self.chains))
            self.rows.append(replace(self._row("deliver", OK, self.count), clauses=chains))
            self.rows += [self._row("refuse", code, count) for code, count in sorted(self.refused.items())]
            unseen = self.seen - self.count - sum(self.refused.values())
            self.rows.append(self._row("withhold", "NO_MATCH", unseen))
        self.file, self.count, self.seen, self.refused, self.chains = "", 0, 0, Counter(), set()

    def end(self, operation: int, part: int, code: str) -> None:
        """Tell what became of the task."""
        self.close()
        events = sum(row.events for row in self.rows if row.kind == "deliver")
        like = replace(self._row("intent", "READ", 0), source=f"part {part + 1}")
        self.place.end(operation, like, code, events=events, rows=self.rows, part=part)

    def _row(self, kind: str, code: str, events: int) -> AuditRow:
        return AuditRow(
            at=self.at, kind=kind, principal=self.place.principal(self.client), type_id=self.plan.type_id.hex(),
            source=self.file, subject=self.client, code=code, events=events,
        )  # fmt: skip


def _with_event_id(batch: pa.RecordBatch, opened: Opened, rows: np.ndarray) -> pa.RecordBatch:
    names = pa.array(opened.event_ids(rows.tolist()), type=pa.string())
    stamps = pa.array(np.full(batch.num_rows, opened.header.stamp, dtype=np.int64))
    fields = [
        *batch.schema,
        pa.field(EVENT, pa.string(), nullable=False),
        pa.field(STAMP, pa.int64(), nullable=False),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, names, stamps], schema=pa.schema(fields))
