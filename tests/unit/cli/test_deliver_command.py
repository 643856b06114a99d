"""`maia deliver`: subscriptions are kept, delivered, and read by their client alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import TYPE, build, publish_here

import maia as library
from maia.domain import delivery_job
from maia.home import Home


@pytest.fixture
def home(maia: Any) -> Home:
    """Give the clinic with two subscriptions and two events."""
    made = build(maia)
    for name, client in (("ward", "doctor"), ("study", "researcher")):
        ran = maia("deliver", "add", name, "--as", client, "--type", TYPE, "--json")
        assert ran.code == 0, ran.err
    publish_here(made, "monday", ["Ada", "Ben"])
    delivery_job(library.open(made.path)).run_here()
    return made


def rows(ran: Any) -> list[dict[str, Any]]:
    """Read JSON lines."""
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_each_client_reads_its_own_deliveries(maia: Any, home: Home) -> None:
    """Cells as the client's right says, with the event's name; a table for people."""
    seen = rows(maia("deliver", "show", "ward", "--as", "doctor", "--json"))
    assert sorted(row["patient"] for row in seen) == ["Ada", "Ben"]
    assert (seen[0]["taken"], bool(seen[0]["_event"])) == ("2026-06-01T08:00:00Z", True)
    assert {row["patient"] for row in rows(maia("deliver", "show", "study", "--as", "researcher", "--json"))} == {None}
    assert "Ada" in maia("deliver", "show", "ward", "--as", "doctor").out
    listed = maia("deliver", "list", "--json").data["subscriptions"]
    assert [(item["name"], item["as"], item["events"]) for item in listed] == [
        ("ward", "doctor", 2),
        ("study", "researcher", 2),
    ]


REFUSED = {
    "somebody else's": (("show", "ward", "--as", "researcher"), 3, "NOT_YOUR_SUBSCRIPTION"),
    "one that is not there": (("show", "wrad", "--as", "doctor"), 5, "NO_SUBSCRIPTION"),
    "a second of the same name": (("add", "ward", "--as", "doctor", "--type", TYPE), 2, "SUBSCRIPTION_EXISTS"),
    "without a right": (("add", "new", "--as", "visitor", "--type", TYPE), 3, "NO_EVIDENCE"),
    "a filter over a closed attribute": (
        ("add", "new", "--as", "researcher", "--type", TYPE, "--where", "patient = 'Ada'"),
        3,
        "FILTER_NOT_AUTHORISED",
    ),
    "a type nobody knows": (("add", "new", "--as", "doctor", "--type", "clinic.Resutl"), 5, "TYPE_NOT_FOUND"),
}


@pytest.mark.parametrize("args, code, error", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(maia: Any, home: Home, args: tuple[str, ...], code: int, error: str) -> None:
    """Each with its exit code and its name."""
    ran = maia("deliver", *args)
    assert (ran.code, f"[{error}]" in ran.err) == (code, True), ran.err


def test_near_names_are_proposed(maia: Any, home: Home) -> None:
    """For subscriptions, types and clients."""
    assert "did you mean `ward`?" in maia("deliver", "show", "wrad", "--as", "doctor").err
    assert "did you mean `clinic.Result`?" in maia("subscribe", "--type", "clinic.Resutl", "--as", "doctor").err
    assert "did you mean `doctor`?" in maia("subscribe", "--type", TYPE, "--as", "dcotor").err


def test_a_client_whose_right_ended_reads_no_more_of_its_outbox(maia: Any, home: Home) -> None:
    """What was delivered is handed out with the rights of now."""
    for path in (home.path / "certificates").glob("*.cert"):
        path.unlink()
    ran = maia("deliver", "show", "ward", "--as", "doctor")
    assert (ran.code, ran.out) == (3, "")


def test_a_home_without_subscriptions_says_how_to_make_one(maia: Any) -> None:
    """Before Spark starts."""
    build(maia)
    ran = maia("deliver", "--once", "--json")
    assert (ran.code, ran.data["error"]) == (5, "NO_SUBSCRIPTIONS")
    assert "maia deliver add" in maia("deliver", "list").err


def test_the_outbox_needs_the_private_key(maia: Any, home: Home) -> None:
    """A name is not enough."""
    (home.path / "keys" / "doctor.key").unlink()
    assert maia("deliver", "show", "ward", "--as", "doctor").code == 5


def test_subscriptions_of_a_newer_format_are_refused_by_name_and_what_is_unknown_is_not_passed_over(
    maia: Any, home: Home
) -> None:
    """Neither is taken for a home without subscriptions."""
    path = home.path / "subscriptions.toml"
    text = path.read_text("utf-8")
    assert text.startswith("format = 1\n")
    for wrong, code in (
        (text.replace("format = 1", "format = 3"), "FORMAT_NEWER"),
        (f"x = 1\n{text}", "SUBSCRIPTIONS"),
    ):
        path.write_text(wrong, "utf-8")
        assert maia("deliver", "list", "--json").data["error"] == code
    path.write_text(text.removeprefix("format = 1\n"), "utf-8")  # from before the format was written
    assert maia("deliver", "list", "--json").code == 0
