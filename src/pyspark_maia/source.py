"""The data source: reader and writer, batch and streaming, over a home and its log."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from maia.authority import Action
from maia.broker import Opened
from maia.encryption import KeyProvider
from maia.errors import DeniedError, NotFoundError, UnavailableError, UsageError, VerificationError
from maia.events import ClosedAttributes, EventType, to_spark_json
from maia.pipeline import (
    EVENT,
    STAMP,
    AuditRow,
    DeliverPlan,
    LogDirectory,
    LogFile,
    PublishPlan,
    RefusedRows,
    Repeats,
    chain_hash,
    deliver_once,
    parcel_row,
    publish_batches,
    write_audit,
    write_refused,
)
from maia.pipeline.follow import LogFollower, Offset, check_offset
from maia.stores import Home, HomeKeys, deliver_plan, publish_plan
from pyspark_maia.options import SourceOptions

_FILE_COST = 4 << 20
_MAX_TASK = 64 << 20


def _now() -> datetime:
    return datetime.now(UTC)


class DefaultSource(DataSource):
    """Events of one type as a client of a domain may publish or see them."""

    @classmethod
    def name(cls) -> str:
        """Answer to ``format("maia")``."""
        return "maia"

    def _asked(self) -> SourceOptions:
        return SourceOptions.of(self.options)

    def schema(self) -> StructType:
        """Return the schema of the client's version."""
        asked = self._asked()
        home = Home.open(asked.home)
        event_type = home.read_type(home.find_type(asked.type, asked.version))
        schema = StructType.fromJson(json.loads(to_spark_json(event_type)))
        if event_type.options.closed is ClosedAttributes.OMIT:
            shown = _open_attributes(home, asked, event_type)
            schema = StructType([item for item in schema.fields if item.name in shown])
        if asked.shows_event_id:
            extra = [
                StructField(EVENT, StringType(), nullable=False),
                StructField(STAMP, LongType(), nullable=False),
            ]
            schema = StructType([*schema.fields, *extra])
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what the log holds now."""
        return MaiaReader(replace(self._asked(), columns=tuple(schema.names)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Follow the log commit by commit."""
        return MaiaStreamReader(replace(self._asked(), columns=tuple(schema.names)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002, FBT001
        """Publish a batch."""
        return MaiaWriter(self._asked())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, FBT001, N802
        """Publish a stream, each micro-batch once."""
        return MaiaStreamWriter(self._asked())


@dataclass(frozen=True, slots=True)
class LogPart:
    """One file of the log, whose origin says which events it holds, and the repetitions in it."""

    origin: str
    file: LogFile
    again: frozenset[int]


@dataclass
class LogPartition(InputPartition):
    """Files of the log for one task, and the plan by which they are read. The plan holds clauses, no keys."""

    parts: tuple[LogPart, ...]
    plan: DeliverPlan
    asked: SourceOptions

    def __init__(self, parts: tuple[LogPart, ...], plan: DeliverPlan, asked: SourceOptions) -> None:
        """Carry them to a worker."""
        super().__init__(parts[0].file.path)
        self.parts = parts
        self.plan = plan
        self.asked = asked


def _partitions(asked: SourceOptions, after: int, upto: int, *, history: bool) -> list[InputPartition]:
    home = Home.open(asked.home)
    log = LogDirectory(home.log_path)
    commits = list(log.commits(after=after, upto=upto))
    plan = deliver_plan(
        home, asked.type, as_=asked.as_, where=asked.where, version=asked.version, commits=commits, at=_now(),
        history=history,
    )  # fmt: skip
    names = plan.type_ids()
    commits = [commit for commit in commits if commit.type_id in names]
    repeats = Repeats(log)
    plan, again = replace(plan, horizon=repeats.horizon), repeats.of(commits)
    parts = [
        LogPart(commit.origin, file, again[commit.sequence, file.path]) for commit in commits for file in commit.files
    ]
    return [LogPartition(group, plan, asked) for group in _packed(parts, cores=os.cpu_count() or 1)]


def _packed(parts: Sequence[LogPart], *, cores: int) -> list[tuple[LogPart, ...]]:
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


def _open_attributes(home: Home, asked: SourceOptions, event_type: EventType) -> set[str]:
    """Name the attributes that some clause of the client opens now, for types that leave no trace of the others.

    A stream keeps its columns: what is closed later becomes null there, what is opened later is seen by a new stream.
    """
    at = _now()
    sessions = home.sessions(at=at)
    name = event_type.name
    version = sessions.event_type(name.type_id, name.version.text, at=at)
    clauses = sessions.require_clauses(home.key(asked.as_), Action.SUBSCRIBE, version, home.pool(), at=at)
    return {item.name for item in version.attributes if any(clause.opens(item.uid) for clause in clauses)}


def _refuse(asked: SourceOptions, after: int, upto: int, code: str) -> None:
    """Put into the audit that a stream was refused a stretch of the log."""
    home = Home.open(asked.home)
    name = home.find_type(asked.type, asked.version)
    commits = LogDirectory(home.log_path).commits(after=after, upto=upto)
    names = {identity.hex() for identity in home.wire_ids(name.type_id)}
    events = sum(commit.events for commit in commits if commit.type_id in names)
    row = AuditRow(
        at=_now(), kind="refuse", principal=home.key(asked.as_).fingerprint, type_id=name.type_id.hex(),
        source=f"commits {after + 1} to {upto}", subject=asked.as_, code=code, events=events,
    )  # fmt: skip
    write_audit(home.path / "audit", [row])


def _read(partition: LogPartition) -> Iterator[pa.RecordBatch]:
    """Open, match and screen the files of one task, and write the audit of each."""
    home, keys = Home.open(partition.asked.home), HomeKeys(partition.asked.home)()
    for part in partition.parts:
        yield from _read_part(home, keys, part, partition.plan, partition.asked)


def _read_part(
    home: Home, keys: KeyProvider, part: LogPart, plan: DeliverPlan, asked: SourceOptions
) -> Iterator[pa.RecordBatch]:
    client = home.key(asked.as_).fingerprint
    refused: dict[str, int] = {}
    delivered, chains, seen = 0, set[str](), 0
    log = LogDirectory(home.log_path)
    for outcome in deliver_once(plan, log, keys, origin=part.origin, file=part.file, again=part.again):
        seen += outcome.events
        if outcome.refused is not None:
            refused[outcome.refused] = refused.get(outcome.refused, 0) + outcome.events
            continue
        for delivery in outcome.deliveries:
            delivered += delivery.batch.num_rows
            chains.update(chain_hash(clause.chain) for clause in delivery.clauses)
            batch = delivery.batch
            if asked.shows_event_id and outcome.opened is not None:
                batch = _with_event_id(batch, outcome.opened, delivery.rows)
            yield batch if asked.columns is None else batch.select(list(asked.columns))
    row = partial(
        AuditRow, at=_now(), principal=client, type_id=plan.type_id.hex(), source=part.file.path, subject=asked.as_
    )
    unseen = seen - delivered - sum(refused.values())
    rows = [row(kind="deliver", code="OK", events=delivered, clauses=tuple(sorted(chains)))]
    rows += [row(kind="refuse", code=code, events=count) for code, count in sorted(refused.items())]
    write_audit(home.path / "audit", [*rows, row(kind="withhold", code="NO_MATCH", events=unseen)])


def _with_event_id(batch: pa.RecordBatch, opened: Opened, rows: np.ndarray) -> pa.RecordBatch:
    names = pa.array(opened.event_ids(rows.tolist()), type=pa.string())
    stamps = pa.array(np.full(batch.num_rows, opened.header.stamp, dtype=np.int64))
    fields = [
        *batch.schema,
        pa.field(EVENT, pa.string(), nullable=False),
        pa.field(STAMP, pa.int64(), nullable=False),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, names, stamps], schema=pa.schema(fields))


class MaiaReader(DataSourceReader):
    """Reads the log as one client may see it now."""

    def __init__(self, asked: SourceOptions) -> None:
        """Remember what was asked for."""
        self.asked = asked

    def partitions(self) -> Sequence[InputPartition]:
        """Plan on the driver; a refused client or filter fails here, before anything is read."""
        log = LogDirectory(Home.open(self.asked.home).log_path)
        return _partitions(self.asked, log.expired(), log.latest(), history=True)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one file on a worker."""
        if isinstance(partition, LogPartition):
            yield from _read(partition)


class MaiaStreamReader(LogFollower):
    """Follows the log; rights, subscriptions and statements are looked at anew for each micro-batch."""

    def __init__(self, asked: SourceOptions) -> None:
        """Remember what was asked for."""
        log = LogDirectory(Home.open(asked.home).log_path)
        super().__init__(log, first=asked.starting_offsets, most=int(asked.max_commits))
        self.asked = asked

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan one micro-batch with the rights of now; a client that lost its right sees nothing of it."""
        after, upto = check_offset(self.log, start), check_offset(self.log, end)
        try:
            return _partitions(self.asked, after, upto, history=True)
        except (VerificationError, DeniedError) as error:
            _refuse(self.asked, after, upto, error.code)
            return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one file on a worker."""
        if isinstance(partition, LogPartition):
            yield from _read(partition)


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    file: LogFile | None
    refused: dict[str, int]
    nulled: int
    forced: int
    letters: tuple[RefusedRows, ...] = ()
    query: str = ""
    sealed_as: tuple[str, str] | None = None
    """The id of the type and the hash of the evidence that its parcels bear."""


def _write(plan: PublishPlan, asked: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    home = Home.open(asked.home)
    writer = LogDirectory(home.log_path).writer(
        plan.publication, plan.sealing.type_id, partition, secrets.token_hex(8), at=_now()
    )
    refused: dict[str, int] = {}
    letters: dict[str, list[int]] = {}
    nulled = forced = 0
    for sealed in publish_batches(plan, partition, batches, home.broker, home.sealing_keys(), home.next_stamp):
        if sealed.parcel is not None:
            writer.add(parcel_row(sealed.parcel))
        for code, count in sealed.refused.items():
            refused[code] = refused.get(code, 0) + count
        for letter in sealed.letters:
            letters.setdefault(letter.code, []).append(letter.row)
        nulled += sealed.nulled
        forced += sealed.forced
    dead = tuple(RefusedRows.of(partition, code, rows) for code, rows in sorted(letters.items()))
    bears = (plan.sealing.type_id.hex(), plan.sealing.evidence.hex())
    return Written(writer.close(), refused, nulled, forced, dead, sealed_as=bears)


def _commit(
    plan: PublishPlan,
    asked: SourceOptions,
    messages: Sequence[WriterCommitMessage | None],
    *,
    query: str = "",
    batch: int = -1,
) -> None:
    home = Home.open(asked.home)
    written = [message for message in messages if isinstance(message, Written)]
    files = tuple(message.file for message in written if message.file is not None)
    refused: dict[str, int] = {}
    for message in written:
        for code, count in message.refused.items():
            refused[code] = refused.get(code, 0) + count
    at, (type_id, evidence) = _now(), _sealed_as(plan, written)
    name = plan.publication if batch < 0 else f"{plan.publication}/{batch}"
    row = partial(AuditRow, at=at, principal=plan.principal, type_id=type_id, source=name, subject=asked.as_)
    letters = [letter for message in written for letter in message.letters]
    write_refused(
        home.path / "refused", letters, at=at, principal=plan.principal, type_id=type_id, publication=name
    )  # fmt: skip
    rows = [row(kind="publish", code="OK", events=sum(file.events for file in files))]
    rows += [row(kind="refuse", code=code, events=count) for code, count in sorted(refused.items())]
    notices = {
        "VALUE_FORCED": sum(message.forced for message in written),
        "VALUE_NULLED": sum(message.nulled for message in written),
    }
    rows += [row(kind="notice", code=code, events=count) for code, count in notices.items() if count]
    write_audit(home.path / "audit", rows)
    LogDirectory(home.log_path).commit(
        plan.publication,
        type_id,
        files,
        origin=home.broker.public_key.key_id.hex(),
        evidence=evidence,
        refused=sum(refused.values()),
        query=query,
        batch=batch,
    )


def _sealed_as(plan: PublishPlan, written: Sequence[Written]) -> tuple[str, str]:
    """Tell the id and the evidence that the parcels bear; a stream's change with the keys and rights of the network.

    Raises:
        UnavailableError: They changed while the tasks of one micro-batch ran: it is repeated as a whole.
    """
    found = {item.sealed_as for item in written if item.file is not None and item.sealed_as is not None}
    if len(found) > 1:
        raise UnavailableError("keys or rights changed within a micro-batch; repeat it", code="PLAN_CHANGED")
    return found.pop() if found else (plan.sealing.type_id.hex(), plan.sealing.evidence.hex())


def _plan(asked: SourceOptions, publication: str) -> PublishPlan:
    return publish_plan(
        Home.open(asked.home), asked.type, as_=asked.as_, version=asked.version, publication=publication, at=_now(),
        max_events=int(asked.max_events),
    )  # fmt: skip


class MaiaWriter(DataSourceArrowWriter):
    """Publishes a batch: enforced and sealed on the workers, made to count by one commit."""

    def __init__(self, asked: SourceOptions) -> None:
        """Advertise now; a client without the right fails before anything is written."""
        self.asked = asked
        self.plan = _plan(asked, asked.publication or secrets.token_hex(16))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker."""
        return _write(self.plan, self.asked, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all files of the publication count, at once."""
        _commit(self.plan, self.asked, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave what was written as ciphertext that no commit names."""


class MaiaStreamWriter(DataSourceStreamArrowWriter):
    """Publishes a stream; a micro-batch that Spark repeats is recognised by its number and counts once.

    The plan is made anew for each micro-batch, where it is used: a right that ended refuses the rows that come after.
    A checkpoint that was lost, replaced or taken from another time is recognised by the log, which refuses to go on:
    see `LogDirectory.commit`.
    """

    def __init__(self, asked: SourceOptions) -> None:
        """Advertise now; a client without the right fails before the stream starts."""
        if asked.publication is None:
            raise UsageError(
                "a stream that publishes needs the option `publication`: a name that stays the same after a restart",
                code="MISSING_OPTION",
            )
        self.asked = asked
        self.plan = _plan(asked, asked.publication)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker, with the rights of now."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        if batch is None or query is None:
            raise UsageError("a stream is published by a streaming query", code="NO_STREAMING_QUERY")
        try:
            # INVARIANT: names of events hold the micro-batch, so no two micro-batches share one.
            plan = _plan(self.asked, f"{self.asked.publication}/{batch}")
        except (VerificationError, DeniedError, NotFoundError) as error:
            count = sum(rows.num_rows for rows in iterator)
            partition = 0 if context is None else context.partitionId()
            letters = (RefusedRows.of(partition, error.code, range(count)),)
            return Written(None, {error.code: count}, 0, 0, letters, query)
        return replace(_write(plan, self.asked, iterator), query=query)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the micro-batch count, once."""
        queries = {message.query for message in messages if isinstance(message, Written)}
        if len(queries) != 1:
            raise UsageError("a stream is published by one streaming query", code="NO_STREAMING_QUERY")
        _commit(self.plan, self.asked, messages, query=queries.pop(), batch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave what was written as ciphertext that no commit names."""
