"""Events by the batch: type check and translation on Arrow record batches, without touching single values.

Translation picks columns by uid and shares their buffers; nothing is copied but what is missing, which becomes nulls.
Row for row the results equal those of `check_value`, `to_transit` and `from_transit` on single events.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.errors import MalformedError
from maia.events.arrow import TYPE_ID_KEY, arrow_type, schemas_of, to_arrow_schema
from maia.events.attributes import Attribute
from maia.events.definition import EventType
from maia.events.value_types import ArrayOf, AttributeType, StructOf, ValueType


def check_batch(event_type: EventType, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Give a batch the schema of a version, or refuse it.

    Columns are found by name. Missing ones become nulls, unknown ones are refused. Narrower storage of the same kind of
    value (a 32-bit integer, a dictionary of strings, milliseconds) is widened; nothing is ever rounded, wrapped or cast
    to another kind.

    Raises:
        MalformedError: A column is unknown or twice there, of another kind, or holds a value that its type does not.
    """
    _check_columns(event_type, batch)
    columns = [
        _conform(item, batch.column(item.name)) if item.name in batch.schema.names else _nulls(item, batch.num_rows)
        for item in event_type.attributes
    ]
    return _batch(columns, to_arrow_schema(event_type), batch.num_rows)


def batch_to_transit(event_type: EventType, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace names by uids and forget the version; shares all columns.

    Args:
        event_type: The publisher's version.
        batch: With the schema of that version, as `check_batch` gives it.

    Raises:
        MalformedError: The batch has another schema.
    """
    schemas = schemas_of(event_type)
    if not batch.schema.equals(schemas.named):
        raise MalformedError(f"the batch has not the schema of `{event_type.name}`", code="BATCH_SCHEMA")
    return _batch(list(batch.columns), schemas.transit, batch.num_rows)


def batch_from_transit(event_type: EventType, batch: pa.RecordBatch) -> pa.RecordBatch:
    """See a transit batch the way one version sees it; shares the columns that it picks.

    Only this version is needed. Uids it does not know are dropped, attributes that did not travel are null.

    Raises:
        MalformedError: The batch belongs to another type, holds a uid twice, or gives a uid another type.
    """
    schemas = schemas_of(event_type)
    if (batch.schema.metadata or {}).get(TYPE_ID_KEY) != schemas.identity:
        raise MalformedError(f"the batch holds no events of `{event_type.name.name}`", code="OTHER_TYPE")
    positions = _positions(batch.schema)
    columns = []
    for item in event_type.attributes:
        at = positions.get(item.uid)
        columns.append(_nulls(item, batch.num_rows) if at is None else _pick(item, batch.column(at)))
    return _batch(columns, schemas.named, batch.num_rows)


def translate_batch(source: EventType, target: EventType, batch: pa.RecordBatch) -> pa.RecordBatch:
    """See a batch of one version the way another version of the same type sees it."""
    return batch_from_transit(target, batch_to_transit(source, batch))


def _positions(schema: pa.Schema) -> dict[str, int]:
    positions = {name: at for at, name in enumerate(schema.names)}
    if len(positions) != len(schema.names):
        raise MalformedError("a uid stands twice in a transit batch", code="ATTRIBUTE_UID_TWICE")
    return positions


def _check_columns(event_type: EventType, batch: pa.RecordBatch) -> None:
    known = {item.name for item in event_type.attributes}
    seen: set[str] = set()
    for name in batch.schema.names:
        if name not in known:
            version = event_type.name.version
            raise MalformedError(f"version {version} has no attribute `{name}`", code="NO_ATTRIBUTE")
        if name in seen:
            raise MalformedError(f"two columns are called `{name}`", code="ATTRIBUTE_NAME_TWICE")
        seen.add(name)


def _batch(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if not columns:  # a batch without columns would forget how many rows it has
        return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([]))).replace_schema_metadata(schema.metadata)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _nulls(item: Attribute, rows: int) -> pa.Array:
    return pa.nulls(rows, arrow_type(item.type))


def _pick(item: Attribute, column: pa.Array) -> pa.Array:
    wanted = arrow_type(item.type)
    if column.type.equals(wanted):
        return column
    if column.null_count == len(column):
        return _nulls(item, len(column))
    raise MalformedError(f"uid `{item.uid}` travels with another type", code="UID_REUSED")


def _conform(item: Attribute, column: pa.Array) -> pa.Array:
    try:
        return _of_type(item.type, column)
    except pa.ArrowException as error:
        message = f"the column of `{item.name}` holds a value that is no {item.type.value}"
        raise MalformedError(message, code="VALUE_TYPE") from error
    except _OtherKindError as error:
        raise MalformedError(f"the column of `{item.name}` holds no {item.type.value}", code="VALUE_TYPE") from error


class _OtherKindError(Exception):
    """Stays inside this module: a column, or a part of it, is of another kind than its type."""


def _of_type(kind: ValueType, column: pa.Array) -> pa.Array:
    """Give a column the Arrow type of a value type, part by part where it has parts."""
    wanted = arrow_type(kind)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), wanted)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(kind, ArrayOf):
        return _array_of_type(kind, column)
    if isinstance(kind, StructOf):
        return _struct_of_type(kind, column)
    if not column.type.equals(wanted):
        if not _same_kind(kind.base, column.type):
            raise _OtherKindError
        column = column.cast(wanted, safe=True)
    if kind is AttributeType.STRING:
        column.validate(full=True)  # octets that are no UTF-8
    if kind is AttributeType.FLOAT and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise pa.ArrowInvalid("not finite")
    return column


def _array_of_type(kind: ArrayOf, column: pa.Array) -> pa.Array:
    types = pa.types
    if not (types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type)):
        raise _OtherKindError
    elements = _of_type(kind.element, column.flatten())  # without what lies under nulls
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return pa.ListArray.from_arrays(_list_offsets(lengths), elements, type=arrow_type(kind), mask=column.is_null())


def _list_offsets(lengths: pa.Array) -> pa.Array:
    """Turn the lengths of arrays into the places where they start, and the end of the last; refuse too many."""
    ends = np.concatenate(([0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)))
    return pa.array(ends, type=pa.int64()).cast(pa.int32(), safe=True)


def _struct_of_type(kind: StructOf, column: pa.Array) -> pa.Array:
    if not pa.types.is_struct(column.type):
        raise _OtherKindError
    names = [column.type.field(at).name for at in range(column.type.num_fields)]
    # SECURITY: a cast would drop fields that it does not know; like columns, they are refused.
    if len(set(names)) != len(names) or not set(names) <= {name for name, _ in kind.fields}:
        raise _OtherKindError
    given = dict(zip(names, column.flatten(), strict=True))
    parts = [
        _of_type(part, given[name]) if name in given else pa.nulls(len(column), arrow_type(part))
        for name, part in kind.fields
    ]
    wanted = arrow_type(kind)
    return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=column.is_null())


def _same_kind(wanted: AttributeType, kind: pa.DataType) -> bool:
    types = pa.types
    match wanted:
        case AttributeType.INTEGER:
            return bool(types.is_integer(kind))
        case AttributeType.FLOAT:
            return bool(types.is_floating(kind))
        case AttributeType.DECIMAL:
            return bool(types.is_decimal(kind))
        case AttributeType.STRING:
            return bool(types.is_large_string(kind) or types.is_string_view(kind))
        case AttributeType.DATE:
            return bool(types.is_date(kind))
        case AttributeType.TIMESTAMP:
            return bool(types.is_timestamp(kind) and kind.tz is not None)
        case AttributeType.BINARY:
            return bool(types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind))
        case _:
            return False
