"""Rights and requests in Maia's words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from maia.authority import (
    EVERYTHING,
    MANAGE_PARTS,
    NOTHING,
    Action,
    Constraint,
    Request,
    ask,
    ask_cell,
    ask_network,
    ask_type,
    cell_rights,
    covers,
    is_nothing,
    network_blanket,
    network_right,
    parse_tag,
    permits,
    row_request,
    rows_tag,
    type_blanket,
    type_right,
    uids_tag,
    value_tag,
)
from maia.authority.constraints import encode_value
from maia.encoding import Sexp
from maia.errors import TagError
from maia.principals import KeyHash, Threshold
from maia.testing import People

PEOPLE = People("pito", "met")
OWNER = PEOPLE.pito.public_key


@pytest.mark.parametrize(
    "word, action",
    [
        ("connect", Action.CONNECT),
        ("manage", Action.MANAGE),
        ("manage/add", Action.ADD_ATTRIBUTE),
        ("manage/remove", Action.REMOVE_ATTRIBUTE),
        ("manage/rename", Action.EDIT_ATTRIBUTE_NAME),
        ("manage/retype", Action.EDIT_ATTRIBUTE_TYPE),
        ("change", Action.EDIT_ATTRIBUTE_TYPE),
        ("addAttribute", Action.ADD_ATTRIBUTE),
    ],
)
def test_actions_have_the_names_of_both_papers(word: str, action: Action):
    """Aliases mean the canonical action (C20)."""
    assert Action.parse(word) is action


@pytest.mark.parametrize("word", ["", "Connect", "delete", "manage/", "*"])
def test_an_unknown_action_is_refused(word: str):
    """No guessing."""
    with pytest.raises(TagError, match="UNKNOWN_ACTION"):
        Action.parse(word)


def test_manage_covers_its_parts_and_no_part_covers_manage():
    """(manage) is the shorter list."""
    whole = type_right(OWNER, "T", actions=[Action.MANAGE])
    for part in MANAGE_PARTS:
        assert ask_type(part, OWNER, "T", "1").admitted_by(whole)
        own = type_right(OWNER, "T", actions=[part])
        assert covers(whole, own)
        assert not covers(own, whole)
        assert not ask_type(Action.MANAGE, OWNER, "T", "1").admitted_by(own)


def test_blankets_cover_every_right_of_their_kind():
    """A blanket on types says nothing about networks."""
    assert covers(type_blanket(), type_right(OWNER, "T", "1", actions=[Action.PUBLISH], attributes=["7"]))
    assert covers(network_blanket(), network_right(OWNER, "N", [Action.CONNECT]))
    assert not covers(type_blanket(), network_right(OWNER, "N", None))
    assert type_right(None) == type_blanket()


def test_a_right_without_actions_or_attributes_is_none():
    """Nothing listed is nothing granted."""
    assert is_nothing(type_right(OWNER, "T", actions=[]))
    assert is_nothing(type_right(OWNER, "T", attributes=[]))
    assert is_nothing(network_right(OWNER, "N", []))
    assert uids_tag(None) == EVERYTHING
    assert uids_tag([]) == NOTHING


def test_attributes_and_constraints_are_about_cells():
    """Actions without cells carry neither; several constraints on one uid must all hold."""
    right = type_right(
        OWNER, "T", actions=[Action.SUBSCRIBE, Action.MANAGE], attributes=["7"],
        constraints=[Constraint("8", ">=", 5), Constraint("8", "<", 9)],
    )  # fmt: skip
    assert ask_type(Action.MANAGE, OWNER, "T", "1").admitted_by(right)
    for value, allowed in ((b"4", False), (b"5", True), (b"8", True), (b"9", False)):
        asked = ask_cell(Action.SUBSCRIBE, OWNER, "T", "1", "7", row_request({"8": value}))
        assert asked.admitted_by(right) is allowed
    assert not ask_cell(Action.SUBSCRIBE, OWNER, "T", "1", "7", row_request({})).admitted_by(right)
    assert not ask_cell(Action.SUBSCRIBE, OWNER, "T", "1", "9", row_request({"8": b"5"})).admitted_by(right)
    assert not ask_cell(Action.PUBLISH, OWNER, "T", "1", "7", row_request({"8": b"5"})).admitted_by(right)


VALUES = {
    "=": [("x", b"x", True), ("x", b"y", False), (5, b"5", True), (5, b"05", True), (True, b"true", True)],
    "!=": [("m", b"a", True), ("m", b"m", False), ("m", b"z", True), (5, b"5", False), (True, b"false", True),
           (False, b"true", True), (False, b"false", False)],
    "<": [(5, b"4", True), (5, b"5", False), ("b", b"a", True), (1.5, b"1.4", True), (1.5, b"1.50", False)],
    "<=": [(5, b"5", True), (Decimal("1.10"), b"1.1", True), (date(2026, 6, 1), b"2026-06-01", True)],
    ">": [(5, b"5", False), (datetime(2026, 6, 1, 9, tzinfo=UTC), b"2026-06-01_09:00:00.000001", True)],
    ">=": [(datetime(2026, 6, 1, 9, 0, 0, 500000, tzinfo=UTC), b"2026-06-01_09:00:00.4", False), (-5, b"-4", True)],
    "in": [((1, 2), b"2", True), ((1, 2), b"3", False), ((), b"1", False), (("a", "b"), b"b", True)],
    "any": [("", b"anything", True)],
    "prefix": [("ab", b"abc", True), ("ab", b"a", False)],
    "suffix": [("bc", b"abc", True), ("b*", b"bc", False), ("b*", b"ab*", True)],
    "contains": [("b", b"abc", True), ("x", b"abc", False)],
}  # fmt: skip


@pytest.mark.parametrize("operator", VALUES)
def test_constraints_on_values(operator: str):
    """Each operator, for each type that has it."""
    for value, text, expected in VALUES[operator]:
        assert permits(value_tag(operator, value), text) is expected, (operator, value, text)


@pytest.mark.parametrize(
    "operator, value",
    [
        ("in", "x"), ("=", ("x",)), ("prefix", 5), ("<", True), ("~", 5), ("like", "x"), ("<", float("nan")),
        ("<", float("inf")), ("<", Decimal("NaN")), ("<", datetime(2026, 6, 1)), ("=", "\ud800"),  # noqa: DTZ001
    ],
)  # fmt: skip
def test_a_constraint_that_means_nothing_is_refused(operator: str, value: object):
    """Wrong shapes, operators and values are refused."""
    with pytest.raises(TagError) as caught:
        value_tag(operator, value)
    assert caught.value.code in {"CONSTRAINT_VALUE", "CONSTRAINT_OPERATOR"}


def test_numbers_are_written_exactly():
    """Floats as the shortest decimal that reads back, never with an exponent."""
    assert encode_value(1e21) == (b"decimal", b"1000000000000000000000.0")
    assert encode_value(1e-7) == (b"decimal", b"0.0000001")
    assert encode_value(2.0) == (b"decimal", b"2.0")
    assert encode_value(2**70) == (b"numeric", b"%d" % 2**70)
    assert encode_value(datetime(5, 1, 1, tzinfo=UTC)) == (b"date", b"0005-01-01_00:00:00")


@pytest.mark.parametrize("uid", ["", " ", "a b", "é", "x" * 129, "\ud800", "a\n"], ids=ascii)
def test_a_malformed_uid_is_refused(uid: str):
    """Uids are short and printable, wherever they stand."""
    calls = (
        lambda: uids_tag([uid]),
        lambda: rows_tag([Constraint(uid, "=", "x")]),
        lambda: row_request({uid: b"x"}),
        lambda: ask_cell(Action.SUBSCRIBE, OWNER, "T", "1", uid, (b"row",)),
    )
    for call in calls:
        with pytest.raises(TagError, match="UID"):
            call()


@pytest.mark.parametrize("name", ["", "x" * 513, "\ud800"], ids=lambda name: ascii(name)[:10])
def test_a_malformed_name_is_refused(name: str):
    """Names are text of bounded length, in rights and in requests."""
    calls = (
        lambda: type_right(OWNER, name),
        lambda: network_right(OWNER, name, None),
        lambda: ask_type(Action.SUBSCRIBE, OWNER, name, "1"),
        lambda: ask_network(Action.CONNECT, OWNER, name),
        lambda: ask_cell(Action.SUBSCRIBE, OWNER, name, "1", "7", (b"row",)),
    )
    for call in calls:
        with pytest.raises(TagError):
            call()


def test_an_owner_is_meant_however_it_is_spelled():
    """A key, its hash, and a threshold of either give the same right."""
    assert type_right(OWNER, "T") == type_right(KeyHash(OWNER.key_id), "T")
    group = Threshold(1, (OWNER, PEOPLE.met.public_key))
    by_hash = Threshold(1, (KeyHash(OWNER.key_id), PEOPLE.met.public_key))
    assert type_right(group, "T") == type_right(by_hash, "T") != type_right(OWNER, "T")


def test_requests_say_what_they_ask():
    """For people, in words; a request without words shows its tag."""
    assert str(ask_network(Action.CONNECT, OWNER, "N")) == "connect to network N"
    assert str(ask_network(Action.INSTALL, OWNER, "N")) == "install on network N"
    assert str(ask_cell(Action.PUBLISH, OWNER, "T", "1", "7", (b"row",))) == "publish attribute 7 of T version 1"
    assert str(Request(wanted=parse_tag((b"a", (b"*",))))) == "(a (*))"
    with pytest.raises(TagError, match="REQUEST_NOT_GROUND"):
        ask((b"*",))


ON_T = (b"maia-type", b"o", b"t", b"1")
CELLS: dict[str, tuple[Sexp, list[tuple[Sexp, list[str]]] | None]] = {
    "no cells said": ((*ON_T, b"subscribe"), [((b"*",), [])]),
    "uids": ((*ON_T, b"subscribe", b"7"), [(b"7", [])]),
    "demands": (
        (*ON_T, b"subscribe", b"7", (b"*", b"where", (b"8", b"x"), (b"9", b"y"))),
        [(b"7", ["8", "9"])],
    ),
    "alternatives": (
        (b"*", b"set", (*ON_T, b"publish"), (*ON_T, b"subscribe", b"7")),
        [((b"*",), []), (b"7", [])],
    ),
    "alternative demands": (
        (*ON_T, b"p", b"7", (b"*", b"set", (b"*", b"where", (b"8", b"x")), (b"*", b"where", (b"9", b"x")))),
        [(b"7", ["8"]), (b"7", ["9"])],
    ),
    "no type": ((b"maia-network",), None),
    "a string": (b"x", None),
    "demands that are none": ((*ON_T, b"p", b"7", b"x"), None),
    "a uid that is no text": ((*ON_T, b"p", b"7", (b"*", b"where", (b"\xff", b"x"))), None),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS.values(), ids=CELLS.keys())
def test_cells_are_read_out_of_a_right(case: tuple[Sexp, list[tuple[Sexp, list[str]]] | None]):
    """One entry per alternative; what is no right on cells is refused."""
    expression, expected = case
    if expected is None:
        with pytest.raises(TagError):
            cell_rights(parse_tag(expression))
        return
    found = [(item.uids.to_sexp(), [uid for uid, _ in item.constraints]) for item in cell_rights(parse_tag(expression))]
    assert found == expected
