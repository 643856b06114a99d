"""One publication of a domain: files written by tasks, and the one commit that makes them count.

Rules kept here:

- a task opens what it needs from the home where it runs: no key travels to it. On a worker (`orders`) it seals under
  keys of its own, and what it wrote is sealed again under the domain's by whoever commits;
- files count together or not at all, once per publication, or once per micro-batch of a stream;
- every row is accounted for: published, or refused with a code, in the audit and as a dead letter;
- the audit has the intent before a row is taken, and the result when the commit counts, or the code of what stopped it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from maia.domain.operations import Operation, audit_of, intent_to_publish
from maia.domain.orders import TaskKeys
from maia.domain.restamping import check_names, check_signed_here, not_ours, stamp_anew
from maia.domain.trace import trace_of
from maia.domain.workplaces import BesideHome, Workplace
from maia.encoding import counted, html_table
from maia.errors import RowsRefusedError, UnavailableError
from maia.events import TypeId, in_zone, parse_offset
from maia.home import Home
from maia.kernel import ROUTE, PublishPlan, publish_batches
from maia.log import (
    OK,
    AuditRow,
    Commit,
    LogDirectory,
    LogFile,
    OwnLanes,
    RefusedRows,
    write_refused,
)

Reason = tuple[str, str]
"""Why a row was refused: a code, and the column at fault; empty when no single one is."""
LANES = "lanes"
"""Where a home keeps its own record of what it committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one task wrote."""

    file: LogFile | None
    letters: tuple[RefusedRows, ...] = ()
    nulled: int = 0
    forced: int = 0
    query: str = ""
    sealed_as: tuple[str, str] | None = None
    """The id of the type and the hash of the evidence that its parcels bear."""
    by_task: bool = False
    """Whether a worker wrote it, under the keys of its task."""

    def to_json(self) -> str:
        """Write it for its way back to the driver."""
        letters = [{**asdict(letter), "rows": b64encode(letter.rows).decode()} for letter in self.letters]
        plain = replace(self, letters=())
        return json.dumps({**asdict(plain), "letters": letters})

    @classmethod
    def from_json(cls, text: str) -> Written:
        """Read what one of our own tasks wrote."""
        value = json.loads(text)
        file, letters, bears = value.pop("file"), value.pop("letters"), value.pop("sealed_as")
        if file is not None:
            file["bases"] = tuple(file["bases"])
        return cls(
            file=None if file is None else LogFile(**file),
            letters=tuple(RefusedRows(**{**letter, "rows": b64decode(letter["rows"])}) for letter in letters),
            sealed_as=None if bears is None else (bears[0], bears[1]),
            **value,
        )

    @property
    def refused(self) -> dict[Reason, int]:
        """Count the refused rows by reason."""
        found: Counter[Reason] = Counter()
        for letter in self.letters:
            found[letter.code, letter.column] += letter.count
        return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What became of a publication.

    Attributes:
        publication: Its name; publishing again under this name counts once.
        commit: The number of the commit in the log that made it count; none when there was nothing to commit.
        events: How many events are in the log now.
        refused: Rows that went no further, by code and column.
        forced: Events in which a value was set as the publisher's right demands.
        nulled: Events that lost a value that the publisher may not set.
        repeated: Whether it had been published before; then nothing was added now.
    """

    publication: str
    commit: int | None
    events: int
    refused: Mapping[Reason, int] = field(default_factory=dict)
    forced: int = 0
    nulled: int = 0
    repeated: bool = False

    def __add__(self, other: Published) -> Published:
        """Add up what became of two stretches of one publication; the name is that of the first."""
        return replace(
            self, commit=max((c for c in (self.commit, other.commit) if c is not None), default=None),
            events=self.events + other.events, refused=dict(Counter(self.refused) + Counter(other.refused)),
            forced=self.forced + other.forced, nulled=self.nulled + other.nulled,
            repeated=self.repeated or other.repeated,
        )  # fmt: skip

    def __str__(self) -> str:
        """Say it in a line, and each refusal in one of its own."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Say it, one fact a line."""
        again = ", as before" if self.repeated else ""
        where = "" if self.commit is None else f" in commit {self.commit}"
        out = [f"published {counted(self.events, 'event')}{where}{again}"]
        out += [
            f"refused {counted(count, 'row')}: {code}{f' in `{column}`' if column else ''}"
            for (code, column), count in sorted(self.refused.items())
        ]
        if self.forced:
            out.append(f"forced a value in {counted(self.forced, 'event')}")
        if self.nulled:
            out.append(f"nulled a value that may not be set in {counted(self.nulled, 'event')}")
        return out

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "publication": self.publication, "commit": self.commit, "events": self.events,
            "refused": [
                {"code": code, "column": column or None, "rows": count}
                for (code, column), count in sorted(self.refused.items())
            ],
            "forced": self.forced, "nulled": self.nulled, "repeated": self.repeated,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [("events", "", str(self.events)), ("forced", "", str(self.forced)), ("nulled", "", str(self.nulled))]
        rows += [(f"refused: {code}", column, str(count)) for (code, column), count in sorted(self.refused.items())]
        where = "no commit" if self.commit is None else f"commit {self.commit}"
        return html_table(f"publication {self.publication}, {where}", ("what", "column", "rows"), rows)


