"""The tag algebra against brute force: membership, intersection, emptiness, covering.

The oracle (`strategies_trust.member`) reads a tag's expression directly and shares no code with `maia.authority`; the
universe of requests holds a value on, below, above and beside every limit that is drawn.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from strategies_trust import (
    LONG,
    REQUESTS,
    expressions,
    member,
    random_pattern,
    random_range,
    random_strings,
    random_tag,
    randoms,
)

from maia.authority import EVERYTHING, NOTHING, covers, intersect, is_nothing, parse_tag, permits
from maia.authority.tag_forms import Tag
from maia.encoding import Sexp
from maia.errors import MaiaError, TagError

PAIRS = 100_000 if LONG else 2_500
SHORT_STRINGS = [bytes(word) for size in range(6) for word in itertools.product(b"\x00ab\xff", repeat=size)]


def admitted(tag: Tag) -> set[int]:
    """Ask the code under test for every request of the universe."""
    return {index for index, request in enumerate(REQUESTS) if permits(tag, request)}


def expected(*tags: Sexp) -> set[int]:
    """Ask the oracle for the requests that lie in all of these tags."""
    return {index for index, request in enumerate(REQUESTS) if all(member(tag, request) for tag in tags)}


def exact(a: Sexp, b: Sexp, found: set[int], wanted: set[int]) -> bool:
    """Tell whether an intersection is as it must be.

    It is exact, with one exception that errs towards denial: a list which may spell out a row, met with a demand on
    rows, may lose rows that are longer than the list.
    """
    if found == wanted:
        return True
    return found < wanted and wanted - found <= ROWS and (spells_rows(a) or spells_rows(b))


def spells_rows(tag: Sexp) -> bool:
    """Tell whether a list in the tag can be the list form of a row."""
    if not isinstance(tag, tuple):
        return False
    return (tag[0] != b"*" and member(tag[0], b"row")) or any(spells_rows(item) for item in tag)


def holds_row(request: Sexp) -> bool:
    """Tell whether a row stands anywhere in a request."""
    return isinstance(request, tuple) and (request[0] == b"row" or any(holds_row(item) for item in request))


ROWS = {index for index, request in enumerate(REQUESTS) if holds_row(request)}


def show(indices: set[int]) -> list[Sexp]:
    """Name requests by themselves, for messages."""
    return [REQUESTS[index] for index in sorted(indices)]


def test_random_pairs_intersect_as_their_sets_do() -> None:
    """permits(intersect(a, b), r) is permits(a, r) and permits(b, r), for thousands of pairs and every request."""
    rng = random.Random(20260601)
    empty = 0
    for _ in range(PAIRS):
        a, b = random_tag(rng), random_tag(rng)
        both = intersect(parse_tag(a), parse_tag(b))
        wanted = expected(a, b)
        found = admitted(both)
        assert exact(a, b, found, wanted), (a, b, both.to_sexp(), show(found ^ wanted))
        empty += not wanted
    assert 0.1 < empty / PAIRS < 0.98, "the draw must hold both empty and non-empty intersections"


@given(randoms)
def test_a_tag_admits_what_its_expression_says(rng: random.Random) -> None:
    """Reading a tag and writing it back changes no answer, for every form and ordering."""
    expression = random_tag(rng)
    tag = parse_tag(expression)
    assert show(admitted(tag) ^ expected(expression)) == []
    assert show(expected(tag.to_sexp()) ^ expected(expression)) == []
    assert parse_tag(tag.to_sexp()) == tag


@given(randoms)
def test_intersection_is_commutative_associative_and_idempotent(rng: random.Random) -> None:
    """The order and the number of times in which links are intersected cannot change who is admitted."""
    a, b, c = (parse_tag(random_tag(rng)) for _ in range(3))
    assert admitted(intersect(a, b)) == admitted(intersect(b, a))
    assert (admitted(intersect(intersect(a, b), c)) ^ admitted(intersect(a, intersect(b, c)))) <= ROWS
    assert admitted(intersect(a, a)) == admitted(a)
    assert intersect(a, EVERYTHING) == a
    assert intersect(EVERYTHING, a) == a
    assert intersect(a, NOTHING) == NOTHING


@given(randoms)
def test_the_written_intersection_says_the_same(rng: random.Random) -> None:
    """An intersection can be written into a certificate and read again without gaining or losing a request."""
    a, b = random_tag(rng), random_tag(rng)
    both = intersect(parse_tag(a), parse_tag(b))
    assert exact(a, b, expected(both.to_sexp()), expected(a, b))
    assert show(admitted(parse_tag(both.to_sexp())) ^ admitted(both)) == []


@given(randoms)
def test_an_empty_tag_admits_nothing(rng: random.Random) -> None:
    """Where the code says nothing is left, the oracle finds nothing either."""
    a, b = random_tag(rng), random_tag(rng)
    if is_nothing(intersect(parse_tag(a), parse_tag(b))):
        assert exact(a, b, set(), expected(a, b))


@given(randoms)
def test_covering_is_sound(rng: random.Random) -> None:
    """If one tag is said to cover another, it admits each of its requests."""
    a, b = random_tag(rng), random_tag(rng)
    wide, narrow = parse_tag(a), parse_tag(b)
    if covers(wide, narrow):
        assert show(expected(b) - expected(a)) == []
    assert covers(wide, wide)
    assert covers(EVERYTHING, wide)
    assert covers(wide, NOTHING)


@pytest.mark.parametrize("count", [2, 3])
def test_emptiness_of_globs_prefixes_and_alpha_ranges_is_exact(count: int) -> None:
    """An intersection of string patterns is empty exactly when no string up to the needed length lies in all."""
    rng = random.Random(count)
    empty = 0
    total = (20_000 if LONG else 1_200) // count
    for _ in range(total):
        patterns = [_short_pattern(rng, 2 if count == 2 else 1) for _ in range(count)]
        left: Tag = EVERYTHING
        for pattern in patterns:
            left = intersect(left, parse_tag(pattern))
        witness = next((text for text in SHORT_STRINGS if all(member(item, text) for item in patterns)), None)
        assert is_nothing(left) is (witness is None), (patterns, left.to_sexp(), witness)
        empty += witness is None
    assert 0.02 < empty / total < 0.9


def _short_pattern(rng: random.Random, longest: int) -> Sexp:
    """Draw a pattern whose shortest witness is short enough for the brute force."""
    while True:
        pattern = random_pattern(rng)
        literal = sum(len(part) for part in pattern[2:] if isinstance(part, bytes) and part not in LIMIT_WORDS)
        if literal <= longest + (pattern[1] == b"range") * longest and b"*" not in pattern[2:]:
            return pattern


LIMIT_WORDS = (b"alpha", b"g", b"ge", b"l", b"le")


@given(randoms)
def test_a_spelt_out_row_is_narrowed_by_demands_on_rows(rng: random.Random) -> None:
    """A ground row and a demand on rows leave the row exactly when it meets the demand."""
    demand = (b"*", b"where", *((uid, random_strings(rng)) for uid in rng.sample((b"1", b"2"), rng.randrange(1, 3))))
    for index in ROWS:
        request = REQUESTS[index]
        if request[0] == b"row":
            left = intersect(parse_tag(demand), parse_tag(request))
            assert is_nothing(left) is not member(demand, request)
            assert permits(left, request) is member(demand, request)


@given(randoms)
def test_intersection_makes_no_demand_an_enforced_one(rng: random.Random) -> None:
    """A demand is the receiving domain's to enforce when each of the tags that set it says so, and only then."""
    drawn = [
        {uid: rng.random() < 0.5 for uid in rng.sample((b"1", b"2", b"3"), rng.randrange(4))}
        for _ in range(rng.randrange(2, 5))
    ]
    left: Tag = EVERYTHING
    for demands in drawn:
        listed = ((uid, (b"*",), b"enforced") if trusted else (uid, (b"*",)) for uid, trusted in demands.items())
        left = intersect(left, parse_tag((b"*", b"where", *listed)))
    wanted = {uid: all(demands.get(uid, True) for demands in drawn) for uid in set().union(*drawn)}
    found = {} if left == EVERYTHING else {item[0]: item[2:] == (b"enforced",) for item in left.to_sexp()[2:]}
    assert found == wanted


