"""Who can produce a part that carries an integrity tag: `maia policy labels --produce`."""

from __future__ import annotations

from pathlib import Path

import pytest

from maia.testing import Command

LABELS = """
[types.Report]
text = { S = ["identifiable"], I = ["pathlab"] }
"""
ENDORSER = """
[components.checker]
does = "pass"
endorse = ["pathlab"]
clients = ["desk"]
"""


@pytest.fixture
def home(maia_command: Command) -> Command:
    """Give a laboratory that owns the type of its reports, and a label policy."""
    maia_command.do("domain", "init", str(maia_command.home), "--name", "clinic")
    maia_command.keys("pathlab", "ward", "desk")
    attributes = ("--attribute", "text:string:1", "--attribute", "note:string:2")
    maia_command.do("type", "define", "pathlab/Report@1", *attributes)
    label(maia_command, LABELS)
    return maia_command


def label(home: Command, text: str) -> Path:
    """Write the label policy."""
    path = home.home / "policy" / "labels.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def give(home: Command, attribute: str, *more: str) -> None:
    """Let the ward write an attribute."""
    right = ("--type", "pathlab/Report", "--action", "publish", "--attribute", attribute)
    home.grant("--from", "pathlab", "--to", "ward", *right, *more)


def producers(home: Command) -> set[tuple[str, str]]:
    """List who can produce a part with the laboratory's tag, and how."""
    found = home.do("policy", "labels", "--produce", "pathlab")
    assert found["complete"]
    return {(row["who"].split(" ")[0], row["how"]) for row in found["producers"]}


@pytest.mark.requirement("18.08")
def test_who_can_produce_a_part_with_a_tag_is_told_and_an_endorser_is_listed(home: Command) -> None:
    """The tag of the laboratory is the laboratory's alone; a right to write the part and an endorser are listed."""
    assert producers(home) == {("pathlab", "owns")}
    give(home, "note", "--irrevocable")
    assert producers(home) == {("pathlab", "owns")}, "another part carries no tag"
    give(home, "text", "--irrevocable")
    assert producers(home) == {("pathlab", "owns"), ("ward", "writes")}
    label(home, LABELS + ENDORSER)
    assert producers(home) == {("pathlab", "owns"), ("ward", "writes"), ("checker", "endorses")}
    said = home("policy", "labels", "--produce", "pathlab").out
    assert "checker endorses for desk" in said
    assert "ward (" in said
    assert "by pathlab -> ward" in said


@pytest.mark.requirement("18.08")
def test_what_cannot_be_told_and_a_tag_that_nobody_speaks_of_are_no_answers(home: Command) -> None:
    """A misspelled tag has no producer, which is refused; a secrecy tag is none; a right in doubt is said."""
    for tag in ("pathlap", "identifiable"):
        assert home.refused("policy", "labels", "--produce", tag) == (5, "NO_SUCH_TAG")
    give(home, "text", "--test", "revalidation:pathlab")
    found = home.do("policy", "labels", "--produce", "pathlab")
    assert not found["complete"]
    assert "waits for a statement" in found["doubts"][0]
    assert "in doubt" in home("policy", "labels", "--produce", "pathlab").out
    label(home, LABELS.replace("text", "texts"))
    assert home.refused("policy", "labels", "--produce", "pathlab")[1] == "LABELS_UNKNOWN"