def write_partition(
    place: Home | Workplace,
    plan: PublishPlan,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    *,
    at: datetime,
    naive_timestamps: str | None = None,
) -> Written:
    """Enforce and seal one partition of a publication, into a file of the log that no commit names yet.

    Times without a zone are of ``naive_timestamps``; without it, their rows are refused like others of another type.

    Raises:
        PlanOverError: The plan is over, or a right behind it was withdrawn: ``PLAN_OVER``.
    """
    here = BesideHome(place) if isinstance(place, Home) else place
    here.check(plan.term, at=at)
    if naive_timestamps is not None:
        ahead = parse_offset(naive_timestamps)
        batches = (in_zone(batch, ahead) for batch in batches)
    letters: dict[Reason, list[int]] = {}
    nulled = forced = 0
    trace = here.trace("publish", plan.publication)
    with LogDirectory(here.store).writer(
        plan.publication, plan.sealing.type_id, partition, here.broker.key_id, at=at
    ) as writer:
        for sealed in publish_batches(
            plan, partition, batches, here.signer, here.keys(), here.next_stamp, tell=trace.tell
        ):
            trace.write(at=at)
            if sealed.parcel is not None:
                writer.add(sealed.parcel)
            for letter in sealed.letters:
                letters.setdefault((letter.code, letter.column), []).append(letter.row)
            nulled += sealed.nulled
            forced += sealed.forced
        made = writer.close()
    dead = tuple(
        RefusedRows.of(partition, code, rows, column=column) for (code, column), rows in sorted(letters.items())
    )
    bears = (plan.sealing.type_id.hex(), plan.sealing.evidence.hex())
    return Written(made, dead, nulled, forced, sealed_as=bears, by_task=here.by_task)


def commit_publication(
    home: Home,
    lanes: OwnLanes,
    plan: PublishPlan,
    written: Sequence[Written],
    *,
    client: str,
    operation: int,
    at: datetime,
    query: str = "",
    batch: int = -1,
    ordered: bool = False,
    doubted: bool = False,
) -> Published:
    """Make what the tasks wrote count, once, and put into the audit what became of every row.

    Args:
        home: The publisher's domain.
        lanes: Those that its broker writes.
        plan: By which the tasks worked.
        written: What they wrote.
        client: What the publisher is called here.
        operation: The intent, by its number in the audit, see `publication_operation`.
        at: Now.
        query: For a stream, the query that writes it.
        batch: For a stream, the micro-batch.
        ordered: Whether workers wrote it, under the keys of the tasks: it is sealed again then.
        doubted: Whether only the tasks say that they are no workers: what they wrote is read, and the broker must have
            signed it.

    Raises:
        SignatureError: A task says of what it wrote what is not so: ``TASK_SIGNER``.
        MaiaError: Keys or rights changed meanwhile, or the log refuses; nothing counts then.
    """
    task = TaskKeys.of(home.broker, plan.publication, operation) if ordered else None
    intended = Operation(audit_of(home), operation, intent_to_publish(plan, client, at=at))
    with intended.failing():
        # SECURITY: who wrote it is known here; no task decides under which keys it is opened.
        if any(item.by_task != ordered for item in written):
            raise not_ours()
        if doubted and not ordered:
            check_signed_here(home, lanes.log, [item.file for item in written if item.file is not None])
        done, rows = _commit(home, lanes, plan, written, client=client, at=at, query=query, batch=batch, task=task)
    intended.end(OK, events=0 if done.repeated else done.events, rows=rows)
    return done


def publication_operation(
    home: Home, plan: PublishPlan, *, client: str, at: datetime, process: str | None = None
) -> Operation:
    """Tell the audit what is going to be published, before a row is taken."""
    audit, intent = audit_of(home), intent_to_publish(plan, client, at=at)
    return Operation(audit, audit.begin(intent, process=process), intent)


