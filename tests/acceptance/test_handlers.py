"""Handlers on image streams: what they make of frames, what policies force, and what a bad one costs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from frames_world import picture, read_frames, write_frames

from maia.testing import Command

POLICY = """\
<policies xmlns="urn:maia:policy:1">
  <access user="*" camera="*" effect="allow"/>
  <access user="Z" camera="*" effect="deny"/>
  <image camera="A" user="*"><blur region="lower-half"/></image>
  <image camera="*" user="X"><blur region="lower-half"/></image>
  <install user="X" filter="greyscale" effect="deny"/>
  <install channel="c1" only="mirror half-size"/>
  <access user="suspended" camera="*" effect="deny"/>
  <image camera="*" user="officer"><blur region="upper-half"/></image>
</policies>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a home of a few clients, with two frames of 640x480 and a policy."""
    made = tmp_path_factory.mktemp("frames") / "home"
    home = Command(made)
    home.do("domain", "init", str(made), "--key")
    home.keys("X", "Y", "Z")
    write_frames(made / "frames.parquet", picture(1), picture(2))
    (made / "avs.xml").write_text(POLICY, "utf-8")
    return made


def run(folder: Path, *args: str, frames: str = "frames.parquet") -> tuple[dict[str, object], dict[int, np.ndarray]]:
    """Run handlers on the frames; give what was told, and what came out."""
    out = folder / "out.parquet"
    told = Command(folder).do("handler", "run", str(folder / frames), *args, "--out", str(out))
    return told, read_frames(out)


def handled(folder: Path, *names: str) -> np.ndarray:
    """Give what handlers make of the first frame."""
    return run(folder, *(flag for name in names for flag in ("--handler", name)))[1][0]


def grey(image: np.ndarray) -> np.ndarray:
    """Give the brightness, by the formula of ITU-R 601-2."""
    wide = image.astype(np.uint32)
    return ((wide[..., 0] * 19595 + wide[..., 1] * 38470 + wide[..., 2] * 7471 + 32768) >> 16).astype(np.uint8)


def half(image: np.ndarray) -> np.ndarray:
    """Give the rounded means of squares."""
    wide = image.astype(np.uint16)
    return ((wide[::2, ::2] + wide[::2, 1::2] + wide[1::2, ::2] + wide[1::2, 1::2] + 2) >> 2).astype(np.uint8)


def edges(image: np.ndarray) -> np.ndarray:
    """Give what differs from its surroundings, in grey; the border as it is."""
    dark = grey(image).astype(np.int32)
    height, width = dark.shape
    square = sum(dark[y : height - 2 + y, x : width - 2 + x] for y in range(3) for x in range(3))
    made = dark.copy()
    made[1:-1, 1:-1] = np.clip(9 * dark[1:-1, 1:-1] - square, 0, 255)
    return made.astype(np.uint8)


def box(image: np.ndarray) -> np.ndarray:
    """Give means of nine by nine, three times, ends counted again."""
    for _ in range(3):
        for axis in (1, 0):
            pad = [(4, 4) if place == axis else (0, 0) for place in range(3)]
            wide = np.pad(image, pad, mode="edge").astype(np.uint64)
            count = image.shape[axis]
            total = sum(np.take(wide, range(k, k + count), axis=axis) for k in range(9))
            image = ((total * ((1 << 24) // 9) + (1 << 23)) >> 24).astype(np.uint8)
    return image


@pytest.mark.requirement("19.09")
def test_image_handlers_equal_numpy_octet_by_octet(folder: Path) -> None:
    """Greyscale is a third, half size a quarter of the octets; mirror twice is nothing; edges as defined."""
    image = picture(1)
    found = handled(folder, "greyscale")
    assert (image.nbytes, found.nbytes, found.shape) == (921_600, 307_200, (480, 640, 1))
    assert np.array_equal(found[..., 0], grey(image))
    found = handled(folder, "half-size")
    assert (found.nbytes, found.shape) == (230_400, (240, 320, 3))
    assert np.array_equal(found, half(image))
    assert np.array_equal(handled(folder, "mirror"), image[:, ::-1])
    assert np.array_equal(handled(folder, "mirror", "mirror"), image)
    assert np.array_equal(handled(folder, "edges")[..., 0], edges(image))
    assert np.array_equal(handled(folder, "greyscale", "half-size")[..., 0], half(grey(image)[..., None])[..., 0])


@pytest.mark.requirement("19.09")
def test_a_frame_rate_keeps_one_of_so_many(folder: Path) -> None:
    """Of seven frames one in three: 0, 3 and 6; the others are dropped, not lost."""
    write_frames(folder / "seven.parquet", *(picture(seed, 8, 8) for seed in range(7)))
    told, found = run(folder, "--handler", "frame-rate:3", frames="seven.parquet")
    assert (list(found), told["dropped"], told["lost"]) == ([0, 3, 6], 4, 0)


REGIONS = {
    "lower-half": (slice(240, 480), slice(0, 640)),
    "upper-half": (slice(0, 240), slice(0, 640)),
    "left-half": (slice(0, 480), slice(0, 320)),
    "right-half": (slice(0, 480), slice(320, 640)),
    "whole": (slice(0, 480), slice(0, 640)),
}


@pytest.mark.requirement("19.09")
@pytest.mark.parametrize("region", REGIONS)
def test_a_blur_changes_its_region_and_nothing_else(folder: Path, region: str) -> None:
    """Inside, means of means; outside, every octet as it was."""
    image, wanted = picture(1), picture(1)
    wanted[REGIONS[region]] = box(image[REGIONS[region]])
    assert np.array_equal(handled(folder, f"blur:{region}"), wanted)


def roughness(image: np.ndarray) -> float:
    """Say how much neighbours differ."""
    return float(np.abs(np.diff(image.astype(int), axis=0)).mean())


def seen_by(folder: Path, user: str, camera: str, *more: str) -> np.ndarray:
    """Give what a user sees of a camera under the policy."""
    policy = str(folder / "avs.xml")
    return run(folder, "--policy", policy, "--as", user, "--camera", camera, *more)[1][0]


@pytest.mark.requirement("19.15")
def test_a_policy_blurs_a_camera_for_all_and_every_camera_for_one(folder: Path) -> None:
    """Rows 240 to 479 of camera A are smooth for all, rows 0 to 239 identical; X sees B blurred too, Y does not."""
    image = picture(1)
    for user, camera in (("X", "A"), ("Y", "A"), ("X", "B")):
        found = seen_by(folder, user, camera)
        assert np.array_equal(found[:240], image[:240])
        assert not np.array_equal(found[240:], image[240:])
        assert roughness(found[240:]) < roughness(image[240:]) / 10
    assert np.array_equal(seen_by(folder, "Y", "B"), image)


def test_what_is_installed_behind_a_blur_does_not_undo_it(folder: Path) -> None:
    """The blur is of the source's rows, first, whatever comes after it: mirrored, halved, or in a stranger's code."""
    (folder / "flip.py").write_text("def handle(number, pixels):\n    return pixels[::-1]\n", "utf-8")
    blurred = seen_by(folder, "Y", "A")
    assert np.array_equal(seen_by(folder, "Y", "A", "--handler", "mirror", "--channel", "c2"), blurred[:, ::-1])
    assert np.array_equal(seen_by(folder, "Y", "A", "--handler", "half-size", "--channel", "c1"), half(blurred))
    flipped = seen_by(folder, "Y", "A", "--handler", str(folder / "flip.py"), "--channel", "c2")
    assert np.array_equal(flipped, blurred[::-1])


@pytest.mark.requirement("24.15")
def test_who_may_not_see_or_install_gets_no_frame(folder: Path, tmp_path: Path) -> None:
    """Z sees nothing; X installs no greyscale; c1 takes no edges, and no code that only bears a good name."""
    command, out = Command(folder), tmp_path / "none.parquet"
    (tmp_path / "mirror.py").write_text("def handle(number, pixels):\n    return pixels\n", "utf-8")
    base = ("handler", "run", str(folder / "frames.parquet"), "--out", str(out), "--policy", str(folder / "avs.xml"))
    asked = {
        ("--as", "Z", "--camera", "B"): (3, "XML_DENIED"),
        ("--as", "X", "--camera", "B", "--channel", "c2", "--handler", "greyscale"): (3, "INSTALL_DENIED"),
        ("--as", "Y", "--camera", "B", "--channel", "c1", "--handler", "edges"): (3, "INSTALL_DENIED"),
        ("--as", "Y", "--camera", "B", "--channel", "c1", "--handler", str(tmp_path / "mirror.py")): (
            3, "INSTALL_DENIED",
        ),
        ("--as", "Y", "--camera", "B", "--handler", "mirror"): (2, "USAGE"),
        ("--camera", "B"): (2, "USAGE"),
        ("--as", "Y"): (2, "USAGE"),
        ("--as", "nobody", "--camera", "B"): (5, "NO_SUCH_KEY"),
        ("--as", "broker", "--camera", "B"): (2, "NOT_A_CLIENT"),
        ("--as", "Y", "--camera", "B", "--zone", "Moon/Crater"): (2, "PROVIDER_ZONE"),
    }  # fmt: skip
    for question, wanted in asked.items():
        assert (question, command.refused(*base, *question)) == (question, wanted)
    assert not out.exists()


@pytest.mark.requirement("24.15")
def test_a_name_alone_sees_nothing_and_the_refusal_is_audited(folder: Path, tmp_path: Path) -> None:
    """Who is named must prove the key, and cannot say which roles it has; what is refused stands in the audit."""
    home = Command(tmp_path / "home")
    shutil.copytree(folder, home.home)
    shutil.copyfile(home.home / "keys" / "Z.key", home.home / "keys" / "Y.key")
    out = tmp_path / "none.parquet"
    base = ("handler", "run", str(folder / "frames.parquet"), "--out", str(out), "--policy", str(folder / "avs.xml"))
    asked = ("--camera", "B", "--as")
    assert home.refused(*base, *asked, "Y")[1] == "KEY_PAIR"
    (home.home / "keys" / "Y.key").unlink()
    assert home.refused(*base, *asked, "Y") == (5, "NO_SUCH_KEY")
    for said in ("--role", "--user"):
        assert home(*base, *asked, "X", said, "Y").code == 2
    assert home.refused(*base, *asked, "Z") == (3, "XML_DENIED")
    assert not out.exists()
    rows = home.do("audit", "--kind", "refuse")["rows"]
    assert ("Z", "XML_DENIED", "B") in {(row["subject"], row["reason"], row["source"]) for row in rows}


@pytest.mark.requirement("24.15")
def test_roles_are_those_that_the_home_knows(folder: Path, tmp_path: Path) -> None:
    """An active role blurs for whoever has it and denies; when its ground is gone it does neither."""
    home = Command(tmp_path / "home")
    shutil.copytree(folder, home.home)
    image, out = picture(1), tmp_path / "out.parquet"
    (home.home / "policy").mkdir(exist_ok=True)
    rules = "".join(f"{role}(self) <- {role}-credential(self)*\n" for role in ("officer", "suspended"))
    (home.home / "policy" / "met.rules").write_text(rules, "utf-8")
    home.do("policy", "apply")
    (tmp_path / "code").write_text(home.do("domain", "invite", "Y")["invitation"] + "\n", "utf-8")
    home.do("domain", "join", str(home.home), "--as", "Y", "--invitation-file", str(tmp_path / "code"))
    run = (
        "handler", "run", str(folder / "frames.parquet"), "--out", str(out), "--policy", str(folder / "avs.xml"),
        "--as", "Y", "--camera", "B",
    )  # fmt: skip
    assert home.do(*run)["handlers"] == []
    home.do("role", "appoint", "officer-credential(Y)")
    home.do("role", "activate", "officer(Y)", "--as", "Y")
    assert home.do(*run)["handlers"] == [{"handler": "blur", "forced": True}]
    assert np.array_equal(read_frames(out)[0][240:], image[240:])
    assert not np.array_equal(read_frames(out)[0][:240], image[:240])
    home.do("role", "appoint", "suspended-credential(Y)")
    home.do("role", "activate", "suspended(Y)", "--as", "Y")
    assert home.refused(*run) == (3, "XML_DENIED")
    for role in ("suspended", "officer"):
        home.do("role", "revoke", f"{role}-credential(Y)")
    assert home.do(*run)["handlers"] == []


def test_a_second_name_of_a_key_does_not_go_around_a_denial(folder: Path, tmp_path: Path) -> None:
    """Z may not see; the same key under another name may not either."""
    home = Command(tmp_path / "home")
    shutil.copytree(folder, home.home)
    for end in ("key", "pub"):
        shutil.copy(home.home / "keys" / f"Z.{end}", home.home / "keys" / f"other.{end}")
    out = tmp_path / "none.parquet"
    asked = ("--policy", str(folder / "avs.xml"), "--camera", "B", "--as", "other")
    assert home.refused("handler", "run", str(folder / "frames.parquet"), "--out", str(out), *asked)[1] == "XML_DENIED"
    assert not out.exists()


def test_a_handler_that_is_tried_out_decides_nothing_and_says_so(folder: Path) -> None:
    """Without a client nobody is asked, and the answer tells."""
    told, _ = run(folder, "--handler", "mirror")
    assert (told["decided"], told["installer"]) == (False, None)
    asked = ("--as", "Y", "--policy", str(folder / "avs.xml"), "--camera", "B")
    assert run(folder, *asked)[0]["decided"] is True


@pytest.mark.requirement("19.17")
def test_an_endless_handler_is_stopped_and_the_channel_goes_on(tmp_path: Path) -> None:
    """Killed after its budget, three times; then it is off, its installer named, and the other frames arrive."""
    Command(tmp_path).do("domain", "init", str(tmp_path), "--key")
    Command(tmp_path).keys("mallory")
    write_frames(tmp_path / "frames.parquet", *(picture(seed, 16, 16) for seed in range(40)))
    (tmp_path / "spin.wat").write_text(
        '(module (memory (export "memory") 2) (func (export "alloc") (param i32) (result i32) (i32.const 1024))'
        '(func (export "handle") (param i32) (result i32) (loop $l (br $l)) (unreachable)))', "utf-8",
    )  # fmt: skip
    (tmp_path / "avs.xml").write_text(
        '<policies xmlns="urn:maia:policy:1"><access user="*" camera="*" effect="allow"/></policies>', "utf-8"
    )
    told, found = run(
        tmp_path, "--handler", str(tmp_path / "spin.wat"), "--steps", "1000000", "--seconds", "20",
        "--policy", str(tmp_path / "avs.xml"),
        "--as", "mallory", "--camera", "A", "--channel", "c1", "--handler", "mirror",
    )  # fmt: skip
    assert [(item["frame"], item["reason"]) for item in told["dead"]] == [(n, "HANDLER_STEPS") for n in range(3)]
    assert (told["installer"], len(told["off"]), told["off"][0][:7]) == ("mallory", 1, "sha256:")
    assert list(found) == list(range(3, 40))
    assert all(np.array_equal(found[n], picture(n, 16, 16)[:, ::-1]) for n in found)


@pytest.mark.requirement("19.17")
def test_without_a_forced_handler_nothing_goes_on(folder: Path) -> None:
    """A budget too small for the blur that the policy forces: no frame of camera A comes out, in no later batch."""
    write_frames(folder / "twenty.parquet", *(picture(seed, 16, 16) for seed in range(20)))
    told, found = run(
        folder, "--policy", str(folder / "avs.xml"), "--as", "Y", "--camera", "A", "--steps", "1000",
        "--strikes", "1", "--handler", "mirror", "--channel", "c1", frames="twenty.parquet",
    )  # fmt: skip
    assert found == {}
    assert [item["reason"] for item in told["dead"]] == ["HANDLER_STEPS", *["HANDLER_OFF"] * 19]


@pytest.mark.requirement("19.17")
def test_only_the_frames_at_fault_are_lost(tmp_path: Path) -> None:
    """A handler that fails on one frame of twenty costs that one; batches and single frames give the same."""
    write_frames(tmp_path / "frames.parquet", *(picture(seed, 8, 8) for seed in range(20)))
    (tmp_path / "picky.py").write_text(
        "def handle(number, pixels):\n    return pixels[:, ::-1] if number != 5 else 1/0\n"
    )
    told, found = run(tmp_path, "--handler", str(tmp_path / "picky.py"))
    assert [(item["frame"], item["reason"]) for item in told["dead"]] == [(5, "HANDLER_CRASHED")]
    assert list(found) == [n for n in range(20) if n != 5]
    assert all(np.array_equal(found[n], picture(n, 8, 8)[:, ::-1]) for n in found)
    assert told["off"] == []


WRONG = {
    "a handler that nobody knows": (("--handler", "sepia"), (2, "HANDLER_NAME")),
    "a region that nobody knows": (("--handler", "blur:moon"), (2, "HANDLER_NAME")),
    "a rate of one": (("--handler", "frame-rate:1"), (2, "HANDLER_NAME")),
    "a mirror that is told something": (("--handler", "mirror:x"), (2, "HANDLER_NAME")),
    "a file that is not there": (("--handler", "none.wasm"), (5, "NO_FILE")),
}


def test_what_is_no_handler_and_no_frames_is_refused(folder: Path, tmp_path: Path) -> None:
    """Names, files and columns are looked at before anything is written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    command, out = Command(folder), tmp_path / "none.parquet"
    for name, (asked, wanted) in WRONG.items():
        ran = command.refused("handler", "run", str(folder / "frames.parquet"), "--out", str(out), *asked)
        assert (name, ran) == (name, wanted)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("no frames", "utf-8")
    write_frames(tmp_path / "short.parquet", picture(0, 4, 4))
    table = pq.read_table(tmp_path / "short.parquet")
    taller = pa.array([5], pa.int32())
    pq.write_table(table.set_column(1, table.schema.field("height"), taller), tmp_path / "short.parquet")
    for file, code in (("other", "FRAME_COLUMNS"), ("text", "FRAME_COLUMNS"), ("short", "FRAME_SHAPE")):
        base = ("handler", "run", str(tmp_path / f"{file}.parquet"), "--out", str(out), "--handler", "mirror")
        assert command.refused(*base) == (1, code)
    assert command.refused("handler", "run", str(tmp_path / "none"), "--out", str(out)) == (5, "NO_FILE")
    assert not out.exists()
    assert command.do("handler", "list")["handlers"][0] == "greyscale"


