"""Attributes of an event type: a name for people, a uid for the machine, a type for the values.

Rules kept here:

- a name has 1 to `MAX_NAME_OCTETS` octets of UTF-8, without control characters and without the characters that turn
  the direction of writing, so that what a person reads is what the machine compares;
- a uid has exactly one spelling: a decimal counter without leading zeros, ``x`` and the lower-case hexadecimal of a
  folded UUID, or a whole UUID in its 36-character form. Two uids are equal when their texts are equal;
- in one version no name and no uid occurs twice; over all versions a uid has one type (`check_uids`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NewType

from maia.errors import MalformedError
from maia.events.value_types import (
    ArrayOf,
    AttributeType,
    DecimalOf,
    StructOf,
    ValueType,
    parse_attribute_type,
)

Uid = NewType("Uid", str)
"""What identifies an attribute in every version of its type; the text stands in capabilities and transit events."""

MAX_NAME_OCTETS = 256
MAX_ATTRIBUTES = 1024
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,38}", re.ASCII)
_FOLDED = re.compile(r"x(?:[0-9a-f]{2}){1,15}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
# Characters that reorder the text around them; no name needs one, every spoof does.
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FORBIDDEN_CATEGORIES = frozenset(("Cc", "Cs", "Zl", "Zp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of one version: ``[name, uid, type]``."""

    name: str
    uid: Uid
    type: ValueType

    def __post_init__(self) -> None:
        """Refuse names and uids that have a second spelling or none, and types nobody knows."""
        check_printable(self.name, "an attribute name")
        check_uid(self.uid)
        if not isinstance(self.type, AttributeType | DecimalOf | ArrayOf | StructOf):
            raise MalformedError("the attribute type is unknown", code="ATTRIBUTE_TYPE")


def attribute(name: str, uid: int | str, type_: ValueType | str) -> Attribute:
    """Make an attribute from plain values, as people write them.

    >>> attribute("numberplate", 3265, "string").uid
    '3265'
    """
    return Attribute(name=name, uid=parse_uid(uid), type=parse_attribute_type(type_))


def parse_uid(value: int | str) -> Uid:
    """Read a uid from a counter or from its text.

    >>> parse_uid(9525), parse_uid("x7f3a90c1")
    ('9525', 'x7f3a90c1')
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise MalformedError("a uid is a number or a text", code="UID_FORM")
    return check_uid(str(value) if isinstance(value, int) else value)


def check_uid(text: object) -> Uid:
    """Give the text back as a uid, or refuse one with a second spelling.

    Raises:
        MalformedError: It is no plain decimal, no folded UUID and no UUID.
    """
    if not isinstance(text, str) or not any(form.fullmatch(text) for form in (_DECIMAL, _FOLDED, _UUID)):
        raise MalformedError("a uid is a plain decimal, `x` and hexadecimal digits, or a UUID", code="UID_FORM")
    return Uid(text)


def check_printable(text: object, what: str) -> str:
    """Give the text back, or refuse one that is empty, overlong or holds characters nobody can see."""
    if not isinstance(text, str) or not text:
        raise MalformedError(f"{what} is a text that is not empty", code="NAME_FORM")
    if any(character in _DIRECTION or unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in text):
        raise MalformedError(f"{what} holds a control character", code="NAME_FORM")
    if len(text.encode("utf-8")) > MAX_NAME_OCTETS:
        raise MalformedError(f"{what} has more than {MAX_NAME_OCTETS} octets", code="NAME_FORM")
    return text


def check_count(attributes: int) -> None:
    """Refuse more attributes than a type has.

    Raises:
        MalformedError: There are: ``TOO_MANY_ATTRIBUTES``.
    """
    if attributes > MAX_ATTRIBUTES:
        raise MalformedError(f"a type has at most {MAX_ATTRIBUTES} attributes", code="TOO_MANY_ATTRIBUTES")


def check_attributes(attributes: tuple[Attribute, ...]) -> None:
    """Refuse an attribute set in which a name or a uid stands twice.

    Raises:
        MalformedError: There are too many, or two share a name or a uid.
    """
    check_count(len(attributes))
    names: set[str] = set()
    uids: set[Uid] = set()
    for item in attributes:
        if item.name in names:
            raise MalformedError(f"two attributes are called `{item.name}`", code="ATTRIBUTE_NAME_TWICE")
        if item.uid in uids:
            raise MalformedError(f"two attributes have the uid `{item.uid}`", code="ATTRIBUTE_UID_TWICE")
        names.add(item.name)
        uids.add(item.uid)


def check_uids(versions: Iterable[tuple[Attribute, ...]]) -> Mapping[Uid, ValueType]:
    """Check that over all these versions each uid has one type, and say which.

    Raises:
        MalformedError: A uid was used again with another type.
    """
    types: dict[Uid, ValueType] = {}
    for attributes in versions:
        for item in attributes:
            # SECURITY: a uid that changes its meaning would open new data to old rights (T37).
            if types.setdefault(item.uid, item.type) != item.type:
                raise MalformedError(f"uid `{item.uid}` is used again with another type", code="UID_REUSED")
    return types
