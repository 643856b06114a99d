"""The filter language: one meaning for subscriptions, value constraints in capabilities and access-control bounds.

What works on Arrow batches is loaded on first use, so that checking a filter does not wait for Arrow.
"""

from __future__ import annotations

import typing as _typing

from maia.events import AttributeType
from maia.filters.announcing import Announcement, CoveringSet
from maia.filters.bounds import (
    AttributeBound,
    Bound,
    BoundKind,
    Side,
    all_allow,
    allows,
    attribute_bound,
)
from maia.filters.checking import check, check_event, compile_filter
from maia.filters.covering import covers, equivalent, intersect, merge, satisfiable, simplify
from maia.filters.evaluate import Relation, admits, holds, matches
from maia.filters.formatting import format_filter, format_name, format_value
from maia.filters.json_values import read_event
from maia.filters.language import parse_filter
from maia.filters.limits import FilterLimits, grammar
from maia.filters.partition import Demand, ValueCell, partition
from maia.filters.screening import ScreenMode, require_readable, screen
from maia.filters.tags import from_tag, read_atom, to_tag, value_atom
from maia.filters.tree import Filter, Literal, LiteralKind, Operator, TypedConstraint, TypedFilter, WrittenConstraint
from maia.filters.values import Value, in_domain, parse_date, parse_timestamp
from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.filters.batches import select
    from maia.filters.index import Matches, SubscriptionIndex
    from maia.filters.misread import find_misread

__all__ = [
    "Announcement",
    "AttributeBound",
    "AttributeType",
    "Bound",
    "BoundKind",
    "CoveringSet",
    "Demand",
    "Filter",
    "FilterLimits",
    "Literal",
    "LiteralKind",
    "Matches",
    "Operator",
    "Relation",
    "ScreenMode",
    "Side",
    "SubscriptionIndex",
    "TypedConstraint",
    "TypedFilter",
    "Value",
    "ValueCell",
    "WrittenConstraint",
    "admits",
    "all_allow",
    "allows",
    "attribute_bound",
    "check",
    "check_event",
    "compile_filter",
    "covers",
    "equivalent",
    "find_misread",
    "format_filter",
    "format_name",
    "format_value",
    "from_tag",
    "grammar",
    "holds",
    "in_domain",
    "intersect",
    "matches",
    "merge",
    "parse_date",
    "parse_filter",
    "parse_timestamp",
    "partition",
    "read_atom",
    "read_event",
    "require_readable",
    "satisfiable",
    "screen",
    "select",
    "simplify",
    "to_tag",
    "value_atom",
]

__getattr__ = _on_first_use(
    __name__, {"Matches": "index", "SubscriptionIndex": "index", "find_misread": "misread", "select": "batches"}
)
