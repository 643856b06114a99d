"""Tags: reading, membership, intersection, covering."""

from __future__ import annotations

import re

import pytest

from maia.authority import (
    EVERYTHING,
    NOTHING,
    Tag,
    check_ground,
    covers,
    intersect,
    is_nothing,
    one_of,
    parse_tag,
    permits,
)
from maia.authority.patterns import MAX_CONJUNCTS
from maia.authority.tags import MAX_AND_PAIRS
from maia.encoding import Hinted, Sexp, encode, format_advanced
from maia.encoding import parse_advanced as parse_exactly
from maia.errors import TagError


def expression(text: str) -> Sexp:
    """Read the advanced form, numbers without quotes included."""
    return parse_exactly(re.sub(r"(?<=[ (])([0-9][^ ()]*)", r'"\1"', text))


def tag(text: str) -> Tag:
    """Read a tag."""
    return parse_tag(expression(text))


NORMAL = {
    "a": "a",
    "(a b)": "(a b)",
    "(*)": "(*)",
    "(* set)": "(* set)",
    "(* set a)": "a",
    "(* set b a b)": "(* set a b)",
    "(* set a (* set c b))": "(* set a b c)",
    "(* set a (*))": "(*)",
    '((* set "*"))': "(* set)",
    '(a ((* set "*") b))': "(* set)",
    "(a (* set) b)": "(* set)",
    '(* glob "a*")': "(* prefix a)",
    '(* glob "abc")': "abc",
    '(* glob "a**b")': '(* glob "a*b")',
    '(* glob "*")': '(* prefix "")',
    "(* pieces a b)": '(* glob "a*b")',
    '(* pieces "a*" b)': '(* pieces "a*" b)',
    "(* prefix a)": "(* prefix a)",
    "(* range numeric le 9 ge 1)": '(* range numeric ge "1" le "9")',
    "(* range numeric (ge 1) (le 9))": '(* range numeric ge "1" le "9")',
    "(* range alpha)": "(* range alpha)",
    "(* and (* prefix a) (* prefix ab))": "(* prefix ab)",
    "(* and (* prefix a) (* set ab b))": "ab",
    '(* and (* glob "*a") (* glob "*b*"))': '(* and (* glob "*a") (* glob "*b*"))',
    "(* where)": "(*)",
    "(* where (8 b) (7 a))": '(* where ("7" a) ("8" b))',
    "(* where (7 (* set)))": "(* set)",
    "(* where (8 b enforced) (7 a))": '(* where ("7" a) ("8" b enforced))',
    "(* where (7 (* set) enforced))": "(* set)",
    "(* set (* where (7 a enforced)) (* where (7 a)))": '(* set (* where ("7" a)) (* where ("7" a enforced)))',
}


@pytest.mark.parametrize("text", NORMAL)
def test_a_tag_is_read_into_its_normal_form(text: str):
    """Sets are flat and sorted, globs simple, empty parts leave nothing; reading the normal form changes nothing."""
    read = tag(text)
    assert format_advanced(read.to_sexp()) == format_advanced(parse_exactly(NORMAL[text]))
    assert parse_tag(read.to_sexp()) == read


