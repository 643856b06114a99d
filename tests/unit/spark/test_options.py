"""The options of `format("maia")`: read once, typed, refused by name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.errors import UsageError
from maia.spark.options import SourceOptions

NINE = datetime(2026, 6, 1, 9, tzinfo=UTC)
LEAST = {"home": "met", "type": "pito/Numberplate@1", "as": "smith"}


def test_a_relative_home_is_absolute_once_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers run elsewhere, so the path is settled where the options are read."""
    monkeypatch.chdir(tmp_path)
    assert SourceOptions.of(LEAST).home == str(tmp_path / "met")


def test_values_are_typed() -> None:
    """Numbers, flags and lists are no strings afterwards."""
    found = SourceOptions.of(
        LEAST | {"withEventId": "True", "maxCommitsPerTrigger": "7", "attributes": "a, b", "startingOffsets": "latest"}
    )
    assert (found.with_event_id, found.max_commits, found.attributes) == (True, 7, ("a", "b"))
    assert found.starting_offsets == "latest"


def test_what_is_written_for_spark_is_read_back() -> None:
    """Domain and data source speak of the same options."""
    asked = SourceOptions(
        home="/met", type="T", as_="smith", where="a = 1", version="2", attributes=("a", "b"), with_event_id=True,
        starting_offsets="latest", publication="p",
    )  # fmt: skip
    assert SourceOptions.of(asked.to_spark()) == asked
    hour = replace(asked, starting_timestamp=NINE, ending_timestamp=NINE + timedelta(hours=1))
    assert SourceOptions.of(hour.to_spark()) == hour
    topics = SourceOptions(home="/met", topic="pito/Stocks.*", as_="smith")
    assert SourceOptions.of(topics.to_spark()) == topics
    assert topics.events.topic == "pito/Stocks.*"


def test_a_range_of_stamps_has_a_beginning_and_no_end_of_its_own() -> None:
    """From the first millisecond that is not before the one, up to the first that is not before the other."""
    asked = LEAST | {"startingTimestamp": "2026-06-01T09:00:00.0001Z", "endingTimestamp": "2026-06-01T12:00:00+02:00"}
    nine = int(NINE.timestamp() * 1000)
    assert SourceOptions.of(asked).window == (nine + 1, nine + 3_600_000)
    assert SourceOptions.of(LEAST).window is None
    assert SourceOptions.of(LEAST | {"endingTimestamp": "2026-06-01T09:00:00Z"}).window == (0, nine)


def test_the_copies_of_the_catalogue_are_passed_over() -> None:
    """`CREATE TABLE` gives each option twice, with the owner and the provider, and a path of its own."""
    table = LEAST | {"option.home": "met", "provider": "maia", "owner": "root", "path": "warehouse/t", "location": "x"}
    assert SourceOptions.of(table) == SourceOptions.of(LEAST)


WRONG = {
    "an unknown name gets the nearest": ({"typ": "x"}, "UNKNOWN_OPTION", "did you mean `type`"),
    "an unknown name without a near one lists all": ({"zzzzz": "x"}, "UNKNOWN_OPTION", "maxCommitsPerTrigger"),
    "a flag is true or false": ({"withEventId": "yes"}, "OPTION_VALUE", "withEventId"),
    "a number is a number": ({"maxEventsPerParcel": "many"}, "OPTION_VALUE", "maxEventsPerParcel"),
    "nothing is not a number of events": ({"maxEventsPerParcel": "0"}, "OPTION_VALUE", "above 0"),
    "an offset is a word or a number": ({"startingOffsets": "yesterday"}, "OPTION_VALUE", "latest"),
    "an instant has a zone": ({"startingTimestamp": "2026-06-01T09:00:00"}, "OPTION_VALUE", "2026-06-01T08:00:00Z"),
    "an attribute is asked for once": ({"attributes": "a,a"}, "OPTION_VALUE", "attributes"),
    "a topic is no type": ({"topic": "x"}, "TYPE_OR_TOPIC", "either a type or a topic"),
    "an attribute has a name": ({"attributes": "a,,b"}, "OPTION_VALUE", "attributes"),
}


@pytest.mark.parametrize(("given", "code", "says"), WRONG.values(), ids=WRONG.keys())
def test_wrong_options_are_refused_by_name(given: dict[str, str], code: str, says: str) -> None:
    """The message says which option, and what it takes."""
    with pytest.raises(UsageError, match=says) as raised:
        SourceOptions.of(LEAST | given)
    assert raised.value.code == code


@pytest.mark.parametrize("missing", ["home", "type", "as"])
def test_what_is_missing_is_named(missing: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UsageError, match=f"option `{missing}` is missing"):
        SourceOptions.of({key: value for key, value in LEAST.items() if key != missing})
