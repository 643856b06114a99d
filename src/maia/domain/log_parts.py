"""Reading a stretch of the log for one client: planned on the driver, run file by file where the keys are.

Rules kept here:

- a plan holds clauses and places, no key; a worker opens the home's keys where it runs;
- small files share a task, so that a task costs about the same whatever the sizes of files;
- what was delivered, refused and withheld of each file is in the audit;
- a plan that is over opens nothing, and so does one whose rights the home has heard to be withdrawn since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa

from maia.domain.origins import origin_of, stamps_of
from maia.domain.sealing_keys import SealingKeys
from maia.errors import EncodingError, PlanOverError, UnavailableError
from maia.home import Home
from maia.kernel import Clock, DeliverPlan, Opened, Outcome
from maia.log import (
    EVENT,
    STAMP,
    AuditRow,
    Commit,
    LogDirectory,
    LogFile,
    chain_hash,
    deliver_segment,
    write_audit,
)

_FILE_COST = 4 << 20
_MAX_TASK = 64 << 20


@dataclass(frozen=True, slots=True)
class LogPart:
    """One segment of a lane."""

    lane: str
    file: LogFile

    @property
    def origin(self) -> str:
        """Whose lane it is, in hex."""
        return self.lane.partition("/")[2]


def refusal(commit: Commit, plan: DeliverPlan) -> str:
    """Tell why nothing of a commit is opened; empty when its origin had the right then and it is as it must be."""
    if commit.wrong:
        return commit.wrong
    return "" if plan.admits(origin_of(commit), *stamps_of(commit)) else "ORIGIN_NOT_PROVEN"


def parts_of(commits: Sequence[Commit], plan: DeliverPlan) -> list[LogPart]:
    """List the segments of the commits that may be opened, in the order of the log."""
    return [LogPart(commit.lane, file) for commit in commits if not refusal(commit, plan) for file in commit.files]


def audit_refused(home: Home, plan: DeliverPlan, commits: Sequence[Commit], *, client: str, at: datetime) -> None:
    """Put into the audit which commits were refused as a whole, before anything of them was opened."""
    principal = home.key(client).fingerprint
    write_audit(
        home.audit_path,
        [
            AuditRow(
                at=at, kind="refuse", principal=principal, type_id=plan.type_id.hex(),
                source=f"commit {commit.sequence} of {commit.lane}", subject=client, code=code, events=commit.events,
            )
            for commit in commits
            if (code := refusal(commit, plan))
        ],
    )  # fmt: skip


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
    home: Home,
    plan: DeliverPlan,
    parts: Sequence[LogPart],
    *,
    client: str,
    columns: Sequence[str] | None,
    with_event_id: bool,
    clock: Clock,
    lenient: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Open, match and screen files for one client, and write the audit of each.

    Args:
        home: Whose keys open them.
        plan: With the client's one subscription.
        parts: The files.
        client: What the client is called here.
        columns: Which columns to give, in which order; all when there are none.
        with_event_id: Add ``_event`` and ``_stamp``.
        clock: Tells what time it is where this runs.
        lenient: Pass by a segment that is damaged or missing, with an alarm in the audit, as a reader without an
            offset may: the others come, and this one comes when it is there again.

    Raises:
        PlanOverError: The plan is over, or a right behind it was withdrawn: ``PLAN_OVER``.
    """
    at = clock()
    plan.term.check_statements(home.statements.load(), at=at)
    keys, compiled, log = SealingKeys(home), plan.compiled(), LogDirectory(home.log_path)
    principal = home.key(client).fingerprint
    for part in parts:
        refused: Counter[str] = Counter()
        delivered, seen, chains = 0, 0, set[str]()
        parcels = log.parcels(part.lane, part.file)
        outcomes = deliver_segment(
            plan, parcels, keys, file=part.file, origin=part.origin, clock=clock, compiled=compiled
        )
        for outcome in _told(home, outcomes, part, client, at) if lenient else outcomes:
            seen += outcome.events
            if outcome.refused is not None:
                refused[outcome.refused] += outcome.events
                continue
            for delivery in outcome.deliveries:
                delivered += delivery.batch.num_rows
                chains.update(chain_hash(clause.chain) for clause in delivery.clauses)
                batch = delivery.batch
                if with_event_id and outcome.opened is not None:
                    batch = _with_event_id(batch, outcome.opened, delivery.rows)
                yield batch if columns is None else batch.select(list(columns))
        row = partial(
            AuditRow, at=at, principal=principal, type_id=plan.type_id.hex(), source=part.file.path, subject=client
        )
        rows = [row(kind="deliver", code="OK", events=delivered, clauses=tuple(sorted(chains)))]
        rows += [row(kind="refuse", code=code, events=count) for code, count in sorted(refused.items())]
        unseen = seen - delivered - sum(refused.values())
        write_audit(home.audit_path, [*rows, row(kind="withhold", code="NO_MATCH", events=unseen)])


def _told(home: Home, outcomes: Iterator[Outcome], part: LogPart, client: str, at: datetime) -> Iterator[Outcome]:
    """End a segment that cannot be read with an alarm."""
    try:
        yield from outcomes
    except PlanOverError:
        raise  # nothing is wrong with the segment
    except (UnavailableError, EncodingError) as error:
        row = AuditRow(
            at=at, kind="alarm", principal=home.broker.public_key.fingerprint, type_id=part.lane.partition("/")[0],
            source=part.lane, subject=client, code=error.code, events=part.file.events,
        )  # fmt: skip
        write_audit(home.audit_path, [row])


def _with_event_id(batch: pa.RecordBatch, opened: Opened, rows: np.ndarray) -> pa.RecordBatch:
    names = pa.array(opened.event_ids(rows.tolist()), type=pa.string())
    stamps = pa.array(np.full(batch.num_rows, opened.header.stamp, dtype=np.int64))
    fields = [
        *batch.schema,
        pa.field(EVENT, pa.string(), nullable=False),
        pa.field(STAMP, pa.int64(), nullable=False),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, names, stamps], schema=pa.schema(fields))
