"""Handlers on channels: one publication, and each client gets what its rights and the home's policies leave it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from channel_world import EVERYBODY, CameraWorld, Screens, SetClock
from frames_world import picture, read_frames
from test_handlers import box, edges, grey, half

import maia
from maia.authority import Action
from maia.testing import counted_checks

BASIC = '<image camera="*" user="basic"><greyscale/><half-size/></image>'
NIGHT = '<access user="X" camera="CameraY" effect="deny"><between from="22:00" to="06:00"/></access>'
BLUR_A = '<image camera="CameraA" user="*"><blur region="lower-half"/></image>'
BLUR_X = '<image camera="*" user="X"><blur region="lower-half"/></image>'
INSTALLER = ("transformFrom", "transformTo", "installHandler")
COUNTING = """\
def handle(number, pixels):
    seen = number, pixels.shape[0], pixels.shape[1], pixels.shape[2], pixels[0, 0, 0], pixels.dtype == np.uint8
    return np.array([[seen]], dtype=np.uint8).reshape(1, 6, 1)
"""


@pytest.fixture(scope="module")
def avs(tmp_path_factory: pytest.TempPathFactory) -> CameraWorld:
    """Give two cameras and some users, under policies of the home."""
    world = CameraWorld(
        tmp_path_factory.mktemp("avs") / "home", "CameraA", "CameraB", users=("basic", "premium", "X", "Z")
    )
    world.policy(EVERYBODY, BASIC, BLUR_X, '<access user="Z" camera="*" effect="deny"/>')
    world.publish("CameraB", picture(1))
    return world


@pytest.mark.requirement("19.10")
def test_one_publication_gives_each_client_its_level_of_service(avs: CameraWorld) -> None:
    """The basic client gets grey at half size, the premium one the full frame; the source sent one event."""
    told, out = avs.delivered("CameraB", "basic", "premium")
    image = picture(1)
    assert told["events"] == 1
    basic, premium = read_frames(out / "basic.parquet"), read_frames(out / "premium.parquet")
    assert (basic[0].shape, premium[0].shape) == ((240, 320, 1), (480, 640, 3))
    assert np.array_equal(basic[0], half(grey(image)[..., None]))
    assert np.array_equal(premium[0], image)
    rows = avs.command.do("audit", "--kind", "deliver")["rows"]
    assert {(row["subject"], row["events"]) for row in rows if row["source"] == "channel CameraB"} == {
        ("basic", 1), ("premium", 1),
    }  # fmt: skip


@pytest.mark.requirement("19.10")
def test_what_a_client_may_have_handled_it_may_not_read_itself(avs: CameraWorld) -> None:
    """The right to have a stream routed opens nothing of it; nor does it make its holder an operator."""
    assert avs.command.refused("subscribe", "--type", "met/CameraB", "--as", "basic")[0] == 3
    asked = ("handler", "deliver", "--type", "met/CameraB", "--out", str(avs.home / "none"))
    assert avs.command.refused(*asked, "--through", "basic", "--as", "premium") == (4, "NOT_PERMITTED")
    assert not list((avs.home / "none").glob("*"))


SLOW = {
    "each frame takes long, and none too long": (
        "import time\ndef handle(number, pixels):\n    time.sleep(1.5)\n    return pixels\n", 1, 8,
    ),
    "it fails on two frames together, and on neither alone": (
        "seen = []\ndef handle(number, pixels):\n    seen.append(1)\n    return pixels if len(seen) == 1 else 1 / 0\n",
        2, 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SLOW)
def test_who_takes_the_others_time_loses_its_handler_and_nobody_else_does(tmp_path: Path, case: str) -> None:
    """Sinks are handed theirs in turn: a handler that stays within every budget is taken off all the same."""
    code, batch, count = SLOW[case]
    world = CameraWorld(tmp_path / "home", "gate", users=("victim", "mallory"))
    world.policy(EVERYBODY)
    for who in ("mallory", "victim"):
        for action in INSTALLER:
            world.grant(who, "gate", action)
    (tmp_path / "slow.py").write_text(code, "utf-8")
    world.publish("gate", *[picture(1, 4, 4)] * count)
    with maia.open(world.home) as domain:
        channel, screens = domain.channel("gate", operator="operator", batch=batch), Screens()
        slow, quick = channel.bind("mallory", [str(tmp_path / "slow.py")]), channel.bind("victim", ["mirror"])
        assert channel.pump(screens) == count
    assert (slow.posts[-1].off, quick.posts[-1].off) == (True, False)
    assert slow.posts[-1].seen < count
    assert (quick.posts[-1].seen, quick.written, quick.lost, quick.closed) == (count, count, 0, None)
    assert slow.closed is None


@pytest.mark.requirement("19.05")
@pytest.mark.requirement("22.21")
def test_only_who_has_route_on_the_channel_is_bound(avs: CameraWorld) -> None:
    """With the right to install alone, with `route` on another channel, or denied by a policy, nobody is served."""
    avs.command.keys("installer", "elsewhere", "nobody")
    for action in INSTALLER:
        avs.grant("installer", "CameraB", action)
    avs.grant("elsewhere", "CameraA", "route")
    out = avs.home / "refused"
    deliver = ("handler", "deliver", *avs.deliver("CameraB"), "--out", str(out), "--as")
    for who in ("installer", "elsewhere", "nobody"):
        assert (who, avs.command.refused(*deliver, who)) == (who, (3, "HANDLER_RIGHT"))
    assert avs.command.refused(*deliver, "Z") == (3, "XML_DENIED")
    assert avs.command.refused(*deliver, "premium", "--handler", "mirror") == (3, "HANDLER_RIGHT")
    # Of what somebody without these rights brings not an octet is looked at.
    broken = avs.home / "broken.wasm"
    broken.write_bytes(b"\0asm and nothing more")
    for who in ("nobody", "premium", "Z"):
        assert (who, avs.command.refused(*deliver, who, "--handler", str(broken))) == (who, (3, "HANDLER_RIGHT"))
    assert not out.exists()
    rows = avs.command.do("audit", "--kind", "refuse")["rows"]
    assert {("installer", "HANDLER_RIGHT"), ("Z", "XML_DENIED")} <= {(row["subject"], row["reason"]) for row in rows}
    avs.grant("installer", "CameraB", "route")
    assert avs.delivered("CameraB", "installer", more=("--handler", "mirror"))[0]["sinks"][0]["written"] == 1


@pytest.mark.requirement("19.06")
def test_ten_thousand_frames_take_one_verification(tmp_path: Path) -> None:
    """Rights are proven when a client is bound; while frames pass, no chain is searched. A revocation is seen."""
    avs = CameraWorld(tmp_path / "home", "CameraA")
    avs.command.keys("ann")
    identity = avs.grant("ann", "CameraA", "route")
    avs.policy(EVERYBODY)
    small = picture(1, 2, 2)
    assert avs.publish("CameraA", *[small] * 10_000) == 10_000
    with maia.open(avs.home) as domain:
        channel, screens = domain.channel("CameraA", operator="operator"), Screens()
        with counted_checks() as bound:
            sink = channel.bind("ann")
        with counted_checks() as checks:
            assert channel.pump(screens) == 10_000
        assert (sink.verifications, sink.written, len(screens.seen["ann"])) == (1, 10_000, 10_000)
        assert bound.chains(sink.client.key, Action.ROUTE) > 0
        assert checks.chains(sink.client.key, Action.ROUTE) == 0
        assert checks.signatures < 100
        avs.command.do("revoke", identity[:16], "--yes")
        avs.publish("CameraA", small, first=10_000)
        assert channel.pump(screens) == 0
        assert sink.closed is not None
        assert (sink.closed.code, sink.written) == ("HANDLER_RIGHT", 10_000)


def test_a_condition_is_asked_while_frames_pass(tmp_path: Path) -> None:
    """A right that holds until noon: at noon the sink is closed, though no certificate changed."""
    avs = CameraWorld(tmp_path / "home", "CameraA")
    avs.command.keys("ann")
    avs.grant("ann", "CameraA", "route", "--condition", 'now.clock("UTC") < "12:00"')
    avs.policy(EVERYBODY)
    with maia.open(avs.home) as domain:
        clock = domain.clock = SetClock(11, 59)
        channel, screens = domain.channel("CameraA", operator="operator"), Screens()
        sink = channel.bind("ann")
        avs.publish("CameraA", picture(1, 4, 4), at=clock())
        assert channel.pump(screens) == 1
        clock.set(12, 0)
        avs.publish("CameraA", picture(2, 4, 4), first=1, at=clock())
        assert channel.pump(screens) == 0
        assert sink.closed is not None
        assert (sink.closed.code, list(screens.seen["ann"])) == ("HANDLER_RIGHT", [0])


@pytest.mark.requirement("19.07")
def test_a_counting_handler_sees_each_event_with_its_fields(tmp_path: Path) -> None:
    """100 of 100, each with its number and its pixels, one by one and in batches alike."""
    avs = CameraWorld(tmp_path / "home", "CameraA", users=("X",))
    for action in INSTALLER:
        avs.grant("X", "CameraA", action)
    avs.policy(EVERYBODY)
    images = [picture(n, 4, 5) for n in range(100)]
    assert avs.publish("CameraA", *images) == 100
    (tmp_path / "count.py").write_text(COUNTING, "utf-8")
    install = ("--handler", str(tmp_path / "count.py"))
    wanted = {n: [n, 4, 5, 3, int(image[0, 0, 0]), 1] for n, image in enumerate(images)}
    for handler, batch in ((str(tmp_path / "count.py"), "100"), ("edges", "16"), ("edges", "1")):
        told, out = avs.delivered("CameraA", "X", more=("--handler", handler, "--batch", batch))
        assert [(post["seen"], post["forced"]) for post in told["sinks"][0]["handlers"]] == [(100, False)]
        found = {n: image.ravel().tolist() for n, image in read_frames(out / "X.parquet").items()}
        assert found == wanted
        if batch == "100":
            wanted = {n: edges(image).ravel().tolist() for n, image in enumerate(images)}
    avs.policy(EVERYBODY, '<install channel="CameraA" only="mirror"/>')
    asked = ("handler", "deliver", *avs.deliver("CameraA"), "--as", "X", *install, "--out", str(tmp_path / "none"))
    assert avs.command.refused(*asked) == (3, "INSTALL_DENIED")


def test_an_event_that_is_no_frame_costs_itself(avs: CameraWorld) -> None:
    """A source that sends nonsense among frames: the frames arrive, the rest is counted."""
    short, good = picture(3, 4, 4), picture(4, 4, 4)
    world = CameraWorld(avs.home.parent / "other", "CameraA", users=("ann",))
    world.policy(EVERYBODY)
    world.publish_rows("CameraA", world.row(0, good), {**world.row(1, short), "height": 5}, {"number": 2})
    told, out = world.delivered("CameraA", "ann")
    assert (told["events"], told["malformed"], list(read_frames(out / "ann.parquet"))) == (1, 2, [0])


@pytest.mark.requirement("24.13")
def test_an_image_rule_holds_whatever_is_installed(tmp_path: Path) -> None:
    """Camera A: the lower half is smooth, the upper identical, for all; X sees B so too, Y does not."""
    avs = CameraWorld(tmp_path / "home", "CameraA", "CameraB", users=("X", "Y"))
    for action in INSTALLER:
        avs.grant("Y", "CameraA", action)
    avs.policy(EVERYBODY, BLUR_A, BLUR_X)
    image, wanted = picture(1), picture(1)
    wanted[240:] = box(image[240:])
    seen = {}
    for camera in ("CameraA", "CameraB"):
        avs.publish(camera, image)
        _, out = avs.delivered(camera, "X", "Y")
        seen |= {(who, camera): read_frames(out / f"{who}.parquet")[0] for who in ("X", "Y")}
    for place in (("X", "CameraA"), ("Y", "CameraA"), ("X", "CameraB")):
        assert np.array_equal(seen[place][:240], image[:240])
        assert not np.array_equal(seen[place][240:], image[240:])
        assert np.array_equal(seen[place], wanted)
    assert np.array_equal(seen["Y", "CameraB"], image)
    _, out = avs.delivered("CameraA", "Y", more=("--handler", "mirror"))
    assert np.array_equal(read_frames(out / "Y.parquet")[0], wanted[:, ::-1])
    told, out = avs.delivered("CameraA", "Y", more=("--steps", "1000", "--strikes", "1"))
    assert (told["sinks"][0]["written"], told["sinks"][0]["lost"]) == (0, 1)


@pytest.mark.requirement("24.14")
def test_at_ten_in_the_evening_the_sink_is_closed(tmp_path: Path) -> None:
    """X may see Y until 21:59; at 22:00 the sink is closed and none is bound; at 06:00 it is possible again."""
    avs = CameraWorld(tmp_path / "home", "CameraY", users=("X", "Y"))
    avs.policy(EVERYBODY, NIGHT)
    with maia.open(avs.home) as domain:
        clock = domain.clock = SetClock(21, 59)
        channel, screens = domain.channel("CameraY", operator="operator"), Screens()
        sinks = [channel.bind(who) for who in ("X", "Y")]
        avs.publish("CameraY", picture(1, 4, 4), at=clock())
        assert channel.pump(screens) == 1
        clock.set(22, 0)
        avs.publish("CameraY", picture(2, 4, 4), first=1, at=clock())
        assert channel.pump(screens) == 1
        assert [sink.closed and sink.closed.code for sink in sinks] == ["XML_DENIED", None]
        with pytest.raises(Exception, match="may not see") as refused:
            channel.bind("X")
        assert refused.value.code == "XML_DENIED"  # type: ignore[attr-defined]
        clock.at += timedelta(hours=7, minutes=59)
        with pytest.raises(Exception, match="may not see"):
            channel.bind("X")
        clock.at += timedelta(minutes=1)
        channel.bind("X")
        avs.publish("CameraY", picture(3, 4, 4), first=2, at=clock())
        assert channel.pump(screens) == 1
    assert {who: sorted(seen) for who, seen in screens.seen.items()} == {"X": [0, 2], "Y": [0, 1, 2]}


APPLICATION = """\
import sys, time
import maia

