"""The project's own scripts and the record of marks do what the documents say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

MARKED = """
import pytest

@pytest.mark.requirement("1.01")
def test_shown(): assert 1 + 1 == 2

@pytest.mark.requirement("1.02")
@pytest.mark.threat("T1")
def test_failing(): assert 1 + 1 == 3

@pytest.mark.fault("F01")
def test_skipped(): pytest.skip("not here")

@pytest.mark.requirement("99.99")
def test_of_no_row(): assert 1 + 1 == 2

def test_unmarked(): assert 1 + 1 == 2
"""


@pytest.mark.parametrize("workers", [0, 2], ids=["one process", "two workers"])
def test_marked_tests_are_recorded_with_their_outcome(workers: int, tmp_path: Path) -> None:
    """The record holds every marked test once, also under xdist, and a mark that names no row fails its test."""
    (tmp_path / "test_marked.py").write_text(MARKED)
    record = tmp_path / "record.json"
    marks = "".join(f"  {mark}(id)\n" for mark in ("requirement", "threat", "fault"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{marks}")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "conftest", f"--record-marks={record}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert run.returncode == 1, run.stdout + run.stderr
    tests = {name.split("::")[-1]: entry for name, entry in json.loads(record.read_text("utf-8"))["tests"].items()}
    assert {name: entry["outcome"] for name, entry in tests.items()} == {
        "test_shown": "passed",
        "test_failing": "failed",
        "test_skipped": "skipped",
        "test_of_no_row": "failed",
    }
    assert tests["test_failing"]["requirement"] == ["1.02"]
    assert tests["test_failing"]["threat"] == ["T1"]
    assert "`99.99` is no requirement row" in run.stdout


def test_requirements_say_shown_missed_failing_and_wrongly_claimed(
    script: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Failing rows, rows that do not exist and claims past the doors make the exit code 1; no record makes it 2."""
    requirements = script("requirements")
    monkeypatch.setattr(requirements, "RECORDS", tmp_path)
    assert requirements.main([]) == 2
    monkeypatch.setattr(requirements, "MISSED", tmp_path / "missed.toml")
    monkeypatch.setattr(requirements, "LEFT_OUT", tmp_path / "left_out.toml")
    (tmp_path / "left_out.toml").write_text('["15.05"]\nreason = "because"\ndecision = "0034"\n')
    door = "tests/acceptance/test_a.py::test_a"
    record = {"tests": {door: {"outcome": "passed", "requirement": ["1.01"]}}}
    (tmp_path / "one.json").write_text(json.dumps(record))
    assert requirements.main(["--quiet"]) == 0
    said = capsys.readouterr().out
    assert "\n1 of 328 rows are shown through a door; 0 missed, 0 failing, 327 not shown" in said
    assert "\n  not shown 15.05: because (decision 0034)" in said
    (tmp_path / "missed.toml").write_text('["21.05"]\nwanted = "1.0"\nfigure = "0.86"\n')
    assert requirements.main(["--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    states = {name: row["state"] for name, row in rows.items()}
    assert (states["1.01"], states["1.02"], states["21.05"], len(states)) == ("shown", "not shown", "missed", 328)
    assert rows["21.05"]["figure"] == "0.86 instead of 1.0"
    wrong = {
        "a test fails": {f"{door}2": {"outcome": "failed", "requirement": ["1.01"]}},
        "no such row": {door: {"outcome": "passed", "requirement": ["77.77"]}},
        "no door": {"tests/unit/test_a.py::test_a": {"outcome": "passed", "requirement": ["1.02"]}},
        "missed and claimed": {door: {"outcome": "passed", "requirement": ["21.05"]}},
        "left out and claimed": {door: {"outcome": "passed", "requirement": ["15.05"]}},
    }
    for why, tests in wrong.items():
        (tmp_path / "two.json").write_text(json.dumps({"tests": tests}))
        assert requirements.main(["--quiet"]) == 1, why
    assert requirements.main(["--threats", "--quiet"]) == 0


def test_a_row_that_is_stated_as_shown_is_shown_by_a_whole_run(
    script: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence counts the marks of acceptance tests; a run of all tests has to show every one of these rows."""
    requirements = script("requirements")
    monkeypatch.setattr(requirements, "MISSED", tmp_path / "missed.toml")
    monkeypatch.setattr(requirements, "RECORDS", tmp_path / "marks")
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    (tmp_path / "missed.toml").write_text('["21.05"]\nwanted = "1.0"\nfigure = "0.86"\n')
    folder = tmp_path / "tests" / "acceptance"
    folder.mkdir(parents=True)
    (folder / "test_marked.py").write_text(MARKED.replace("99.99", "1.03"))
    assert requirements.main(["--stated"]) == 0
    assert capsys.readouterr().out == (
        "3 of 328 requirement rows are shown through a door; 1 miss the number that they demand (21.05), "
        "and 324 are not shown.\n"
    )
    tests = {f"tests/acceptance/a.py::{row}": {"outcome": "passed", "requirement": [row]} for row in ("1.01", "1.02")}
    record = tmp_path / "marks" / "one.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"tests": tests}))
    assert (requirements.main(["--quiet"]), requirements.main(["--quiet", "--whole"])) == (0, 1)
    assert capsys.readouterr().err == "1.03 is stated as shown, and no test showed it in this run\n"
    tests["tests/acceptance/a.py::1.03"] = {"outcome": "skipped", "requirement": ["1.03"]}
    record.write_text(json.dumps({"tests": tests}))
    for ci, code in (("true", 1), ("", 0)):
        monkeypatch.setenv("CI", ci)
        assert requirements.main(["--quiet", "--whole"]) == code


def test_house_rules_find_what_they_forbid(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bypass used far from its definition and a library that ends the process are both found; tests may bypass."""
    rules = script("rules")
    monkeypatch.setattr(rules, "ROOT", tmp_path)
    (tmp_path / "src" / "maia" / "cli").mkdir(parents=True)
    (tmp_path / "src" / "maia" / "a.py").write_text("def unsafe_open(): ...\nunsafe_open()\n")
    (tmp_path / "src" / "maia" / "b.py").write_text("unsafe_open()\nsys.exit(1)\n")
    (tmp_path / "src" / "maia" / "cli" / "c.py").write_text("sys.exit(1)\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "d.py").write_text("unsafe_open()\n")
    assert [line.split(": ")[0] for line in rules.offences()] == ["src/maia/b.py:1", "src/maia/b.py:2"]


HOUSE = {
    "maia/__init__.py": (
        "from maia.domain import Domain\n__all__ = ['open']\ndef open(path: str) -> Domain:\n    return Domain(path)\n"
    ),
    "maia/domain/__init__.py": (
        "from maia.domain.domain import Client, Domain, Left\n__all__ = ['Client', 'Domain', 'Left']\n"
    ),
    "maia/domain/domain.py": (
        "from maia.low import used, values\n"
        "class Client:\n"
        "    def __init__(self): self._go()\n"
        "    def _go(self): used()\n"
        "    def _unused(self): left_alone()\n"
        "    def read(self): return values.told().named\n"
        "class Domain:\n"
        "    def __init__(self, path): ...\n"
        "    def client(self) -> Client: ...\n"
        "class Left:\n"
        "    def client(self): left_alone()\n"
        "def left_alone(): ...\n"
    ),
    "maia/low/__init__.py": "from maia.low.work import left_too, used\n__all__ = ['left_too', 'used']\n",
    "maia/low/work.py": (
        "def used():\n    helper = 1\n    return helper\n"
        "def helper(): ...\n"
        "def left_too(): only_by_left()\n"
        "def only_by_left(): ...\n"
        "def measured(): ...\n"
    ),
    "maia/low/values.py": (
        "import enum\nfrom outside import Visitor\n"
        "class Told(Visitor):\n    def visit_it(self): ...\n"
        "class Kept:\n    @property\n    def named(self): ...\n"
        "    def _repr_html_(self): ...\n    def other(self): ...\n"
        "def told() -> Kept:\n    return Told() or Kept()\n"
    ),
    "maia/cli/__init__.py": "VERBS = {'key': 'maia.cli.key', 'demo': 'maia.demo.play'}\ndef main(): return VERBS\n",
    "maia/cli/key.py": "app = object()\n@app.command()\ndef new(): ...\ndef forgotten(): ...\n",
    "maia/demo/__init__.py": "",
    "maia/demo/play.py": "from maia.low.work import measured\ndef play(): measured()\n",
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small house with two doors and a program beside it."""
    for name, text in HOUSE.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "maia"\nscripts = { maia = "maia.cli:main" }\n')
    return tmp_path


def test_reachability_finds_what_no_door_leads_to(script: Callable[[str], ModuleType], house: Path) -> None:
    """An export reaches nothing, nor does code that is not reached; what is left is named, with its file and line."""
    report = script("reach").look(house, {})
    assert [item.name for item in report.unreachable] == [
        "maia.cli.key.forgotten",
        "maia.domain.domain.Client._unused",
        "maia.domain.domain.Left",
        "maia.domain.domain.left_alone",
        "maia.low.values.Kept.other",
        "maia.low.work.helper",  # a local name of `used` is another thing
        "maia.low.work.left_too",
        "maia.low.work.only_by_left",
    ]
    assert [item.name for item in report.beside] == ["maia.low.work.measured"]
    assert (report.unreachable[-1].path, report.unreachable[-1].line) == ("src/maia/low/work.py", 6)
    assert not report.good


WAITING = {
    "a line takes what only it uses along": ({"maia.low.work.left_too": "3 of 8"}, 2, []),
    "a reached function": ({"maia.low.work.used": "3 of 8"}, 0, ["maia.low.work.used: is reached by now"]),
    "something gone": ({"maia.low.gone": "3 of 8"}, 0, ["maia.low.gone: there is no such thing"]),
    "a module of which a part is reached": (
        {"maia.low.work": "3 of 8"},
        4,
        ["maia.low.work: a part is reached by now, name the rest: maia.low.work.used"],
    ),
}


@pytest.mark.parametrize("waiting, count, stale", WAITING.values(), ids=WAITING)
def test_the_list_of_what_waits_only_shrinks(
    waiting: dict[str, str], count: int, stale: list[str], script: Callable[[str], ModuleType], house: Path
) -> None:
    """What waits is not complained about; a line that is out of date is."""
    report = script("reach").look(house, waiting)
    assert (len(report.waiting), list(report.stale)) == (count, stale)


def test_reachability_ends_with_a_code_and_demands_reasons(
    script: Callable[[str], ModuleType],
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """1 while something is unreachable, 0 when all of it waits; a line without an issue is refused."""
    reach = script("reach")
    monkeypatch.setattr(reach, "ROOT", house)
    monkeypatch.setattr(reach, "WAITING", house / "waiting.txt")
    (house / "waiting.txt").write_text("# nothing yet\n")
    assert reach.main([]) == 1
    assert "src/maia/cli/key.py:4: maia.cli.key.forgotten" in capsys.readouterr().out
    assert reach.main(["--json"]) == 1
    shown = json.loads(capsys.readouterr().out)["unreachable"]
    (house / "waiting.txt").write_text("".join(f"{name}  # 3 of 8\n" for name in shown))
    assert reach.main(["--beside"]) == 0
    assert "maia.low.work.measured (only beside the product)" in capsys.readouterr().out
    assert reach.main(["--why", "maia.low.values.Kept.named"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "a door"
    (house / "waiting.txt").write_text("maia.cli.key.forgotten\n")
    with pytest.raises(ValueError, match="which issue"):
        reach.main([])
