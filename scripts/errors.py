"""Write docs/reference/errors.md from the code: every error code, its class, its family and what it says.

Codes are found by reading the source, not by importing it: class attributes ``default_code``, and every call with a
literal ``code=``. A call of a local function that builds an error counts for the class that the function builds.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "maia"
TARGET = ROOT / "docs" / "reference" / "errors.md"
CODE = re.compile(r"[A-Z][A-Z0-9_]+")

# Who must act, by family; the words of the tree in maia.errors.
ACTS = {
    "MalformedError": "the bytes or the text are wrong; the sender fixes them",
    "VerificationError": "not proven; treat as a denial",
    "DeniedError": "proven, and refused; ask for rights",
    "FlowError": "a label rule is broken; declassify, or stop",
    "SealError": "cannot unseal; deliberately without a reason",
    "UnavailableError": "something outside did not answer, or is not there; retry or create it",
    "UsageError": "the call is wrong; fix it",
    "MaiaError": "the root; nothing raises it directly",
}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Use:
    """One place that gives an error a code."""

    code: str
    error: str
    module: str
    says: str


def error_tree() -> dict[str, tuple[str, str, str]]:
    """Read the error classes anywhere in the source: name -> (parent, default code, first line of the docstring)."""
    tree: dict[str, tuple[str, str, str]] = {}
    classes = [node for _, module in modules() for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    grown = True
    while grown:  # bounded: each round adds a class or ends
        grown = False
        for node in classes:
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            parent = next((base for base in bases if base in tree), "")
            if node.name not in tree and (parent or node.name == "MaiaError"):
                tree[node.name] = (parent, default_code(node), (ast.get_docstring(node) or "").split("\n")[0])
                grown = True
    return tree


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Parse every module of the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text("utf-8"))


def default_code(node: ast.ClassDef) -> str:
    """Read the class attribute ``default_code``, or nothing."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Constant):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == "default_code" for target in targets):
                return str(statement.value.value)
    return ""


def called_name(call: ast.Call) -> str:
    """Give the last part of the name that a call calls."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def builders(module: ast.Module, tree: dict[str, tuple[str, str, str]]) -> dict[str, str]:
    """Find local functions that build one kind of error: function name -> class name."""
    found = {}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            built = {
                called_name(call)
                for call in ast.walk(node)
                if isinstance(call, ast.Call)
                and called_name(call) in tree
                and any(word.arg == "code" and isinstance(word.value, ast.Name) for word in call.keywords)
            }
            if len(built) == 1:
                found[node.name] = built.pop()
    return found


def words(node: ast.expr | None) -> str:
    """Give the message of an error, with `…` for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [words(value) if isinstance(value, ast.Constant) else "…" for value in node.values]
        return "".join(parts)
    return ""


def literal_codes(value: ast.expr) -> list[str]:
    """List the codes an argument may be: a literal, or both arms of a conditional."""
    if isinstance(value, ast.IfExp):
        return literal_codes(value.body) + literal_codes(value.orelse)
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
        return [value.value]
    return []


def uses() -> list[Use]:
    """Find every use of every code, sorted."""
    tree = error_tree()
    found = {
        Use(code=code, error=name, module="maia.errors", says=says) for name, (_, code, says) in tree.items() if code
    }
    for module_name, module in modules():
        local = builders(module, tree)
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            error = called_name(call) if called_name(call) in tree else local.get(called_name(call), "")
            if not error:
                continue
            for keyword in call.keywords:
                if keyword.arg == "code":
                    message = next((text for text in map(words, call.args) if text), "")
                    for code in literal_codes(keyword.value):
                        found.add(Use(code=code, error=error, module=module_name, says=message))
    return sorted(found)


def family(error: str, tree: dict[str, tuple[str, str, str]]) -> str:
    """Climb to the class right below the root."""
    while tree[error][0] not in {"", "MaiaError"}:
        error = tree[error][0]
    return error


def conflicts() -> list[str]:
    """List the codes that stand for more than one family of errors.

    A usage error may share the code of another family: the same mistake, made by the caller and not by the sender.
    """
    tree = error_tree()
    families: dict[str, set[str]] = {}
    for use in uses():
        families.setdefault(use.code, set()).add(family(use.error, tree))
    shared = {code: sorted(names - {"UsageError"}) for code, names in sorted(families.items())}
    return [f"{code}: {', '.join(names)}" for code, names in shared.items() if len(names) > 1]


def cell(text: str) -> str:
    """Make a text fit into a table cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def render() -> str:
    """Give the whole page."""
    tree = error_tree()
    lines = [
        "# Errors",
        "",
        "<!-- Written by scripts/errors.py; `make fmt` renews it. -->",
        "",
        "Every error Maia raises carries a stable code, shown before the message and as `code` in `--json`.",
        "The family says who must act; `…` in a message stands for what is filled in.",
        "",
    ]
    table: dict[str, dict[str, list[Use]]] = {name: {} for name in ACTS}
    for use in uses():
        table[family(use.error, tree)].setdefault(use.code, []).append(use)
    for name, codes in table.items():
        lines += [f"## {name}", "", f"{ACTS[name][0].upper()}{ACTS[name][1:]}.", ""]
        lines += ["| code | error | raised in | says |", "|---|---|---|---|"]
        for code, found in sorted(codes.items()):
            places = sorted({use.module for use in found if use.module != "maia.errors"}) or ["maia.errors"]
            says = list(dict.fromkeys(cell(use.says) for use in found if use.says))[:3]
            errors = sorted({use.error for use in found})
            where = ", ".join(f"`{place}`" for place in places[:4])
            lines.append(f"| `{code}` | {', '.join(f'`{e}`' for e in errors)} | {where} | {'; '.join(says)} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of date")
    options = parser.parse_args(arguments)
    text = render()
    if options.check:
        return 0 if TARGET.is_file() and TARGET.read_text("utf-8") == text else 1
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
