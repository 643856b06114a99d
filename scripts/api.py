"""Write the generated parts of three reference pages from the code: Python API, data source options, ``maia.toml``.

Each page is written by hand but for the part between ``<!-- api -->`` and ``<!-- /api -->``, which is filled in here:
signatures and docstrings of what `import maia` gives, the options of ``format("maia")``, the settings of a home.
Without ``--check`` it writes; with it, it says which page is out of date and exits 1.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
REFERENCE = ROOT / "docs" / "reference"
BLOCK = re.compile(r"(<!-- api -->\n).*?(<!-- /api -->)", re.DOTALL)
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)

# What a notebook holds in its hands, by module; members that only upper floors call are left out.
PUBLIC: dict[str, tuple[str, ...]] = {
    "maia": ("open",),
    "maia.domain.domain": ("Domain",),
    "maia.domain.client": ("Client",),
    "maia.domain.publication": ("Published",),
    "maia.domain.look": ("Look",),
    "maia.domain.peers.inviting": ("InvitedPeer",),
    "maia.domain.peers.states": ("PeerState",),
    "maia.domain.releases.application": ("Released",),
    "maia.domain.releases.released_type": ("DefinedRelease",),
    "maia.domain.releases.preview": ("ReleasePreview",),
    "maia.home.release_ledger": ("ReleaseEntry",),
    "maia.domain.explanation": ("CellExplanation",),
    "maia.domain.readers": ("Readers", "Reader", "Refutation"),
    "maia.domain.what_if": ("WhatIf", "RightChange"),
    "maia.domain.comparison": ("Comparison", "Compared"),
}
FACADE = SOURCE / "maia" / "domain" / "facade"
"""Where methods of `Domain` are written by subject, as functions of a domain."""
SUBJECT = "domain"
INNER = frozenset(
    (
        "deliver_plan",
        "engine",
        "follow",
        "known",
        "log",
        "own_key_manager",
        "planner",
        "publish_plan",
        "reopen",
        "repeats",
    )
)


@dataclasses.dataclass(frozen=True, slots=True)
class Doc:
    """A docstring, taken apart: the text, and the named things under each heading."""

    text: str
    sections: dict[str, list[tuple[str, str]]]


def read_doc(docstring: str) -> Doc:
    """Take a Google-style docstring apart."""
    head, *rest = SECTION.split(inspect.cleandoc(docstring))
    sections = {name: _items(body) for name, body in zip(rest[::2], rest[1::2], strict=True)}
    return Doc(_flowed(head), sections)


def _items(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in body.strip("\n").splitlines():
        named = re.match(r" {4}(\*{0,2}\w+): (.*)", line)
        if named:
            found.append((named[1], named[2]))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif line.strip():
            found.append(("", line.strip()))
    return found


def _flowed(text: str) -> str:
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]
    return "\n\n".join(part.replace("``", "`") for part in parts)


def module(name: str) -> ast.Module:
    """Read a module of the source."""
    path = SOURCE / Path(*name.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))


def signature(node: ast.FunctionDef, *, of: str = "") -> str:
    """Write a function's signature as one would call it, over several lines when it is long."""
    arguments = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # type: ignore[attr-defined]
    if of and arguments.args and arguments.args[0].arg in {"self", "cls", SUBJECT}:
        del arguments.args[0]
    parts = [re.sub(r"^(\w+: .*?)=(?=[^=]*$)", r"\1 = ", part) for part in _split(ast.unparse(arguments)) if part]
    shown = f"{of}{node.name}({', '.join(parts)})"
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    if len(shown + result) <= 100:
        return shown + result
    return f"{of}{node.name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def _split(arguments: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def python_page() -> str:
    """Describe what `import maia` gives."""
    out: list[str] = []
    for name, wanted in PUBLIC.items():
        for node in module(name).body:
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                out += _function(node, of=f"{name}.", level="##")
            if isinstance(node, ast.ClassDef) and node.name in wanted:
                out += _class(node)
    return "\n".join(out)


