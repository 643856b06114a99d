"""Checks of labels: linear in flow tags, remembered, and the same answer either way."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import correlation, linear_regression
from typing import Any

import pytest

from maia.labels import Carrier, FlowChecks, Label, SymbolicLabel
from maia.testing import Command

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "benchmarks" / "labels.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run it once, small."""
    return Command(tmp_path_factory.mktemp("labels")).do("bench", "labels", "--checks", "1000", "--tags", "1,8,64")


def rows(section: str) -> list[dict[str, float | str]]:
    """Read the table of a section of the page."""
    text = PAGE.read_text("utf-8").split(f"## {section}")[1].split("\n## ")[0]
    found = re.findall(
        r"^\| (\d+) \| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \|", text, re.MULTILINE
    )
    return [
        {"tags": int(tags), "kind": kind, "computed": float(computed), "remembered": float(kept), "ratio": float(ratio),
         "allowed": allowed, "kept": again}
        for tags, kind, computed, kept, ratio, allowed, again in found
    ]  # fmt: skip


@pytest.mark.requirement("21.14")
def test_a_remembered_answer_is_the_computed_one_and_is_computed_once(found: dict[str, Any]) -> None:
    """A thousand checks of 64 labels: all computed without memory, 64 with it; every answer is the same."""
    assert [(item["tags"], item["kind"]) for item in found["sizes"]] == [
        (many, kind) for many in (1, 8, 64) for kind in ("single", "mixed")
    ]
    for item in found["sizes"]:
        assert item["equal"] is True
        assert item["computed"] == [1000, 64]
        without, kept = item["allowed"]
        assert without == kept
        assert 700 <= kept <= 800, "every fourth label may not flow"


def test_the_page_says_what_memory_saves_on_labels_of_eight_tags() -> None:
    """10^6 checks with equal answers. With families memory is five times as fast; of single tags the aim is missed."""
    measured = {str(row["kind"]): row for row in rows("Labels of eight tags")}
    assert {row["tags"] for row in measured.values()} == {8}
    for row in measured.values():
        assert row["allowed"] == row["kept"]
    assert measured["mixed"]["ratio"] >= 5
    page = PAGE.read_text("utf-8")
    assert "1,000,000 checks" in page
    for kind, row in measured.items():
        met = "met" if row["ratio"] >= 5 else "missed"
        assert f"- {kind}, 8 tags: {row['ratio']:.2f} times, aim {met}; answers equal." in page


@pytest.mark.requirement("21.14")
def test_time_grows_with_the_tags_and_memory_is_flat() -> None:
    """1 to 64 tags, as measured: a positive slope and a line where it is computed, next to none where remembered."""
    mixed = [row for row in rows("By the number of tags") if row["kind"] == "mixed"]
    tags, computed = [row["tags"] for row in mixed], [row["computed"] for row in mixed]
    assert (tags[0], tags[-1]) == (1, 64)
    assert correlation(tags, computed) > 0.95
    slope = linear_regression(tags, computed).slope
    assert slope > 0
    single = [row for row in rows("By the number of tags") if row["kind"] == "single"]
    assert linear_regression(tags, [row["computed"] for row in single]).slope > 0
    assert abs(linear_regression(tags, [row["remembered"] for row in mixed]).slope) < slope / 100
    assert "<svg" in (PAGE.parent / "labels.svg").read_text("utf-8")[:2000]


@pytest.mark.requirement("21.14")
def test_the_command_shows_a_line_for_each_size_and_refuses_other_numbers(maia_command: Command) -> None:
    """For people: a table; a list of tags that is none is refused."""
    ran = maia_command("bench", "labels", "--checks", "100", "--tags", "1,64", "--runs", "1")
    assert ran.code == 0
    assert [line.split(" | ")[0] for line in ran.out.splitlines() if re.match(r"\| \d", line)] == [
        "| 1", "| 1", "| 64", "| 64"
    ]  # fmt: skip
    assert maia_command.refused("bench", "labels", "--tags", "none") == (2, "NUMBERS")


def test_a_memory_that_is_full_still_answers_and_a_target_is_never_mixed_up() -> None:
    """With room for one label others are computed again; what flows to one reader says nothing about another."""
    labels = [SymbolicLabel(secrecy=frozenset({name}), integrity=frozenset()) for name in "abc"]
    carried = SymbolicLabel(carriers=frozenset({Carrier(family="clinical", column="patient")}))
    one = FlowChecks(Label(secrecy=frozenset({"a", "clinical(7)"})), remember=1)
    other = FlowChecks(Label(secrecy=frozenset({"b"})))
    for _ in range(2):
        assert [one.open_part(item) is not None for item in labels] == [True, False, False]
        assert [other.open_part(item) is not None for item in labels] == [False, True, False]
    assert (one.computed, other.computed) == (5, 3)
    left = one.open_part(carried)
    assert left is not None
    assert [item.values for item in left.carriers] == [frozenset({"7"})]
    assert other.open_part(carried) is None
