"""The verb of releases between domains."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

import pyarrow as pa

from maia.conformance.fields import Json, field, objects, wrong
from maia.conformance.types import read_value
from maia.errors import MalformedError, UsageError
from maia.events import (
    Attribute,
    arrow_type,
    attribute,
    value_to_json,
)
from maia.policy import release

_MAX_ROWS = 1_000_000


def apply(request: Json) -> list[dict[str, object]]:
    """``release.apply``: the rows that leave.

    What is kept comes as it was given; pseudonyms are named in the order in which they appear.
    """
    rules = release.parse_releases(field(request, "rules", str))
    to, attributes = _destination(request), _attributes(request)
    types = {rule.event_type for rule in rules if rule.to == to}
    if len(types) > 1:
        raise MalformedError("the rules for this destination are about several types", code="RELEASE_AMBIGUOUS")
    rows = objects(request, "rows")
    batch = _batch(rows, attributes)
    kinds = {name: item.type for name, item in attributes.items()}
    found: list[dict[str, object]] = []
    names: dict[object, str] = {}
    secret = secrets.token_bytes(release.SECRET_LENGTH)
    for tree in release.compile_releases([rule for rule in rules if rule.event_type in types], to, kinds):
        whole = [item.name for item in tree.columns if tree.counts and item.coarsening is None]
        forms = {name: _forms(batch, rows, name) for name in whole}
        for made in release.release_batches(tree, [batch], secret):
            for number, row in enumerate(made.to_pylist()):
                shown = {name: value_to_json(value) for name, value in row.items()}
                for column in tree.columns:
                    name = column.name
                    if column.scope is not None and shown[name] is not None:
                        shown[name] = names.setdefault(shown[name], f"#{len(names) + 1}")
                    elif column.scope is None and column.coarsening is None:
                        shown[name] = forms[name][row[name]] if tree.counts else rows[number].get(name)
                found.append(shown)
    return found


def _forms(batch: pa.RecordBatch, rows: list[Json], name: str) -> dict[object, object]:
    """Tell in which form each value of an attribute came first."""
    found: dict[object, object] = {}
    for value, row in zip(batch.column(name).to_pylist(), rows, strict=True):
        found.setdefault(value, row.get(name))
    return found


def _destination(request: Json) -> release.Destination:
    given = field(request, "to", dict)
    for kind in release.DestinationKind:
        name = given.get(kind.value)
        if isinstance(name, str) and name and len(given) == 1:
            return release.Destination(kind, name)
    raise wrong("to", "a domain or a study")


def _attributes(request: Json) -> dict[str, Attribute]:
    given = field(request, "type", dict).get("attributes")
    if not isinstance(given, dict) or not all(isinstance(kind, str) for kind in given.values()):
        raise wrong("type", "an object with the types of attributes")
    return {name: attribute(name, number, kind) for number, (name, kind) in enumerate(given.items())}


def _batch(rows: list[Json], attributes: Mapping[str, Attribute]) -> pa.RecordBatch:
    """Read rows; what a row lacks is null, what no attribute holds is refused."""
    if len(rows) > _MAX_ROWS:
        raise UsageError(f"at most {_MAX_ROWS} rows are released at once", code="RELEASE_ROWS")
    for row in rows:
        for name in row.keys() - attributes.keys():
            raise MalformedError(f"the type has no attribute `{name}`", code="UNKNOWN_ATTRIBUTE")
    columns = {
        name: pa.array([read_value(item, row.get(name)) for row in rows], type=arrow_type(item.type))
        for name, item in attributes.items()
    }
    return pa.RecordBatch.from_pydict(columns) if columns else pa.RecordBatch.from_pylist([{}] * len(rows))


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"release.apply": apply}
