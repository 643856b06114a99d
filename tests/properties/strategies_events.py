"""Random columns, types, clauses and filters, and the meaning of constraints in plain Python.

Values come from small pools, so that random constraints often hold and often just fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

from maia.authority import Action, Constraint, cell_rights, is_nothing, type_right
from maia.events import AttributeType, EventType, TypeName, Version, arrow_type, attribute
from maia.filters import Operator, TypedConstraint, TypedFilter
from maia.kernel import Clause
from maia.principals import KeySigner

OWNER = KeySigner(bytes([7]) * 32)
START = datetime(2026, 6, 1, tzinfo=UTC)
POOLS: dict[AttributeType, list[Any]] = {
    AttributeType.INTEGER: [-(2**63), -1, 0, 1, 500, 2**63 - 1],
    AttributeType.FLOAT: [-1.5, -0.0, 0.0, 0.1, 1.0, 1.7976931348623157e308],
    AttributeType.DECIMAL: [Decimal("-0.01"), Decimal(0), Decimal("24.00"), Decimal("24.01"), Decimal(10) ** 19],
    AttributeType.STRING: ["", "A", "AE05 XYZ", "Victoria", "Vic", "ä", "\U00010000", "a*b", "\0"],
    AttributeType.BOOLEAN: [False, True],
    AttributeType.DATE: [date(1, 1, 1), date(1969, 12, 31), date(2026, 6, 1), date(9999, 12, 31)],
    AttributeType.TIMESTAMP: [START, START + timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC)],
    AttributeType.BINARY: [b"", b"\0", b"octets"],
}
ANY_VALUE: dict[AttributeType, st.SearchStrategy[Any]] = {
    AttributeType.INTEGER: st.integers(-(2**63), 2**63 - 1),
    AttributeType.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    AttributeType.DECIMAL: st.decimals(
        min_value=-(10**19), max_value=10**19, places=18, allow_nan=False, allow_infinity=False
    ),
    AttributeType.STRING: st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
    AttributeType.BOOLEAN: st.booleans(),
    AttributeType.DATE: st.dates(),
    AttributeType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    AttributeType.BINARY: st.binary(max_size=40),
}
ORDER = ["<", ">", "<=", ">="]
OPERATORS = {
    kind: ["=", "!=", "in", "any"]
    + ([] if kind is AttributeType.BOOLEAN else ORDER)
    + (["prefix", "suffix", "contains"] if kind is AttributeType.STRING else [])
    for kind in AttributeType
    if kind is not AttributeType.BINARY
}


MEANING: dict[str, Callable[..., bool]] = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "<": lambda value, limit: value < limit,
    ">": lambda value, limit: value > limit,
    "<=": lambda value, limit: value <= limit,
    ">=": lambda value, limit: value >= limit,
    "in": lambda value, *members: value in members,
    "prefix": lambda value, text: value.startswith(text),
    "suffix": lambda value, text: value.endswith(text),
    "contains": lambda value, text: text in value,
}


def column(values: list[Any], kind: AttributeType) -> pa.Array:
    """An Arrow column of the type's own Arrow type."""
    return pa.array(values, type=arrow_type(kind))


@st.composite
def columns(draw: st.DrawFn, size: int, kind: AttributeType | None = None) -> tuple[AttributeType, pa.Array]:
    """A column of any type, with nulls, sometimes a slice of a longer one."""
    chosen = kind or draw(st.sampled_from(AttributeType))
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    cell = st.none() | ANY_VALUE[chosen] | st.sampled_from(POOLS[chosen])
    values = draw(st.lists(cell, min_size=before + size + after, max_size=before + size + after))
    return chosen, column(values, chosen).slice(before, size)


@dataclass(frozen=True)
class Demand:
    """One constraint, for Maia and for the oracle."""

    uid: str
    kind: AttributeType
    operator: str
    values: tuple[Any, ...]

    def maia(self) -> Constraint:
        """Write it as a constraint of a right."""
        return Constraint(self.uid, self.operator, self.values if self.operator == "in" else (*self.values, "")[0])

    def typed(self) -> TypedConstraint:
        """Write it as a constraint of a filter over uids."""
        return TypedConstraint(attribute=self.uid, type=self.kind, operator=Operator(self.operator), values=self.values)

    def holds(self, value: Any) -> bool:
        """The oracle: no Arrow, no tags, nothing of Maia."""
        if value is None:
            return False
        return self.operator == "any" or MEANING[self.operator](value, *self.values)


