"""The rule of `tests/acceptance`: it goes through doors, and nowhere else is a requirement row claimed."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "acceptance"
DOCUMENTED = frozenset(
    {
        "errors", "encoding", "principals", "events", "filters", "labels", "authority", "encryption", "policy",
        "clients", "testing", "routing", "simulator", "wire",
    }
)  # fmt: skip
"""The packages a user may import, beside ``maia`` itself; `maia.testing` builds the worlds."""
OWN_ROOTS = frozenset({"maia", "pyspark_maia"})
THIRD_PARTIES = frozenset(
    [
        "pytest",
        "pyspark",
        "pyarrow",
        "pandas",
        "numpy",
        "hypothesis",
        "cryptography",
        "httpx",
        "httpx2",
        "confluent_kafka",
        "websockets",
    ]
)


def modules(tree: ast.Module) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """List what a file imports: line, module, names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, ()
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or ""), tuple(alias.name for alias in node.names)


def offences(text: str, *, beside: frozenset[str] = frozenset()) -> list[str]:
    """Say what in a file goes past the doors: imports, names that are private, modules named by strings."""
    found = []
    tree = ast.parse(text)
    for line, module, names in modules(tree):
        root, *inner = module.split(".")
        if root in OWN_ROOTS:
            if root != "maia" or len(inner) > 1 or (inner and inner[0] not in DOCUMENTED):
                found.append(f"{line}: `{module}` is no door")
            elif not inner and set(names) - DOCUMENTED - {"open", "__version__"}:
                found.append(f"{line}: `maia` documents no such name")
            found += [
                f"{line}: `{name}` is private" for name in names if name.startswith("_") and name != "__version__"
            ]
        elif root not in sys.stdlib_module_names | THIRD_PARTIES | beside or root == "importlib":
            found.append(f"{line}: `{module}` is neither a door nor a third party")
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (match := re.fullmatch(r"(maia|pyspark_maia)\.(\w+)(\.\w+)*", node.value))
            and not (match[1] == "maia" and match[2] in DOCUMENTED and match[3] is None)
            and (ROOT / "src" / "maia" / match[2]).exists()
        ):
            found.append(f"{node.lineno}: `{node.value}` names a module behind the doors")
    return found


FILES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_acceptance_tests_go_through_doors(path: Path) -> None:
    """Nothing but `maia`, the packages it documents, `maia.testing` and third parties."""
    beside = frozenset(item.stem for item in FILES)
    assert offences(path.read_text("utf-8"), beside=beside) == []


def test_no_other_test_claims_a_requirement_row() -> None:
    """A mark elsewhere would count as shown what no door leads to."""
    forms = re.compile(r"mark\.requirement\(")
    files = [path for path in (ROOT / "tests").rglob("*.py") if FOLDER not in path.parents]
    excepted = {Path(__file__), ROOT / "tests" / "unit" / "test_scripts.py"}  # they speak of marks in texts
    assert [path.name for path in files if path not in excepted and forms.search(path.read_text("utf-8"))] == []


WRONG = {
    "an inner floor": "from maia.kernel import Sessions",
    "an inner module of a documented package": "from maia.authority.types import verify_event_type",
    "the floor as a module": "import maia.domain",
    "a name of the root": "from maia import domain",
    "a private name": "from maia.authority import _walk",
    "a helper of other tests": "from domain_world import met",
    "a module loaded by its name": "import importlib",
    "a patch by string": "patch('maia.kernel.rows')",
    "the data source's package": "import pyspark_maia",
}
RIGHT = {
    "the root": "import maia",
    "a documented package": "from maia.authority import Verifier",
    "a world": "from maia.testing import People",
    "third parties": "import json\nimport pyarrow as pa\nfrom pyspark.sql import SparkSession",
    "the errors": "from maia.errors import MaiaError",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_goes_past_the_doors_is_found(text: str) -> None:
    """Each way around is one offence."""
    assert len(offences(text)) == 1


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_doors_are_no_offence(text: str) -> None:
    """What users may import, tests may."""
    assert offences(text) == []
