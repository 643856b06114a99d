"""Attributes from rows that carry no schema."""

from __future__ import annotations

import pytest

from maia.errors import MalformedError
from maia.events import SequenceUids, attributes_of_rows

COLUMNS = {
    "whole numbers": (["1", "-20"], "integer"),
    "whole numbers and fractions": (["1", "2.5"], "float"),
    "a leading zero is a text": (["007", "12"], "string"),
    "truth values": (["true", "false"], "boolean"),
    "truth values of Python": (["True", "False", ""], "boolean"),
    "truth values among texts": (["True", "maybe"], "string"),
    "dates": (["2026-06-01"], "date"),
    "instants": (["2026-06-01T09:00:00Z", "2026-06-01 09:00:00+01:00"], "timestamp"),
    "dates that are none": (["2026-13-01"], "string"),
    "empty cells are null": (["", "3"], "integer"),
    "a date among texts": (["2026-06-01", "soon"], "string"),
}


@pytest.mark.parametrize("values, kind", COLUMNS.values(), ids=COLUMNS)
def test_texts_are_read_as_what_all_of_them_are(values: list[str], kind: str) -> None:
    """A type is taken when every value can be read as it."""
    (found,) = attributes_of_rows([{"a": value} for value in values], uids=SequenceUids(), texts=True)
    assert (found.name, found.uid, found.type.value) == ("a", "0", kind)


def test_json_values_keep_their_kinds() -> None:
    """In JSON a text of digits is a text."""
    rows = [{"a": 1, "b": "1", "c": True, "d": 1.5, "e": None}, {"e": "2026-06-01T09:00:00Z"}]
    found = attributes_of_rows(rows, uids=SequenceUids(), texts=False)
    assert [item.type.value for item in found] == ["integer", "string", "boolean", "float", "timestamp"]


def test_all_columns_that_do_not_fit_are_named() -> None:
    """One look tells everything that has to be mended."""
    rows = [
        {"good": 1, "list": [1, "x", True], "empty": None, "mixed": 1, "when": "2026-06-01T09:00:00", "big": 1 << 70}
    ]
    rows += [{"mixed": True, "deep": {"a": {"b": 1 << 70}}, "hollow": []}, {"odd": object(), "list": [{"a": 1}]}]
    with pytest.raises(MalformedError, match="SCHEMA_TYPE") as caught:
        attributes_of_rows(rows, uids=SequenceUids(), texts=False)
    message = caught.value.message
    assert all(f"`{name}`" in message for name in ("list", "empty", "mixed", "when", "big", "deep", "hollow", "odd"))
    assert "good" not in message
    with pytest.raises(MalformedError, match="SCHEMA_FORM"):
        attributes_of_rows([], uids=SequenceUids(), texts=False)


def test_objects_are_structs_and_lists_are_arrays() -> None:
    """Rows that say less of a part are joined with those that say more; an empty list says nothing."""
    rows = [
        {"tags": [], "place": {"ward": "A"}, "doses": [1]},
        {"tags": ["urgent"], "place": {"bed": 3, "ward": None}, "doses": [2.5, None]},
    ]
    found = attributes_of_rows(rows, uids=SequenceUids(), texts=False)
    assert {item.name: item.type.value for item in found} == {
        "tags": "array<string>", "place": "struct<bed:integer,ward:string>", "doses": "array<float>",
    }  # fmt: skip


def test_times_without_a_zone_are_taken_for_utc_when_that_is_said() -> None:
    """Nobody guesses a time zone."""
    rows = [{"when": "2026-06-01T09:00:00"}]
    (found,) = attributes_of_rows(rows, uids=SequenceUids(), texts=True, assume_utc=True)
    assert found.type.value == "timestamp"
