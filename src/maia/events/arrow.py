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
from maia.events.attributes import Attribute, Uid, check_count, check_uid
from maia.events.definition import EventType
from maia.events.names import TypeName
from maia.events.options import Options
from maia.events.uids import SequenceUids, UidPolicy
from maia.events.value_types import (
    DECIMAL_PRECISION,
    DECIMAL_SCALE,
    ArrayOf,
    AttributeType,
    StructOf,
    ValueType,
    decimal_of,
    decimal_size,
)

UID_KEY = b"maia.uid"
TYPE_ID_KEY = b"maia.type-id"
NAME_KEY = b"maia.name"
VERSION_KEY = b"maia.version"

_ARROW: dict[ValueType, pa.DataType] = {
    AttributeType.INTEGER: pa.int64(),
    AttributeType.FLOAT: pa.float64(),
    AttributeType.DECIMAL: pa.decimal128(DECIMAL_PRECISION, DECIMAL_SCALE),
    AttributeType.STRING: pa.string(),
    AttributeType.BOOLEAN: pa.bool_(),
    AttributeType.DATE: pa.date32(),
    AttributeType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    AttributeType.BINARY: pa.binary(),
}

_BY_NAME = {str(arrow): kind for kind, arrow in _ARROW.items()}

_SPARK_DDL: dict[ValueType, str] = {
    AttributeType.INTEGER: "BIGINT",
    AttributeType.FLOAT: "DOUBLE",
    AttributeType.STRING: "STRING",
    AttributeType.BOOLEAN: "BOOLEAN",
    AttributeType.DATE: "DATE",
    AttributeType.TIMESTAMP: "TIMESTAMP",
    AttributeType.BINARY: "BINARY",
}

_SPARK_JSON: dict[ValueType, str] = {
    AttributeType.INTEGER: "long",
    AttributeType.FLOAT: "double",
    AttributeType.STRING: "string",
    AttributeType.BOOLEAN: "boolean",
    AttributeType.DATE: "date",
    AttributeType.TIMESTAMP: "timestamp",
    AttributeType.BINARY: "binary",
}


def arrow_type(kind: ValueType) -> pa.DataType:
    """Give the Arrow type of the columns of an attribute.

    >>> arrow_type(decimal_of(10, 2))
    Decimal128Type(decimal128(10, 2))
    """
    if isinstance(kind, ArrayOf):
        return pa.list_(arrow_type(kind.element))
    if isinstance(kind, StructOf):
        return pa.struct([pa.field(name, arrow_type(part)) for name, part in kind.fields])
    return _ARROW.get(kind) or pa.decimal128(*decimal_size(kind))


