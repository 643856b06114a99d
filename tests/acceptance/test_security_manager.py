"""The security manager gives credentials after a challenge, by policy, for as long as the policy says."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from channel_world import EVERYBODY, CameraWorld, Screens
from overlay_world import OverlayWorld

import maia

SINK: dict[str, Any] = {"object": "channel:met/CameraA", "to": "ann", "rights": ["route"], "seconds": 60}


class Clock:
    """A clock that somebody sets."""

    def __init__(self, at: datetime) -> None:
        """Begin at an instant."""
        self.at = at

    def __call__(self) -> datetime:
        """Tell the time."""
        return self.at


@pytest.mark.requirement("19.11")
def test_a_wrong_answer_gets_no_credential(tmp_path: Path) -> None:
    """Whoever cannot answer the challenge with the client's key is given nothing, and the audit says so."""
    world = OverlayWorld(tmp_path / "home", "ann", "mallory")
    world.issue("channel:met/CameraA", "route", to="domain", issuer="met", more=("--delegate",))
    world.policy(SINK)
    ask = ("credential", "request", "--object", "channel:met/CameraA", "--as", "ann")
    keys, before = world.home / "keys", world.certificates()
    shutil.copy(keys / "ann.key", tmp_path / "ann.key")
    shutil.copy(keys / "mallory.key", keys / "ann.key")
    assert world.command.refused(*ask) == (4, "KEY_PAIR")
    (keys / "ann.key").unlink()
    assert world.command.refused(*ask) == (5, "NO_SUCH_KEY")
    assert world.certificates() == before
    assert ("ann", "KEY_PAIR") in {(row["subject"], row["reason"]) for row in world.command.do("audit")["rows"]}
    shutil.copy(tmp_path / "ann.key", keys / "ann.key")
    given = world.command.do(*ask)["credential"]
    assert (given["client"]["key"], given["right"]) == (world.key("ann"), ["route"])


@pytest.mark.requirement("19.11")
def test_the_policy_alone_says_who_is_given_what_for_how_long(tmp_path: Path) -> None:
    """Without a rule there is no credential; who asks cannot choose a time; a changed policy counts at once."""
    world = OverlayWorld(tmp_path / "home", "ann", "bob")
    world.issue("channel:met/CameraA", "route", to="domain", issuer="met", more=("--delegate",))
    ask = ("credential", "request", "--object", "channel:met/CameraA", "--as")
    assert world.command.refused(*ask, "ann") == (3, "CREDENTIAL_DENIED"), "no policy gives nothing"
    for seconds in (60, 5):
        world.policy({**SINK, "seconds": seconds})
        given = world.command.do(*ask, "ann")["credential"]["valid"]
        ends = datetime.fromisoformat(given["until"]) - datetime.fromisoformat(given["from"])
        assert ends == timedelta(seconds=seconds - 1), "closed at both ends"
    assert world.command.refused(*ask, "bob") == (3, "CREDENTIAL_DENIED")
    assert world.command(*ask, "ann", "--until", "+9d").code == 2
    world.policy({**SINK, "rights": ["subscribe"]})
    assert world.command.refused(*ask, "ann") == (2, "OBJECT_RIGHT")
    world.policy({**SINK, "object": "sink:met/CameraA", "rights": ["subscribe"]})
    sink = ("credential", "request", "--object", "sink:met/CameraA", "--as", "ann")
    assert world.command.refused(*sink) == (3, "ISSUER_LACKS_RIGHT"), "a manager gives no more than it has"
    (world.home / "policy" / "credentials.toml").write_text("[[give]]\nobject = 'code:*'\n", "utf-8")
    assert world.command.refused(*sink) == (1, "CREDENTIAL_POLICY")
    assert {("ann", "CREDENTIAL_DENIED"), ("bob", "CREDENTIAL_DENIED"), ("ann", "ISSUER_LACKS_RIGHT")} <= (
        world.refusals()
    )


@pytest.mark.requirement("19.11")
def test_a_sink_is_closed_when_the_sixty_seconds_are_over(tmp_path: Path) -> None:
    """A credential of 60 seconds binds a client to a channel: at 59 it is served, at 60 its sink is closed."""
    avs = CameraWorld(tmp_path / "home", "CameraA")
    avs.command.keys("ann")
    avs.policy(EVERYBODY)
    world = OverlayWorld.over(avs.command)
    world.issue("channel:met/CameraA", "route", to="domain", issuer="met", more=("--delegate",))
    world.policy(SINK)
    begun = datetime.now(UTC).replace(microsecond=0)
    request = ("credential", "request", "--object", "channel:met/CameraA", "--as", "ann")
    file = tmp_path / "ann.xml"
    avs.command.do(*request, "--at", begun.isoformat(), "--out", str(file))
    image = np.zeros((4, 4, 3), np.uint8)
    with maia.open(avs.home) as domain:
        clock = domain.clock = Clock(begun)
        channel, screens = domain.channel("CameraA", operator="operator"), Screens()
        sink = channel.bind("ann")
        for second, seen in ((0, 1), (59, 1), (60, 0)):
            clock.at = begun + timedelta(seconds=second)
            avs.publish("CameraA", image, first=second, at=clock())
            assert (second, channel.pump(screens)) == (second, seen)
        assert sink.closed is not None
        assert (sink.closed.code, sink.written) == ("HANDLER_RIGHT", 2)
    check = ("credential", "check", str(file), "--at")
    assert avs.command.do(*check, (begun + timedelta(seconds=59)).isoformat())["rights"] == ["route"]
    assert avs.command.refused(*check, (begun + timedelta(seconds=60)).isoformat()) == (3, "CREDENTIAL_REFUSED")


@pytest.mark.requirement("19.11")
def test_what_the_manager_gave_it_takes_back(tmp_path: Path) -> None:
    """A credential that is revoked gives nothing, before its time is over."""
    world = OverlayWorld(tmp_path / "home", "ann")
    world.issue("channel:met/CameraA", "route", to="domain", issuer="met", more=("--delegate",))
    world.policy({**SINK, "seconds": 3600})
    file = tmp_path / "ann.json"
    given = world.command.do(
        "credential", "request", "--object", "channel:met/CameraA", "--as", "ann", "--out", str(file)
    )
    assert world.command.do("credential", "check", str(file))["rights"] == ["route"]
    world.command.do("revoke", given["id"], "--yes")
    assert world.command.refused("credential", "check", str(file)) == (3, "CREDENTIAL_REFUSED")
