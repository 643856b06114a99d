"""The log as a stream of places: what streaming queries follow. Needs pyspark.

An offset is a map from lanes to places, and a place is a number, a stamp and a digest: a checkpoint knows its lanes
again and refuses others under the same path. A lane that is in doubt stays where it is; the others go on.

The offset of a delivery job has a *turn* besides: the micro-batch after which a subscription that waited can go on. It
makes Spark run a micro-batch although the log has nothing new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StringType, StructField, StructType

from maia.domain import (
    JOB,
    Domain,
    Stretch,
    delivery_job,
    keep_parked,
    next_stretch,
    parse_wanted,
    wire_types,
)
from maia.errors import EncodingError, MaiaError, UsageError
from maia.log import Places, read_place
from maia.spark.guard import places_in
from maia.spark.one_line import in_one_line

Offset = dict[str, str]
MAX_COMMITS = 64
TURN = "turn"
"""Where an offset keeps the turn of a delivery job."""
_SCHEMA = pa.schema([pa.field("lane", pa.string(), nullable=False), pa.field("place", pa.string(), nullable=False)])


class LogFollower(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offers the commits of a log lane by lane, a bounded number at a time."""

    def __init__(self, home: str, *, reader: str, first: str = "earliest", most: int = MAX_COMMITS) -> None:
        """Follow a home's log from the beginning of its lanes, after their ends, or after given places."""
        self.home = home
        self._reader = reader
        self._first = first
        self._most = most
        self._end: Places | None = None
        self._domain: Domain | None = None

    def __getstate__(self) -> dict[str, object]:
        """Travel to workers without what was opened on the driver."""
        return {**self.__dict__, "_domain": None}

    @property
    def domain(self) -> Domain:
        """The home, opened where this is called."""
        if self._domain is None:
            self._domain = Domain.open(self.home)
        return self._domain

    def stretch(
        self, after: Places, *, at: datetime, most: int | None = None, upto: Places | None = None, deep: bool = True
    ) -> Stretch:
        """Find what can be gone through after an offset; of every type that the domain knows."""
        types = wire_types(self.domain, self.domain.known(at=at))
        return next_stretch(self.domain, types, after=after, at=at, most=most, upto=upto, deep=deep)

    def ends(self, *, at: datetime) -> Offset:
        """Tell where the lanes end now."""
        return self.domain.log.ends(wire_types(self.domain, self.domain.known(at=at)))

    def judge(self, start: Places, found: Stretch, *, at: datetime) -> None:
        """See that what was found can be offered; whoever has a client looks at its right.

        Raises:
            MaiaError: It cannot, see `doubt`.
        """

    def doubt(self, error: MaiaError, *, at: datetime) -> str:  # noqa: ARG002 - whoever has a client looks
        """Tell the doubt behind an error, for which everything waits; empty when it is none."""
        return ""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Start where it was asked."""
        with in_one_line():
            if self._first == "latest":
                return self.ends(at=self.domain.follow())
            return {} if self._first == "earliest" else read_offset(self._first)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Bound a micro-batch."""
        return ReadMaxFiles(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember where to end."""
        self._end = self.ends(at=self.domain.follow())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Offer the next commits, about so many; what is in doubt waits."""
        with in_one_line():
            at = self.domain.follow()
            most = None if isinstance(limit, ReadAllAvailable) else self._most
            turn = {key: text for key, text in start.items() if key == TURN}
            places = places_in(start)
            try:
                found = self.stretch(places, at=at, most=most, upto=self._within(places))
                if dict(found.upto) != places:  # nobody is asked about a right while there is nothing to see
                    self.judge(places, found, at=at)
            except MaiaError as error:
                code = self.doubt(error, at=at)
                if not code:
                    raise
                keep_parked(self.domain.home, self._reader, [("/", code)], at=at)
                return start
            keep_parked(self.domain.home, self._reader, found.alarms, at=at)
            return self.turned({**found.upto, **turn}, at=at)

    def turned(self, offset: Offset, *, at: datetime) -> Offset:  # noqa: ARG002 - whoever has subscriptions looks
        """Add what makes a micro-batch due although the log has nothing new."""
        return offset

    def _within(self, start: Offset) -> Places | None:
        """Give the end that a run over what there is now goes to; of lanes that are beyond it, where they are."""
        if self._end is None:
            return None
        return {
            lane: place
            for lane, place in self._end.items()
            if lane not in start or read_place(place)[0].number > read_place(start[lane])[0].number
        }

    def commit(self, end: Offset) -> None:
        """Nothing to release: lanes keep their commits until they expire."""


def read_offset(text: str) -> Offset:
    """Read an offset that somebody gives by hand: a JSON object from lanes to places.

    Raises:
        UsageError: It is none: ``OPTION_VALUE``.
    """
    try:
        found = json.loads(text)
        for place in found.values():
            read_place(place)
    except (ValueError, TypeError, AttributeError, EncodingError) as error:
        raise UsageError("an offset is a JSON object from lanes to places", code="OPTION_VALUE") from error
    return dict(found)


@dataclass
class PlaceRange(InputPartition):
    """Where a stretch of the log ends."""

    upto: Offset

    def __init__(self, upto: Offset) -> None:
        """Go up to these places."""
        super().__init__(0)
        self.upto = upto


class PlaceReader(LogFollower):
    """Gives the places themselves, to the delivery job."""

    def __init__(self, home: str, *, first: str, outbox: str, wanted: str | None) -> None:
        """Follow a home's log for an outbox; ``wanted`` are subscriptions other than those that the home keeps."""
        super().__init__(home, reader=JOB, first=first)
        self._outbox = outbox
        self._wanted = None if wanted is None else parse_wanted(wanted)

    def turned(self, offset: Offset, *, at: datetime) -> Offset:
        """Give the next turn when somebody who waited can go on."""
        job = delivery_job(self.domain, self._wanted, outbox=self._outbox)
        return {**offset, TURN: str(job.outbox.latest())} if job.due(at=at) else offset

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # noqa: ARG002 - Spark's signature
        """Give the whole stretch to one task: places are small."""
        return [PlaceRange(end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the places."""
        if isinstance(partition, PlaceRange):
            columns = [pa.array(list(values), type=pa.string()) for values in (partition.upto, partition.upto.values())]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


class LogSource(DataSource):
    """The places of a log as a stream: what a delivery job follows."""

    @classmethod
    def name(cls) -> str:
        """Answer to this format, once registered."""
        return "maia_log"

    def schema(self) -> StructType:
        """A lane and the place up to which it is covered."""
        return StructType([StructField(name, StringType(), nullable=False) for name in _SCHEMA.names])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        """Follow the log."""
        options = self.options
        return PlaceReader(
            options["home"], first=options["first"], outbox=options["outbox"], wanted=options.get("wanted")
        )
