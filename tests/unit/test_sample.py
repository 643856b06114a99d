"""The sample of long tests: a share, another one for each commit, and never what a requirement hangs on."""

from __future__ import annotations

import pytest

from sample import drawn, left_to_chance

NODES = [f"tests/spark/test_x.py::test_{number}" for number in range(400)]


class Item:
    """A test with marks, as pytest collects it."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        """Take its name and its marks."""
        self.nodeid = nodeid
        self.marks = [getattr(pytest.mark, mark).mark for mark in marks]

    def iter_markers(self) -> list[pytest.Mark]:
        """Give the marks."""
        return self.marks


CASES = {
    "long": (Item("tests/acceptance/test_x.py::test_a", "spark"), True),
    "long, in any folder": (Item("tests/unit/log/test_x.py::test_a", "slow"), True),
    "a page": (Item("tests/docs/test_how_to.py::test_snippets_run[docs/how-to/x.md]"), True),
    "long, with a requirement": (Item("tests/acceptance/test_x.py::test_a", "spark", "requirement"), False),
    "long, with a threat": (Item("tests/acceptance/test_x.py::test_a", "slow", "threat"), True),
    "short, with a threat": (Item("tests/acceptance/test_x.py::test_a", "threat"), False),
    "long, and always": (Item("tests/scenarios/test_x.py::test_a", "slow", "always"), False),
    "short": (Item("tests/acceptance/test_x.py::test_a"), False),
    "a test of how pages are read": (Item("tests/docs/test_other_pages.py::test_console_blocks_split"), False),
}


@pytest.mark.parametrize("item, expected", CASES.values(), ids=CASES)
def test_what_shows_a_requirement_and_what_is_short_is_always_taken(item, expected):
    """The others wait for their commit."""
    assert left_to_chance(item) is expected


def test_a_commit_takes_its_share_and_all_come_in_turn():
    """About a third of them each time, and after some commits every one."""
    seen = set()
    for commit in range(30):
        chosen = {nodeid for nodeid in NODES if drawn(nodeid, one_in=3, seed=str(commit))}
        assert 0.2 < len(chosen) / len(NODES) < 0.5
        seen |= chosen
    assert seen == set(NODES)


def test_the_same_commit_takes_the_same_and_one_in_one_takes_all():
    """Every worker of a run collects the tests for itself."""
    first, again = ([drawn(nodeid, one_in=3, seed="a") for nodeid in NODES] for _ in range(2))
    assert first == again
    assert all(drawn(nodeid, one_in=1, seed="a") for nodeid in NODES)