REFUSED = {
    "()": "TAG_EMPTY_LIST",
    "(a ())": "TAG_EMPTY_LIST",
    "(* unknown a)": "TAG_FORM",
    "(* prefix)": "TAG_FORM",
    "(* prefix a b)": "TAG_FORM",
    "(* prefix (a))": "TAG_FORM",
    "(* glob)": "TAG_FORM",
    "(* pieces a)": "TAG_FORM",
    "(* pieces a (b))": "TAG_FORM",
    "(* (set) a)": "TAG_FORM",
    "(* range)": "TAG_FORM",
    "(* range sorted ge 1)": "TAG_RANGE",
    "(* range numeric ge)": "TAG_RANGE",
    "(* range numeric eq 1)": "TAG_RANGE",
    "(* range numeric ge 1 g 2)": "TAG_RANGE",
    "(* range numeric ge 1 le 2 le 3)": "TAG_RANGE",
    "(* range numeric ge a)": "TAG_RANGE",
    "(* range numeric (ge) (1))": None,
    "(* range numeric (ge (1)))": "TAG_RANGE",
    "(* range time ge 25)": "TAG_RANGE",
    "(* and)": "TAG_FORM",
    "(* and (a))": "TAG_FORM",
    "(* and (*))": "TAG_FORM",
    "(* where a)": "TAG_WHERE",
    "(* where (7))": "TAG_WHERE",
    "(* where (7 a b))": "TAG_WHERE",
    "(* where (7 a (enforced)))": "TAG_WHERE",
    "(* where (7 a enforced enforced))": "TAG_WHERE",
    "(* where (7 a enforced) (7 a))": "TAG_WHERE",
    '(* where ("" a enforced))': "TAG_WHERE",
    "(* where (7 a [t]enforced))": "TAG_WHERE",
    "(* where (7 a) (7 b))": "TAG_WHERE",
    '(* where ("" a))': "TAG_WHERE",
    '(* glob "' + "*a" * 64 + '")': "TAG_GLOB",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_no_tag_is_refused(text: str):
    """Unknown and malformed forms are refused, never read as something wider."""
    if REFUSED[text] is None:
        assert tag(text)
        return
    with pytest.raises(TagError) as caught:
        tag(text)
    assert caught.value.code == REFUSED[text]


def test_a_set_is_bounded():
    """More alternatives than allowed are refused when read."""
    members = tuple(b"%d" % number for number in range(4097))
    with pytest.raises(TagError, match="TAG_TOO_LARGE"):
        parse_tag((b"*", b"set", *members))
    assert parse_tag((b"*", b"set", *members[1:]))


REQUESTS: tuple[Sexp, ...] = (
    b"", b"a", b"ab", b"abc", b"b", b"5", b"10", b"-3", b"12:30", b"2026-06-01", (b"a",), (b"a", b"b"),
    (b"a", b"b", b"c"), (b"b",), Hinted(b"t", b"a"), (b"row",), (b"row", (b"7", b"a")),
    (b"row", (b"7", b"5"), (b"8", b"b")), (b"row", b"7"), (b"row", (b"7", b"a"), (b"7", b"5")), ((b"a",), b"b"),
    b"axb", b"xb", b"\xff",
)  # fmt: skip
TAGS = (
    "(*)", "(* set)", "a", "(a)", "(a b)", "(a (*))", "(* set a (a b) (* prefix b))", "(* prefix a)", "(* prefix ab)",
    '(* glob "a*b")', '(* glob "*b")', '(* glob "*x*")', "(* range numeric ge 5)", "(* range numeric g -3 l 10)",
    "(* range alpha ge a l b)", "(* range alpha le ab)", "(* range alpha g ab)", "(* range binary le #ff#)",
    "(* range time ge 12 le 13)", "(* range date ge 2026)", "(* range decimal le 5.5)", "(* where (7 (* prefix a)))",
    "(* where (7 (* range numeric ge 5)) (8 b))", "(* set (* where (7 a)) (* where (8 b)))", "(row (7 a))",
    "(row (7 (*)))",    "((a) b)", '(* and (* glob "a*") (* glob "*b") (* range alpha g aa))', "(* range alpha l ab)",
    "(* and (* prefix a) (* range numeric ge 1))", "(* set 5 10 (* range numeric ge 7))",
)  # fmt: skip


TWICE: Sexp = (b"row", (b"7", b"a"), (b"7", b"5"))


@pytest.mark.parametrize("first", TAGS)
def test_intersection_agrees_with_asking_both(first: str):
    """The intersection admits a request exactly when both tags do, whichever comes first."""
    a = tag(first)
    for second in TAGS:
        b = tag(second)
        # A row spelled out against a demand on rows may lose longer rows, which is safe; see `_constrain_cells`.
        narrow = ("where" in first and "(row" in second) or ("where" in second and "(row" in first)
        both, other_way = intersect(a, b), intersect(b, a)
        for request in REQUESTS:
            expected = permits(a, request) and permits(b, request)
            given = {permits(both, request), permits(other_way, request)}
            assert given == {expected} or (narrow and (request == TWICE or given == {False})), (second, request)
        assert encode(both.to_sexp()) == encode(parse_tag(both.to_sexp()).to_sexp())
        if covers(a, b):
            assert all(permits(a, request) for request in REQUESTS if permits(b, request) and request != TWICE)


COVERING = {
    ("(*)", "(a b)"): True,
    ("(a)", "(a b)"): True,
    ("(a b)", "(a)"): False,
    ("(* set a b)", "(* set b a)"): True,
    ("(* set a b)", "c"): False,
    ("a", "(* set)"): True,
    ("(* prefix a)", '(* glob "a*b")'): True,
    ('(* glob "*b")', '(* glob "a*b")'): True,
    ('(* glob "*b")', '(* glob "b*")'): False,
    ('(* glob "a*c*b")', '(* glob "aa*cc*bb")'): True,
    ("(* range numeric ge 1)", "(* range numeric ge 2 le 3)"): True,
    ("(* range numeric ge 2)", "(* range numeric ge 1)"): False,
    ("(* where (7 (*)))", "(* where (7 a))"): True,
    ("(* where (7 a))", "(* where (7 (*)))"): False,
    ("(* where (7 a))", "(* where (7 a enforced))"): False,
    ("(* where (7 a enforced))", "(* where (7 a))"): True,
    ("(* where (7 a enforced))", "(* where (7 a enforced))"): True,
    ("(* where (7 a))", "(* where (7 a) (8 b enforced))"): True,
    ("(*)", "(* where (7 a enforced))"): True,
}


@pytest.mark.parametrize("pair", COVERING, ids=str)
def test_covering(pair: tuple[str, str]):
    """A tag covers another when it surely admits all of it."""
    assert covers(tag(pair[0]), tag(pair[1])) is COVERING[pair]


ENFORCED = {
    ("(* where (7 a))", "(* where (7 a enforced))"): "(* where (7 a))",
    ("(* where (7 (* prefix a) enforced))", "(* where (7 ab enforced))"): "(* where (7 ab enforced))",
    ("(* where (7 a enforced))", "(* where (8 b))"): "(* where (7 a enforced) (8 b))",
    ("(* where (7 a enforced))", "(*)"): "(* where (7 a enforced))",
    ("(* set (* where (7 a)) (* where (7 b enforced)))", "(* where (7 (*) enforced))"):
        "(* set (* where (7 a)) (* where (7 b enforced)))",
}  # fmt: skip


@pytest.mark.parametrize("pair", ENFORCED, ids=str)
def test_a_demand_is_enforced_by_the_domain_only_if_all_who_set_it_say_so(pair: tuple[str, str]):
    """Nobody can say `enforced` of what somebody else demanded without it, in whichever order they come."""
    first, second = map(tag, pair)
    assert intersect(first, second) == intersect(second, first) == tag(ENFORCED[pair])


@pytest.mark.parametrize("request_", [(), (b"a", ()), (b"*",), (b"a", (b"*", b"prefix", b"b"))], ids=repr)
def test_a_request_names_one_thing(request_: Sexp):
    """Star forms and empty lists are no ground requests."""
    with pytest.raises(TagError, match="REQUEST_NOT_GROUND"):
        check_ground(request_)
    assert check_ground((b"a", (b"b",), Hinted(b"t", b"x")))


def test_long_lists_of_strings_meet_by_lookup():
    """Thousands of plain alternatives on both sides are within bounds; thousands of patterns are not."""
    words = one_of(parse_tag(b"%d" % number) for number in range(4000))
    others = one_of(parse_tag(b"%d" % number) for number in range(2000, 6000))
    assert len(intersect(words, others).members) == 2000
    prefixes = one_of(parse_tag((b"*", b"prefix", b"%dx" % number)) for number in range(300))
    with pytest.raises(TagError, match="TAG_TOO_LARGE"):
        intersect(prefixes, prefixes)
    assert is_nothing(intersect(words, parse_tag((b"a",))))
    assert intersect(words, EVERYTHING) == words
    assert intersect(NOTHING, EVERYTHING) == NOTHING


def test_a_string_has_a_bounded_number_of_patterns():
    """An intersection of too many globs on one string is refused."""
    result: Tag = EVERYTHING
    for number in range(MAX_CONJUNCTS):
        result = intersect(result, parse_tag((b"*", b"pieces", b"", b"<%d>" % number, b"")))
    assert permits(result, b"".join(b"<%d>" % number for number in range(MAX_CONJUNCTS)))
    with pytest.raises(TagError, match="TAG_TOO_LARGE"):
        intersect(result, parse_tag((b"*", b"pieces", b"", b"<x>", b"")))


def test_an_intersection_written_in_a_certificate_is_bounded():
    """Reading a tag must not cost more than reading."""
    many: Sexp = (b"*", b"set", *((b"*", b"prefix", b"%dx" % number) for number in range(MAX_AND_PAIRS)))
    assert parse_tag((b"*", b"and", many))
    with pytest.raises(TagError, match="TAG_TOO_LARGE"):
        parse_tag((b"*", b"and", (b"*", b"set", (b"*", b"prefix", b"a"), (b"*", b"prefix", b"b")), many))
