"""Names, uids and types of attributes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MaiaError, MalformedError
from maia.events import (
    Attribute,
    AttributeType,
    attribute,
    check_attributes,
    check_uid,
    check_uids,
    parse_attribute_type,
    parse_uid,
)

GOOD_UIDS = {
    "a counter from zero": (0, "0"),
    "a counter": (9525, "9525"),
    "a counter as text": ("3265", "3265"),
    "a folded UUID": ("x7f3a90c1", "x7f3a90c1"),
    "a whole UUID": ("0640d3d2-0b2b-45db-b66b-0f4200cd8358", "0640d3d2-0b2b-45db-b66b-0f4200cd8358"),
}
BAD_UIDS = {
    "a leading zero": "007",
    "a sign": "+7",
    "a negative number": -1,
    "a space": "7 ",
    "other digits": "٧",
    "an empty text": "",
    "upper case": "X7F",
    "half an octet": "xabc",
    "a UUID in upper case": "0640D3D2-0b2b-45db-b66b-0f4200cd8358",
    "a UUID without dashes": "0640d3d20b2b45dbb66b0f4200cd8358",
    "a boolean": True,
    "a float": 1.0,
    "nothing": None,
    "a number nobody can hold": 10**40,
}
BAD_NAMES = {
    "an empty name": "",
    "a line break": "a\nb",
    "a null": "a\0",
    "a reversal of direction": "a\u202eb",
    "a lone surrogate": "\ud800",
    "a name too long": "a" * 257,
}


@pytest.mark.parametrize("given_uid, text", GOOD_UIDS.values(), ids=GOOD_UIDS)
def test_uid_has_one_spelling(given_uid: int | str, text: str) -> None:
    """A uid reads to its only text."""
    assert parse_uid(given_uid) == text
    assert check_uid(text) == text


@pytest.mark.parametrize("uid", BAD_UIDS.values(), ids=BAD_UIDS)
def test_second_spelling_of_a_uid_is_refused(uid: object) -> None:
    """Two texts for one uid would let a right miss its attribute."""
    with pytest.raises(MalformedError, match="UID_FORM"):
        parse_uid(uid)


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_unreadable_attribute_name_is_refused(name: str) -> None:
    """What a person reads is what the machine compares."""
    with pytest.raises(MalformedError, match="NAME_FORM"):
        attribute(name, 1, "string")


def test_two_attributes_of_one_uid_are_refused() -> None:
    """A uid stands for one attribute."""
    with pytest.raises(MalformedError, match="ATTRIBUTE_UID_TWICE"):
        check_attributes((attribute("a", 1, "string"), attribute("b", 1, "string")))


def test_too_many_attributes_are_refused() -> None:
    """A definition has a stated size."""
    with pytest.raises(MalformedError, match="TOO_MANY_ATTRIBUTES"):
        check_attributes(tuple(attribute(f"a{n}", n, "string") for n in range(1025)))


@pytest.mark.threat("T37")
def test_uid_with_two_types_over_versions_is_refused() -> None:
    """A uid keeps its type for ever."""
    first, second = (attribute("a", 1, "string"),), (attribute("b", 1, "boolean"),)
    assert check_uids((first, first)) == {"1": AttributeType.STRING}
    with pytest.raises(MalformedError, match="UID_REUSED"):
        check_uids((first, second))


def test_unknown_type_is_refused() -> None:
    """A type nobody knows is no type."""
    for word in ("quaternion", "String", "", "INTEGER"):
        with pytest.raises(MalformedError, match="ATTRIBUTE_TYPE"):
            parse_attribute_type(word)
    with pytest.raises(MalformedError, match="ATTRIBUTE_TYPE"):
        Attribute(name="a", uid=parse_uid(1), type="string")  # type: ignore[arg-type]


@given(st.text(max_size=40) | st.integers() | st.booleans() | st.none())
def test_only_maia_errors_come_from_reading_uids(value: object) -> None:
    """Whatever a uid is given as, it reads or is refused, and reading again changes nothing."""
    try:
        uid = parse_uid(value)  # type: ignore[arg-type]
    except MaiaError:
        return
    assert parse_uid(uid) == uid
