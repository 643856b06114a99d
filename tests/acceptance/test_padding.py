"""What lengths tell: nothing where the type asks for padding, in a column and in the log."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maia
from maia.encryption import encode_column
from maia.events import AttributeType, arrow_type
from maia.testing import Command


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
        column = pa.array([0, 1], pa.int32() if kind is AttributeType.DATE else pa.int64()).cast(arrow_type(kind))
        assert len(encode_column(column, kind)) == len(encode_column(pa.nulls(2, arrow_type(kind)), kind))


@pytest.mark.requirement("15.17")
@pytest.mark.threat("T49")
def test_files_of_the_log_do_not_tell_null_from_a_letter(spark: Any, maia_command: Command) -> None:
    """Whoever sees the log alone compares lengths: with padding there is nothing to compare, without it there is."""
    home, sizes = maia_command, {}
    home.do("domain", "init", str(home.home))
    home.keys("owner", "camera", "reader")
    for padding in ("0", "64"):
        kind = f"owner/padded.By{padding}"
        home.do("type", "define", f"{kind}@1", "--attribute", "word:string:1", "--padding", padding)
        for who, action in (("broker", "publish"), ("camera", "publish"), ("reader", "subscribe")):
            home.grant("--from", "owner", "--to", who, "--type", kind, "--action", action)
        domain = maia.open(home.home)
        for word in (None, "A"):
            before = set((home.home / "log").rglob("*.parquet"))
            domain.client("camera").publish(pa.table({"word": pa.array([word], pa.string())}), f"padded.By{padding}")
            [made] = set((home.home / "log").rglob("*.parquet")) - before
            cells = (value for row in pq.read_table(made).to_pylist() for value in row.values())
            sizes[padding, word] = sum(len(value) for value in cells if isinstance(value, bytes))
        read = [row["word"] for row in domain.client("reader").read(f"padded.By{padding}").collect()]
        assert sorted(read, key=str) == ["A", None]
    assert sizes["64", None] == sizes["64", "A"]
    assert sizes["0", None] != sizes["0", "A"], "the control"
