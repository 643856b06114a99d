"""The verb of flow: what the result of a plan tells, and whether that may flow to a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maia.conformance.fields import Json, VerbAnswer, field, wrong
from maia.conformance.labels import label_of
from maia.errors import FlowError, MalformedError, UsageError
from maia.labels import (
    Carrier,
    Component,
    How,
    RelationLabel,
    SymbolicLabel,
    declassified,
    group,
    join_relations,
    project,
    union,
    where,
)

MAX_DEPTH = 200


class _Walk:
    """Walks a plan over its sources and components."""

    def __init__(self, sources: Mapping[str, RelationLabel], components: Mapping[str, Component]) -> None:
        self._sources = sources
        self._components = components
        self._operators: Mapping[str, tuple[set[str], set[str], Callable[[Json, int], RelationLabel]]] = {
            "read": (set(), set(), self._read),
            "select": ({"from"}, set(), self._select),
            "where": ({"from"}, set(), self._where),
            "join": ({"on"}, {"how"}, self._join),
            "union": (set(), set(), self._union),
            "group": ({"count", "from"}, set(), self._group),
            "declassify": ({"by", "from"}, set(), self._declassify),
        }

    def relation(self, plan: object, depth: int = 0) -> RelationLabel:
        """Label the result of a plan."""
        if depth > MAX_DEPTH:
            raise MalformedError(f"a plan is at most {MAX_DEPTH} operators deep", code="PLAN_DEPTH")
        if not isinstance(plan, dict):
            raise wrong("plan", "a plan")
        for name, (needed, optional, operator) in self._operators.items():
            if name in plan:
                if not {name} | needed <= set(plan) <= {name} | needed | optional:
                    raise wrong("plan", f"a plan that says `{name}` and what belongs to it")
                return operator(plan, depth + 1)
        raise wrong("plan", "a plan")

    def _read(self, plan: Json, _depth: int) -> RelationLabel:
        name = field(plan, "read", str)
        if name not in self._sources:
            raise MalformedError(f"there is no source `{name}`", code="NO_SOURCE")
        return self._sources[name]

    def _select(self, plan: Json, depth: int) -> RelationLabel:
        return project(self.relation(plan["from"], depth), {name: name for name in texts(plan["select"], "select")})

    def _where(self, plan: Json, depth: int) -> RelationLabel:
        return where(self.relation(plan["from"], depth), texts(plan["where"], "where"))

    def _join(self, plan: Json, depth: int) -> RelationLabel:
        left, right = self._both(plan["join"], "join", depth)
        return join_relations(left, right, texts(plan["on"], "on"), How.parse(field(plan, "how", str, "inner")))

    def _union(self, plan: Json, depth: int) -> RelationLabel:
        return union(*self._both(plan["union"], "union", depth))

    def _group(self, plan: Json, depth: int) -> RelationLabel:
        keys, name = texts(plan["group"], "group"), field(plan, "count", str)
        return group(self.relation(plan["from"], depth), keys, {name: ()})

    def _declassify(self, plan: Json, depth: int) -> RelationLabel:
        inner = self.relation(plan["from"], depth)
        name = field(plan, "by", str)
        if name not in self._components:
            raise FlowError(f"there is no component `{name}`", code="DECLASSIFY_NOT_HELD")
        return declassified(inner, texts(plan["declassify"], "declassify"), self._components[name])

    def _both(self, plans: object, name: str, depth: int) -> tuple[RelationLabel, RelationLabel]:
        if not isinstance(plans, list) or len(plans) != 2:
            raise wrong(name, "two plans")
        return self.relation(plans[0], depth), self.relation(plans[1], depth)


def check_flow(request: Json) -> dict[str, object] | VerbAnswer:
    """``flow.check``: the labels of what leaves a plan, and whether all of it may flow to the sink."""
    sources = {name: source_of(value) for name, value in field(request, "sources", dict).items()}
    components = {
        name: Component(name=name, declassify=frozenset(texts(tags, "components")))
        for name, tags in field(request, "components", dict, {}).items()
    }
    sink = label_of(request.get("sink"), "sink")
    try:
        found = _Walk(sources, components).relation(request.get("plan"))
    except FlowError as error:
        return VerbAnswer("refused", error.code)
    except UsageError as error:
        raise MalformedError(error.message, code=error.code) from error
    # What comes from nothing has every integrity: of those that the request speaks of.
    everything = sink.integrity.union(
        *(label.integrity or () for source in sources.values() for label in source.columns.values())
    )
    shown = {name: found.cell(name).shown(everything) for name in found.columns}
    columns = {name: {"S": sorted(label.secrecy), "I": sorted(label.integrity)} for name, label in shown.items()}
    return {"columns": columns, "allowed": found.flows_to(sink)}


def source_of(value: object) -> RelationLabel:
    """Read a source: columns with their labels, and carriers."""
    if not isinstance(value, dict) or not set(value) <= {"columns", "carriers"}:
        raise wrong("sources", "columns and carriers")
    columns = {
        name: SymbolicLabel.of(label_of(label, "columns")) for name, label in field(value, "columns", dict).items()
    }
    for name, carried in field(value, "carriers", dict, {}).items():
        family, column = pair_of(carried)
        if name not in columns or column not in columns:
            raise MalformedError(f"there is no column `{column if name in columns else name}`", code="NO_COLUMN")
        columns[name] = columns[name].join(SymbolicLabel(carriers=frozenset({Carrier(family=family, column=column)})))
    return RelationLabel(columns=columns)


def pair_of(value: object) -> tuple[str, str]:
    """Read a carrier: a family, and the column that says which of its tags."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(item, str) for item in value):
        raise wrong("carriers", "a family and a column")
    return value[0], value[1]


def texts(value: object, name: str) -> list[str]:
    """Read a list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(name, "a list of texts")
    return value


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"flow.check": check_flow}