FROM, TO, HERE = ("transformFrom", "CameraY"), ("transformTo", "GreyY"), ("installHandler", "CameraY")
TURNED = (("transformFrom", "GreyY"), ("transformTo", "CameraY"), ("installHandler", "GreyY"))
INSTALLERS = {
    "all": (FROM, TO, HERE), "nofrom": (TO, HERE), "noto": (FROM, HERE), "nohere": (FROM, TO), "turned": TURNED,
    "nothing": (),
}  # fmt: skip


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Give a home with two types, and clients that have some of the three rights each."""
    home = Command(tmp_path_factory.mktemp("met") / "met")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("met", "late", *INSTALLERS)
    for name in ("CameraY", "GreyY"):
        home.do("type", "define", f"met/met.{name}@1", "--encryption", "plain", "--attribute", "pixels:binary:1")
    for who, rights in INSTALLERS.items():
        for action, name in rights:
            home.grant("--from", "met", "--to", who, "--type", f"met/met.{name}", "--action", action)
    for (action, name), more in zip(
        (FROM, TO, HERE), ((), (), ("--condition", 'now.clock("UTC") < "00:00"')), strict=True
    ):
        home.grant("--from", "met", "--to", "late", "--type", f"met/met.{name}", "--action", action, *more)
    write_frames(home.home / "frames.parquet", picture(1, 16, 16))
    return home


@pytest.mark.requirement("19.08")
def test_a_transformation_takes_three_rights(met: Command) -> None:
    """From the one type, to the other, and to install on the channel: without any one of them nothing is installed."""
    out = met.home / "grey.parquet"
    run = (
        "handler", "run", str(met.home / "frames.parquet"), "--handler", "greyscale", "--from", "met/met.CameraY@1",
        "--to", "met/met.GreyY@1", "--out", str(out),
    )  # fmt: skip
    for who in (*INSTALLERS, "late"):
        if who != "all":
            assert (who, met.refused(*run, "--as", who)) == (who, (3, "HANDLER_RIGHT"))
    assert met.refused(*run)[0] == 2
    assert not out.exists()
    assert met.do(*run, "--as", "all")["installer"] == "all"
    assert read_frames(out)[0].shape == (16, 16, 1)


def test_a_right_to_install_is_no_use_without_the_right_to_connect(tmp_path: Path) -> None:
    """In a home of a network the three rights are of use to whoever may connect to it, and to nobody else."""
    network = ("--network", "pito/UK Police Network")
    home = Command(tmp_path / "met")
    home.keys("pito")
    home.do("domain", "init", str(home.home), *network)
    home.keys("met", "smith")
    for name in ("CameraY", "GreyY"):
        home.do("type", "define", f"met/met.{name}@1", "--encryption", "plain", "--attribute", "pixels:binary:1")
    for action, name in (FROM, TO, HERE):
        home.grant("--from", "met", "--to", "smith", "--type", f"met/met.{name}", "--action", action)
    write_frames(home.home / "frames.parquet", picture(1, 16, 16))
    run = (
        "handler", "run", str(home.home / "frames.parquet"), "--handler", "greyscale", "--from", "met/met.CameraY@1",
        "--to", "met/met.GreyY@1", "--out", str(home.home / "grey.parquet"), "--as", "smith",
    )  # fmt: skip
    assert home.refused(*run) == (3, "HANDLER_RIGHT")
    home.grant("--from", "pito", "--to", "smith", *network, "--action", "connect")
    assert home.do(*run)["written"] == 1
