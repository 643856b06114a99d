"""The architecture page speaks of files and functions that are there, and its picture shows every floor."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
TEXT = PAGE.read_text("utf-8")
# A row of a table of hops: a file, then a function of it; or "`function` in `file`" in running text.
HOP = re.compile(r"^\| \d+ \| `(src/maia/[\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)
NAMED = re.compile(r"`([\w.]+)` in\s+`(src/maia/[\w/]+\.py)`")
HOPS = [*HOP.findall(TEXT), *((file, name) for name, file in NAMED.findall(TEXT))]


def defined(path: Path) -> set[str]:
    """List the functions, classes and methods of a module, methods as ``Class.method``."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


def test_the_page_names_enough_hops() -> None:
    """Both ways are described: the page would pass the other tests with nothing on it."""
    assert len(HOP.findall(TEXT)) >= 20


def test_a_way_has_at_most_twelve_hops() -> None:
    """Nobody has to hold more in mind: each of the two tables is short."""
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| `src/", TEXT, re.MULTILINE)]
    assert numbers.count(1) == 2
    assert max(numbers) <= 12


@pytest.mark.parametrize("file, name", HOPS, ids=[f"{file}:{name}" for file, name in HOPS])
def test_a_hop_is_there(file: str, name: str) -> None:
    """A function that moved or was renamed is moved or renamed on the page as well."""
    assert (ROOT / file).is_file(), f"there is no {file}"
    assert name in defined(ROOT / file)


def test_every_path_of_the_page_exists() -> None:
    """Whatever is written as a path under src leads somewhere."""
    paths = set(re.findall(r"`(src/[\w/.]+)`", TEXT))
    assert paths
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_the_picture_shows_the_floors_in_their_order() -> None:
    """docs/images/floors.svg draws every floor that import-linter knows, from the roof to the ground."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(item["layers"] for item in settings["contracts"] if item["type"] == "layers")
    floors = [[name.strip("() ") for name in layer.split("|")] for layer in layers]
    picture = (ROOT / "docs" / "images" / "floors.svg").read_text("utf-8")
    drawn = [text.split(" · ") for text in re.findall(r'font-weight="600"[^>]*>([\w ·]+)<', picture)]
    assert drawn == floors


def test_the_decision_lists_the_floors_in_their_order() -> None:
    """ADR 0015 and the linter agree."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(item["layers"] for item in settings["contracts"] if item["type"] == "layers")
    text = " ".join((ROOT / "docs" / "adr" / "0015-the-layout-of-floors.md").read_text("utf-8").split())
    order = text.partition("From the ground: ")[2].partition(".")[0]
    found = [name for name in re.findall(r"\w+", order) if (ROOT / "src" / "maia" / name).exists() or name == "errors"]
    floors = [name.strip() for layer in reversed(layers) if "(" not in layer for name in layer.split("|")]
    assert found == floors
