"""`spark.read.format("maia")`: the data source, batch and streaming, reading and writing.

Spark makes and asks these objects in processes of its own; each opens the domain where it is, and what travels between
them is a plan without keys.
"""

from __future__ import annotations

import json

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from maia.authority import Action
from maia.domain import Domain
from maia.errors import UsageError
from maia.events import ClosedAttributes, EventType, to_spark_json
from maia.log import EVENT, STAMP
from maia.spark.options import SourceOptions
from maia.spark.reader import MaiaReader, MaiaStreamReader
from maia.spark.writer import MaiaStreamWriter, MaiaWriter


class DefaultSource(DataSource):
    """Events of one type as a client of a domain may publish or see them."""

    @classmethod
    def name(cls) -> str:
        """Answer to ``format("maia")``."""
        return "maia"

    def _asked(self) -> SourceOptions:
        return SourceOptions.of(self.options)

    def schema(self) -> StructType:
        """Return the schema of the client's version: the attributes that it asked for, or all."""
        asked = self._asked()
        domain = Domain.open(asked.home)
        event_type = domain.event_type(asked.type, asked.version)
        fields = {item.name: item for item in StructType.fromJson(json.loads(to_spark_json(event_type))).fields}
        if event_type.options.closed is ClosedAttributes.OMIT:
            shown = _open_attributes(domain, asked, event_type)
            fields = {name: item for name, item in fields.items() if name in shown}
        if asked.attributes is not None:
            unknown = [name for name in asked.attributes if name not in fields]
            if unknown:
                raise UsageError(f"`{event_type.name.name}` has no attribute `{unknown[0]}`", code="NO_ATTRIBUTE")
            fields = {name: fields[name] for name in asked.attributes}
        if asked.with_event_id:
            fields[EVENT] = StructField(EVENT, StringType(), nullable=False)
            fields[STAMP] = StructField(STAMP, LongType(), nullable=False)
        return StructType(list(fields.values()))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what the log holds now."""
        return MaiaReader(self._asked(), tuple(schema.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Follow the log commit by commit."""
        return MaiaStreamReader(self._asked(), tuple(schema.names))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002, FBT001
        """Publish a batch.

        Raises:
            UsageError: It was to replace what is there: ``NO_OVERWRITE``.
        """
        if overwrite:
            raise UsageError('the log only grows: publish with `mode("append")`', code="NO_OVERWRITE")
        return MaiaWriter(self._asked())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, FBT001, N802
        """Publish a stream, each micro-batch once.

        Raises:
            UsageError: It was to replace what is there: ``NO_OVERWRITE``.
        """
        if overwrite:
            raise UsageError('the log only grows: publish with `outputMode("append")`', code="NO_OVERWRITE")
        return MaiaStreamWriter(self._asked())


def _open_attributes(domain: Domain, asked: SourceOptions, event_type: EventType) -> set[str]:
    """Name the attributes that some clause of the client opens now, for types that leave no trace of the others.

    A stream keeps its columns: what is closed later becomes null there, what is opened later is seen by a new stream.
    """
    at = domain.clock()
    known = domain.known(at=at)
    client = domain.home.key(asked.as_)
    clauses = known.sessions.require_clauses(client, Action.SUBSCRIBE, event_type, known.pool, at=at)
    return {item.name for item in event_type.attributes if any(clause.opens(item.uid) for clause in clauses)}
