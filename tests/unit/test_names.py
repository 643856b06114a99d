"""A public class name means one thing in the whole house."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def classes() -> dict[str, list[str]]:
    """List the public classes of the source with the modules that define them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SOURCE).as_posix())
    return found


def test_public_class_names_are_unique() -> None:
    """Who reads a name in a message, a page or a traceback knows which class it is."""
    assert {name: where for name, where in classes().items() if len(where) > 1} == {}


def test_what_a_notebook_holds_has_a_name_of_its_own() -> None:
    """The classes of the Python API are not shadowed by any other."""
    found = classes()
    assert {name: len(found[name]) for name in ("Client", "Domain", "Home", "Published", "CellExplanation")} == {
        "Client": 1, "Domain": 1, "Home": 1, "Published": 1, "CellExplanation": 1,
    }  # fmt: skip
