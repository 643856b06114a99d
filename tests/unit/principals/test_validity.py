"""Instants and periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from maia.encoding import Sexp
from maia.errors import EncodingError, UsageError
from maia.principals import ALWAYS, Period, check_aware, encode_instant, parse_instant
from maia.testing import at

INSTANTS = {
    b"2026-06-01_09:00:00": datetime(2026, 6, 1, 9, tzinfo=UTC),
    b"0001-01-01_00:00:00": datetime(1, 1, 1, tzinfo=UTC),
    b"9999-12-31_23:59:59": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
}


@pytest.mark.parametrize("text", INSTANTS)
def test_instants_read_back(text: bytes):
    """From the first year to the last, one spelling each."""
    assert parse_instant(text) == INSTANTS[text]
    assert encode_instant(INSTANTS[text]) == text


def test_an_instant_of_another_zone_is_written_in_utc():
    """The zone is turned into UTC."""
    east = timezone(timedelta(hours=2))
    assert encode_instant(datetime(2026, 6, 1, 11, tzinfo=east)) == b"2026-06-01_09:00:00"


NO_INSTANTS: list[Sexp] = [
    b"2026-06-01T09:00:00", b"2026-06-01_09:00", b"2026-06-01_09:00:0x", b"2026-06-01_24:00:00", b"2026-02-30_00:00:00",
    b"0000-01-01_00:00:00", b"+026-06-01_09:00:00", b" 026-06-01_09:00:00", b"2026/06/01_09:00:00", (b"x",), b"",
    b"2026-06-01_09:00:60",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_INSTANTS, ids=repr)
def test_what_is_no_instant_is_refused(text: Sexp):
    """Exactly the form that is written is read."""
    with pytest.raises(EncodingError, match="INSTANT"):
        parse_instant(text)


def test_instants_are_aware_and_whole():
    """No time zone, or a fraction of a second, is the caller's mistake."""
    naive = datetime(2026, 6, 1)  # noqa: DTZ001 - that is the point
    for wrong in (naive, at(0).replace(microsecond=1)):
        with pytest.raises(UsageError):
            encode_instant(wrong)
    with pytest.raises(UsageError):
        check_aware(naive)
    with pytest.raises(UsageError):
        Period(naive, None)


def test_a_period_does_not_end_before_it_starts():
    """One instant is a period; less is none."""
    assert Period(at(5), at(5)).contains(at(5))
    with pytest.raises(UsageError, match="PERIOD_EMPTY"):
        Period(at(5), at(4))


INTERSECTIONS = {
    "both open": ((None, None), (None, None), (None, None)),
    "inside": ((0, 9), (2, 5), (2, 5)),
    "across": ((0, 5), (3, 9), (3, 5)),
    "touching": ((0, 5), (5, 9), (5, 5)),
    "apart": ((0, 4), (5, 9), None),
    "open starts": ((None, 5), (None, 9), (None, 5)),
    "open ends": ((3, None), (5, None), (5, None)),
    "open against closed": ((None, None), (2, 5), (2, 5)),
}


def period(ends: tuple[int | None, int | None]) -> Period:
    """Make a period from seconds."""
    return Period(*(None if end is None else at(end) for end in ends))


@pytest.mark.parametrize("case", INTERSECTIONS.values(), ids=INTERSECTIONS.keys())
def test_intersections_of_periods(case: tuple[object, object, object]):
    """The common part, in either order, agrees with asking both."""
    first, second = period(case[0]), period(case[1])
    expected = None if case[2] is None else period(case[2])
    assert first.intersect(second) == expected
    assert second.intersect(first) == expected
    for second_of in range(-1, 11):
        both = first.contains(at(second_of)) and second.contains(at(second_of))
        assert both is (expected is not None and expected.contains(at(second_of)))
    assert ALWAYS.contains(at(-(10**9)))
