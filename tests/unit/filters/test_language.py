"""The text of filters: what is one, where an error points, what is refused for its size."""

from __future__ import annotations

import pickle

import pytest

from maia.errors import FilterSyntaxError
from maia.filters import FilterLimits, Operator, compile_filter, format_filter, grammar, matches, parse_filter

SPELLINGS = {
    "nothing": ("", ""),
    "only space": (" \n\t ", ""),
    "keywords in any case": ("a = 1 AND b Any", "a = 1 and b any"),
    "no space needed": ("price<=100and_more", None),
    "no space around operators": ("price<=100 and x!='a'", "price <= 100 and x != 'a'"),
    "quotes inside text": ("s = 'it''s'", "s = 'it''s'"),
    "line breaks inside text": ("s = 'a\nb'", "s = 'a\nb'"),
    "hyphens and dots in names": ("path-report-text any and a.b = 1", "path-report-text any and a.b = 1"),
    "quoted names": ('"it""s" = 1 and "a" = 2', '"it""s" = 1 and a = 2'),
    "words of the language as names": ("any any and in in (1) and and = 2", "any any and in in (1) and and = 2"),
    "sets": ("x in(1,2 , 3)", "x in (1, 2, 3)"),
    "patterns": ("s PREFIX 'a' and s suffix 'b' and s contains ''", "s prefix 'a' and s suffix 'b' and s contains ''"),
    "truth": ("b = TRUE and c != false", "b = true and c != false"),
    "negative numbers": ("x > -5 and y > -0.50", "x > -5 and y > -0.50"),
    "exponents": ("x = 1e3 and y = 1.5E-2 and z = 2.0e300", "x = 1000.0 and y = 0.015 and z = 2.0e300"),
    "letters of any script in names": ("größe = 1", "größe = 1"),
}


@pytest.mark.parametrize("case", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_spellings_have_one_canonical_form(case):
    """What is written freely is formatted in one way, and the canonical form is its own."""
    text, canonical = case
    if canonical is None:
        with pytest.raises(FilterSyntaxError):
            parse_filter(text)
        return
    assert format_filter(parse_filter(text)) == canonical
    assert format_filter(parse_filter(canonical)) == canonical


ERRORS = {
    "ends after a name": ("price", 1, 6, "an operator"),
    "ends after an operator": ("price <", 1, 8, "a number"),
    "ends after and": ("price < 1 and", 1, 14, "an attribute name"),
    "starts with an operator": ("< 5", 1, 1, "an attribute name"),
    "two constraints without and": ("a = 1 b = 2", 1, 7, "`and`"),
    "or does not exist": ("a = 1 or b = 2", 1, 7, "`and`"),
    "text without end": ("s = 'abc", 1, 5, "single quotes"),
    "empty set": ("x in ()", 1, 7, "a number"),
    "pattern of a number": ("s prefix 5", 1, 10, "single quotes"),
    "bare word as value": ("name = Nokia", 1, 8, "single quotes"),
    "two equals signs": ("x == 5", 1, 4, "a number"),
    "no digit after the point": ("x = 5.", 1, 5, "a number"),
    "no digit before the point": ("x = .5", 1, 5, "a number"),
    "leading zeros": ("x = 007", 1, 5, "a number"),
    "plus sign": ("x = +5", 1, 5, "a number"),
    "not a number": ("x = NaN", 1, 5, "a number"),
    "infinity": ("x < Infinity", 1, 5, "a number"),
    "on the third line": ("a = 1\nand b = 2\nand  ; drop", 3, 6, "an attribute name"),
    "parentheses around constraints": ("(a = 1)", 1, 1, "an attribute name"),
    "null": ("a = null", 1, 5, "a number"),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS.keys())
def test_errors_point_at_the_column_and_say_what_was_expected(case):
    """The position counts from 1, the message names what could have stood there, and both survive a process border."""
    text, line, column, expected = case
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert expected in caught.value.message
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (again.line, again.column, again.code) == (line, column, "FILTER_SYNTAX")


SMALL = FilterLimits(characters=60, constraints=3, values=4, literal_characters=5, name_characters=4, digits=6)
TOO_LARGE = {
    "text": "a = 1" + " " * 60,
    "constraints": "a = 1 and b = 1 and c = 1 and d = 1",
    "values": "a in (1, 2, 3, 4, 5)",
    "literal": "a = '123456'",
    "name": "abcde = 1",
    "quoted name": '"abcde" = 1',
    "digits": "a = 1234567890123",
    "digits after the point": "a = 1.2345678",
}


@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_texts_beyond_a_limit_are_refused(text):
    """Each limit refuses what passes it and nothing else."""
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text, limits=SMALL)
    assert caught.value.code == "FILTER_LIMIT"
    parse_filter(text)


def test_default_limits_hold_against_huge_texts():
    """A million repetitions are refused by their length, before anything is parsed."""
    for text in ("x = 1 and " * 1_000_000, "x = '" + "a" * 1_000_000, "(" * 1_000_000, "x = " + "9" * 1_000_000):
        with pytest.raises(FilterSyntaxError):
            parse_filter(text)
    with pytest.raises(FilterSyntaxError):
        parse_filter("x = " + "9" * 5_000)
    with pytest.raises(FilterSyntaxError):
        parse_filter("x = 1." + "0" * 4_000 + "e-999")


def test_lone_surrogates_are_refused():
    """Half a character has no UTF-8 form and no place in the order of strings."""
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter("s = '\ud800'")
    assert caught.value.code == "FILTER_SURROGATE"


@pytest.mark.threat("T64")
@pytest.mark.parametrize("name", ["a'b", 'a"b', "a`b", "a.b", "x; drop table", "a b", "expr(1)", "--", "ä\n", "1"])
def test_names_are_taken_literally_whatever_they_hold(name):
    """Quotes, dots, backticks and statements in a name are characters of the name."""
    quoted = '"' + name.replace('"', '""') + '"'
    filter_ = parse_filter(f"{quoted} = 1")
    assert filter_.constraints[0].attribute == name
    assert parse_filter(format_filter(filter_)) == filter_


BAD_PATTERNS = [
    *(f"{'a' * count}*" for count in range(1, 13)),
    *("(a+)+" * count for count in range(1, 13)),
    *("'" * count for count in range(1, 15)),
    *('"' * count + "x" for count in range(1, 13)),
]


@pytest.mark.threat("T54")
def test_patterns_are_literal_texts_so_nothing_backtracks():
    """Fifty patterns that make backtracking matchers explode are read as plain texts and found as plain texts."""
    assert len(BAD_PATTERNS) == 50
    value = "a" * 5_000 + "!"
    for pattern in BAD_PATTERNS:
        text = pattern * 20
        literal = "'" + text.replace("'", "''") + "'"
        answers = [
            matches(compile_filter(f"s {operator} {literal}", {"s": "string"}), {"s": value})
            for operator in ("prefix", "suffix", "contains", "=")
        ]
        assert answers == [value.startswith(text), value.endswith(text), text in value, value == text]
        with pytest.raises(FilterSyntaxError):
            parse_filter("s = " + pattern * 2_000 + " $")


def test_the_grammar_is_shipped_and_names_every_operator():
    """The reference page is written from this text."""
    text = grammar()
    for operator in Operator:
        assert operator.value in text
