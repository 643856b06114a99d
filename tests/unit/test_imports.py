"""What importing Maia costs and touches: nothing heavy, no clock, no disk, no session."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "maia"
DEFINING = [
    *("errors", "encoding", "principals", "events", "filters", "labels", "authority"),
    *("encryption", "policy", "routing", "kernel", "reasoning"),
]
PURE = [floor for floor in DEFINING if floor != "errors"]
FORBIDDEN_MODULES = {
    *("asyncio", "glob", "http", "multiprocessing", "os", "pathlib", "random", "shutil", "socket", "sqlite3", "ssl"),
    *("subprocess", "tempfile", "threading", "time", "urllib", "platformdirs", "requests", "httpx", "pyspark", "typer"),
    *("rich", "fastapi", "sqlalchemy"),
}
FORBIDDEN_CALLS = {"open", "input", "print", "exec", "eval", "__import__"}
CLOCKS = {"now", "utcnow", "today"}
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}


def built(floors: list[str]) -> list[str]:
    """Keep the floors that exist."""
    return [floor for floor in floors if (SOURCE / floor).is_dir() or (SOURCE / f"{floor}.py").is_file()]


def loaded_by(statement: str, blocked: tuple[str, ...] = ()) -> set[str]:
    """Run an import in a clean process and list the top packages that it loaded."""
    program = (
        f"import sys, json\nfor name in {blocked!r}: sys.modules[name] = None\n{statement}\n"
        "print(json.dumps(sorted({name.split('.')[0] for name, module in sys.modules.items() if module})))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_importing_maia_loads_nothing_heavy() -> None:
    """`import maia` is quick: no Spark, pandas, Arrow, numpy, typer, rich."""
    heavy = {"pyspark", "pandas", "pyarrow", "numpy", "typer", "rich", "cryptography", "lark"}
    assert loaded_by("import maia") & heavy == set()


@pytest.mark.parametrize("floor", built(DEFINING))
def test_lower_floors_import_without_spark_or_services(floor: str) -> None:
    """Each floor that defines or decides imports in a clean process without Spark and the service libraries."""
    blocked = ("pyspark", "pandas", "fastapi", "uvicorn", "typer", "rich", "sqlalchemy")
    assert "maia" in loaded_by(f"import maia.{floor}", blocked)


@pytest.mark.skipif(not (SOURCE / "cli" / "__init__.py").is_file(), reason="there is no command line yet")
def test_the_command_line_starts_without_spark() -> None:
    """Start-up stays short because nothing heavy is imported before a command needs it."""
    assert loaded_by("import maia.cli") & {"pyspark", "pandas", "pyarrow", "numpy"} == set()


def impurities(source: str) -> list[str]:
    """List the imports and calls by which code would touch the disk, the network, a clock or chance."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [node.module] if node.module.split(".")[0] in FORBIDDEN_MODULES else []
        elif isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id in FORBIDDEN_CALLS:
                found.append(f"{function.id}()")
            elif isinstance(function, ast.Attribute) and function.attr in CLOCKS:
                found.append(f".{function.attr}()")
    return found


@pytest.mark.parametrize("floor", built(PURE))
def test_pure_floors_do_no_io_and_read_no_clock(floor: str) -> None:
    """From `encoding` to `reasoning`, time comes in as `at=` and outside things through ports."""
    files = [SOURCE / f"{floor}.py"] if (SOURCE / f"{floor}.py").is_file() else sorted((SOURCE / floor).rglob("*.py"))
    found = {str(path.relative_to(SOURCE)): impurities(path.read_text("utf-8")) for path in files}
    assert {file: what for file, what in found.items() if what} == {}


IMPURE = {
    "a clock": ("from datetime import datetime\ndatetime.now()", [".now()"]),
    "the disk": ("open('x')", ["open()"]),
    "a forbidden module": ("import os.path", ["os.path"]),
    "a forbidden name": ("from time import monotonic", ["time"]),
    "nothing": ("import hashlib\nhashlib.sha256(b'')", []),
}


@pytest.mark.parametrize("source, expected", IMPURE.values(), ids=IMPURE)
def test_impurities_are_found(source: str, expected: list[str]) -> None:
    """The check above sees each kind of impurity, and only those."""
    assert impurities(source) == expected


def test_no_module_has_a_name_that_says_nothing() -> None:
    """No `utils`, `helpers` or `common`: a module is called after its subject."""
    assert [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*") if path.stem in NAMELESS] == []


def test_no_session_is_made_at_import() -> None:
    """No module builds a Spark session at its top level."""
    guilty = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                guilty += [path.name] if "SparkSession" in names else []
    assert guilty == []


def test_only_the_doors_load_modules_by_name() -> None:
    """A string hides an arrow: `lazy` loads what a package lists, the command a verb's module; nothing else does."""
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, (ast.Name, ast.Attribute, ast.alias))
        and "import_module" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))
    }
    assert found == {"lazy.py", "cli/group.py"}
