"""Doors that load on first use, and what could stand in them."""

from __future__ import annotations

import ast

import pytest


def offered(tree):
    """Return the names that a package's `on_first_use` lists."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("on_first_use"):
            lists = [
                part.keys if isinstance(part, ast.Dict) else part.elts
                for part in ast.walk(node)
                if isinstance(part, ast.Dict | ast.Tuple)  # `{…}`, or the names of a `dict.fromkeys`
            ]
            return {key.value for listed in lists for key in listed}
    return set()


def shadowed(package):
    """Return the offered names that are modules of the package as well: the order of imports decides."""
    modules = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    return offered(ast.parse((package / "__init__.py").read_text("utf-8"))) & modules


def test_no_name_is_hidden_by_a_module(repository):
    """An imported module becomes an attribute of its package, and hides what the package offers by that name."""
    packages = [init.parent for init in (repository / "src" / "maia").rglob("__init__.py")]
    assert sum(bool(offered(ast.parse((package / "__init__.py").read_text("utf-8")))) for package in packages) > 5
    assert {str(package): names for package in packages if (names := shadowed(package))} == {}


@pytest.mark.parametrize("module, found", [("screen", set()), ("console", {"console"})])
def test_a_hidden_name_is_found(tmp_path, module, found):
    """The check can fail."""
    (tmp_path / "__init__.py").write_text('__getattr__ = on_first_use(__name__, {"console": "show"})', "utf-8")
    (tmp_path / f"{module}.py").touch()
    assert shadowed(tmp_path) == found
