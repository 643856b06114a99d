"""Which values belong to which type."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MaiaError, MalformedError
from maia.events import AttributeType, attribute, check_value, value_from_json, value_to_json

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
GOOD = {
    "the largest integer": ("integer", 2**63 - 1),
    "the smallest integer": ("integer", -(2**63)),
    "an integer that no float holds": ("integer", 9007199254740993),
    "a float": ("float", 4.5),
    "a decimal with 18 places": ("decimal", Decimal("0.000000000000000001")),
    "a decimal of 38 digits": ("decimal", Decimal("9" * 20 + "." + "9" * 18)),
    "a string beyond the first plane": ("string", "\U0001f697"),
    "an empty string": ("string", ""),
    "a boolean": ("boolean", False),
    "a date": ("date", date(2010, 2, 1)),
    "an instant": ("timestamp", NOON),
    "octets": ("binary", b"\x00\xff"),
}
BAD = {
    "an integer one too large": ("integer", 2**63),
    "a boolean as an integer": ("integer", True),
    "a float as an integer": ("integer", 4.0),
    "an integer as a float": ("float", 4),
    "not a number": ("float", float("nan")),
    "infinity": ("float", float("inf")),
    "a float as a decimal": ("decimal", 1.5),
    "a decimal with a place too many": ("decimal", Decimal("0.0000000000000000001")),
    "a decimal with a digit too many": ("decimal", Decimal("1E20")),
    "a decimal that is none": ("decimal", Decimal("NaN")),
    "octets as a string": ("string", b"x"),
    "a lone surrogate": ("string", "\ud800"),
    "an integer as a boolean": ("boolean", 1),
    "an instant as a date": ("date", NOON),
    "a date as an instant": ("timestamp", date(2026, 6, 1)),
    "an instant without a zone": ("timestamp", NOON.replace(tzinfo=None)),
    "a string as octets": ("binary", "x"),
    "a list": ("string", ["x"]),
}


@pytest.mark.parametrize("kind, value", GOOD.values(), ids=GOOD)
def test_value_of_the_type_is_kept_unchanged(kind: str, value: object) -> None:
    """What belongs to a type comes back as it was, directly and through JSON."""
    item = attribute("a", 1, kind)
    assert check_value(item, value) == value
    assert value_from_json(item, value_to_json(value)) == value
    assert check_value(item, None) is None
    assert value_from_json(item, None) is None


@pytest.mark.parametrize("kind, value", BAD.values(), ids=BAD)
def test_value_of_another_type_is_refused(kind: str, value: object) -> None:
    """Nothing is rounded, wrapped or cast to fit, and the refusal does not repeat the value."""
    with pytest.raises(MalformedError, match="VALUE_TYPE") as caught:
        check_value(attribute("a", 1, kind), value)
    assert caught.value.message == f"the value of `a` is no {kind}"


def test_timestamp_is_kept_in_utc() -> None:
    """Two spellings of an instant are one value."""
    local = NOON.astimezone(timezone(timedelta(hours=2)))
    checked = check_value(attribute("a", 1, "timestamp"), local)
    assert checked == NOON
    assert isinstance(checked, datetime)
    assert checked.tzinfo is UTC


BAD_JSON = {
    "a naive time": ("timestamp", "2026-06-01T08:00:00"),
    "a date for a time": ("timestamp", "2026-06-01"),
    "a time nobody reaches": ("timestamp", 10**18),
    "a boolean for a time": ("timestamp", True),
    "a time for a date": ("date", "2026-06-01T08:00:00Z"),
    "a week date": ("date", "2026-W01-1"),
    "a decimal with an exponent": ("decimal", "1e3"),
    "a decimal that is a word": ("decimal", "NaN"),
    "a float with more digits than it keeps": ("decimal", 0.1 + 0.2),
    "no base64": ("binary", "%%"),
    "a number for octets": ("binary", 1),
    "an integer for a float": ("float", 1),
    "a float for an integer": ("integer", 1.0),
    "an object": ("string", {}),
}


@pytest.mark.parametrize("kind, value", BAD_JSON.values(), ids=BAD_JSON)
def test_json_of_another_type_is_refused(kind: str, value: object) -> None:
    """JSON is read as strictly as any other value."""
    with pytest.raises(MalformedError, match="VALUE_TYPE"):
        value_from_json(attribute("a", 1, kind), value)


def test_json_numbers_for_times_and_decimals() -> None:
    """A timestamp may be seconds; a decimal may be a number that JSON keeps exactly."""
    assert value_from_json(attribute("a", 1, "timestamp"), 0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert value_from_json(attribute("a", 1, "decimal"), 10.5) == Decimal("10.5")
    assert value_from_json(attribute("a", 1, "decimal"), 7) == 7


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


@given(st.sampled_from(AttributeType), json_values)
def test_only_maia_errors_come_from_reading_json(kind: AttributeType, value: object) -> None:
    """Whatever JSON brings, it is a value of the type or refused."""
    item = attribute("a", 1, kind)
    try:
        read = value_from_json(item, value)
    except MaiaError:
        return
    assert check_value(item, read) == read
