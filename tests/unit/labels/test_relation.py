"""Symbolic labels and tags: carriers, bounds, families, and what each function refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, FlowError, UsageError
from maia.labels import (
    NOTHING_READ,
    PUBLIC,
    Carrier,
    Component,
    How,
    Label,
    RelationLabel,
    SymbolicLabel,
    declassified,
    endorsed,
    family_of,
    group,
    join_relations,
    tag_of,
    union,
    whole_family,
)

CARRIED = SymbolicLabel(integrity=frozenset(), carriers=frozenset({Carrier(family="f", column="p")}))
TABLE = RelationLabel(columns={"p": NOTHING_READ, "s": CARRIED})


@given(st.text(max_size=40))
def test_a_value_is_read_back_and_is_never_the_whole_family(value):
    """Whatever a patient is called, its tag is its own."""
    tag = tag_of("f", value)
    assert family_of(tag) == ("f", value)
    assert tag != whole_family("f")


@given(st.text(max_size=12), st.text(max_size=12))
def test_two_values_have_two_tags(one, other):
    """No value can pose as another."""
    assert (tag_of("f", one) == tag_of("f", other)) is (one == other)


def test_bounds_hide_and_say_what_is_left():
    """What may flow to a reader of two values is bounded by them; a whole family leaves it open."""
    bounded = CARRIED.bounded({"f(a)", "f(b)", "g(c)"})
    assert bounded.shown().secrecy == {"f(a)", "f(b)"}
    assert bounded.flows_to(Label(secrecy=frozenset({"f(a)", "f(b)"})))
    assert bounded.flows_to(Label(secrecy=frozenset({"f(*)"})))
    assert not bounded.flows_to(Label(secrecy=frozenset({"f(a)"})))
    assert CARRIED.bounded({"f(*)"}) == CARRIED
    assert bounded.bounded({"f(a)"}).shown().secrecy == {"f(a)"}


def test_declassifying_takes_tags_and_whole_families():
    """A whole family takes its carriers along, one value only itself, and only where values are known."""
    component = Component(name="c", declassify=frozenset({"f(*)", "f(a)", "t"}), endorse=frozenset({"e"}))
    assert declassified(TABLE, ["f(*)"], component).columns["s"].shown() == PUBLIC
    assert declassified(TABLE, ["f(a)"], component).columns["s"] == CARRIED
    bounded = RelationLabel(columns={"s": CARRIED.bounded({"f(a)", "f(b)"})})
    assert declassified(bounded, ["f(a)"], component).columns["s"].shown().secrecy == {"f(b)"}
    assert endorsed(TABLE, ["e"], component).columns["s"].integrity == {"e"}
    with pytest.raises(FlowError, match="DECLASSIFY_NOT_HELD"):
        declassified(TABLE, ["u"], component)
    with pytest.raises(FlowError, match="ENDORSE_NOT_HELD"):
        endorsed(TABLE, ["u"], component)


def test_a_row_says_which_tag_and_a_set_says_several():
    """A carrier that has nothing in a row has no tag there; where it stands for all, it has all."""
    assert CARRIED.at({"p": "a"}).secrecy == {"f(a)"}
    assert CARRIED.at({"p": ["a", "b"]}).secrecy == {"f(a)", "f(b)"}
    assert CARRIED.at({"p": None}) == PUBLIC
    assert CARRIED.within().at({"p": "a"}).secrecy == {"f(*)"}


def test_what_does_not_fit_is_refused():
    """Unknown columns, columns twice, unions of other widths, ways of joining, and families with parentheses."""
    for wrong in (
        lambda: TABLE.reads(["x"]),
        lambda: group(TABLE, ["p"], {"p": ()}),
        lambda: group(TABLE, [], {"n": ()}, gathered={"p": "n"}),
        lambda: union(TABLE, RelationLabel(columns={"p": NOTHING_READ})),
        lambda: join_relations(TABLE, TABLE, ["x"]),
        lambda: How.parse("sideways"),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(EncodingError):
        Carrier(family="f(x)", column="p")


def test_a_union_by_position_has_the_names_of_the_left():
    """Names that differ go one by one; carriers follow."""
    other = RelationLabel(columns={"q": NOTHING_READ, "z": CARRIED.renamed({"p": "q"})})
    found = union(RelationLabel(columns={"p": NOTHING_READ, "s": NOTHING_READ}), other)
    assert found.columns["s"].carriers == CARRIED.carriers


@pytest.mark.parametrize("how", How)
def test_a_column_of_both_sides_has_both_labels(how):
    """A self join on another key: the doubled column carries nothing any more, and is as secret as both."""
    keyed = RelationLabel(columns={"k": NOTHING_READ, **TABLE.columns})
    found = join_relations(keyed, keyed, ["k"], how)
    expected = {"p"} if how in (How.SEMI, How.ANTI) else {None}
    assert {item.column for item in found.columns["s"].carriers} == expected
