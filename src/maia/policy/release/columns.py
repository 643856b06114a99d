"""The tree on Arrow: rows in, what leaves out. Spark runs these functions too, so that both give the same.

Rules kept here:

- nulls stay nulls; a text that is coarsened as numbers and holds none becomes null, never itself;
- times are those of UTC, whatever zone a batch shows them in;
- a number is rounded to the nearest, a half to the even one, by its exact value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from maia.errors import MalformedError
from maia.events import AttributeType, ValueType, arrow_type
from maia.policy.release.pseudonyms import pseudonym_key, pseudonyms
from maia.policy.release.rules import Coarsening, Precision
from maia.policy.release.tree import COUNT, ReleasedColumn, ReleaseTree

ROWS, PERSON = "rows of a group", "person of a group"
"""Columns of what is counted so far; no attribute that leaves is in their way, since both are renamed."""
_DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN)
_PLACE = re.compile(r"\s*[-+]?[0-9]{1,18}(\.[0-9]{1,30})?\s*(,\s*[-+]?[0-9]{1,18}(\.[0-9]{1,30})?\s*){0,7}", re.ASCII)
_UTC = pa.timestamp("us", tz="UTC")
_Column = Any
"""An array of Arrow's, which ships no types."""


def release_batches(
    tree: ReleaseTree, batches: Iterable[pa.RecordBatch], secret: bytes | None = None
) -> Iterator[pa.RecordBatch]:
    """Give what leaves of some rows: row by row as they come, or the counts of all of them at the end.

    >>> from maia.events import AttributeType
    >>> from maia.policy.release import compile_releases, parse_destination, parse_releases
    >>> rules = parse_releases("release counts of T by ward to registry at least 2 name")
    >>> kinds = {"ward": AttributeType.STRING, "name": AttributeType.STRING}
    >>> (tree,) = compile_releases(rules, parse_destination("registry"), kinds)
    >>> rows = pa.RecordBatch.from_pydict({"ward": ["a", "a", "b", "b"], "name": ["Ali", "Brown", "Chen", "Chen"]})
    >>> [batch.to_pylist() for batch in release_batches(tree, [rows])]
    [[{'ward': 'a', 'count': 2}]]

    Args:
        tree: What leaves.
        batches: The rows, with the columns that the tree reads, by name.
        secret: The domain's secret, for pseudonyms.

    Raises:
        MalformedError: A column is missing or of another type: ``RELEASE_ROWS``.
        UsageError: Pseudonyms are wanted, and there is no secret.
    """
    if not tree.counts:
        keys = pseudonym_keys(tree, secret)
        for batch in batches:
            yield release_rows(tree, batch, keys)
        return
    yield from finish_counts(tree, count_batches(tree, batches)).to_batches()


def pseudonym_keys(tree: ReleaseTree, secret: bytes | None) -> dict[str, bytes]:
    """Derive the keys of the pseudonyms of a tree, by column."""
    return {
        column.name: pseudonym_key(secret or b"", column.scope, column.attribute)
        for column in tree.columns
        if column.scope is not None
    }


def released_schema(tree: ReleaseTree) -> pa.Schema:
    """Give the columns of what leaves."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in tree.attributes])


def release_rows(tree: ReleaseTree, batch: pa.RecordBatch, keys: Mapping[str, bytes]) -> pa.RecordBatch:
    """Give what leaves of each row, in the order of the rows."""
    columns = [_released(column, batch, keys) for column in tree.columns]
    return pa.RecordBatch.from_arrays(columns, schema=released_schema(tree))


def count_schema(tree: ReleaseTree) -> pa.Schema:
    """Give the columns of what is counted so far: those of the groups, a person where people count, and rows."""
    fields = [pa.field(column.name, arrow_type(column.kind)) for column in tree.columns]
    person = [] if tree.people is None else [pa.field(PERSON, pa.string())]
    return pa.schema([*fields, *person, pa.field(ROWS, pa.int64())])


def count_batches(tree: ReleaseTree, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Count the rows of batches by group and person, for `finish_counts`."""
    return pa.Table.from_batches([count_rows(tree, batch) for batch in batches], schema=count_schema(tree))


def number_of_groups(tree: ReleaseTree, partial: pa.Table) -> int:
    """Tell how many groups there are, of whatever size."""
    return int(_summed(partial, [column.name for column in tree.columns]).num_rows)