@dataclass(frozen=True)
class Rule:
    """A clause, for Maia and for the oracle: attributes (``None`` for all) and demands on the row."""

    uids: frozenset[str] | None
    demands: tuple[Demand, ...]

    def maia(self, action: Action = Action.SUBSCRIBE) -> tuple[Clause, ...]:
        """The clauses that a certificate with this right gives; none when it admits nothing."""
        right = type_right(
            OWNER.public_key, "t.T", actions=[action], attributes=self.uids,
            constraints=[demand.maia() for demand in self.demands],
        )  # fmt: skip
        return () if is_nothing(right) else tuple(Clause(cells, (), ()) for cells in cell_rights(right))

    def opens(self, uid: str) -> bool:
        """Tell whether the attribute is among those of the rule."""
        return self.uids is None or uid in self.uids

    def admits(self, row: dict[str, Any]) -> bool:
        """Tell whether the row meets every demand; a right over no attribute at all is no right."""
        return self.uids != frozenset() and all(demand.holds(row.get(demand.uid)) for demand in self.demands)


Kinds = dict[str, AttributeType]


@st.composite
def kinds(draw: st.DrawFn) -> Kinds:
    """Up to five attributes by uid, of any type."""
    chosen = draw(st.lists(st.sampled_from(AttributeType), min_size=1, max_size=5))
    return {str(100 + at): kind for at, kind in enumerate(chosen)}


@st.composite
def versions(draw: st.DrawFn, kinds_: Kinds, version: str = "1") -> EventType:
    """A version that has some of the attributes, in some order, under names of its own, and perhaps one more."""
    uids = draw(st.permutations(sorted(kinds_)))
    kept = uids[: draw(st.integers(0 if version != "1" else 1, len(uids)))]
    items = [attribute(f"{version}-{uid}", uid, kinds_[uid]) for uid in kept]
    if draw(st.booleans()):
        items.append(attribute("new", 999, "string"))
    return EventType(name=TypeName(OWNER.public_key, "t.T", Version(version)), attributes=tuple(items))


@st.composite
def demands(draw: st.DrawFn, kinds_: Kinds) -> Demand | None:
    """A constraint on one of the attributes."""
    usable = sorted(uid for uid, kind in kinds_.items() if kind is not AttributeType.BINARY)
    if not usable:
        return None
    uid = draw(st.sampled_from(usable))
    kind = kinds_[uid]
    operator = draw(st.sampled_from(OPERATORS[kind]))
    sizes = {"any": (0, 0), "in": (1, 3)}.get(operator, (1, 1))
    values = draw(st.lists(st.sampled_from(POOLS[kind]), min_size=sizes[0], max_size=sizes[1]))
    return Demand(uid, kind, operator, tuple(values))


@st.composite
def rules(draw: st.DrawFn, kinds_: Kinds) -> Rule:
    """A clause over some attributes with up to two demands."""
    uids = draw(st.none() | st.frozensets(st.sampled_from(sorted(kinds_)), max_size=len(kinds_)))
    found = draw(st.lists(demands(kinds_), max_size=2))
    return Rule(uids, tuple(demand for demand in found if demand is not None))


@st.composite
def filters(draw: st.DrawFn, kinds_: Kinds) -> tuple[Demand, ...]:
    """A client's filter: a conjunction of up to two demands."""
    found = draw(st.lists(demands(kinds_), max_size=2))
    return tuple(demand for demand in found if demand is not None)


def typed_filter(found: tuple[Demand, ...]) -> TypedFilter:
    """The filter over uids."""
    return TypedFilter(constraints=tuple(demand.typed() for demand in found))


@st.composite
def rows(draw: st.DrawFn, kinds_: Kinds, *, max_size: int = 12) -> list[dict[str, Any]]:
    """Events by uid."""
    cell = {uid: st.none() | st.sampled_from(POOLS[kind]) for uid, kind in kinds_.items()}
    return draw(st.lists(st.fixed_dictionaries(cell), min_size=1, max_size=max_size))


def transit(rows_: list[dict[str, Any]], kinds_: Kinds) -> pa.RecordBatch:
    """Events as a transit batch."""
    return pa.RecordBatch.from_arrays(
        [column([row[uid] for row in rows_], kind) for uid, kind in kinds_.items()], names=list(kinds_)
    )
