"""Rows that fit a version or not: told before they are written where columns say so, and after where values do.

A write of Spark's returns nothing, so what would be counted and returned elsewhere is said here. Rules kept here:

- a column that no row can fit, by its name or its type, is refused before anything is written, by the check that the
  kernel makes of every batch;
- a batch of which every row was refused is an error; one of which some were is a warning in the program's log;
- what is said are codes, columns and counts, never a value.
"""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from maia.domain import Domain, Published, nothing_published
from maia.encoding import did_you_mean
from maia.errors import MalformedError
from maia.events import EventType, check_batch, in_zone, parse_offset
from maia.spark.options import SourceOptions

_logger = logging.getLogger(__name__)


def check_writable(asked: SourceOptions, schema: StructType) -> None:
    """Refuse columns that can never be published as the version that was asked for.

    Raises:
        MalformedError: One is no attribute (``NO_ATTRIBUTE``) or twice there (``ATTRIBUTE_NAME_TWICE``), or of a type
            that its attribute does not take (``VALUE_TYPE``).
    """
    with Domain.open(asked.home) as domain:
        event_type = asked.events.event_type(domain)
    kinds = {item.name: item.type.value for item in event_type.attributes}
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise MalformedError(f"two columns are called `{twice}`", code="ATTRIBUTE_NAME_TWICE")
    for field in schema.fields:
        if field.name not in kinds:
            near = did_you_mean(field.name, kinds)
            message = f"version {event_type.name.version} has no attribute `{field.name}`{near}"
            raise MalformedError(message, code="NO_ATTRIBUTE")
        if not _fits(field, event_type, naive=asked.naive_timestamps):
            article = "an" if kinds[field.name][0] in "aeiou" else "a"
            message = f"column `{field.name}` is {field.dataType.simpleString()}, the attribute {article} "
            naive = isinstance(field.dataType, TimestampNTZType) and kinds[field.name] == "timestamp"
            advice = "; say its zone with the option `naiveTimestamps`" if naive else ""
            raise MalformedError(f"{message}{kinds[field.name]}{advice}", code="VALUE_TYPE")


def tell_refused(done: Published, *, stream: bool) -> None:
    """Say which rows of a write were refused.

    Raises:
        RowsRefusedError: All rows of a batch were. A stream goes on with what comes next.
    """
    if not done.refused:
        return
    if not done.events and not stream:
        raise nothing_published(done)
    count = sum(done.refused.values())
    what = "1 row is refused" if count == 1 else f"{count:,} rows are refused"
    why = ", ".join(f"{code} in `{column}`" if column else code for code, column in sorted(done.refused))
    _logger.warning("%s, %s events of `%s` are published: %s", what, f"{done.events:,}", done.publication, why)


def _fits(field: StructField, event_type: EventType, *, naive: str | None) -> bool:
    """Ask the kernel's check about a batch of this column without rows."""
    try:
        kind = to_arrow_type(field.dataType, timezone="UTC")
        batch = pa.RecordBatch.from_arrays([pa.array([], type=kind)], names=[field.name])
        check_batch(event_type, batch if naive is None else in_zone(batch, parse_offset(naive)))
    except (MalformedError, PySparkException, pa.ArrowException):
        return False
    return True
