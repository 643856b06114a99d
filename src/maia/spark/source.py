"""`spark.read.format("maia")`: the data source, batch and streaming, reading and writing.

Spark makes and asks these objects in processes of its own; each opens the domain where it is, and what travels between
them is a plan without keys. Rules kept here:

- options are read once, into typed values, and the home is an absolute path from then on;
- a table of Spark's catalogue keeps its options in the metadata of its columns, since Spark hands a table's options to
  nobody but the one who made it;
- a schema that the user gives projects: attributes of the type, with their types, in any order;
- the log only grows: overwriting is refused; so are columns that no event could have;
- an error leaves as one line with its code, without the frames of two interpreters around it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from maia.domain import Domain, plan_parts
from maia.encoding import did_you_mean
from maia.errors import UsageError
from maia.events import ClosedAttributes, EventType, to_spark_json
from maia.log import EVENT, STAMP
from maia.spark.fitting import check_writable
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.reader import MaiaReader, MaiaStreamReader
from maia.spark.writer import MaiaStreamWriter, MaiaWriter, plan_publication

_TABLE = "maia"
"""Under this name a column's metadata holds the options of its table."""
_COMMITTING = "pyspark.sql.worker.python_streaming_sink_runner"
"""The module that runs where Spark commits a micro-batch; the plan was made before, where it was written."""


class DefaultSource(DataSource):
    """Events of a type, or of topics, as a client of a domain may publish or see them."""

    def __init__(self, options: dict[str, str]) -> None:
        """Refuse an unknown client, type or option where the frame is made, and a client whose key is not proven."""
        super().__init__(options)
        if not {"home", "path"}.isdisjoint(name.lower() for name in options):
            with in_one_line(), Domain.open((asked := SourceOptions.of(options)).home) as domain:
                asked.prove(domain)
                asked.events.names(domain)

    @classmethod
    def name(cls) -> str:
        """Answer to ``format("maia")``."""
        return "maia"

    def schema(self) -> StructType:
        """Return the schema of the client's version: the attributes that it asked for, or all."""
        with in_one_line():
            asked = SourceOptions.of(self.options)
            if "provider" not in self.options:  # a table may be one to publish into; whoever reads it is judged then
                _check_right(asked)
            fields = _fields(asked)
            shown = fields if asked.attributes is None else {name: fields[name] for name in asked.attributes}
            if asked.with_event_id:
                shown |= {name: fields[name] for name in (EVENT, STAMP)}
            else:
                shown = {name: item for name, item in shown.items() if name not in (EVENT, STAMP)}
            kept = _kept(self.options)
            return StructType([StructField(item.name, item.dataType, item.nullable, kept) for item in shown.values()])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what the log holds now."""
        with in_one_line():
            asked = self._asked(schema)
            _check_schema(asked, schema)
            return MaiaReader(asked, tuple(schema.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Follow the log commit by commit."""
        with in_one_line():
            asked = self._asked(schema)
            _check_schema(asked, schema)
            return MaiaStreamReader(asked, tuple(schema.names))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001
        """Publish a batch.

        Raises:
            UsageError: It was to replace what is there: ``NO_OVERWRITE``.
        """
        with in_one_line():
            _check_append(overwrite=overwrite)
            check_writable(self._asked(schema), schema)
            return MaiaWriter(self._asked(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: FBT001, N802
        """Publish a stream, each micro-batch once.

        Raises:
            UsageError: It was to replace what is there: ``NO_OVERWRITE``.
        """
        with in_one_line():
            _check_append(overwrite=overwrite)
            asked = self._asked(schema)
            check_writable(asked, schema)
            return MaiaStreamWriter(asked, None if _COMMITTING in sys.modules else plan_publication(asked))

    def _asked(self, schema: StructType) -> SourceOptions:
        table = next((item.metadata[_TABLE] for item in schema.fields if _TABLE in item.metadata), None)
        options: Mapping[str, str] = self.options
        if table is not None and "home" not in options and "path" not in options:
            options = json.loads(table)
        return SourceOptions.of(options)


def _check_right(asked: SourceOptions) -> None:
    """Refuse, where the frame is made, a client without a right and a filter over what is closed to it.

    Raises:
        MaiaError: It has none, or the filter is refused.
    """
    with Domain.open(asked.home) as domain:
        plan_parts(domain, asked.events, client=asked.prove(domain), where=asked.where, frames=asked.frames(domain))


def _kept(options: Mapping[str, str]) -> dict[str, str]:
    """Give the metadata of a table's columns; none for a frame, whose reader gets its options anyway."""
    if "provider" not in options:
        return {}
    asked = SourceOptions.of(options)
    return {_TABLE: json.dumps(asked.to_spark(), sort_keys=True)}


def _fields(asked: SourceOptions) -> dict[str, StructField]:
    """Give the columns that the client may ask for, by name."""
    domain = Domain.open(asked.home)
    event_type = asked.events.event_type(domain)
    fields = {item.name: item for item in StructType.fromJson(json.loads(to_spark_json(event_type))).fields}
    if event_type.options.closed is ClosedAttributes.OMIT:
        shown = _open_attributes(domain, asked, event_type)
        fields = {name: item for name, item in fields.items() if name in shown}
    for name in asked.attributes or ():
        if name not in fields:
            near = did_you_mean(name, fields)
            message = f"`{event_type.name.name}` has no attribute `{name}` to show{near}"
            raise UsageError(message, code="NO_SUCH_ATTRIBUTE")
    fields[EVENT] = StructField(EVENT, StringType(), nullable=False)
    fields[STAMP] = StructField(STAMP, LongType(), nullable=False)
    return fields


def _check_schema(asked: SourceOptions, schema: StructType) -> None:
    """Refuse a schema that asks for what the type does not have.

    Raises:
        UsageError: A column is no attribute (``NO_ATTRIBUTE``) or of another type (``SCHEMA_TYPE``).
    """
    fields = _fields(asked)
    for item in schema.fields:
        known = fields.get(item.name)
        if known is None or (item.name in (EVENT, STAMP) and not asked.with_event_id):
            names = ", ".join(f"`{name}`" for name in fields if name not in (EVENT, STAMP))
            raise UsageError(f"there is no attribute `{item.name}` to show; there are {names}", code="NO_ATTRIBUTE")
        if known.dataType != item.dataType:
            raise UsageError(
                f"`{item.name}` is {known.dataType.simpleString()}, not {item.dataType.simpleString()}",
                code="SCHEMA_TYPE",
            )


def _check_append(*, overwrite: bool) -> None:
    if overwrite:
        raise UsageError(
            'the log only grows, so nothing in it can be overwritten: publish with `mode("append")`',
            code="NO_OVERWRITE",
        )


def _open_attributes(domain: Domain, asked: SourceOptions, event_type: EventType) -> set[str]:
    """Name the attributes that some clause of the client opens now, for types that leave no trace of the others.

    A stream keeps its columns: what is closed later becomes null there, what is opened later is seen by a new stream.
    """
    at = domain.clock()
    known = domain.known(at=at)
    made = domain.planner.subscription(
        known, event_type.name, domain.home.key(asked.as_), holder=asked.as_, identity=asked.as_, where=asked.where,
        at=at, frames=asked.frames(domain),
    )  # fmt: skip
    clauses = made.clauses
    return {item.name for item in event_type.attributes if any(clause.opens(item.uid) for clause in clauses)}
