"""Conditions on events evaluated for whole columns at once, where that gives the same answers as row by row.

Rules:
    1. An answer is true, false or an error, and errors are nulls: ``&&`` and ``||`` get along without the side that
       failed exactly as Kleene's logic does with a null, and ``!`` and ``? :`` keep it.
    2. Only comparisons of values of one type are taken: an attribute with a literal, with an input or with another
       attribute; and whether a text starts with, ends with or contains a literal. For whatever else stands in the
       condition there is no answer here, and rows are asked one by one.
    3. A value that is larger than conditions look at has no answer here either.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from maia.kernel.rows import Mask, column_of
from maia.policy import ConditionNode, Occasion

_COMPARED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "_==_": pc.equal, "_!=_": pc.not_equal, "_<_": pc.less, "_<=_": pc.less_equal, "_>_": pc.greater,
    "_>=_": pc.greater_equal,
}  # fmt: skip
_METHODS: dict[str, Callable[..., pa.Array]] = {
    "startsWith": pc.starts_with,
    "endsWith": pc.ends_with,
    "contains": pc.match_substring,
}
_KINDS: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_INPUTS = ("action", "principal", "event_type")


class _NoAnswerError(Exception):
    """Stays inside this module: the rows must be asked one by one."""


def mask_by_columns(
    tree: ConditionNode, batch: pa.RecordBatch, occasion: Occasion, *, value_octets: int
) -> Mask | None:
    """Tell for each row whether a condition is true; ``None`` when only the rows themselves can tell.

    Args:
        tree: What the condition says.
        batch: A transit batch, columns named by uid.
        occasion: The moment.
        value_octets: The longest text that conditions look at.
    """
    columns = _Columns(batch, occasion, value_octets)
    try:
        found = columns.truth(tree)
    except _NoAnswerError:
        return None
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, batch.num_rows)
    mask: Mask = found.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


class _Columns:
    def __init__(self, batch: pa.RecordBatch, occasion: Occasion, value_octets: int) -> None:
        self._batch = batch
        self._occasion = occasion
        self._octets = value_octets

    def truth(self, node: ConditionNode) -> pa.Array:
        """Evaluate a part that is true or false."""
        if node.kind == "constant" and isinstance(node.value, bool):
            return pa.scalar(node.value)
        if node.kind != "call":
            raise _NoAnswerError
        match node.text:
            case "_&&_":
                return pc.and_kleene(*map(self.truth, node.parts))
            case "_||_":
                return pc.or_kleene(*map(self.truth, node.parts))
            case "!_":
                return pc.invert(self.truth(node.parts[0]))
            case "_?_:_":
                return pc.if_else(*map(self.truth, node.parts))
            case "@in":
                return self._among(*node.parts)
            case text if text in _COMPARED:
                return self._compared(text, *map(self._operand, node.parts))
            case text if text in _METHODS and node.method and node.parts[-1].literal:
                return self._method(text, self._operand(node.parts[0]), node.parts[-1].text)
            case _:
                raise _NoAnswerError

    def _method(self, name: str, value: pa.Array, pattern: str) -> pa.Array:
        if not pa.types.is_string(value.type):
            raise _NoAnswerError
        return _METHODS[name](value, pattern=pattern)

    def _compared(self, operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
        if left.type != right.type or (pa.types.is_boolean(left.type) and operator not in {"_==_", "_!=_"}):
            raise _NoAnswerError
        return _COMPARED[operator](left, right)

    def _among(self, one: ConditionNode, several: ConditionNode) -> pa.Array:
        if several.kind == "name" and several.text == "event" and one.literal:
            column = column_of(self._batch, one.text)
            return pa.scalar(False) if column is None else self._checked(column).is_valid()
        value = self._operand(one)
        if several.kind != "list" or not several.parts:
            raise _NoAnswerError
        found: pa.Array = pa.scalar(False)
        for part in several.parts:
            found = pc.or_kleene(found, self._compared("_==_", value, self._operand(part)))
        return found

    def _operand(self, node: ConditionNode) -> pa.Array:
        """Evaluate a part that is compared with another."""
        if node.kind == "constant" and type(node.value) in _KINDS:
            return pa.scalar(node.value, type=_KINDS[type(node.value)])
        if node.kind == "name" and node.text in _INPUTS:
            return pa.scalar(getattr(self._occasion, node.text), type=pa.string())
        if node.kind == "call" and node.text == "_[_]":
            event, uid = node.parts
            column = column_of(self._batch, uid.text)
            if event.kind == "name" and event.text == "event" and uid.literal and column is not None:
                return self._checked(column)
        raise _NoAnswerError

    def _checked(self, column: pa.Array) -> pa.Array:
        """Refuse columns whose values conditions see as something else, and values that they do not look at."""
        if column.type not in _KINDS.values():
            raise _NoAnswerError
        if pa.types.is_string(column.type):
            longest = pc.max(pc.binary_length(column)).as_py()
            if longest is not None and longest > self._octets:
                raise _NoAnswerError
        return column
