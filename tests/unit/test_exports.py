"""A package's `__all__` is its API: exact, sorted, and the only door for other packages."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "maia"
INITS = {str(path.parent.relative_to(SOURCE.parent)).replace("/", "."): path for path in SOURCE.rglob("__init__.py")}
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}


def declared(path: Path) -> list[str] | None:
    """Read `__all__` from the source, or nothing when there is none."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                return list(ast.literal_eval(node.value))
    return None


def public_names(path: Path) -> set[str]:
    """List the public names that the top level of a module binds."""
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def reading_order(name: str) -> tuple[object, ...]:
    """Give ruff's order of `__all__`: constants, classes, the rest; each by name, numbers as numbers."""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, [(part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", name) if part]


@pytest.mark.parametrize("package", INITS)
def test_all_is_exact_and_sorted(package: str) -> None:
    """Every public name of an `__init__` is in `__all__`, every name of `__all__` exists, and they are in order."""
    path = INITS[package]
    names = declared(path)
    found = public_names(path)
    if names is None:
        assert found == set(), f"{package} binds public names but has no __all__"
        return
    assert names == sorted(set(names), key=reading_order)
    module = importlib.import_module(package)
    assert [name for name in names if not hasattr(module, name)] == []
    assert found - set(names) == set()


def test_top_packages_state_their_api() -> None:
    """Every floor that is a package has an `__all__` with at least one name."""
    floors = [package for package in INITS if package.count(".") <= 1]
    assert [package for package in floors if not declared(INITS[package])] == []


def deep_imports(path: Path) -> list[str]:
    """List imports that reach into another package's inner modules."""
    own = path.relative_to(SOURCE).parts[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        targets: list[tuple[str, str]] = []
        if isinstance(node, ast.Import):
            targets = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            targets = [(node.module, alias.name) for alias in node.names]
        for module, name in targets:
            parts = module.split(".")
            if parts[0] != "maia" or len(parts) < 2 or parts[1] == own:
                continue
            package = SOURCE / parts[1]
            submodule = (package / f"{name}.py").is_file() or (package / name / "__init__.py").is_file()
            hidden = submodule and name not in (declared(package / "__init__.py") or ())
            if package.is_dir() and (len(parts) > 2 or hidden):
                found.append(f"line {node.lineno}: {module} {name}".strip())
    return found


@pytest.mark.parametrize("file", FILES)
def test_no_import_reaches_into_another_package(file: str) -> None:
    """Other packages are used through what they export, never through an inner module."""
    assert deep_imports(FILES[file]) == []


def test_a_deep_import_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above refuses both spellings of a deep import and allows the door."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "__init__.py").write_text('__all__ = ["thing"]\n')
    (tmp_path / "one" / "inner.py").write_text("")
    (tmp_path / "two" / "__init__.py").write_text("")
    user = tmp_path / "two" / "user.py"
    user.write_text("from maia.one import thing\nfrom maia.one.inner import x\nfrom maia.one import inner\n")
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    assert [line.split(":")[0] for line in deep_imports(user)] == ["line 2", "line 3"]
