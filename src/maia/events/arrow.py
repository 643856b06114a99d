"""Event types as Arrow and Spark schemas, and back.

The columns stand in the order of the attributes. Each field carries its uid, and the schema the identity of the type,
as metadata, so that a schema that went through a file gives the same attributes back. Every column may hold nulls.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from maia.errors import MalformedError
from maia.events.attributes import Attribute, AttributeType, Uid, check_uid
from maia.events.definition import EventType
from maia.events.names import TypeName
from maia.events.options import Options
from maia.events.uids import SequenceUids, UidPolicy
from maia.events.values import DECIMAL_PRECISION, DECIMAL_SCALE

UID_KEY = b"maia.uid"
TYPE_ID_KEY = b"maia.type-id"
NAME_KEY = b"maia.name"
VERSION_KEY = b"maia.version"

ARROW_TYPES: dict[AttributeType, pa.DataType] = {
    AttributeType.INTEGER: pa.int64(),
    AttributeType.FLOAT: pa.float64(),
    AttributeType.DECIMAL: pa.decimal128(DECIMAL_PRECISION, DECIMAL_SCALE),
    AttributeType.STRING: pa.string(),
    AttributeType.BOOLEAN: pa.bool_(),
    AttributeType.DATE: pa.date32(),
    AttributeType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    AttributeType.BINARY: pa.binary(),
}

SPARK_TYPES: dict[AttributeType, str] = {
    AttributeType.INTEGER: "BIGINT",
    AttributeType.FLOAT: "DOUBLE",
    AttributeType.DECIMAL: f"DECIMAL({DECIMAL_PRECISION},{DECIMAL_SCALE})",
    AttributeType.STRING: "STRING",
    AttributeType.BOOLEAN: "BOOLEAN",
    AttributeType.DATE: "DATE",
    AttributeType.TIMESTAMP: "TIMESTAMP",
    AttributeType.BINARY: "BINARY",
}

_SPARK_JSON: dict[AttributeType, str] = {
    AttributeType.INTEGER: "long",
    AttributeType.FLOAT: "double",
    AttributeType.DECIMAL: f"decimal({DECIMAL_PRECISION},{DECIMAL_SCALE})",
    AttributeType.STRING: "string",
    AttributeType.BOOLEAN: "boolean",
    AttributeType.DATE: "date",
    AttributeType.TIMESTAMP: "timestamp",
    AttributeType.BINARY: "binary",
}


@dataclass(frozen=True, slots=True)
class Schemas:
    """The two schemas of a version: by name, and by uid as in transit; and the type's identity as metadata has it."""

    named: pa.Schema
    transit: pa.Schema
    identity: bytes


_REMEMBERED: OrderedDict[int, tuple[EventType, Schemas]] = OrderedDict()
_MAX_REMEMBERED = 256


def schemas_of(event_type: EventType) -> Schemas:
    """Give the schemas of a version, made once as long as the same object is used again and again.

    The definition is kept beside its schemas, so the number that identifies the object cannot pass to another one.
    """
    known = _REMEMBERED.get(id(event_type))
    if known is not None:
        return known[1]
    named = _named_schema(event_type)
    identity = named.metadata[TYPE_ID_KEY]
    fields = [pa.field(item.uid, ARROW_TYPES[item.type]) for item in event_type.attributes]
    made = Schemas(named, pa.schema(fields, metadata={TYPE_ID_KEY: identity}), identity)
    while len(_REMEMBERED) >= _MAX_REMEMBERED:
        _REMEMBERED.popitem(last=False)
    _REMEMBERED[id(event_type)] = (event_type, made)
    return made


def to_arrow_schema(event_type: EventType) -> pa.Schema:
    """Write a version as an Arrow schema: one nullable column for each attribute, named as this version names it."""
    return schemas_of(event_type).named


def _named_schema(event_type: EventType) -> pa.Schema:
    fields = [
        pa.field(item.name, ARROW_TYPES[item.type], metadata={UID_KEY: item.uid.encode()})
        for item in event_type.attributes
    ]
    metadata = {
        TYPE_ID_KEY: event_type.type_id.hex().encode(),
        NAME_KEY: event_type.name.name.encode(),
        VERSION_KEY: event_type.name.version.text.encode(),
    }
    return pa.schema(fields, metadata=metadata)


