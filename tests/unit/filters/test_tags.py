"""Constraints and the tags capabilities carry: the exact forms, and what is refused."""

from __future__ import annotations

import pytest

from maia.encoding import format_advanced, parse_advanced
from maia.errors import TagError, UsageError
from maia.filters import (
    AttributeType,
    TypedFilter,
    compile_filter,
    equivalent,
    format_filter,
    from_tag,
    to_tag,
    value_atom,
)

FORMS = {
    "any": ("x any", "integer", "(*)"),
    "integer": ("x = 5", "integer", '(* range numeric ge "5" le "5")'),
    "less": ("x < -5", "integer", '(* range numeric l "-5")'),
    "at least": ("x >= 5", "integer", '(* range numeric ge "5")'),
    "different": ("x != 5", "integer", '(* set (* range numeric l "5") (* range numeric g "5"))'),
    "several": ("x > 1 and x <= 9", "integer", '(* and (* range numeric g "1") (* range numeric le "9"))'),
    "set": ("x in (2, 1)", "integer", '(* set (* range numeric ge "1" le "1") (* range numeric ge "2" le "2"))'),
    "float": ("x = 0.5", "float", '(* range decimal ge "0.5" le "0.5")'),
    "decimal": ("x > 24.00", "decimal", '(* range decimal g "24.0")'),
    "text": ("x = 'AE05 XYZ'", "string", '"AE05 XYZ"'),
    "text order": ("x > 'a'", "string", '(* range alpha g "a")'),
    "prefix": ("x prefix 'Vic'", "string", '(* prefix "Vic")'),
    "suffix": ("x suffix 'ia'", "string", '(* glob "*ia")'),
    "contains": ("x contains 'or'", "string", '(* glob "*or*")'),
    "suffix with a star": ("x suffix 'a*'", "string", '(* pieces "" "a*")'),
    "contains with a star": ("x contains '*'", "string", '(* pieces "" "*" "")'),
    "set of texts": ("x in ('b', 'a')", "string", '(* set "a" "b")'),
    "truth": ("x = true", "boolean", "true"),
    "date": ("x >= '2026-06-01'", "date", '(* range date ge "2026-06-01")'),
    "timestamp": ("x < '2026-06-01T00:00:00Z'", "timestamp", '(* range date l "2026-06-01_00:00:00")'),
    "fraction": ("x < '2026-06-01T00:00:00.250Z'", "timestamp", '(* range date l "2026-06-01_00:00:00.25")'),
}


@pytest.mark.parametrize("case", FORMS.values(), ids=FORMS.keys())
def test_constraints_have_these_tags(case):
    """The written form is fixed: certificates are signed over it."""
    text, kind, expected = case
    filter_ = compile_filter(text, {"x": kind})
    tag = to_tag(filter_.constraints)
    assert tag == parse_advanced(expected), format_advanced(tag)
    assert from_tag(tag, "x", AttributeType(kind)) == filter_.constraints


ATOMS = {
    "float without exponent": (1e21, AttributeType.FLOAT, b"1000000000000000000000.0"),
    "small float": (1e-7, AttributeType.FLOAT, b"0.0000001"),
    "shortest float": (0.1, AttributeType.FLOAT, b"0.1"),
    "whole float keeps its point": (5.0, AttributeType.FLOAT, b"5.0"),
    "integer has none": (5, AttributeType.INTEGER, b"5"),
    "text in UTF-8": ("ä", AttributeType.STRING, b"\xc3\xa4"),
    "false": (False, AttributeType.BOOLEAN, b"false"),
}


@pytest.mark.parametrize("case", ATOMS.values(), ids=ATOMS.keys())
def test_values_have_one_written_form(case):
    """Numbers are written in full, so that equal values have equal octets."""
    value, kind, expected = case
    assert value_atom(value, kind) == expected


EQUIVALENT = {
    "both limits in one range": ('(* range numeric ge "1" l "9")', "integer", "x >= 1 and x < 9"),
    "a set that is an interval": (
        '(* set (* range numeric l "5") (* range numeric ge "5" le "5"))',
        "integer",
        "x <= 5",
    ),
    "a set of one": ('(* set (* range numeric ge "5" le "5"))', "integer", "x = 5"),
    "a set of sets": ('(* set "a" (* set "b" "c"))', "string", "x in ('a', 'b', 'c')"),
    "a glob that ends with a star": ('(* glob "ab*")', "string", "x prefix 'ab'"),
    "a glob without star": ('(* glob "ab")', "string", "x = 'ab'"),
    "a glob of stars": ('(* glob "**")', "string", "x any"),
    "doubled stars": ('(* glob "**ab")', "string", "x suffix 'ab'"),
}


@pytest.mark.parametrize("case", EQUIVALENT.values(), ids=EQUIVALENT.keys())
def test_other_spellings_of_a_tag_read_as_what_they_mean(case):
    """A tag someone else wrote is understood when a conjunction can say it."""
    text, kind, expected = case
    found = TypedFilter(constraints=from_tag(parse_advanced(text), "x", AttributeType(kind)))
    assert equivalent(found, compile_filter(expected, {"x": kind})), format_filter(found)


REFUSED = {
    "gap": ('(* set (* range numeric l "1") (* range numeric g "9"))', "integer"),
    "two texts in order": ('(* glob "*a*b*")', "string"),
    "start and end": ('(* glob "a*b")', "string"),
    "set of patterns": ('(* set (* glob "*a") "b")', "string"),
    "float as integer": ('(* range numeric ge "5.0")', "integer"),
    "leading zero": ('(* range numeric ge "05")', "integer"),
    "beyond 64 bits": ('(* range numeric ge "9223372036854775808")', "integer"),
    "two lower limits": ('(* range numeric ge "1" g "2")', "integer"),
    "no limit": ("(* range numeric)", "integer"),
    "unknown limit": ('(* range numeric eq "1")', "integer"),
    "other ordering": ('(* range alpha ge "1")', "integer"),
    "atom for a number": ('"5"', "integer"),
    "pattern for a number": ('(* prefix "5")', "integer"),
    "no truth": ('"yes"', "boolean"),
    "no day": ('(* range date ge "2026-02-30")', "date"),
    "no instant": ('(* range date ge "2026-06-01T00:00:00")', "timestamp"),
    "no UTF-8": ("#ff#", "string"),
    "display hint": ("[h]a", "string"),
    "empty set": ("(* set)", "string"),
    "empty list": ("()", "string"),
    "plain list": ("(a b)", "string"),
    "unknown form": ("(* regex a)", "string"),
    "list inside a range": ('(* range numeric (ge "1"))', "integer"),
    "too deep": ("(* and " * 9 + "(*)" + ")" * 9, "integer"),
    "binary": ("a", "binary"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_tags_that_are_no_conjunction_are_refused(case):
    """What cannot be said exactly, or does not fit the type, is refused and never approximated."""
    text, kind = case
    with pytest.raises(TagError):
        from_tag(parse_advanced(text), "x", AttributeType(kind))


def test_a_tag_holds_the_constraints_of_one_attribute():
    """None, or those of two, are the caller's mistake."""
    two = compile_filter("x = 1 and y = 1", {"x": "integer", "y": "integer"})
    for constraints in ((), two.constraints):
        with pytest.raises(UsageError):
            to_tag(constraints)
    with pytest.raises(UsageError):
        value_atom(5, AttributeType.FLOAT)
