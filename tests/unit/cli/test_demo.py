"""`maia demo`: the numberplate scenario, told by verifiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from maia.cli.show.output import State, logging_to_stderr, note
from maia.demo import command as demo_module
from maia.demo.trust import delegation_tree, reductions
from maia.demo.typed import Organisation
from maia.home import Folder
from maia.testing import numberplate_network

MATRIX = {
    "PITO": "connect install publish subscribe manage",
    "Met": "connect subscribe",
    "CCS": "connect install publish subscribe",
    "Smith": "connect subscribe",
    "BO": "connect install subscribe",
    "SO": "connect subscribe",
    "CCTV": "connect publish",
    "MB": "connect subscribe",
    "CB": "connect publish subscribe",
    "TM": "install manage",
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Run the demonstration once, for machines."""
    import json

    from typer.testing import CliRunner

    from maia.cli import app

    ran = CliRunner().invoke(app, ["demo", "trust", "--json"])
    assert ran.exit_code == 0
    return json.loads(ran.stdout)


@pytest.mark.parametrize("who", MATRIX)
def test_matrix(facts, who):
    """Each principal has the rights of the thesis, decided by a verifier, and each refusal its reason."""
    row = facts["matrix"][who]
    assert [action for action, cell in row.items() if cell["allowed"]] == MATRIX[who].split()
    assert all(cell["reason"] for cell in row.values() if not cell["allowed"])


def test_attributes_of_the_clients(facts):
    """BO reads plates, SO places, Smith one plate; the cameras say Victoria."""
    assert facts["attributes"]["BO"] == {"publish": [], "subscribe": ["numberplate, timestamp"]}
    assert facts["attributes"]["SO"] == {"publish": [], "subscribe": ["location, timestamp"]}
    assert facts["attributes"]["Smith"]["subscribe"] == ["numberplate = 'AE05 XYZ', location, timestamp"]
    assert facts["attributes"]["CCTV"]["publish"] == ["numberplate, location = 'Victoria', timestamp"]


def test_reductions(facts):
    """Four chains reduce, and Cap6 with Cap10 is a broken chain."""
    found = {" + ".join(item["certificates"]): item for item in facts["reductions"]}
    assert found["Cap1 + Cap3"]["grants"] == "connect"
    assert (found["Cap1 + Cap2 + N1"]["holder"], found["Cap1 + Cap2 + N1"]["grants"]) == ("MB", "connect")
    assert found["Cap12 + Cap10"]["grants"] == "subscribe: numberplate = 'AE05 XYZ', location, timestamp"
    assert (found["Cap4 + Cap5"]["holder"], found["Cap4 + Cap5"]["grants"]) == ("BO", "install")
    assert found["Cap6 + Cap10"]["error"] == "BROKEN_CHAIN"


def test_one_event_as_three_versions_see_it(facts):
    """The rename keeps the value, the re-used name gets none, and uids alone travel."""
    seen = {item["version"]: item["seen"] for item in facts["type"]["versions"]}
    assert seen["4799"]["license-plate"] == "AE05 XYZ"
    assert seen["8516"]["numberplate"] == "AE05 XYZ"
    assert seen["9000"]["license-plate"] is None
    assert facts["type"]["in_transit"] == {"9525": "AE05 XYZ", "3467": "Victoria"}


def test_the_tree_follows_the_rights(tmp_path):
    """Every authorisation that a chain carries on stands below it; Cap10 below Cap12 and not below Cap6."""
    network = numberplate_network()
    below = {}

    def walk(branches, above):
        for branch in branches:
            below.setdefault(branch.name, set()).add(above)
            walk(branch.then, branch.name)

    walk(delegation_tree(network, Folder(tmp_path)), "PITO")
    assert below["Cap10"] == {"Cap12"}
    assert below["Cap13b"] == {"Cap6"}
    assert below["Cap2"] == {"Cap1"}
    assert set(below) == set(network.certificates) - {"N1"}


def test_the_reductions_come_from_the_certificates(tmp_path):
    """With other keys the same certificates give other evidence and the same answers."""
    answers = [
        [(item.holder, item.error is None) for item in reductions(numberplate_network(seed), Folder(tmp_path))]
        for seed in ("one", "two")
    ]
    assert answers[0] == answers[1]


def test_the_home_is_removed_or_kept(maia):
    """Without --keep nothing stays; with it the home can be used by the other verbs."""
    gone = maia("demo", "trust", "--json").data
    assert not Path(gone["home"]).exists()
    kept = maia("demo", "trust", "--json", "--keep").data
    try:
        ran = maia("explain", "--as", "BO", "--network", "PITO/UK Police Network", "--action", "install",
                   "--home", kept["home"])  # fmt: skip
        assert ran.code == 0
        assert maia("verify", "--home", kept["home"]).code == 0
        assert maia("doctor", "--home", kept["home"]).code == 0
    finally:
        demo_module.shutil.rmtree(kept["home"])


def test_the_scenarios_are_listed_and_none_is_played(maia):
    """For people a line each, for machines one object; what is no scenario is refused."""
    names = ["numberplate", "trust", "detective", "stock", "miklos", "clinic", "avs", "pathology"]
    ran = maia("demo", "--list")
    assert (ran.code, [line.split()[0] for line in ran.out.splitlines()], ran.err) == (0, names, "")
    assert list(maia("demo", "--list", "--json").data["scenarios"]) == names
    assert maia("demo", "nothing").code == 2


def test_a_command_inside_a_scenario_leaves_its_notes_on(tmp_path, capsys):
    """A quiet command that runs inside another silences itself alone."""
    told: list[str] = []
    with logging_to_stderr(State()):
        shop = Organisation(tmp_path, "shop", told=told, say=note)
        shop.do("key", "new", "ann", "--no-passphrase")
        assert shop.attempt("key", "new", "ann", "--no-passphrase") == "KEY_EXISTS"
        note("afterwards")
    assert told == ["shop$ maia key new ann --no-passphrase", "shop$ maia key new ann --no-passphrase  # KEY_EXISTS"]
    assert capsys.readouterr().err.splitlines() == [*told, "afterwards"]


def test_the_story_is_drawn(maia):
    """Tree, matrix, reductions and versions are on standard output; the path of the home is not."""
    ran = maia("demo", "trust")
    for words in (
        "Who gave what to whom", "Cap3b-CCTV", "may pass it on", "by N1: MB (", "Who may do what", "sets numberplate",
        "Certificates put together", "[BROKEN_CHAIN] no chain leads from `PITO`", "license-plate = null", "in transit",
    ):  # fmt: skip
        assert words in ran.out, words
    assert "home: " in ran.err
    assert "maia-demo-" not in ran.out


def test_a_failing_demo_leaves_nothing_behind(maia, monkeypatch, tmp_path):
    """The temporary home goes also when something fails."""
    monkeypatch.setattr(demo_module.tempfile, "mkdtemp", lambda prefix: str(_made(tmp_path / f"{prefix}x")))
    monkeypatch.setattr(demo_module, "_settle", _fail)
    with pytest.raises(ZeroDivisionError):
        maia("demo", "trust")
    assert list(tmp_path.glob("maia-demo-*")) == []


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _fail(*_: object) -> None:
    raise ZeroDivisionError