def from_arrow_schema(
    schema: pa.Schema,
    name: TypeName,
    *,
    options: Options | None = None,
    uids: UidPolicy | None = None,
    assume_utc: bool = False,
) -> EventType:
    """Make a definition whose events fit a schema without loss.

    Args:
        schema: Of a table, a file or a batch.
        name: Of the version to define.
        options: How its events travel.
        uids: Where uids come from for fields that carry none; a sequence from 0 unless said otherwise.
        assume_utc: Read timestamps without a time zone as UTC; otherwise they are refused.

    Raises:
        MalformedError: Fields are nested, or their values do not fit one of Maia's types; each of them is named.
    """
    policy = uids or SequenceUids()
    taken: set[str] = {uid for field in schema if (uid := _field_uid(field)) is not None}
    attributes, bad = [], list[str]()
    for field in schema:
        uid = _field_uid(field)
        if uid is None:
            uid = policy.next_uid(taken)
            taken.add(uid)
        try:
            kind = _attribute_type(field, assume_utc=assume_utc)
            attributes.append(Attribute(name=field.name, uid=uid, type=kind))
        except MalformedError as error:
            bad.append(error.message)
    if bad:
        raise MalformedError("; ".join(bad), code="SCHEMA_TYPE")
    return EventType(name=name, attributes=tuple(attributes), options=options or Options())


def to_spark_ddl(event_type: EventType) -> str:
    """Write a version as the text that Spark reads as a schema.

    Names are quoted, so a dash in a name needs no care.
    """
    columns = [f"`{item.name.replace('`', '``')}` {SPARK_TYPES[item.type]}" for item in event_type.attributes]
    return ", ".join(columns)


def to_spark_json(event_type: EventType) -> str:
    """Write a version as the JSON form of a Spark schema, with the uids as metadata."""
    fields = [
        {"name": item.name, "type": _SPARK_JSON[item.type], "nullable": True, "metadata": {"maia.uid": item.uid}}
        for item in event_type.attributes
    ]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)


def from_spark_json(
    text: str,
    name: TypeName,
    *,
    options: Options | None = None,
    uids: UidPolicy | None = None,
) -> EventType:
    """Make a definition from the JSON form of a Spark schema (``DataFrame.schema.json()``).

    Raises:
        MalformedError: The text is no such schema, or a field is nested or of a type without an instant's meaning.
    """
    try:
        found = [(str(field["name"]), field["type"], field.get("metadata")) for field in json.loads(text)["fields"]]
        fields = [pa.field(name, _from_spark(kind), metadata=_uid_metadata(more)) for name, kind, more in found]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise MalformedError("not the JSON form of a Spark schema", code="SCHEMA_FORM") from error
    return from_arrow_schema(pa.schema(fields), name, options=options, uids=uids)


def _uid_metadata(metadata: object) -> dict[bytes, bytes] | None:
    uid = metadata.get("maia.uid") if isinstance(metadata, dict) else None
    return {UID_KEY: str(uid).encode()} if uid is not None else None


def _from_spark(kind: object) -> pa.DataType:
    simple = {
        "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "float": pa.float32(),
        "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"), "binary": pa.binary(),
    }  # fmt: skip
    if isinstance(kind, str) and kind in simple:
        return simple[kind]
    if isinstance(kind, str) and kind.startswith("decimal(") and kind.endswith(")"):
        precision, scale = (int(part) for part in kind[len("decimal(") : -1].split(","))
        return pa.decimal128(precision, scale)
    return pa.null()  # no type of events; refused by name, with the other columns that do not fit


def _field_uid(field: pa.Field) -> Uid | None:
    text = (field.metadata or {}).get(UID_KEY)
    return check_uid(text.decode("utf-8", "replace")) if text is not None else None


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], AttributeType], ...] = (
    (pa.types.is_boolean, AttributeType.BOOLEAN),
    (pa.types.is_signed_integer, AttributeType.INTEGER),
    (pa.types.is_floating, AttributeType.FLOAT),
    (pa.types.is_string, AttributeType.STRING),
    (pa.types.is_large_string, AttributeType.STRING),
    (pa.types.is_date, AttributeType.DATE),
    (pa.types.is_binary, AttributeType.BINARY),
    (pa.types.is_large_binary, AttributeType.BINARY),
    (pa.types.is_fixed_size_binary, AttributeType.BINARY),
)


def _attribute_type(field: pa.Field, *, assume_utc: bool) -> AttributeType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    for test, attribute_type in _SIMPLE:
        if test(kind):
            return attribute_type
    if pa.types.is_unsigned_integer(kind) and kind.bit_width < pa.int64().bit_width:
        return AttributeType.INTEGER
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= DECIMAL_SCALE:
        if kind.precision - kind.scale <= DECIMAL_PRECISION - DECIMAL_SCALE:
            return AttributeType.DECIMAL
        raise MalformedError(f"the decimals of column `{field.name}` may not fit", code="SCHEMA_TYPE")
    if pa.types.is_timestamp(kind):
        if kind.tz is None and not assume_utc:
            raise MalformedError(f"the timestamps of column `{field.name}` have no time zone", code="SCHEMA_TYPE")
        return AttributeType.TIMESTAMP
    which = "" if pa.types.is_null(kind) else f": `{kind}`"
    raise MalformedError(f"column `{field.name}` has a type that events do not hold{which}", code="SCHEMA_TYPE")