def value_type_of(arrow: pa.DataType) -> ValueType | None:
    """Tell of which type the attribute is that has exactly such columns; ``None`` when there is none.

    >>> value_type_of(pa.list_(pa.int64())).value, value_type_of(pa.int32())
    ('array<integer>', None)
    """
    found: ValueType | None = _BY_NAME.get(str(arrow))
    if found is None:
        try:
            found = _kind_of(arrow, "")
        except MalformedError:
            return None
    return found if arrow_type(found).equals(arrow) else None


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
    fields = [pa.field(item.uid, arrow_type(item.type)) for item in event_type.attributes]
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
        pa.field(item.name, arrow_type(item.type), metadata={UID_KEY: item.uid.encode()})
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
        MalformedError: Values of some fields do not fit one of Maia's types; each field is named, with what to do.
    """
    check_count(len(schema))
    policy = uids or SequenceUids()
    taken: set[str] = {uid for field in schema if (uid := _field_uid(field)) is not None}
    attributes, bad = [], list[str]()
    for field in schema:
        uid = _field_uid(field)
        if uid is None:
            uid = policy.next_uid(taken)
            taken.add(uid)
        try:
            kind = _kind_of(field.type, f"column `{field.name}`", assume_utc=assume_utc)
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
    return ", ".join(f"{_ticked(item.name)} {_spark_ddl(item.type)}" for item in event_type.attributes)


def to_spark_json(event_type: EventType) -> str:
    """Write a version as the JSON form of a Spark schema, with the uids as metadata."""
    fields = [
        {"name": item.name, "type": _spark_json(item.type), "nullable": True, "metadata": {"maia.uid": item.uid}}
        for item in event_type.attributes
    ]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)


def from_spark_json(
    text: str,
    name: TypeName,
    *,
    options: Options | None = None,
    uids: UidPolicy | None = None,
    assume_utc: bool = False,
) -> EventType:
    """Make a definition from the JSON form of a Spark schema (``DataFrame.schema.json()``).

    Raises:
        MalformedError: The text is no such schema, or fields are of types that events do not hold.
    """
    try:
        found = [(str(field["name"]), field["type"], field.get("metadata")) for field in json.loads(text)["fields"]]
        fields = [pa.field(name, _from_spark(kind), metadata=_uid_metadata(more)) for name, kind, more in found]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise MalformedError("not the JSON form of a Spark schema", code="SCHEMA_FORM") from error
    return from_arrow_schema(pa.schema(fields), name, options=options, uids=uids, assume_utc=assume_utc)


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
    match kind:
        case {"type": "array", "elementType": element}:
            return pa.list_(_from_spark(element))
        case {"type": "struct", "fields": list() as fields}:
            return pa.struct([pa.field(str(field["name"]), _from_spark(field["type"])) for field in fields])
        case {"type": "map", "keyType": key, "valueType": value}:
            return pa.map_(_from_spark(key), _from_spark(value))
    return pa.null()  # no type of events; refused by name, with the other columns that do not fit


def _field_uid(field: pa.Field) -> Uid | None:
    text = (field.metadata or {}).get(UID_KEY)
    return check_uid(text.decode("utf-8", "replace")) if text is not None else None


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], AttributeType], ...] = (
    (pa.types.is_boolean, AttributeType.BOOLEAN),
    (pa.types.is_signed_integer, AttributeType.INTEGER),
    (lambda kind: pa.types.is_unsigned_integer(kind) and kind != pa.uint64(), AttributeType.INTEGER),
    (pa.types.is_floating, AttributeType.FLOAT),
    (pa.types.is_string, AttributeType.STRING),
    (pa.types.is_large_string, AttributeType.STRING),
    (pa.types.is_date, AttributeType.DATE),
    (pa.types.is_binary, AttributeType.BINARY),
    (pa.types.is_large_binary, AttributeType.BINARY),
    (pa.types.is_fixed_size_binary, AttributeType.BINARY),
)


_ADVICE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_timestamp, "give its times a zone, or say --assume-utc (`assume_utc=True`)"),
    (pa.types.is_unsigned_integer, "cast it to int64 or decimal(20,0)"),
    (pa.types.is_decimal, f"cast it to a decimal of at most {DECIMAL_PRECISION} digits"),
    (pa.types.is_map, "make it an array of structs with a key and a value"),
    (pa.types.is_time, "make it an integer of a unit, or a timestamp"),
    (pa.types.is_duration, "make it an integer of a unit"),
)


def _kind_of(kind: pa.DataType, what: str, *, assume_utc: bool = False) -> ValueType:
    """Find the type that holds all values of an Arrow type; the message says what could be done instead."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for test, attribute_type in _SIMPLE:
        if test(kind):
            return attribute_type
    if pa.types.is_decimal(kind) and kind.precision <= DECIMAL_PRECISION and 0 <= kind.scale <= kind.precision:
        return decimal_of(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and (kind.tz is not None or assume_utc):
        return AttributeType.TIMESTAMP
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ArrayOf(_kind_of(kind.value_type, f"the elements of {what}", assume_utc=assume_utc))
    if pa.types.is_struct(kind):
        parts = [kind.field(at) for at in range(kind.num_fields)]
        inside = [_kind_of(part.type, f"field `{part.name}` of {what}", assume_utc=assume_utc) for part in parts]
        return StructOf(tuple((part.name, found) for part, found in zip(parts, inside, strict=True)))
    advice = next((text for test, text in _ADVICE if test(kind)), "cast it to string or binary, or leave it out")
    held = "has no type that is known" if pa.types.is_null(kind) else f"is `{kind}`, which events do not hold"
    raise MalformedError(f"{what} {held}: {advice}", code="SCHEMA_TYPE")


def _ticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _spark_ddl(kind: ValueType) -> str:
    if isinstance(kind, ArrayOf):
        return f"ARRAY<{_spark_ddl(kind.element)}>"
    if isinstance(kind, StructOf):
        return f"STRUCT<{', '.join(f'{_ticked(name)}: {_spark_ddl(part)}' for name, part in kind.fields)}>"
    return _SPARK_DDL.get(kind) or "DECIMAL({},{})".format(*decimal_size(kind))


def _spark_json(kind: ValueType) -> object:
    if isinstance(kind, ArrayOf):
        return {"type": "array", "elementType": _spark_json(kind.element), "containsNull": True}
    if isinstance(kind, StructOf):
        fields = [
            {"name": name, "type": _spark_json(part), "nullable": True, "metadata": {}} for name, part in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    return _SPARK_JSON.get(kind) or "decimal({},{})".format(*decimal_size(kind))
