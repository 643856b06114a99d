"""Event types that cannot be forged, their versions, and the translation between them.

What works on Arrow batches is loaded on first use, so that verifying a definition does not wait for Arrow.
"""

from __future__ import annotations

import typing as _typing

from maia.events.attributes import (
    MAX_ATTRIBUTES,
    Attribute,
    Uid,
    attribute,
    check_attributes,
    check_uid,
    check_uids,
    parse_uid,
)
from maia.events.changes import Change, Diff, ManageAction, check_meanings, diff
from maia.events.definition import (
    EVENT_TYPE_LIMITS,
    MAX_CREDENTIALS,
    MAX_LINEAGE,
    EventType,
    EventTypeId,
    SignedEventType,
    UnverifiedEventType,
    sign_event_type,
    verify_type_signature,
)
from maia.events.evolution import (
    Add,
    Operation,
    Remove,
    Rename,
    Retype,
    counted,
    drawn,
    evolve,
    first_attributes,
    hashed,
)
from maia.events.inheritance import inherit
from maia.events.lint import LiveClient, VersionFinding, lint, misleading_names, parse_live_clients
from maia.events.lookalikes import lookalikes, skeleton
from maia.events.names import Owner, TypeId, TypeName, check_owner, type_id
from maia.events.options import MAX_PADDING, ClosedAttributes, EncryptionMode, Options, Release
from maia.events.publication import (
    Publication,
    TransitEvent,
    from_transit,
    to_transit,
    translate,
)
from maia.events.reading import parse_compatible_event_type, parse_event_type
from maia.events.registry import MAX_FOUND, Registry
from maia.events.samples import attributes_of_rows
from maia.events.topics import TOPIC, TopicPattern, lineage
from maia.events.uids import FoldedUids, SequenceUids, UidPolicy, WholeUuids
from maia.events.value_types import (
    DECIMAL_PRECISION,
    DECIMAL_SCALE,
    ArrayOf,
    AttributeType,
    DecimalOf,
    StructOf,
    ValueType,
    decimal_of,
    decimal_size,
    parse_attribute_type,
)
from maia.events.values import Value, check_value, value_from_json, value_to_json
from maia.events.versions import FIRST, Version, hash_version, parse_version, uuid_version
from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.events.arrow import (
        TYPE_ID_KEY,
        arrow_type,
        from_arrow_schema,
        from_spark_json,
        to_arrow_schema,
        to_spark_ddl,
        to_spark_json,
        value_type_of,
    )
    from maia.events.batches import batch_from_transit, batch_to_transit, check_batch, translate_batch
    from maia.events.translator import Translator
    from maia.events.zones import in_zone, is_naive, parse_offset

__all__ = [
    "DECIMAL_PRECISION",
    "DECIMAL_SCALE",
    "EVENT_TYPE_LIMITS",
    "FIRST",
    "MAX_ATTRIBUTES",
    "MAX_CREDENTIALS",
    "MAX_FOUND",
    "MAX_LINEAGE",
    "MAX_PADDING",
    "TOPIC",
    "TYPE_ID_KEY",
    "Add",
    "ArrayOf",
    "Attribute",
    "AttributeType",
    "Change",
    "ClosedAttributes",
    "DecimalOf",
    "Diff",
    "EncryptionMode",
    "EventType",
    "EventTypeId",
    "FoldedUids",
    "LiveClient",
    "ManageAction",
    "Operation",
    "Options",
    "Owner",
    "Publication",
    "Registry",
    "Release",
    "Remove",
    "Rename",
    "Retype",
    "SequenceUids",
    "SignedEventType",
    "StructOf",
    "TopicPattern",
    "TransitEvent",
    "Translator",
    "TypeId",
    "TypeName",
    "Uid",
    "UidPolicy",
    "UnverifiedEventType",
    "Value",
    "ValueType",
    "Version",
    "VersionFinding",
    "WholeUuids",
    "arrow_type",
    "attribute",
    "attributes_of_rows",
    "batch_from_transit",
    "batch_to_transit",
    "check_attributes",
    "check_batch",
    "check_meanings",
    "check_owner",
    "check_uid",
    "check_uids",
    "check_value",
    "counted",
    "decimal_of",
    "decimal_size",
    "diff",
    "drawn",
    "evolve",
    "first_attributes",
    "from_arrow_schema",
    "from_spark_json",
    "from_transit",
    "hash_version",
    "hashed",
    "in_zone",
    "inherit",
    "is_naive",
    "lineage",
    "lint",
    "lookalikes",
    "misleading_names",
    "parse_attribute_type",
    "parse_compatible_event_type",
    "parse_event_type",
    "parse_live_clients",
    "parse_offset",
    "parse_uid",
    "parse_version",
    "sign_event_type",
    "skeleton",
    "to_arrow_schema",
    "to_spark_ddl",
    "to_spark_json",
    "to_transit",
    "translate",
    "translate_batch",
    "type_id",
    "uuid_version",
    "value_from_json",
    "value_to_json",
    "value_type_of",
    "verify_type_signature",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "TYPE_ID_KEY": "arrow",
        "Translator": "translator",
        "arrow_type": "arrow",
        "batch_from_transit": "batches",
        "batch_to_transit": "batches",
        "check_batch": "batches",
        "from_arrow_schema": "arrow",
        "from_spark_json": "arrow",
        "in_zone": "zones",
        "is_naive": "zones",
        "parse_offset": "zones",
        "to_arrow_schema": "arrow",
        "to_spark_ddl": "arrow",
        "to_spark_json": "arrow",
        "translate_batch": "batches",
        "value_type_of": "arrow",
    },
)
