"""`maia subscribe` before Spark starts: a client without a right, or with a wrong filter, is refused at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import TYPE, build


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may start Spark."""

    def start(**_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("maia.spark.launch.start_spark", start)


CASES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "a client without any right": (("--as", "visitor"), 3, "NO_EVIDENCE"),
    "a publisher": (("--as", "lab"), 3, "NOT_PERMITTED"),
    "a client nobody knows": (("--as", "nobody"), 5, "NO_SUCH_KEY"),
    "a filter over a closed attribute": (
        ("--as", "researcher", "--where", "patient = 'Ada'"), 3, "FILTER_NOT_AUTHORISED",
    ),
    "a filter that is none": (("--as", "doctor", "--where", "patient ="), 1, "FILTER_SYNTAX"),
    "a filter of another type": (("--as", "doctor", "--where", "value = 'high'"), 1, "FILTER_LITERAL_TYPE"),
    "a format nobody knows": (("--as", "doctor", "--format", "xml"), 2, "OUTPUT_FORMAT"),
    "parquet to nowhere": (("--as", "doctor", "--format", "parquet"), 2, "OUTPUT_PLACE"),
    "a table to a file": (("--as", "doctor", "--format", "table", "--out", "x"), 2, "OUTPUT_PLACE"),
    "a start in the middle": (("--as", "doctor", "--follow", "--starting", "middle"), 2, "OUTPUT_FORMAT"),
}  # fmt: skip


@pytest.mark.parametrize("flags, code, error", CASES.values(), ids=CASES)
def test_subscribe_refuses_before_spark_starts(maia: Any, flags: tuple[str, ...], code: int, error: str) -> None:
    """Each with its exit code and its name."""
    build(maia)
    ran = maia("subscribe", "--type", TYPE, *flags)
    assert (ran.code, f"[{error}]" in ran.err) == (code, True), ran.err
    assert ran.out == ""


def test_an_output_that_exists_is_not_overwritten(maia: Any, tmp_path: Path) -> None:
    """Neither a file nor a folder."""
    build(maia)
    (tmp_path / "out").mkdir()
    ran = maia("subscribe", "--type", TYPE, "--as", "doctor", "--format", "parquet", "--out", str(tmp_path / "out"))
    assert (ran.code, "OUTPUT_EXISTS" in ran.err) == (2, True)


def test_a_denial_explains_itself_to_machines_too(maia: Any) -> None:
    """With --json the denial is one object whose code is the exit code."""
    build(maia)
    ran = maia("subscribe", "--type", TYPE, "--as", "visitor", "--json")
    assert (ran.code, ran.data["error"]) == (3, "NO_EVIDENCE")
    assert f"maia explain --as visitor --type owner/{TYPE}@1 --action subscribe" in ran.err
