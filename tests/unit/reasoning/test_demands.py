"""What tags ask of typed values, read exactly or not at all: held against the tag algebra, value by value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from maia.authority import Tag, parse_tag, permits
from maia.encoding import parse_advanced
from maia.errors import UncheckedError
from maia.events import AttributeType
from maia.filters import Demand, TypedFilter, matches, value_atom
from maia.reasoning.demands import demand_of

DAY = datetime(2026, 6, 1, tzinfo=UTC)
VALUES = {
    AttributeType.INTEGER: [-(2**63), -3, -1, 0, 1, 2, 5, 6, 7, 2**63 - 1],
    AttributeType.FLOAT: [-1.5, 0.0, 0.1, 0.2, 0.3, 1.0, 5.0, 5.000000000000001, 1e300],
    AttributeType.DECIMAL: [Decimal(text) for text in ("-1.5", "0", "0.3", "4.9", "5", "5.01")],
    AttributeType.BOOLEAN: [True, False],
    AttributeType.DATE: [date(2025, 12, 31), date(2026, 1, 1), date(2026, 6, 1), date(2026, 6, 2)],
    AttributeType.TIMESTAMP: [DAY - timedelta(microseconds=1), DAY, DAY + timedelta(hours=9), DAY + timedelta(days=9)],
    AttributeType.STRING: ["", "a", "ab", "b", "true", "5"],
}
TAGS = (
    '(* range numeric ge "5")', '(* range numeric l "+007")', '(* range numeric g "-99999999999999999999")',
    '(* range numeric le "99999999999999999999")', '(* range numeric ge "99999999999999999999")',
    '(* range decimal ge "5")', '(* range decimal g "0.1" le "5.0000000000000005")', '(* range decimal l "4.95")',
    '(* range date ge "2026")', '(* range date g "2026-06" l "2026-06-02_09")', '(* range date le "2026-06-01T00:00Z")',
    '(* range date ge "2026-06-01_09:00:00.5")', '"5"', '"5.0"', '"true"', '"2026-06-01"', "(*)",
    '(* set "true" "5" (* range numeric l "0"))', '(* and (* range decimal ge "1") (* range decimal l "5"))',
)  # fmt: skip


def _read(tag: Tag, kind: AttributeType) -> Demand | None:
    try:
        return demand_of(tag, kind)
    except UncheckedError:
        return None


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("text", TAGS)
def test_a_demand_that_is_read_admits_what_the_tag_permits(text: str, kind: AttributeType) -> None:
    """Limits between values, beyond all of them, or spelled in another way: nothing is rounded to the other side."""
    tag = parse_tag(parse_advanced(text))
    demand = _read(tag, kind)
    if demand is None:
        assert kind in (AttributeType.STRING, AttributeType.INTEGER), "only texts and numbers may be taken for others"
        return
    for value in VALUES[kind]:
        said = any(matches(TypedFilter(constraints=tuple(one)), {"value": value}) for one in demand)
        assert said == permits(tag, value_atom(value, kind)), (text, kind, value)


def test_octets_are_at_most_there() -> None:
    """Of binary values nothing can be asked but that there is one."""
    assert demand_of(parse_tag((b"*",)), AttributeType.BINARY) == ((),)
    assert demand_of(parse_tag(b"x"), AttributeType.BINARY) == ()


def test_texts_taken_for_numbers_are_not_reasoned_about() -> None:
    """A guess would be worse than no answer."""
    with pytest.raises(UncheckedError):
        demand_of(parse_tag(parse_advanced('(* range numeric ge "5")')), AttributeType.STRING)
    with pytest.raises(UncheckedError):
        demand_of(parse_tag(parse_advanced('(* glob "a*b*c")')), AttributeType.STRING)
