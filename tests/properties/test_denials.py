"""What denials leave of rights, cell by cell, against an oracle that knows rules and rows and no tags."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from maia.authority import cell_rights, permits, row_request
from maia.events import EventType, TypeName, attribute, parse_version
from maia.policy import DenialInForce, TypeCatalogue, compile_allowed, parse_privilege
from maia.principals import KeySigner

OWNER = KeySigner(bytes(32)).public_key
NAMES = ("plate", "speed", "place")
UIDS = dict(zip(NAMES, ("1", "2", "3"), strict=True))
KNOWN = TypeCatalogue(
    [
        EventType(
            name=TypeName(OWNER, "uk.Seen", parse_version("1")),
            attributes=(
                attribute("plate", 1, "string"),
                attribute("speed", 2, "integer"),
                attribute("place", 3, "string"),
            ),
        )
    ]
)
COMPARE: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Value = str | int
Use = tuple[str, str, Value | None]
VALUES = {"plate": st.sampled_from(["A", "B", "C"]), "speed": st.integers(0, 3), "place": st.sampled_from(["x", "y"])}


@st.composite
def uses(draw: st.DrawFn) -> list[Use]:
    """Draw the attributes of a right with their demands; none for a right on the whole type."""
    found: list[Use] = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        word = draw(st.sampled_from(["", "any", *COMPARE]))
        found.append((name, word, draw(VALUES[name]) if word in COMPARE else None))
    return found


rows = st.fixed_dictionaries({name: st.none() | VALUES[name] for name in NAMES})


def written(listed: list[Use]) -> str:
    """Write a right as a rule does."""
    parts = [f"{name} {word}" + ("" if value is None else f" '{value}'") for name, word, value in listed]
    return "subscribe Seen" + (f"({', '.join(parts)})" if parts else "")


def admits(listed: list[Use], row: Mapping[str, Value | None]) -> bool | None:
    """Tell whether a row meets all demands; nothing when a value is missing that one of them is about."""
    verdicts: list[bool | None] = []
    for name, word, value in listed:
        if word == "any":
            verdicts.append(True if row[name] is not None else None)
        elif word:
            verdicts.append(None if row[name] is None else COMPARE[word](row[name], value))
    return False if False in verdicts else None if None in verdicts else True


def named(listed: list[Use]) -> set[str]:
    """Give the attributes that a right lists, or all."""
    return {name for name, _, _ in listed} or set(NAMES)


def opened(gives: list[Use], denies: list[list[Use]], row: Mapping[str, Value | None]) -> set[str]:
    """Say what is open by the meaning of rules: what is given, but for what is denied or may be."""
    if admits(gives, row) is not True:
        return set()
    return named(gives) - {name for denied in denies if admits(denied, row) is not False for name in named(denied)}


def shown(gives: list[Use], denies: list[list[Use]], row: Mapping[str, Value | None]) -> set[str]:
    """Say what is open by the right that is issued."""
    items = [DenialInForce(privilege=parse_privilege(written(one)), rule="", line=1, facts=()) for one in denies]
    left = compile_allowed(parse_privilege(written(gives)), items, KNOWN).right
    if left is None:
        return set()
    ground = dict(
        row_request({UIDS[name]: str(value).encode() for name, value in row.items() if value is not None})[1:]
    )
    return {
        name
        for cells in cell_rights(left.tag)
        for name in NAMES
        if permits(cells.uids, UIDS[name].encode())
        and all(uid.encode() in ground and permits(tag, ground[uid.encode()]) for uid, tag in cells.constraints)
    }


@given(uses(), st.lists(uses(), max_size=3), rows)
def test_what_is_issued_opens_what_is_given_and_not_denied(
    gives: list[Use], denies: list[list[Use]], row: dict[str, Value | None]
) -> None:
    """No cell that is denied is open, and none is closed that nobody denies; a demand without a value may be met."""
    assert shown(gives, denies, row) == opened(gives, denies, row)
