"""The XML policies of a home count always: whoever runs handlers or issues rights cannot leave a rule out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from channel_world import EVERYBODY, POLICY
from frames_world import picture, read_frames, write_frames

from maia.testing import Command

BLUR = '<image camera="A" user="*"><blur region="lower-half"/></image>'


@pytest.fixture
def met(tmp_path: Path) -> Command:
    """Give a home with two clients, frames, and a lax policy that somebody wrote outside of it."""
    home = Command(tmp_path / "met")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("met", "X", "Y")
    (home.home / "policy").mkdir(exist_ok=True)
    write_frames(home.home / "frames.parquet", picture(1, 16, 16))
    (home.home / "lax.xml").write_text(POLICY.format(EVERYBODY), "utf-8")
    return home


def own(met: Command, *rules: str, name: str = "avs") -> None:
    """Write a policy of the home."""
    (met.home / "policy" / f"{name}.xml").write_text(POLICY.format("".join(rules)), "utf-8")


def words(met: Command, *more: str) -> tuple[str, ...]:
    """Give the words that run handlers on the frames."""
    frames, out = str(met.home / "frames.parquet"), str(met.home / "out.parquet")
    return ("handler", "run", frames, "--out", out, "--as", "X", *more)


@pytest.mark.requirement("24.13")
def test_naming_a_lax_policy_leaves_no_rule_of_the_home_out(met: Command) -> None:
    """The home blurs camera A: with a policy that does not, with none, and behind what that policy forces, it is."""
    own(met, EVERYBODY, BLUR)
    lax = ("--policy", str(met.home / "lax.xml"))
    image = picture(1, 16, 16)
    for more in (lax, ()):
        told = met.do(*words(met, "--camera", "A", *more))
        assert told["handlers"] == [{"handler": "blur", "forced": True}]
        seen = read_frames(met.home / "out.parquet")[0]
        assert np.array_equal(seen[:8], image[:8])
        assert not np.array_equal(seen[8:], image[8:])
    (met.home / "more.xml").write_text(
        POLICY.format(EVERYBODY + BLUR + '<image camera="A" user="X"><mirror/></image>'), "utf-8"
    )
    told = met.do(*words(met, "--camera", "A", "--policy", str(met.home / "more.xml")))
    assert [item["handler"] for item in told["handlers"]] == ["blur", "mirror"]


def test_a_policy_that_somebody_names_gives_nothing_beside_the_homes_own(met: Command) -> None:
    """The home lets Y alone see, and X install no mirror: a policy that lets everybody changes neither."""
    lax = ("--camera", "A", "--policy", str(met.home / "lax.xml"))
    own(met, '<access user="Y" camera="*" effect="allow"/>')
    assert met.refused(*words(met, *lax)) == (3, "XML_DENIED")
    own(met, EVERYBODY, '<install user="X" filter="mirror" effect="deny"/>')
    assert met.refused(*words(met, *lax, "--channel", "c1", "--handler", "mirror")) == (3, "INSTALL_DENIED")
    assert met.do(*words(met, *lax, "--channel", "c1", "--handler", "edges"))["written"] == 1
    (met.home / "strict.xml").write_text(POLICY.format('<access user="Y" camera="*" effect="allow"/>'), "utf-8")
    strict = ("--camera", "A", "--policy", str(met.home / "strict.xml"))
    assert met.refused(*words(met, *strict)) == (3, "XML_DENIED")


def test_the_camera_is_named_where_the_home_has_policies(met: Command) -> None:
    """By its rights on types alone nobody goes around the policies; one that is not valid refuses everything."""
    for name in ("CameraY", "GreyY"):
        met.do("type", "define", f"met/met.{name}@1", "--attribute", "pixels:binary:1")
    for action, name in (("transformFrom", "CameraY"), ("installHandler", "CameraY"), ("transformTo", "GreyY")):
        met.grant("--from", "met", "--to", "X", "--type", f"met/met.{name}", "--action", action)
    channel = words(met, "--from", "met/met.CameraY@1", "--to", "met/met.GreyY@1", "--handler", "greyscale")
    assert met.do(*channel)["written"] == 1
    own(met, EVERYBODY, BLUR)
    assert met.refused(*channel) == (2, "USAGE")
    assert met.do(*channel, "--camera", "A", "--channel", "c1")["handlers"][0] == {"handler": "blur", "forced": True}
    own(met, "<nonsense/>", name="wrong")
    assert met.refused(*channel, "--camera", "A", "--channel", "c1") == (1, "XML_ELEMENT")


def test_nobody_leaves_the_homes_policies_out_by_naming_no_client(met: Command) -> None:
    """Where the home has policies, frames are handled for somebody; where it has none, a handler is tried out."""
    frames, out = str(met.home / "frames.parquet"), met.home / "out.parquet"
    tried = ("handler", "run", frames, "--out", str(out), "--handler", "greyscale")
    assert met.do(*tried)["decided"] is False
    out.unlink()
    own(met, EVERYBODY, BLUR)
    assert met.refused(*tried) == (2, "USAGE")
    assert not out.exists()
    own(met, "<nonsense/>", name="wrong")
    assert met.refused(*tried) == (1, "XML_ELEMENT")


@pytest.mark.requirement("24.14")
def test_the_zone_that_somebody_names_does_not_move_the_homes_hours(met: Command) -> None:
    """The home denies the hours around now, in UTC: a zone at the other end of the world changes nothing."""
    now = datetime.now(UTC)
    start, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (-1, 2))
    denied = f'<access user="X" camera="A" effect="deny"><between from="{start}" to="{end}"/></access>'
    own(met, EVERYBODY, denied)
    for zone in ("UTC", "Pacific/Auckland", "America/New_York"):
        assert met.refused(*words(met, "--camera", "A", "--zone", zone)) == (3, "XML_DENIED")
    assert met.do(*words(met, "--camera", "B"))["written"] == 1


def test_no_right_on_a_stream_goes_around_the_homes_policies(met: Command) -> None:
    """What is issued under a lax policy obeys the home's too: forced handlers, denials and hours."""
    met.do("type", "define", "met/met.CameraY@1", "--attribute", "frame:binary:1")
    grant = ("policy", "xml", "grant", str(met.home / "lax.xml"), "--user", "X", "--type", "met/met.CameraY")
    asked = (*grant, "--from", "met", "--to", "X", "--camera")
    night = '<access user="X" camera="C" effect="deny"><between from="22:00" to="06:00"/></access>'
    own(met, EVERYBODY, BLUR, '<access user="X" camera="B" effect="deny"/>', night)
    assert met.refused(*asked, "A") == (3, "HANDLERS_DUE")
    assert met.refused(*asked, "B") == (3, "XML_DENIED")
    shown = met.do("cert", "show", met.do(*asked, "C")["id"])
    assert '(now.clock("UTC") >= "06:00" && now.clock("UTC") < "22:00")' in str(shown)