def _class(node: ast.ClassDef) -> Iterator[str]:
    doc = read_doc(ast.get_docstring(node) or "")
    yield from (f"## {node.name}", "", doc.text, "")
    listed = [(name, text) for name, text in doc.sections.get("Attributes", []) if name not in INNER]
    listed += [
        (item.name, _flowed(ast.get_docstring(item) or ""))
        for item in _methods(node)
        if _is_property(item) and item.name not in INNER
    ]
    if listed:
        yield from _table("attribute", listed)
    for item in _methods(node):
        if not _is_property(item) and item.name not in INNER and item.name != "open":
            yield from _function(item, of=f"{node.name}.", level="###")


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    written = {item.name: item for file in FACADE.glob("*.py") for item in ast.parse(file.read_text("utf-8")).body
               if isinstance(item, ast.FunctionDef)}  # fmt: skip
    found = []
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            found.append(item)
        elif isinstance(item, ast.Assign) and ast.unparse(item.value).startswith(f"{FACADE.name}."):
            found.append(written[ast.unparse(item.targets[0])])
    return [item for item in found if not item.name.startswith("_")]


def _is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)


def _function(node: ast.FunctionDef, *, of: str, level: str) -> Iterator[str]:
    doc = read_doc(ast.get_docstring(node) or "")
    yield from (f"{level} {of}{node.name}", "", "```py", signature(node, of=of), "```", "", doc.text, "")
    told = [(name, text) for name, text in doc.sections.get("Args", []) if not of or name != SUBJECT]
    if told:
        yield from _table("argument", told)
    for heading in ("Returns", "Yields"):
        if heading in doc.sections:
            yield from (f"{heading}: {' '.join(text for _, text in doc.sections[heading])}".replace("``", "`"), "")
    if "Raises" in doc.sections:
        yield from _table("raises", doc.sections["Raises"], column="when")


def _table(first: str, rows: list[tuple[str, str]], *, column: str = "meaning") -> Iterator[str]:
    yield from (f"| {first} | {column} |", "|---|---|")
    yield from (f"| `{name}` | {_cell(text)} |" for name, text in rows)
    yield ""


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def spark_page() -> str:
    """Describe the options of the data source."""
    from maia.spark import options  # noqa: PLC0415 - the page is about the module as it is

    fields = {item.name: item for item in dataclasses.fields(options.SourceOptions)}
    meanings = dict(read_doc(options.SourceOptions.__doc__ or "").sections["Attributes"])
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for spelling, (field, _) in options._SPELLINGS.items():  # noqa: SLF001 - the one list of spellings
        rows.append(f"| `{spelling}` | {_default(fields[field])} | {_cell(meanings[field])} |")
    return "\n".join(rows) + "\n"


def settings_page() -> str:
    """Describe the settings of a home."""
    from maia.home import config  # noqa: PLC0415 - the page is about the module as it is

    meanings = dict(read_doc(config.HomeConfig.__doc__ or "").sections["Attributes"])
    rows = ["| setting | table | value | default | meaning |", "|---|---|---|---|---|"]
    for item in dataclasses.fields(config.HomeConfig):
        table = "`[services]`" if item.name in config._SERVICES else ""  # noqa: SLF001 - as the file is read
        names, kind = f"`{item.name}`", "number" if "int" in str(item.type) else "text"
        if item.name == "network":
            names, table, kind = "`owner`, `name`", "`[network]`", "text, both"
        if "bool" in str(item.type):
            kind = "`true` or `false`"
        rows.append(f"| {names} | {table} | {kind} | {_default(item)} | {_cell(meanings[item.name])} |")
    return "\n".join(rows) + "\n"


def _default(field: dataclasses.Field[object]) -> str:
    value = field.default
    if value is dataclasses.MISSING:
        return "*needed*"
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "python.md": python_page,
    REFERENCE / "spark.md": spark_page,
    REFERENCE / "settings.md": settings_page,
}


def filled(page: Path) -> str:
    """Give a page with its generated part as the code is now."""
    made = PAGES[page]()
    return BLOCK.sub(lambda match: f"{match[1]}\n{made.strip()}\n\n{match[2]}", page.read_text("utf-8"))


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or with --check say which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is out of date")
    options = parser.parse_args(arguments)
    stale = 0
    for page in PAGES:
        old, new = page.read_text("utf-8"), filled(page)
        if old != new and options.check:
            stale = 1
            print(f"{page.relative_to(ROOT)} is out of date: make fmt renews it", file=sys.stderr)
        elif old != new:
            page.write_text(new, "utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
