"""`maia status` and `maia doctor` on validity lists and on the clock: no false alarm, and no silence."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import TYPE, build

NOW = datetime.now(UTC).replace(microsecond=0)


def told(maia: Any, *, hours: float = 0) -> dict[str, Any]:
    """Look, some hours from now."""
    moment = ("--at", (NOW + timedelta(hours=hours)).isoformat()) if hours else ()
    ran = maia("status", *moment, "--json")
    assert ran.code == 0, ran.err
    return dict(ran.data)


def list_of(maia: Any, signer: str, *, hours: float = 0) -> dict[str, Any]:
    """Give what is told of a signer's CRLs."""
    (found,) = [item for item in told(maia, hours=hours)["lists"] if item["signer"].startswith(signer)]
    return dict(found)


def test_a_list_that_is_renewed_by_itself_is_no_warning_until_it_is_over(maia: Any) -> None:
    """The daily list of a key without a passphrase: silence in its last hours, a word when nobody came."""
    build(maia)
    assert list_of(maia, "owner")["renews"] is True
    assert told(maia, hours=23.9)["steps"] == []
    (step,) = [item for item in told(maia, hours=26)["steps"] if "none is in force" in item["why"]]
    assert step["command"] == "maia statement crl --from owner"


def test_the_command_for_a_sealed_key_signs_a_whole_period(maia: Any) -> None:
    """A person who has to open the key is told in time, and what is proposed lasts as long as the list before."""
    build(maia)
    assert maia("key", "new", "nurse", MAIA_PASSPHRASE="secret").code == 0
    ran = maia("statement", "crl", "--from", "nurse", "--until", "+10d", MAIA_PASSPHRASE="secret")
    assert ran.code == 0, ran.err

    def steps(days: int) -> list[dict[str, Any]]:
        return [item for item in told(maia, hours=24 * days)["steps"] if "nurse" in item["command"]]

    assert steps(7) == []
    (step,) = steps(9)
    assert "its key is here" in step["why"]
    assert maia(*shlex.split(step["command"])[1:], MAIA_PASSPHRASE="secret").code == 0
    ends = datetime.fromisoformat(list_of(maia, "nurse")["ends"])
    assert timedelta(days=20) <= ends - NOW < timedelta(days=20, hours=1)


def test_the_end_of_a_list_that_follows_counts_from_its_start(maia: Any) -> None:
    """`--until +1d` never signs what is left of a day."""
    build(maia)
    maia.keys("nurse")
    for _ in range(2):
        assert maia("statement", "crl", "--from", "nurse", "--until", "+1d").code == 0
    assert datetime.fromisoformat(list_of(maia, "nurse")["ends"]) - NOW >= timedelta(days=2)


def test_a_revocation_does_not_hide_the_end_of_the_timed_list(maia: Any) -> None:
    """The plain list only revokes; the timed one still says until when all counts."""
    build(maia)
    maia.keys("nurse")
    given = maia.grant("--from", "owner", "--to", "nurse", "--type", f"owner/{TYPE}", "--action", "subscribe")
    before = list_of(maia, "owner")
    assert maia("revoke", given, "--yes").code == 0
    after = list_of(maia, "owner")
    assert after["number"] == before["number"]
    assert after["ends"] == before["ends"] is not None


@pytest.mark.parametrize(
    "content, code",
    [(str(int((NOW + timedelta(days=1)).timestamp() * 1000)), "CLOCK_BACK"), ("junk", "CLOCK_FILE")],
    ids=["ahead", "junk"],
)
def test_a_home_that_cannot_work_says_so(maia: Any, content: str, code: str) -> None:
    """A floor under the clock that nobody reaches, or that is none: a problem for both, with what to do."""
    home = build(maia)
    (home.path / "clock").write_text(content, "utf-8")
    (problem,) = told(maia)["problems"]
    assert code in problem
    assert "remove" in problem
    shown = maia("status").out
    assert "nothing to do" not in shown
    ran = maia("doctor", "--json")
    assert ran.code == 1
    assert [item["status"] for item in ran.data["findings"] if code in item["detail"]] == ["problem"]
