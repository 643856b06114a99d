"""`maia demo miklos`: the examples of the paper on access-control filters, as a broker answers them."""

from __future__ import annotations

from typing import Any

import pytest

from demos import check_picture, play

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
YES, ROW, FILTER = "allowed", "ROW_OUT_OF_BOUNDS", "FILTER_OUT_OF_BOUNDS"
ANSWERS = {
    "publications": [
        ("acme", YES), ("acme", ROW),
        ("bolt", YES), ("bolt", ROW), ("bolt", ROW),
        ("cord", ROW), ("cord", YES),
    ],
    "advertisements": [("acme", YES), ("acme", FILTER), ("bolt", YES), ("bolt", FILTER)],
    "subscriptions": [
        ("rita", YES), ("rita", FILTER), ("lars", YES), ("lars", FILTER), ("sue", YES), ("sue", FILTER)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Play it once."""
    return play("miklos")


@pytest.mark.parametrize("kind", ANSWERS)
def test_bounds_hold_as_in_the_paper(facts: dict[str, Any], kind: str) -> None:
    """Each bound allows one example and refuses another; a strict one refuses what the plain one lets through."""
    assert [(item["who"], item["answer"]) for item in facts[kind]] == ANSWERS[kind]


def test_one_event_is_screened_without_a_trace(facts: dict[str, Any]) -> None:
    """Sue may see message and price: she is not told that there was a colour."""
    assert facts["screened"] == {
        "auditor": [{"message": "new_product", "price": 23, "color": "red"}],
        "sue": [{"message": "new_product", "price": 23}],
    }


def test_the_picture_is_what_was_printed(facts: dict[str, Any], script: Any) -> None:
    """Cell by cell."""
    check_picture(script("pictures"), "miklos", facts)
