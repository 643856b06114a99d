"""Prefixes, globs and ranges, and whether an intersection holds anything."""

from __future__ import annotations

from itertools import product

import pytest

from maia.authority import intersect, is_nothing, parse_tag, permits
from maia.authority.emptiness import STAR, Edge, disjoint
from maia.authority.patterns import Glob, Prefix, intersect_patterns
from maia.encoding import Sexp
from maia.errors import TagError


def test_a_glob_matches_its_pieces_in_turn():
    """Pieces may not overlap, and each is looked for behind the one before."""
    glob = Glob((b"ab", b"x", b"ba"))
    assert glob.contains(b"abxba")
    assert glob.contains(b"ab--x--ba")
    assert not glob.contains(b"abba")
    assert not glob.contains(b"abxb")
    assert not glob.contains(b"xabba")
    assert not Glob((b"ab", b"bc")).contains(b"abc")
    with pytest.raises(TagError):
        Glob((b"a",))


ALPHABET = (b"", b"a", b"b", b"\xff")
WORDS = [b"".join(letters) for size in range(4) for letters in product((b"a", b"b", b"\xff"), repeat=size)]


def window(low: bytes | None, low_in: bool, high: bytes | None, high_in: bool) -> Sexp:
    """Write an alpha range."""
    limits: list[bytes] = []
    if low is not None:
        limits += [b"ge" if low_in else b"g", low]
    if high is not None:
        limits += [b"le" if high_in else b"l", high]
    return (b"*", b"range", b"alpha", *limits)


def forms() -> list[Sexp]:
    """List prefixes, globs and windows over two letters and the last octet."""
    found: list[Sexp] = [(b"*", b"prefix", word) for word in (b"", b"a", b"ab", b"\xff")]
    found += [(b"*", b"pieces", *pieces) for pieces in product((b"", b"a", b"b"), repeat=2)]
    found += [(b"*", b"pieces", first, b"a", last) for first, last in product((b"", b"b"), repeat=2)]
    ends = (None, b"", b"a", b"ab", b"b")
    found += [
        window(low, low_in, high, high_in)
        for low, high in product(ends, repeat=2)
        for low_in, high_in in ((True, True), (False, False))
    ]
    return found


def test_nothing_is_found_exactly_when_nothing_is_common():
    """Every pair of forms: an intersection is called empty only if no word is in both, and then always."""
    tags = [parse_tag(form) for form in forms()]
    missed = []
    for first, second in product(tags, repeat=2):
        common = intersect(first, second)
        words = [word for word in WORDS if permits(first, word) and permits(second, word)]
        assert [word for word in WORDS if permits(common, word)] == words
        if is_nothing(common) and words:
            missed.append((first, second))
    assert missed == []


EMPTY: list[tuple[list[tuple[int, ...]], list[tuple[Edge | None, Edge | None]], bool]] = [
    ([(97, STAR)], [(Edge(b"b", True), None)], True),
    ([(97, STAR)], [(None, Edge(b"a", False))], True),
    ([(97, STAR)], [(None, Edge(b"a", True))], False),
    ([(STAR, 98)], [(Edge(b"a", True), Edge(b"a\x00", True))], True),
    ([(STAR, 98)], [(Edge(b"a", False), Edge(b"ac", False))], False),
    ([(STAR, 0)], [(Edge(b"a", True), Edge(b"a\x00", True))], False),
    ([(STAR, 0)], [(Edge(b"a", True), Edge(b"a\x00", False))], True),
    ([(STAR, 97)], [(Edge(b"b", False), None)], False),
    ([], [(Edge(b"b", True), Edge(b"b", True))], False),
]


@pytest.mark.parametrize("case", EMPTY, ids=repr)
def test_globs_within_windows(case: tuple[list[tuple[int, ...]], list[tuple[Edge | None, Edge | None]], bool]):
    """A window may hold finitely many strings, none of which matches."""
    globs, windows, expected = case
    assert disjoint(globs, windows) is expected


def test_what_takes_too_long_to_decide_is_not_called_empty():
    """The walk is bounded; in doubt an intersection stays, and membership is exact anyway."""
    below = (None, Edge(b"z", False))
    ends = [(STAR, 97), (STAR, 98)]
    assert disjoint(ends, [below]) is True
    hard = [(STAR, *word, STAR) for word in (b"abc", b"bcd", b"cde", b"def", b"efg", b"fgh", b"ghi", b"hij")]
    assert disjoint([*hard, *ends], [below]) is False


def test_a_prefix_meets_a_window():
    """A prefix inside a window stays a prefix; one that is cut becomes a range; other orderings stay apart."""
    inside = intersect(parse_tag((b"*", b"prefix", b"ab")), parse_tag(window(b"a", True, b"b", False)))
    assert inside == parse_tag((b"*", b"prefix", b"ab"))
    cut = intersect(parse_tag((b"*", b"prefix", b"a")), parse_tag(window(b"ab", True, None, True)))
    assert cut == parse_tag(window(b"ab", True, b"b", False))
    last = intersect(parse_tag((b"*", b"prefix", b"\xff")), parse_tag(window(b"\xff\x01", True, None, True)))
    assert last == parse_tag(window(b"\xff\x01", True, None, True))
    mixed = intersect(parse_tag((b"*", b"prefix", b"1")), parse_tag((b"*", b"range", b"numeric", b"ge", b"5")))
    assert permits(mixed, b"12")
    assert not permits(mixed, b"2")
    assert not permits(mixed, b"5")
    assert not permits(mixed, b"1")


def test_the_parts_of_an_intersection_are_ordered():
    """Whichever way patterns are joined, the result is written the same."""
    patterns = [Glob((b"", b"a", b"")), Glob((b"", b"b", b"")), Prefix(b"x")]
    results = set()
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        joined = patterns[order[0]]
        for index in order[1:]:
            joined = intersect_patterns(joined, patterns[index])
        results.add(joined.to_sexp())
    assert len(results) == 1
