"""A type's name is its owner's: the same words, body and version under another key are another type."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.errors import MaiaError
from maia.events import EventType, parse_event_type, sign_event_type
from maia.principals import KeySigner
from maia.testing import Command, publish_here, read_here

NAME = "uk.gov.pito.Numberplate"
BODY = ("--attribute", "numberplate:string:3265", "--attribute", "timestamp:timestamp:9058",
        "--attribute", "location:string:3467", "--encryption", "plain")  # fmt: skip
ROW = {"numberplate": "AE05 XYZ", "timestamp": datetime(2026, 6, 1, tzinfo=UTC), "location": "Victoria"}


@pytest.fixture
def home(maia_command: Command, tmp_path: Path) -> Command:
    """Give a home with PITO's Numberplate 8516, and a camera with PITO's right to publish."""
    made = maia_command
    made.do("domain", "init", str(made.home))
    made.keys("pito", "evil", "camera")
    made.do("type", "define", f"pito/{NAME}@8516", *BODY, "--out", str(tmp_path / "pito.type"))
    for who in ("broker", "camera"):
        made.grant("--from", "pito", "--to", who, "--type", f"pito/{NAME}", "--action", "publish,subscribe")
    return made


@pytest.mark.requirement("22.10")
@pytest.mark.requirement("2.03")
@pytest.mark.threat("T35")
def test_a_copy_under_another_key_inherits_no_right(home: Command) -> None:
    """With PITO's capability the camera advertises PITO's type; the copy of Evil is refused to it, at every verb."""
    home.do("type", "define", f"evil/{NAME}@8516", *BODY)
    genuine, copy = (home.do("type", "show", f"{who}/{NAME}@8516") for who in ("pito", "evil"))
    assert all(genuine[word] == copy[word] for word in ("name", "version", "attributes", "options"))
    assert genuine["type_id"] != copy["type_id"]
    add = ("advertise", "add", "--as", "camera", "--type")
    assert home.refused(*add, f"evil/{NAME}@8516") == (3, "WRONG_ROOT")
    home.do(*add, f"pito/{NAME}@8516")
    assert [row["type"] for row in home.do("advertise", "list")["advertisements"]] == [f"pito/{NAME}@8516"]
    opened = maia.open(home.home).home
    assert publish_here(opened, f"pito/{NAME}", [ROW], as_="camera", at=datetime.now(UTC)) == 1
    for attempt in (
        lambda: publish_here(opened, f"evil/{NAME}", [ROW], as_="camera", at=datetime.now(UTC)),
        lambda: read_here(opened, f"evil/{NAME}", as_="camera"),
    ):
        with pytest.raises(MaiaError) as refused:
            attempt()
        assert refused.value.code == "WRONG_ROOT"
    for who in ("broker", "camera"):
        home.grant("--from", "evil", "--to", who, "--type", f"evil/{NAME}", "--action", "publish,subscribe")
    assert read_here(opened, f"evil/{NAME}", as_="camera") == [], "what was published as PITO's is not in it"
    assert home.refused("advertise", "add", "--as", "camera", "--type", NAME) == (2, "TYPE_AMBIGUOUS")


@pytest.mark.requirement("22.10")
def test_forged_and_altered_definitions_are_taken_up_by_nobody(home: Command, tmp_path: Path) -> None:
    """A changed attribute, Evil's signature, and Evil's next version of PITO's type are refused; the genuine is not."""
    raw = (tmp_path / "pito.type").read_bytes()
    definition: EventType = parse_event_type(raw).definition
    forged = {
        "altered": (raw.replace(b"8:location4:34676:string", b"8:location4:34677:integer"), "BAD_SIGNATURE"),
        "signed by another": (sign_event_type(definition, KeySigner.generate()).raw, "NO_EVIDENCE"),
    }
    home.do("type", "define", f"evil/{NAME}@8516", *BODY, "--out", str(tmp_path / "evil.type"))
    other = Command(tmp_path / "other")
    other.keys("reader")
    for what, (data, code) in forged.items():
        assert data != raw
        (tmp_path / "forged.type").write_bytes(data)
        assert other.refused("type", "add", str(tmp_path / "forged.type")) == (4, code), what
        assert other.do("type", "show")["types"] == []
    evolve = ("type", "evolve", f"pito/{NAME}@8516", "--add", "speed:integer", "--number", "1", "--as", "evil")
    assert home.refused(*evolve)[0] == 4
    other.do("type", "add", str(tmp_path / "pito.type"))
    other.do("type", "add", str(tmp_path / "evil.type"))
    assert len({row["owner"]["key"] for row in other.do("type", "show")["types"]}) == 2, "two names, two types"