def _commit(
    home: Home,
    lanes: OwnLanes,
    plan: PublishPlan,
    written: Sequence[Written],
    *,
    client: str,
    at: datetime,
    query: str,
    batch: int,
    task: TaskKeys | None,
) -> tuple[Published, list[AuditRow]]:
    files = tuple(item.file for item in written if item.file is not None)
    refused: Counter[Reason] = Counter()
    for item in written:
        refused.update(item.refused)
    type_id, evidence = _sealed_as(plan, written)
    name = plan.publication if batch < 0 else f"{plan.publication}/{batch}"
    check_names(home, files, type_id, name)
    forced, nulled = sum(item.forced for item in written), sum(item.nulled for item in written)
    letters = [letter for item in written for letter in item.letters]
    write_refused(
        home.path / "refused", letters, at=at, principal=plan.principal, type_id=type_id, publication=name
    )  # fmt: skip
    row = partial(AuditRow, at=at, principal=plan.principal, type_id=type_id, source=name, subject=client)
    codes: Counter[str] = Counter()
    for (code, _), count in refused.items():
        codes[code] += count
    rows = [row(kind="refuse", code=code, events=count) for code, count in sorted(codes.items())]
    notices = {"VALUE_FORCED": forced, "VALUE_NULLED": nulled}
    rows += [row(kind="notice", code=code, events=count) for code, count in notices.items() if count]
    if not files and batch < 0:  # nothing to make count; the name stays free for rows that were put right
        done = Published(publication=plan.publication, commit=None, events=0, refused=dict(refused))
        return done, [row(kind="publish", code=OK, events=0), *rows]
    # INVARIANT: between the look at the last stamp and the commit, no other publication of this home is committed.
    with lanes.turn():
        known, last = lanes.find(plan.publication), lanes.last_stamp(type_id)
        late = task is not None or any(file.first_stamp <= last for file in files)
        if late and (known is None or known.batch < batch):
            sealing = replace(plan.sealing, type_id=TypeId(bytes.fromhex(type_id)), evidence=bytes.fromhex(evidence))
            files = stamp_anew(home, lanes, files, sealing, plan.publication, at=at, task=task)
        made = _committed(
            home, lanes, plan.publication, type_id, files, evidence=evidence, refused=sum(refused.values()),
            query=query, batch=batch, at=at,
        )  # fmt: skip
    repeated = bool(files) and made.files != files
    trace = trace_of(home, "publish", name)
    trace.tell(ROUTE, made.events)
    trace.write(at=at)
    done = Published(
        publication=plan.publication, commit=made.sequence, events=made.events, refused=dict(refused), forced=forced,
        nulled=nulled, repeated=repeated,
    )  # fmt: skip
    if repeated:  # the audit counts an event once, however often its publication is repeated
        return done, [row(kind="notice", code="REPEATED", events=made.events), *rows]
    return done, [row(kind="publish", code=OK, events=made.events), *rows]


def _committed(
    home: Home,
    lanes: OwnLanes,
    publication: str,
    type_id: str,
    files: tuple[LogFile, ...],
    *,
    evidence: str,
    refused: int,
    query: str,
    batch: int,
    at: datetime,
) -> Commit:
    """Commit, and acknowledge what is durable at this home although the log does not have it yet: it is told later."""
    try:
        return lanes.commit(
            publication, type_id, files, evidence=evidence, refused=refused, query=query, batch=batch, at=at
        )
    except UnavailableError as error:
        made = lanes.find(publication) if error.code == "LANE_PENDING" else None
        if made is None:
            raise
        row = AuditRow(
            at=at, kind="alarm", principal=home.broker.public_key.fingerprint, type_id=type_id, source=made.name,
            subject=home.config.broker, code=error.code, events=made.events,
        )  # fmt: skip
        audit_of(home).note([row])
        return made


def own_lanes(home: Home, log: LogDirectory) -> OwnLanes:
    """Give the lanes that a home's broker writes."""
    return OwnLanes(log, home.path / LANES, home.broker)


def nothing_published(published: Published) -> RowsRefusedError:
    """Make the error that says which rows were refused, so that nothing is published."""
    count = sum(published.refused.values())
    why = ", ".join(f"{code} in `{column}`" if column else code for code, column in sorted(published.refused))
    what = "1 row is refused" if count == 1 else f"{count:,} rows are refused"
    return RowsRefusedError(f"{what}, so nothing is published: {why}", published=published)


def published_before(commit: Commit) -> Published:
    """Tell what became of a publication that the log holds already."""
    refused = {("REFUSED", ""): commit.refused} if commit.refused else {}
    return Published(
        publication=commit.publication, commit=commit.sequence, events=commit.events, refused=refused, repeated=True
    )


def _sealed_as(plan: PublishPlan, written: Sequence[Written]) -> tuple[str, str]:
    """Tell the id and the evidence that the parcels bear; a stream's change with the keys and rights of the network.

    Raises:
        SignatureError: They bear others than the plan says: ``TASK_SIGNER``.
        UnavailableError: They changed while the tasks of one micro-batch ran: it is repeated as a whole.
    """
    found = {item.sealed_as for item in written if item.file is not None and item.sealed_as is not None}
    if len(found) > 1:
        raise UnavailableError("keys or rights changed within a micro-batch; repeat it", code="PLAN_CHANGED")
    own = (plan.sealing.type_id.hex(), plan.sealing.evidence.hex())
    # SECURITY: the plan says into which lane this goes and by which right, not a task.
    if found - {own}:
        raise not_ours()
    return own
