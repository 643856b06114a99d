"""Single columns: layout, limits, bombs, and values that no attribute has."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from maia.encryption import encode_column
from maia.events import ARROW_TYPES, AttributeType


@pytest.mark.threat("T49")
def test_lengths_do_not_tell_null_from_a_letter():
    """Over 10,000 sealed cells the best guess from the length is right half of the time when padding is on."""
    rng = random.Random("null or A")
    lengths: dict[tuple[int, int], dict[int, list[int]]] = {}
    for padding in (0, 64):
        counts: dict[int, list[int]] = {}
        for _ in range(10_000):
            null = rng.random() < 0.5
            octets = encode_column(
                pa.array([None if null else "A"], pa.string()), AttributeType.STRING, padding=padding
            )
            counts.setdefault(len(octets), [0, 0])[null] += 1
        lengths[padding, 0] = counts
    accuracy = {p: sum(max(pair) for pair in counts.values()) / 10_000 for (p, _), counts in lengths.items()}
    assert accuracy[0] == 1.0, "the control: without padding the length tells"
    assert abs(accuracy[64] - 0.5) <= 0.015


def test_nulls_of_every_type_are_as_long_as_values():
    """A column of numbers, dates or truth values has one length, null or not, even without padding."""
    for kind in (
        AttributeType.INTEGER,
        AttributeType.FLOAT,
        AttributeType.BOOLEAN,
        AttributeType.DATE,
        AttributeType.DECIMAL,
    ):
        column = pa.array([0, 1], pa.int32() if kind is AttributeType.DATE else pa.int64()).cast(ARROW_TYPES[kind])
        assert len(encode_column(column, kind)) == len(encode_column(pa.nulls(2, ARROW_TYPES[kind]), kind))