def count_rows(tree: ReleaseTree, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count the rows of a batch by group and person; what many batches gave is put together by `finish_counts`."""
    columns = [_by_value(_group(_released(column, batch, {})), lambda distinct: distinct) for column in tree.columns]
    if tree.people is not None:
        columns.append(_person(_found(batch, tree.people)))
    columns.append(pa.array([1] * batch.num_rows, type=pa.int64()))
    schema = count_schema(tree)
    counted = _summed(pa.Table.from_arrays(columns, schema=schema), schema.names[:-1])
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in counted.columns], schema=schema)


def finish_counts(tree: ReleaseTree, partial: pa.Table) -> pa.Table:
    """Give the counts of the groups that are large enough, in the order of their values, nulls last.

    SECURITY: people are counted, not rows; no person is none.
    """
    names = [column.name for column in tree.columns]
    together = _summed(partial, partial.schema.names[:-1])
    if tree.people is None:
        counted = _summed(together, names)
    else:
        wanted = [(PERSON, "count"), (ROWS, "sum")]
        found = together.group_by(names, use_threads=False).aggregate(wanted)
        enough = found.filter(pc.greater_equal(found[f"{PERSON}_count"], tree.minimum))
        counted = enough.select([*names, f"{ROWS}_sum"]).rename_columns([*names, ROWS])
    ordered = counted.sort_by([(name, "ascending") for name in names])
    return ordered.rename_columns([*names, COUNT]).cast(released_schema(tree))


def _summed(table: pa.Table, names: list[str]) -> pa.Table:
    """Add up the rows of equal groups."""
    found = table.group_by(names, use_threads=False).aggregate([(ROWS, "sum")])
    return found.select([*names, f"{ROWS}_sum"]).rename_columns([*names, ROWS])


def _released(column: ReleasedColumn, batch: pa.RecordBatch, keys: Mapping[str, bytes]) -> _Column:
    values, out = _found(batch, column.attribute), arrow_type(column.kind)
    if not _holds(values.type, column.source):
        raise _wrong(column.attribute)
    try:
        if column.scope is not None:
            key = keys[column.name]
            return _by_value(values, lambda distinct: pa.array(pseudonyms(key, _octets(distinct)), type=out))
        if column.coarsening is None:
            return values.cast(out)
        made = coarsener(column.coarsening, column.kind)
        return _by_value(values, lambda distinct: pa.array(made(distinct), type=out))
    except pa.ArrowException as error:
        raise _wrong(column.attribute) from error


def _found(batch: pa.RecordBatch, name: str) -> _Column:
    if batch.schema.get_field_index(name) < 0:
        raise _wrong(name)
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _holds(kind: pa.DataType, wanted: ValueType) -> bool:
    """Tell whether a column holds values of a type, in whatever form: coded, of another unit or zone."""
    plain, asked = (item.value_type if pa.types.is_dictionary(item) else item for item in (kind, arrow_type(wanted)))
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_date,
        pa.types.is_timestamp, pa.types.is_nested,
    )  # fmt: skip
    return all(test(plain) == test(asked) for test in tests) and _textual(plain) == _textual(asked)


def _textual(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _wrong(name: str) -> MalformedError:
    return MalformedError(f"the rows have no column `{name}` of the type that the rules read", code="RELEASE_ROWS")


def _by_value(values: _Column, make: Callable[[_Column], _Column]) -> _Column:
    """Make something of each different value once."""
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    return make(coded.dictionary).take(coded.indices)


def coarsener(coarsening: Coarsening, kind: ValueType) -> Callable[[_Column], list[object]]:
    """Give the function from values, none of them null, to what is left of them."""
    size = coarsening.size or 0
    match coarsening.precision:
        case Precision.MONTH:
            return lambda values: [f"{year:04}-{month:02}" for year, month in _months(values)]
        case Precision.YEAR:
            return lambda values: [f"{year:04}" for year, _ in _months(values)]
        case Precision.BUCKET:
            return lambda values: [_bucket(value, size) for value in values.to_pylist()]
        case Precision.FIRST:
            return lambda values: [value[:size] for value in values.to_pylist()]
        case Precision.LAST:
            return lambda values: [value[-size:] for value in values.to_pylist()]
        case _:
            return lambda values: [_ROUND.get(kind.base, _round_decimal)(value, size) for value in values.to_pylist()]


def _months(values: _Column) -> Iterator[tuple[int, int]]:
    days = values if pa.types.is_date(values.type) else values.cast(_UTC)
    return zip(pc.year(days).to_pylist(), pc.month(days).to_pylist(), strict=True)


def _bucket(value: float | Decimal, size: int) -> str:
    low = math.floor(Fraction(value) / size) * size
    return f"{low}-{low + size - 1}" if isinstance(value, int) else f"{low}-{low + size}"


def _round_float(value: float, size: int) -> float:
    return round(value, size) + 0.0  # there is no negative zero


def _round_decimal(value: Decimal, size: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-size), context=_DIGITS) + Decimal(0)


def _round_text(value: str, size: int) -> str | None:
    """Round each number of a text such as ``51.4952,-0.1439``."""
    if not _PLACE.fullmatch(value):
        return None
    return ",".join(format(_round_decimal(Decimal(part.strip()), size), "f") for part in value.split(","))


_ROUND: Mapping[AttributeType, Callable[[Any, int], object]] = {
    AttributeType.FLOAT: _round_float,
    AttributeType.STRING: _round_text,
}


def _octets(values: _Column) -> Iterator[bytes]:
    """Write values so that two of them are equal when their octets are."""
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return (b"binary:" + value for value in values.to_pylist())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return (b"string:" + value.encode() for value in values.to_pylist())
    if pa.types.is_date(kind):
        return (b"date:%d" % value for value in values.cast(pa.date32()).cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind):
        return (b"timestamp:%d" % value for value in values.cast(_UTC).cast(pa.int64()).to_pylist())
    if pa.types.is_decimal(kind):
        return (b"decimal:" + format(value.normalize(_DIGITS), "f").encode() for value in values.to_pylist())
    if pa.types.is_floating(kind):
        return (b"float:" + repr(value + 0.0).encode() for value in values.to_pylist())  # one zero
    return (b"integer:%d" % value for value in values.cast(pa.int64()).to_pylist())


def _group(column: _Column) -> _Column:
    """Make floats that are equal one value: Arrow and Spark do not agree about the sign of zero."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


def _person(values: _Column) -> _Column:
    """Write who a row is about as a text, the same for the same value."""
    return _by_value(
        values, lambda distinct: pa.array([octets.hex() for octets in _octets(distinct)], type=pa.string())
    )
