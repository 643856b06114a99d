"""The programs of examples/ run as they are, stay small, and use only what a user has."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
DOCUMENTED = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference" / "packages.md").read_text("utf-8"), re.MULTILINE)

# What each program prints, among other things, in this order.
PRINTS = {
    "batch.py": [
        "published 3 events in commit 0",
        "published 3 events in commit 0, as before",
        "|    Ben| sodium|140.0|",
        "|   NULL|glucose|  7.9|",
        "researcher never sees `patient`",
        "| withhold|researcher|NO_MATCH|          1|",
    ],
    "streaming.py": [
        "first: [(None, 'Euston'), (None, 'Victoria')]",
        "then: [(None, 'Paddington')]",
        "nothing new: []",
    ],
    "labels.py": [
        "brown reads, and the copy may go public: False",
        "brown is refused the later report: FLOW",
        "the counter lets out: True",
        "the same meaning: True",
        "public there: False",
    ],
    "notebook.py": ["published 2 events in commit 0", "Mill Lane", "courier never sees `customer`"],
    "two_domains.py": ["published 1 event in commit 0", "|aspirin|100 mg|     NULL|"],
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PRINTS)
def test_example_runs(name: str, tmp_path: Path) -> None:
    """A new user who runs it sees what it promises."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path), "NO_COLOR": "1"}
    run = subprocess.run(
        [sys.executable, EXAMPLES / name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    place = 0
    for line in PRINTS[name]:
        found = run.stdout.find(line, place)
        assert found >= 0, f"`{line}` is missing, or comes too early:\n{run.stdout}"
        place = found + len(line)


def test_every_program_is_run() -> None:
    """No example is added without being run."""
    assert [path.name for path in PROGRAMS] == sorted(PRINTS)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_example_is_small_and_uses_doors_only(path: Path) -> None:
    """An example has fewer than 60 lines, and of Maia imports what the page of packages documents."""
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 60
    used = {
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [item.name for item in node.names] if isinstance(node, ast.Import)
            else []
        )
        if name.split(".")[0] in {"maia", "pyspark_maia"}
    }  # fmt: skip
    assert used - {"maia", *DOCUMENTED} == set()


def test_the_notebook_has_the_cells_of_its_text_and_no_outputs() -> None:
    """What is run as text is what a reader opens as a notebook."""
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text("utf-8"))
    assert notebook["nbformat"] == 4
    cells = notebook["cells"]
    assert all(cell.get("outputs", []) == [] and cell.get("execution_count") is None for cell in cells)
    text = (EXAMPLES / "notebook.py").read_text("utf-8")
    parts = [part.partition("\n") for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]]
    wanted = [
        ("markdown", re.sub(r"^# ?", "", body.strip("\n"), flags=re.MULTILINE)) if "[markdown]" in head
        else ("code", body.strip("\n"))
        for head, _, body in parts
    ]  # fmt: skip
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == wanted