def show(sink, frames):
    for frame in frames:
        print(frame.number, frame.height, frame.width, frame.channels, flush=True)

domain = maia.open(sys.argv[1])
channel = domain.channel("CameraA", operator="operator")
sink = channel.bind("X")
print("bound", flush=True)
while sink.closed is None:
    if not channel.pump(show):
        time.sleep(0.05)
print(sink.closed.code, flush=True)
"""


@pytest.mark.requirement("19.16")
def test_the_next_frame_obeys_a_policy_that_was_replaced(tmp_path: Path) -> None:
    """The application runs, the policy is replaced thrice: full, grey and small, nothing; its file is as it was."""
    avs = CameraWorld(tmp_path / "home", "CameraA", users=("X",))
    avs.policy(EVERYBODY)
    program = tmp_path / "application.py"
    program.write_text(APPLICATION, "utf-8")
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    image, command = picture(1, 16, 16), [sys.executable, str(program), str(avs.home)]
    avs.publish("CameraA", image)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        try:
            assert ran.stdout.readline() == "bound\n"
            assert ran.stdout.readline() == "0 16 16 3\n"
            avs.policy(EVERYBODY, '<image camera="CameraA" user="X"><greyscale/><half-size/></image>')
            avs.publish("CameraA", image, first=1)
            assert ran.stdout.readline() == "1 8 8 1\n"
            avs.policy(EVERYBODY, '<access user="X" camera="CameraA" effect="deny"/>')
            avs.publish("CameraA", image, first=2)
            assert ran.stdout.readline() == "XML_DENIED\n"
            assert ran.wait(60) == 0
        finally:
            ran.kill()
    assert hashlib.sha256(program.read_bytes()).hexdigest() == digest


def test_within_one_stretch_the_next_batch_obeys(tmp_path: Path) -> None:
    """A policy that is replaced between two batches of one commit counts for the second."""
    avs = CameraWorld(tmp_path / "home", "CameraA", users=("X",))
    avs.policy(EVERYBODY)
    avs.publish("CameraA", picture(1, 4, 4), picture(2, 4, 4))
    with maia.open(avs.home) as domain:
        channel, screens = domain.channel("CameraA", operator="operator", batch=1), Screens()
        sink = channel.bind("X")

        def take(sink: object, frames: list[object]) -> None:
            screens(sink, frames)
            avs.policy()

        channel.pump(take)
        assert sink.closed is not None
        assert (sink.closed.code, list(screens.seen["X"])) == ("XML_DENIED", [0])


@pytest.mark.requirement("22.21")
def test_a_harmful_handler_of_one_sink_harms_no_other(tmp_path: Path) -> None:
    """An endless loop is stopped and taken off, its installer named; the other sink gets every frame."""
    avs = CameraWorld(tmp_path / "home", "CameraA", users=("mallory", "ann"))
    for action in INSTALLER:
        avs.grant("mallory", "CameraA", action)
    avs.policy(EVERYBODY)
    avs.publish("CameraA", *(picture(n, 4, 4) for n in range(20)))
    (tmp_path / "spin.wat").write_text(
        '(module (memory (export "memory") 2) (func (export "alloc") (param i32) (result i32) (i32.const 1024))'
        '(func (export "handle") (param i32) (result i32) (loop $l (br $l)) (unreachable)))', "utf-8",
    )  # fmt: skip
    asked = ("--handler", str(tmp_path / "spin.wat"), "--steps", "1000000", "--seconds", "60")
    told, _ = avs.delivered("CameraA", "mallory", more=asked)
    bad = told["sinks"][0]
    assert [item["reason"] for item in bad["dead"]] == ["HANDLER_STEPS"] * 3
    assert (bad["client"], bad["handlers"][0]["off"], bad["written"]) == ("mallory", True, 17)
    with maia.open(avs.home) as domain:
        channel, screens = domain.channel("CameraA", operator="operator", strikes=1), Screens()
        (tmp_path / "crash.py").write_text("def handle(number, pixels):\n    return 1 / 0\n", "utf-8")
        sinks = channel.bind("mallory", [str(tmp_path / "crash.py")]), channel.bind("ann")
        assert channel.pump(screens) == 20
    assert ([sink.lost for sink in sinks], len(screens.seen["ann"])) == ([1, 0], 20)


def test_a_type_without_frames_is_no_channel(avs: CameraWorld) -> None:
    """Events that lack what a frame has are refused before anything is read."""
    avs.command.do("type", "define", "met/Note@1", "--attribute", "text:string")
    asked = ("handler", "deliver", *avs.deliver("Note"), "--as", "basic", "--out", str(avs.home / "none"))
    assert avs.command.refused(*asked) == (2, "CHANNEL_TYPE")
