"""The measuring scripts: `house.py` sees what breaks the structure, `mutations.py` knows where its rules stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = """
[[tool.importlinter.contracts]]
name = "floors"
type = "layers"
containers = ["maia"]
layers = ["roof | attic", "(missing)", "ground"]
"""


@pytest.fixture
def house(script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the script over a small house of three floors, whose page is up to date."""
    loaded = script("house")
    source = tmp_path / "src" / "maia"
    files = {
        "ground/__init__.py": '__all__ = ["a"]\nfrom maia.ground.one import a\n',
        "ground/one.py": "a = 1\n",
        "roof/__init__.py": "",
        "roof/two.py": "from maia.ground import a\n",
        "attic/__init__.py": "from maia.ground.one import a\n",
    }
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, "utf-8")
    monkeypatch.setattr(loaded, "ROOT", tmp_path)
    monkeypatch.setattr(loaded, "SOURCE", source)
    monkeypatch.setattr(loaded, "PAGE", tmp_path / "house.md")
    monkeypatch.setattr(loaded, "REASONS", {})
    assert loaded.main([]) == 0
    return loaded


def test_a_sound_house_is_measured_and_passes(house: ModuleType) -> None:
    """Floors in order, with their arrows; nothing points up, nothing goes round."""
    page = house.PAGE.read_text("utf-8")
    assert "5 files, 5 lines" in page
    assert "| ground | 2 |" in page
    assert "| imports upward | 0 |" in page
    assert "roof -->|1| ground" in page
    assert "| functions that no door reaches | not measured |" in page
    assert "requirement rows are shown through a door" in page
    assert house.main(["--check"]) == 0


def test_a_page_that_states_another_number_of_rows_is_refused(
    house: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of shown rows is never typed by hand."""
    house.PAGE.write_text(house.PAGE.read_text("utf-8").replace(house.rows_shown(), "All rows are shown."), "utf-8")
    assert house.main(["--check"]) == 1
    assert "another number of requirement rows" in capsys.readouterr().err


BROKEN = {
    "an import upward": ("ground/one.py", "from maia.roof import two\na = 1\n", "stands above"),
    "an import between neighbours": ("attic/__init__.py", "import maia.roof.two\n", "stands above"),
    "a cycle of modules": ("roof/two.py", "import maia.roof.three\n", "modules import each other"),
    "a file that is too long": ("roof/long.py", "a = 1\n" * 401, "more than 400"),
    "a floor that the page does not know": ("cellar/__init__.py", "", "names other floors"),
}


@pytest.mark.parametrize("name, text, words", BROKEN.values(), ids=BROKEN)
def test_what_breaks_the_structure_is_said(
    house: ModuleType, capsys: pytest.CaptureFixture[str], name: str, text: str, words: str
) -> None:
    """Each has its sentence, and the exit code 1."""
    path = house.SOURCE / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    (house.SOURCE / "roof" / "three.py").write_text("from maia.roof import two\n", "utf-8")
    if name.startswith("cellar"):
        project = house.ROOT / "pyproject.toml"
        project.write_text(project.read_text("utf-8").replace('"ground"]', '"ground", "cellar"]'), "utf-8")
    assert house.main(["--check"]) == 1
    assert words in capsys.readouterr().err


def test_imports_inside_functions_and_for_types_make_no_cycle(house: ModuleType) -> None:
    """Only what runs when a module loads counts."""
    (house.SOURCE / "roof" / "three.py").write_text("from maia.roof import two\n", "utf-8")
    later = (
        "import typing\nif typing.TYPE_CHECKING:\n    import maia.roof.three\ndef f():\n    import maia.roof.three\n"
    )
    (house.SOURCE / "roof" / "two.py").write_text(later, "utf-8")
    assert house.main(["--check"]) == 0


def test_every_mutation_can_be_made(script: Callable[[str], ModuleType]) -> None:
    """Each text stands exactly once where the table says; else the rule moved, and the table must follow."""
    mutations = script("mutations")
    source = mutations.ROOT / "src"
    assert {item.rule: wrong for item in mutations.MUTATIONS if (wrong := mutations.find(item, source))} == {}
    assert len({item.rule for item in mutations.MUTATIONS}) == len(mutations.MUTATIONS) >= 25


def test_a_mutation_names_tests_that_exist(script: Callable[[str], ModuleType]) -> None:
    """A test that is renamed would be asked in vain."""
    mutations = script("mutations")
    folder = mutations.ROOT / mutations.TESTS
    for item in mutations.MUTATIONS:
        for test in item.tests:
            name, _, function = test.partition("[")[0].partition("::")
            assert f"def {function}" in (folder / name).read_text("utf-8"), test


def test_a_sample_is_the_same_for_the_same_seed(
    script: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    """So CI can be repeated by hand; a sample of none is refused."""
    mutations = script("mutations")
    seen = []
    for seed in ("1", "1", "2"):
        assert mutations.main(["--check", "--sample", "4", "--seed", seed]) == 0
        seen.append(capsys.readouterr().out)
    assert seen[0] == seen[1] != seen[2]
    assert mutations.main(["--check", "--only", "no such rule"]) == 1
