"""`maia demo clinic`: a hospital's first day, told by what its readers' streams brought."""

from __future__ import annotations

from typing import Any

import pytest

from demos import check_picture, play

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
RESULTS = {
    "dara": [("Ada", "A", "glucose", 5.4), ("Ben", "A", "sodium", 140.0), ("Cem", "B", "glucose", 7.9)],
    "nora": [("Ada", "A", "glucose", 5.4), ("Ben", "A", "sodium", 140.0)],
    "omar": [("Dee", "A", "glucose", 6.1)],
    "ann": [(None, "A", "glucose", 5.4), (None, "A", "sodium", 140.0), (None, "B", "glucose", 7.9)],
}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Play it once."""
    return play("clinic")


def test_each_reader_sees_what_its_role_opens(facts: dict[str, Any]) -> None:
    """The doctor all, a nurse the own ward, the other hospital no patient; who has no role sees nothing at all."""
    seen = {who: [tuple(row.values()) for row in rows] for who, rows in facts["rows"].items()}
    assert seen == RESULTS


def test_roles_follow_the_shift_and_the_agreement(facts: dict[str, Any]) -> None:
    """Omar is refused before his shift, Nora's stream dries up after hers, Ann's when the agreement is ended."""
    refused = "NO_EVIDENCE"
    assert facts["day"] == {
        "dara": {"morning": 3, "afternoon": 2, "night": 2},
        "nora": {"morning": 2, "afternoon": 0, "night": 0},
        "omar": {"morning": "ROLE_REFUSED", "afternoon": 1, "night": 1},
        "ann": {"morning": 3, "afternoon": 2, "night": 0},
        "bob": {"morning": refused, "afternoon": refused, "night": refused},
    }
    assert facts["asks_again"] == {"dara": 7, "nora": "REVOKED", "omar": 4, "ann": "REVOKED", "bob": refused}


def test_a_row_that_is_no_result_is_refused_by_itself(facts: dict[str, Any]) -> None:
    """`high` is no number: that row goes no further, the others of its file do."""
    assert facts["published"] == {"morning": 3, "afternoon": 2, "night": 2}
    assert facts["refused_rows"] == {"ROW_MALFORMED": 1}


def test_it_is_done_with_commands_of_two_homes(facts: dict[str, Any]) -> None:
    """What was typed can be typed: one file goes to the other hospital, one comes back."""
    assert {line.partition("$")[0] for line in facts["commands"]} == {"clinic", "st-marys"}
    typed = [line.partition("$ maia ")[2] for line in facts["commands"]]
    for words in ("domain invite-peer --for \"St Mary's\"", "domain connect peer.maia --reader ann",
                  "domain connect answer.maia", "role revoke 'shift(nora, A)'", "domain disconnect"):  # fmt: skip
        assert [line for line in typed if line.startswith(words)], words
    assert facts["home"] not in " ".join(facts["commands"])


def test_the_picture_is_what_was_printed(facts: dict[str, Any], script: Any) -> None:
    """Cell by cell."""
    check_picture(script("pictures"), "clinic", facts)
