"""`maia status`: what a domain has and lacks, and the commands that mend it; `maia doctor` sees the same."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import TYPE, build, publish_here

from maia.kernel import milliseconds, write_mark


def steps(maia: Any) -> list[str]:
    """List the commands that `status` proposes."""
    ran = maia("status", "--json")
    assert ran.code == 0, ran.err
    return [step["command"] for step in ran.data["steps"]]


def test_a_sound_domain_has_nothing_to_do(maia: Any) -> None:
    """The broker's right, the clients and the keys are told by name."""
    home = build(maia)
    publish_here(home, "monday", ["Ada"])
    data = maia("status", "--json").data
    (found,) = data["types"]
    assert (data["name"], found["type"], found["publish"]["held"]) == ("home", f"owner/{TYPE}@1", True)
    assert (found["publishers"], set(found["readers"])) == (["lab", "owner"], {"doctor", "owner", "researcher"})
    assert [key["attribute"] for key in found["keys"]] == ["patient", "ward", "test", "value", "taken"]
    assert all(key["since"] for key in found["keys"])
    assert (data["log"]["commits"], data["log"]["lag"], data["steps"], data["problems"]) == (1, 0, [], [])
    shown = maia("status").out
    assert "the broker publishes" in shown
    assert "nothing to do" in shown


def test_an_empty_home_is_told_to_define_a_type(maia: Any) -> None:
    """The first command of a new user."""
    maia("domain", "init", str(maia.home))
    assert steps(maia)[0].startswith("maia type from-schema")


def test_a_broker_without_the_right_is_seen_and_the_command_mends_it(maia: Any) -> None:
    """`maia grant` as it is proposed is all that was missing; `maia doctor` proposes it too."""
    build(maia)
    identity = next(item for item in maia("cert", "show", "--json").data["certificates"] if _for_broker(maia, item))
    for path in (maia.home / "certificates").glob("*.cert"):
        if path.stem.startswith(identity["id"][:16]):
            path.unlink()
    (command,) = steps(maia)
    assert command == f"maia grant --from owner --to broker --type owner/{TYPE} --action publish"
    assert command in [item.get("hint") for item in maia("doctor", "--json").data["findings"]]
    assert maia(*shlex.split(command)[1:]).code == 0
    assert steps(maia) == []


def _for_broker(maia: Any, item: dict[str, Any]) -> bool:
    return maia("key", "show", "broker", "--json").data["keys"][0]["key"] in str(item)


def test_a_missing_list_is_named_with_who_signs_it(maia: Any) -> None:
    """Certificates that demand a list of a signer here lead to the command that makes one."""
    build(maia)
    maia.keys("nurse")
    maia.grant(
        *("--from", "owner", "--to", "nurse", "--type", f"owner/{TYPE}", "--action", "subscribe"),
        *("--test", "crl:nurse"),
    )
    data = maia("status", "--json").data
    assert [(item["kind"], item["number"]) for item in data["lists"]] == [("crl", None), ("crl", 1)]
    (command,) = [step["command"] for step in data["steps"]]
    assert maia(*shlex.split(command)[1:]).code == 0
    data = maia("status", "--json").data
    assert data["lists"][0]["number"] == 1
    assert "nurse" in data["types"][0]["readers"]


def test_what_ends_soon_is_listed_with_its_issuer(maia: Any) -> None:
    """A certificate in its last quarter, and one that has ended."""
    build(maia)
    maia.keys("nurse", "guest")
    for name, until in (("nurse", "+1h"), ("guest", "+90d")):
        maia.grant(
            *("--from", "owner", "--to", name, "--type", f"owner/{TYPE}", "--action", "subscribe", "--until", until)
        )
    (found,) = maia("status", "--json").data["renewals"]
    assert (found["holder"], found["over"]) == ("nurse", False)
    later = (datetime.now(UTC) + timedelta(days=80)).isoformat()
    assert [item["over"] for item in maia("status", "--at", later, "--json").data["renewals"]] == [True, False]


def test_stamps_that_run_ahead_are_seen(maia: Any) -> None:
    """A clock that once ran ahead makes later events undeliverable; that is said before anybody wonders."""
    home = build(maia)
    ahead = datetime.now(UTC) + timedelta(hours=1)
    (home.path / "stamps").write_bytes(write_mark(milliseconds(ahead)))
    data = maia("status", "--json").data
    assert 3500 < data["log"]["ahead"] <= 3600
    assert "ahead of the clock" in data["steps"][0]["why"]


def test_waiting_deliveries_are_told(maia: Any) -> None:
    """Subscriptions that nobody delivers to yet have a lag and a command."""
    home = build(maia)
    assert maia("deliver", "add", "ward", "--as", "doctor", "--type", TYPE).code == 0
    publish_here(home, "monday", ["Ada"])
    data = maia("status", "--json").data
    assert (data["log"]["subscriptions"], data["log"]["delivered"], data["log"]["lag"]) == (1, None, 1)
    assert steps(maia) == ["maia deliver --once"]


@pytest.mark.parametrize("name", ["statements", "keyring"])
def test_what_cannot_be_read_is_a_problem_and_the_rest_is_told(maia: Any, name: str) -> None:
    """Status never fails because a file is damaged."""
    home = build(maia)
    publish_here(home, "monday", ["Ada"])
    (home.path / name).write_bytes(b"junk")
    data = maia("status", "--json").data
    assert len(data["problems"]) == 1
    assert data["log"]["commits"] == 1


def test_status_changes_nothing(maia: Any) -> None:
    """No file is written, no database opened."""
    home = build(maia)
    before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
    assert maia("status").code == 0
    assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before