@pytest.mark.parametrize("ordering", [b"alpha", b"numeric", b"decimal", b"binary", b"time", b"date"])
def test_ranges_of_each_ordering_intersect_exactly(ordering: bytes) -> None:
    """Two ranges of one ordering leave exactly the values in both, ends included or not."""
    rng = random.Random(ordering)
    for _ in range(400):
        a, b = random_range(rng, ordering), random_range(rng, ordering)
        both = intersect(parse_tag(a), parse_tag(b))
        assert show(admitted(both) ^ expected(a, b)) == []


@given(expressions)
def test_any_expression_is_a_tag_or_malformed(expression: Sexp) -> None:
    """parse_tag raises nothing but Maia's errors, and what it reads it can write."""
    try:
        tag = parse_tag(expression)
    except MaiaError:
        return
    assert parse_tag(tag.to_sexp()) == tag


@given(expressions, randoms)
def test_any_expression_may_be_asked_for(request: Sexp, rng: random.Random) -> None:
    """Deciding membership never fails, whatever the request is."""
    tag = parse_tag(random_tag(rng))
    assert permits(tag, request) in (True, False)
    assert permits(NOTHING, request) is False


def glob_of(rng: random.Random, number: int, length: int) -> Sexp:
    """Draw a glob of some long pieces that no other glob covers."""
    pieces = [bytes(rng.choice(b"ab") for _ in range(length)) for _ in range(number)]
    return (b"*", b"glob", b"*" + b"*".join(pieces) + b"*")


BOUNDED = {
    "too many patterns on one string": lambda rng: (b"*", b"and", *(glob_of(rng, 5, 100) for _ in range(60))),
    "too many pairs of patterns": lambda rng: (
        b"*", b"and", *((b"*", b"set", *(glob_of(rng, 1, 8) for _ in range(200))) for _ in range(2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("draw", BOUNDED.values(), ids=BOUNDED.keys())
def test_a_tag_that_costs_too_much_to_read_is_refused(draw: Callable[[random.Random], Sexp]) -> None:
    """Reading someone else's tag does a bounded amount of work; beyond it the tag is malformed."""
    with pytest.raises(TagError, match="TAG_TOO_LARGE"):
        parse_tag(draw(random.Random(3)))
