"""The tree of a compiled condition, read from the form in which the expression library writes it out.

The library gives no other way to look at what it parsed. Its form is a protocol buffer (``cel.expr.CheckedExpr``) of
which a few fields matter; whatever is not known here is refused, so a new kind of node can never slip through.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from maia.errors import EncodingError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_CONSTANTS = {1: "null", 2: "bool", 3: "int", 4: "uint", 5: "double", 6: "string", 7: "bytes"}
_STRING = 6
_REFUSED = {8: "message", 9: "loop"}


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an expression.

    Attributes:
        kind: ``constant``, ``name``, ``call`` or ``list``; ``field``, ``message`` and ``loop`` are there to be refused.
        text: The name, the function, the kind of the constant, or the value of a string.
        parts: What it is applied to; the target of a method is the first.
        offset: Where it stands in the text, in characters.
        literal: Whether it is a string constant.
        method: Whether it is called on its first part.
        value: Of a constant that is a boolean, an integer, a float or a string.
    """

    kind: str
    text: str
    parts: tuple[Node, ...]
    offset: int
    literal: bool = False
    method: bool = False
    value: bool | int | float | str | None = None

    def walk(self) -> Iterator[Node]:
        """Go through this node and all below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.parts)

    def depth(self) -> int:
        """Count the levels."""
        deepest, stack = 0, [(self, 1)]
        while stack:
            node, level = stack.pop()
            deepest = max(deepest, level)
            stack.extend((part, level + 1) for part in node.parts)
        return deepest


def read_tree(serialised: bytes) -> Node:
    """Read the tree of a checked expression.

    Raises:
        EncodingError: The library wrote something else.
    """
    checked = _one(serialised, 2)
    offsets: dict[int, int] = {}
    for info in _all(checked, 5):
        for entry in _all(info, 4):
            numbers = {field: value for field, value in _fields(entry) if isinstance(value, int)}
            offsets[numbers.get(1, 0)] = numbers.get(2, 0)
    return _node(_one(checked, 4), offsets, 64)


def _node(data: bytes, offsets: dict[int, int], room: int) -> Node:
    if room <= 0:
        raise EncodingError("an expression nested too deep", code="CONDITION_FORM")
    offset, kind, body = 0, 0, b""
    for field, value in _fields(data):
        if field == 2 and isinstance(value, int):
            offset = offsets.get(value, 0)
        elif isinstance(value, bytes):
            kind, body = field, value

    def below(parts: Iterator[bytes]) -> tuple[Node, ...]:
        return tuple(_node(part, offsets, room - 1) for part in parts)

    match kind:
        case 3:
            return _constant(body, offset)
        case 4:
            return Node("name", _one(body, 1).decode(), (), offset)
        case 5:
            return Node("field", _one(body, 2).decode(), below(_all(body, 1)), offset)
        case 6:
            target = below(_all(body, 1))
            parts = target + below(_all(body, 3))
            return Node("call", _one(body, 2).decode(), parts, offset, method=bool(target))
        case 7:
            return Node("list", "", below(_all(body, 1)), offset)
        case 8 | 9:
            return Node(_REFUSED[kind], "", (), offset)
        case _:
            raise EncodingError("an expression of a kind that is not known", code="CONDITION_FORM")


def _constant(body: bytes, offset: int) -> Node:
    for field, value in _fields(body):
        if field == _STRING and isinstance(value, bytes):
            text = value.decode()
            return Node("constant", text, (), offset, literal=True, value=text)
        if field in _CONSTANTS:
            return Node("constant", _CONSTANTS[field], (), offset, value=_read(_CONSTANTS[field], value))
    raise EncodingError("a constant of a kind that is not known", code="CONDITION_FORM")


def _read(kind: str, value: int | bytes) -> bool | int | float | None:
    """Read the constants that have a value of their own here."""
    if kind == "bool":
        return bool(value)
    if kind == "int" and isinstance(value, int):
        return value - (1 << 64) if value >> 63 else value
    if kind == "double" and isinstance(value, bytes):
        number: float = struct.unpack("<d", value)[0]
        return number
    return None


def _one(data: bytes, number: int) -> bytes:
    found = list(_all(data, number))
    if len(found) != 1:
        raise EncodingError("an expression in a form that is not known", code="CONDITION_FORM")
    return found[0]


def _all(data: bytes, number: int) -> Iterator[bytes]:
    return (value for field, value in _fields(data) if field == number and isinstance(value, bytes))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Go through the fields of a protocol buffer."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire = key & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if wire == _BYTES:
            length, position = _varint(data, position)
        if length is None or position + length > len(data):
            raise EncodingError("an expression in a form that is not known", code="CONDITION_FORM")
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        octet = data[position]
        value |= (octet & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if octet < 0x80:
            return value, position
    raise EncodingError("an expression in a form that is not known", code="CONDITION_FORM")
