"""Homes have formats: an older one is migrated by one command, a newer one is refused by name, and nothing is damaged.

The golden homes were made by the code of the commits they are named after, see `scripts/golden.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from processes import MAIA, environment

import maia
from maia.testing import Command, publish_here

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.tar.xz"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name.partition(".")[0])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give a copy of a home as a commit wrote it."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    for key in (tmp_path / "home" / "keys").glob("*.key"):
        key.chmod(0o600)
    return tmp_path / "home"


def files(home: Path) -> dict[str, bytes]:
    """Read all files of a home but its locks and its database."""
    found = (path for path in home.rglob("*") if path.is_file() and not path.name.startswith((".", "store.db")))
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def test_a_golden_home_is_refused_by_name_migrated_once_and_then_works(golden: Path) -> None:
    """What it is told before is what to do; what is said of a dry run is done; done twice, nothing happens."""
    home = Command(golden)
    before = files(golden)
    for words in (("status",), ("keys", "groups"), ("domain", "members")):
        ran = home(*words, "--json")
        assert (ran.code, ran.data["error"]) == (1, "FORMAT_OLDER")
        assert "maia domain migrate" in ran.data["message"]
        assert "new key" not in ran.data["message"]
    planned = home.do("domain", "migrate", "--dry-run")
    assert files(golden) == before
    done = home.do("domain", "migrate")
    assert (done["before"], done["after"], done["steps"]) == (1, 2, planned["steps"])
    assert home.do("domain", "migrate")["steps"] == []
    [problem] = home.do("status")["problems"]
    assert "LOG_FORMAT_OLD" in problem
    assert "maia log migrate" in problem
    home.do("log", "migrate")
    assert home.do("status")["problems"] == []
    assert {row["group"] for row in home.do("keys", "groups")["groups"]} >= {"clinic.Result/glucose"}
    with maia.open(golden) as domain:
        domain.follow()
        plan = domain.publish_plan("clinic.Result", client=domain.prove("lab"), publication="second")
        assert [item.name for item in plan.event_type().attributes] == ["patient", "glucose"]
        assert domain.deliver_plan("clinic.Result", client=domain.prove("doctor"), commits=()).subscriptions


def test_a_golden_log_becomes_lanes_once_and_is_read_as_before(spark: Any, golden: Path) -> None:
    """The old format is refused by name; `maia log migrate` signs what this broker published, and tells of damage."""
    home = Command(golden)
    home.do("domain", "migrate")
    assert home.refused("log", "show") == (2, "LOG_FORMAT_OLD")
    [segment] = (golden / "log").glob("type=*/date=*/*.parquet")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1])
    with tarfile.open(golden.parent / "copy.tar", "w") as archive:
        archive.add(golden, "copy")
    with tarfile.open(golden.parent / "copy.tar") as archive:
        archive.extractall(golden.parent, filter="data")
    copy = Command(golden.parent / "copy")
    kept, ran = files(copy.home / "log"), copy("log", "migrate", "--json")
    assert (ran.code, ran.data["error"]) == (1, "LOG_FILES_DAMAGED")
    assert segment.name in ran.data["message"]
    assert files(copy.home / "log") == kept, "nothing was taken over, and nothing was removed"
    told = copy.do("log", "migrate", "--without-damaged")
    assert (told["commits"], told["events"], len(told["damaged"])) == (0, 0, 1)
    assert kept.items() <= files(copy.home / "log").items()
    segment.write_bytes(whole)
    assert home.do("log", "migrate") == {
        "code": 0,
        "commits": 1,
        "events": 2,
        "others": {},
        "damaged": [],
        "expired": [],
    }
    assert home.do("log", "migrate")["commits"] == 0
    assert [item["publication"] for item in home.do("log", "show")["commits"]] == ["first"]
    rows = home("subscribe", "--type", "clinic.Result", "--as", "doctor", "--json").lines
    assert sorted((row["patient"], row["glucose"]) for row in rows) == [("p1", 5.5), ("p2", 7.25)]
    with maia.open(golden) as domain:  # and goes on: the key groups of before speak in lanes now
        domain.client("lab").publish(pd.DataFrame([{"patient": "p3", "glucose": 6.5}]), "clinic.Result")
        seen = domain.client("doctor").read("clinic.Result").collect()
    assert sorted((row["patient"], row["glucose"]) for row in seen) == [("p1", 5.5), ("p2", 7.25), ("p3", 6.5)]


def _upkeep(golden: Path, value: dict[str, Any]) -> Path:
    """Write a record of upkeep of the format before lanes, as anybody could."""
    path = golden / "log" / "_upkeep" / f"{0:012d}.json"
    path.parent.mkdir(exist_ok=True)
    said = {"number": 0, "previous": "0" * 64, "value": value}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({"number": 0, "previous": "0" * 64, "sha256": digest, "value": value}))
    return path


@pytest.mark.parametrize("golden", GOLDEN[:1], indirect=True)
def test_nobody_lets_an_old_log_expire_by_saying_so(golden: Path) -> None:
    """What lies there is taken over, whatever unsigned records say; what is missing is told, and given up knowingly."""
    home = Command(golden)
    home.do("domain", "migrate")
    _upkeep(golden, {"kind": "expire", "upto": 10**6})
    [segment] = (golden / "log").glob("type=*/date=*/*.parquet")
    kept = segment.rename(golden.parent / "kept")
    ran = home("log", "migrate", "--json")
    assert (ran.code, ran.data["error"]) == (1, "LOG_FILES_DAMAGED")
    assert f"{segment.name}` (said to have expired)" in ran.data["message"]
    told = home.do("log", "migrate", "--without-damaged")
    assert (told["events"], told["damaged"], [Path(path).name for path in told["expired"]]) == (0, [], [segment.name])
    kept.rename(segment)
    path = segment.relative_to(golden / "log").as_posix()
    _upkeep(golden, {"kind": "move", "files": {path: ["type=00/nothing.parquet", 0, "00" * 32]}}).with_name(
        f"{1:012d}.json"
    ).write_text("junk")
    assert home("log", "migrate", "--json").data["error"] == "COMMIT_DAMAGED"
    assert home.do("log", "migrate", "--without-damaged")["events"] == 2
    rows = home("subscribe", "--type", "clinic.Result", "--as", "doctor", "--json").lines
    assert sorted(row["patient"] for row in rows) == ["p1", "p2"]


@pytest.mark.parametrize("golden", GOLDEN[:1], indirect=True)
def test_an_expiry_that_nobody_signed_takes_nothing_from_a_migration(golden: Path) -> None:
    """All of it is said to have expired, and all of it is there: it is taken over unasked."""
    home = Command(golden)
    home.do("domain", "migrate")
    _upkeep(golden, {"kind": "expire", "upto": 10**6})
    done = home.do("log", "migrate")
    assert (done["commits"], done["events"], done["expired"]) == (1, 2, [])


def _old_commit(number: int, value: dict[str, Any], previous: bytes) -> bytes:
    """Write a commit of the format before lanes, as anybody could."""
    said = {"number": number, "previous": hashlib.sha256(previous).hexdigest(), "value": value}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    return json.dumps({**said, "sha256": digest}).encode()


@pytest.mark.parametrize("name", ["first", "another"])
def test_what_others_wrote_into_an_old_log_is_not_signed(golden: Path, name: str) -> None:
    """A commit that names a file again, with stamps and evidence of its own: no event twice, none parked, no stamp."""
    home = Command(golden)
    home.do("domain", "migrate")
    commits = golden / "log" / "_commits"
    first = (commits / f"{0:012d}.json").read_bytes()
    value = json.loads(first)["value"]
    [file] = value["files"]
    forged = {**file, "first_stamp": 1, "last_stamp": (1 << 53) - 10}
    evil = {**value, "publication": name, "evidence": "ff" * 32, "files": [forged, file]}
    keys = ("number", "previous", "sha256", "value")
    made = json.loads(_old_commit(1, evil, first))
    (commits / f"{1:012d}.json").write_text(json.dumps({key: made[key] for key in keys}))
    made = json.loads(
        _old_commit(2, {**evil, "publication": "tomorrow", "files": []}, (commits / f"{1:012d}.json").read_bytes())
    )
    (commits / f"{2:012d}.json").write_text(json.dumps({key: made[key] for key in keys}))
    (commits / f"{999_999_999_999}.json").write_text("junk")
    assert home("log", "migrate", "--json").data["error"] == "COMMIT_MISSING"
    assert home.do("log", "migrate", "--without-damaged")["events"] == 2
    assert [item["publication"] for item in home.do("log", "show")["commits"]] == ["first"]
    with maia.open(golden) as domain:
        domain.follow()
        publish_here(domain.home, "clinic.Result", [{"patient": "p3", "glucose": 6.5}], as_="lab", at=datetime.now(UTC))
    rows = home("subscribe", "--type", "clinic.Result", "--as", "doctor", "--json").lines
    assert sorted(row["patient"] for row in rows) == ["p1", "p2", "p3"]


def test_the_audit_of_a_golden_home_is_read_as_it_was_and_watched_from_then_on(golden: Path) -> None:
    """It had no journal: its rows are shown, the first entry names its files, and who removes one is found."""
    home = Command(golden)
    home.do("domain", "migrate")
    before = home.do("audit")["rows"]
    assert ("publish", "first", 2) in {(row["kind"], row["source"], row["events"]) for row in before}
    assert home("subscribe", "--type", "clinic.Result", "--as", "lab").code == 3
    assert home.do("audit")["rows"][: len(before)] == before
    checked = home.do("audit", "verify")
    [file] = (golden / "audit").glob("date=*/*.parquet")
    assert (checked["sound"], checked["earlier"], file.stat().st_mode & 0o777) == (True, 1, 0o600)
    file.unlink()
    assert home("audit", "verify").code == 4


@pytest.mark.fault("F24")
def test_a_migration_that_is_killed_goes_on(golden: Path) -> None:
    """Killed after each file that it writes: the home is refused as before, and the next run ends what was begun."""
    steps = len(Command(golden).do("domain", "migrate", "--dry-run")["steps"])
    path = [str(Path(__file__).parent / "killing"), *filter(None, [os.environ.get("PYTHONPATH")])]
    for _ in range(steps):
        state = files(golden)
        # The program stops at the first file that it has put into its place, as a kill between two steps would.
        ran = subprocess.run(
            [*MAIA, "domain", "migrate", "--home", str(golden)],
            env=environment(PYTHONPATH=os.pathsep.join(path), MAIA_KILL_AT_FIRST="1"), capture_output=True, check=False,
        )  # fmt: skip
        assert ran.returncode == -signal.SIGKILL
        assert files(golden) != state
    assert Command(golden).do("domain", "migrate")["steps"] == []
    Command(golden).do("log", "migrate")
    assert Command(golden).do("status")["problems"] == []


NEWER = {
    "maia.toml": ("maia.toml", b"format = 2\n", b"format = 7\n", ("status",)),
    "keyring": ("keyring", b"maia/2 keyring\n", b"maia/7 keyring\n", ("keys", "join", "clinic.Result")),
    "groups": ("groups", b"maia/2 groups\n", b"maia/7 groups\n", ("keys", "join", "clinic.Result")),
    "a key": ("keys/domain.key", b"7:version1:1", b"7:version1:7", ("domain", "members")),
}


@pytest.mark.parametrize("golden", GOLDEN[:1], indirect=True)
@pytest.mark.parametrize("name, old, new, words", NEWER.values(), ids=NEWER)
def test_what_a_newer_maia_wrote_is_refused_by_name_and_left_alone(
    golden: Path, name: str, old: bytes, new: bytes, words: tuple[str, ...]
) -> None:
    """The message names the file, its format and this Maia; the file stays as it is."""
    home = Command(golden)
    home.do("domain", "migrate")
    path = golden / name
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    state = files(golden)
    ran = home(*words, "--json")
    assert (ran.code, ran.data["error"]) == (1, "FORMAT_NEWER")
    assert path.name in ran.data["message"]
    assert f"Maia {maia.__version__}" in ran.data["message"]
    # What was there is as it was; a home that is older than its rhythm may have said in its lanes that it is alive.
    after = files(golden)
    assert {key: after.get(key) for key in state if key != "clock"} == {
        key: value for key, value in state.items() if key != "clock"
    }
    assert all(key.startswith("log/_lanes/") for key in set(after) - set(state) - {"clock"})


@pytest.mark.parametrize("said", ["true", '"2"', '"3"', "3.0", "0", "-1"])
def test_a_format_that_is_no_number_is_refused_and_left_alone(tmp_path: Path, said: str) -> None:
    """Nobody guesses what it means; the file stays as it is."""
    settings = tmp_path / "home" / "maia.toml"
    Command(tmp_path / "home").do("domain", "init", str(tmp_path / "home"))
    lines = [line for line in settings.read_text("utf-8").splitlines() if not line.startswith("format")]
    settings.write_text("\n".join([f"format = {said}", *lines, ""]), "utf-8")
    before = settings.read_bytes()
    ran = Command(tmp_path / "home")("domain", "migrate", "--json")
    assert (ran.data["error"], settings.read_bytes()) == ("HOMECONFIG_FILE", before)


def test_a_format_that_stands_in_the_file_is_replaced(tmp_path: Path) -> None:
    """A home that names the first format has one format after the migration, and works."""
    home, settings = Command(tmp_path / "home"), tmp_path / "home" / "maia.toml"
    home.do("domain", "init", str(home.home))
    lines = [line for line in settings.read_text("utf-8").splitlines() if not line.startswith("format")]
    settings.write_text("\n".join(["format = 1", *lines, ""]), "utf-8")
    home.do("domain", "migrate")
    assert settings.read_text("utf-8").count("format =") == 1
    home.do("status")
