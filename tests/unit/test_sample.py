"""The sample of long tests: a share, another one for each commit, and never what a requirement row hangs on."""

from __future__ import annotations

from sample import FOLDERS, taken

LONG = [f"{folder}test_x.py::test_{number}" for folder in FOLDERS for number in range(100)]


def test_a_commit_takes_its_share_and_all_come_in_turn():
    """About a third of them each time, and after some commits every one."""
    seen = set()
    for commit in range(30):
        chosen = {nodeid for nodeid in LONG if taken(nodeid, one_in=3, seed=str(commit))}
        assert 0.2 < len(chosen) / len(LONG) < 0.5
        seen |= chosen
    assert seen == set(LONG)


def test_the_same_commit_takes_the_same():
    """Every worker of a run collects the tests for itself."""
    first, again = ([taken(nodeid, one_in=3, seed="a") for nodeid in LONG] for _ in range(2))
    assert first == again


def test_what_shows_a_row_is_always_taken():
    """Acceptance tests, and all where no sample was asked for."""
    assert all(taken(f"tests/acceptance/test_x.py::test_{number}", one_in=3, seed="a") for number in range(100))
    assert all(taken(nodeid, one_in=1, seed="a") for nodeid in LONG)
