"""Write docs/reference/house.md: the floors of the house, measured.

What is counted: files and lines of each floor, how long files are, which floor imports which, cycles, upward imports,
public names, long functions, own classes that inherit from own concrete classes, class names that two modules share,
modules named by gerunds, and, when scripts/reach.py is there, functions that no door reaches.

``--check`` writes nothing. It exits 1 when the structure is broken: a cycle between or inside floors, an import upward,
a file above the limit without a stated reason, or a page that names other floors or another number of requirement rows
than there are. Other numbers may move.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "maia"
PAGE = ROOT / "docs" / "reference" / "house.md"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
LINES_AIM, COMMAND_AIM, HOPS_AIM = 50_000, 6_000, 12
FILE_LIMIT = 400
FUNCTION_LIMIT = 60
PUBLIC_LIMIT = 40

REASONS: Mapping[str, str] = {
    "domain/__init__.py": "the names of the floor, a line each, and no code",
    "access_control/service.py": "the service's whole interface, a line or two a call; each subject has its own file",
}
"""Why a file may be longer than the limit."""


@dataclass(frozen=True, slots=True)
class Module:
    """One file: its name from the root package, its lines, and what it imports of the house."""

    name: str
    path: Path
    lines: int
    tree: ast.Module = field(repr=False)
    imports: frozenset[str]
    at_load: frozenset[str]

    @property
    def floor(self) -> str:
        """The part of the house it stands in; the files beside the floors are each one of their own."""
        return self.name.split(".")[1] if "." in self.name else self.name


@dataclass(frozen=True, slots=True)
class House:
    """All modules, and the layers of floors, ground floor first; floors of one layer are strangers."""

    modules: Mapping[str, Module]
    layers: tuple[tuple[str, ...], ...]

    @property
    def order(self) -> tuple[str, ...]:
        """The floors, ground floor first; neighbours one after the other."""
        return tuple(name for layer in self.layers for name in layer)

    def floors(self) -> dict[str, list[Module]]:
        """Group the modules by floor, ground floor first."""
        grouped: dict[str, list[Module]] = {name: [] for name in self.order}
        for module in self.modules.values():
            if module.floor in grouped:
                grouped[module.floor].append(module)
        return {name: modules for name, modules in grouped.items() if modules}

    def arrows(self) -> Counter[tuple[str, str]]:
        """Count the imports from floor to floor."""
        found: Counter[tuple[str, str]] = Counter()
        known = set(self.order)
        for module in self.modules.values():
            for target in module.imports:
                pair = (module.floor, self.modules[target].floor)
                if pair[0] != pair[1] and set(pair) <= known:
                    found[pair] += 1
        return found

    def upward(self) -> list[tuple[str, str]]:
        """List the arrows that point up, or to a neighbour that should be a stranger."""
        rank = {name: number for number, layer in enumerate(self.layers) for name in layer}
        return sorted(pair for pair in self.arrows() if rank[pair[0]] <= rank[pair[1]])

    def cycles_between(self) -> list[tuple[str, ...]]:
        """List the groups of floors that import each other."""
        graph: dict[str, set[str]] = defaultdict(set)
        for start, end in self.arrows():
            graph[start].add(end)
        return components(graph)

    def cycles_inside(self) -> list[tuple[str, ...]]:
        """List the groups of modules that import each other when they load; a package's ``__init__`` counts too."""
        graph: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            inits = {name for target in module.at_load for name in packages_above(target) if name in self.modules}
            graph[module.name] |= (set(module.at_load) | inits) - set(packages_above(module.name)) - {module.name}
        return components(graph)


def packages_above(name: str) -> Iterator[str]:
    """List the packages that a module lies in: importing it runs their ``__init__`` first."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(2, len(parts)))


def components(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """List the strongly connected parts of more than one node (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []
    for root in graph:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(sorted(graph.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                    if len(part) > 1:
                        found.append(tuple(sorted(part)))
    return sorted(found)


def floor_layers() -> tuple[tuple[str, ...], ...]:
    """Read the layers from the import rules, ground floor first."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [layers] = [rule["layers"] for rule in rules if rule["type"] == "layers" and rule.get("containers") == ["maia"]]
    return tuple(tuple(name.strip(" ()") for name in re.split(r"[|:]", layer)) for layer in reversed(layers))


def read_house() -> House:
    """Read every module below the root."""
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        trees[name] = (path, len(text.splitlines()), ast.parse(text))
    modules = {
        name: Module(name, path, lines, tree, imports_of(tree, trees), imports_of(tree, trees, at_load=True))
        for name, (path, lines, tree) in trees.items()
    }
    return House(modules, floor_layers())


def imports_of(tree: ast.Module, known: Iterable[str], *, at_load: bool = False) -> frozenset[str]:
    """Find the modules of the house that a file imports; ``at_load`` leaves out functions and what only types need."""
    names = set(known)
    found = set()
    for node in walk_at_load(tree) if at_load else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            found |= inner or ({node.module} & names)
    return frozenset(found)


def walk_at_load(tree: ast.Module) -> Iterator[ast.AST]:
    """Go through what runs when a module is imported."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def public_names(modules: Iterable[Module], floor: str) -> int:
    """Count what a floor's ``__all__`` offers."""
    for module in modules:
        if module.name == f"maia.{floor}":
            for node in module.tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    return len(ast.literal_eval(node.value))
    return 0


def long_functions(house: House) -> list[tuple[int, str]]:
    """List functions above the limit, longest first."""
    found = []
    for module in house.modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LIMIT:
                    found.append((length, f"{module.name}.{node.name}"))
    return sorted(found, reverse=True)


def classes(house: House) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Go through all classes at the top of their modules."""
    for module in house.modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                yield module, node


def heirs(house: House) -> list[str]:
    """List own classes that inherit from own concrete classes; errors, protocols and abstract classes excepted."""
    own = {node.name: (module, node) for module, node in classes(house)}

    def is_concrete(name: str) -> bool:
        if name not in own or own[name][0].name == "maia.errors" or name.endswith("Error"):
            return False
        bases = {ast.unparse(base).split("[")[0] for base in own[name][1].bases}
        return not bases & {"Protocol", "ABC", "Exception", "Enum", "StrEnum", "NamedTuple", "TypedDict"}

    found = []
    for module, node in classes(house):
        parents = [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
        parents = [name for name in parents if is_concrete(name) and not node.name.endswith("Error")]
        if parents:
            found.append(f"{module.name}.{node.name}({', '.join(parents)})")
    return sorted(found)


def shared_names(house: House) -> dict[str, list[str]]:
    """List public class names that stand in two modules."""
    where: dict[str, list[str]] = defaultdict(list)
    for module, node in classes(house):
        if not node.name.startswith("_"):
            where[node.name].append(module.name)
    return {name: sorted(found) for name, found in sorted(where.items()) if len(found) > 1}


def gerunds(house: House) -> list[str]:
    """List modules that are named by what they do and not by what they hold."""
    excepted = {"encoding", "routing", "reasoning", "testing", "string"}  # floors, named in the design
    return sorted(
        name for name in house.modules if (last := name.split(".")[-1]).endswith("ing") and last not in excepted
    )


def unreachable() -> str:
    """Ask scripts/reach.py how many functions no door reaches."""
    script = ROOT / "scripts" / "reach.py"
    if not script.is_file():
        return "not measured"
    ran = subprocess.run([sys.executable, str(script), "--json"], capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        data = json.loads(ran.stdout)
    except ValueError:
        return "not measured"
    found = data.get("unreachable", data) if isinstance(data, dict) else data
    return str(found if isinstance(found, int) else len(found))


def rows_shown() -> str:
    """Ask scripts/requirements.py how many requirement rows the tests are marked to show."""
    command = [sys.executable, str(Path(__file__).with_name("requirements.py")), "--stated"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def too_long(house: House) -> list[Module]:
    """List files above the limit, longest first."""
    found = [module for module in house.modules.values() if module.lines > FILE_LIMIT]
    return sorted(found, key=lambda module: -module.lines)


def unreasoned(house: House) -> list[Module]:
    """List files above the limit for which no reason is stated."""
    return [module for module in too_long(house) if where(module) not in REASONS]


def where(module: Module) -> str:
    """Name a file from the root of the package."""
    return module.path.relative_to(SOURCE).as_posix()


def ninth(values: list[int]) -> int:
    """Give the length below which nine of ten files stay."""
    return sorted(values)[max(0, -(-9 * len(values) // 10) - 1)]


def counted(items: Iterable[str], limit: int = 20) -> str:
    """Count a list and name its first members."""
    found = list(items)
    shown = ", ".join(f"`{item}`" for item in found[:limit])
    more = f" and {len(found) - limit} more" if len(found) > limit else ""
    return f"{len(found)}{': ' if found else ''}{shown}{more}"


def aims(house: House) -> Iterator[str]:
    """Compare the house with what it should be; an aim that is missed stands as missed."""
    floors = house.floors()
    total = sum(module.lines for module in house.modules.values())
    command = sum(module.lines for module in floors.get("cli", ()))
    ways = list(walks())
    again = "; ".join(f"{', '.join(twice) or 'none'} of {hops} hops" for hops, twice in ways)
    rows = (
        (f"`src` below {LINES_AIM:,} lines", f"{total:,}", total < LINES_AIM),
        (f"`cli` below {COMMAND_AIM:,} lines", f"{command:,}", command < COMMAND_AIM),
        (f"no file above {FILE_LIMIT} lines without a reason", f"{len(unreasoned(house))}", not unreasoned(house)),
        (f"an event's two ways have at most {HOPS_AIM} hops", ", ".join(str(hops) for hops, _ in ways),
         all(hops <= HOPS_AIM for hops, _ in ways)),
        ("no floor is entered twice on them", f"entered again: {again}", not any(twice for _, twice in ways)),
    )  # fmt: skip
    for aim, now, met in rows:
        yield f"| {aim} | {now} | {'met' if met else '**missed**'} |"


def walks() -> Iterator[tuple[int, list[str]]]:
    """Read the ways of an event off the architecture page: how many hops, and which floors are entered again."""
    hops = re.findall(r"^\| (\d+) \| `src/maia/(\w+)/", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    ways: list[list[str]] = []
    for number, floor in hops:
        if number == "1":
            ways.append([])
        ways[-1].append(floor)
    for way in ways:
        entered = [floor for floor, before in zip(way, ["", *way], strict=False) if floor != before]
        yield len(way), sorted(floor for floor, times in Counter(entered).items() if times > 1)


def page(house: House) -> str:
    """Write the page."""
    floors = house.floors()
    lengths = [module.lines for module in house.modules.values()]
    about = (
        "Made by `python scripts/house.py`; `python scripts/house.py --check` keeps its structure true. The floors run "
        "from the ground up: a floor imports only floors listed before it."
    )
    size = (
        f"{len(lengths)} files, {sum(lengths):,} lines; a file has {statistics.median(lengths):.0f} lines in the "
        f"median, {ninth(lengths)} at the ninetieth percentile, {max(lengths)} at most."
    )
    lines = [
        "# The house", "", about, "", size, "",
        "| floor | files | lines | median | p90 | longest | public names | imports |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    arrows = house.arrows()
    for name, modules in floors.items():
        sizes = [module.lines for module in modules]
        targets = [end for start, end in arrows if start == name]
        public = public_names(modules, name)
        lines.append(
            f"| {name} | {len(sizes)} | {sum(sizes):,} | {statistics.median(sizes):.0f} | {ninth(sizes)} | "
            f"{max(sizes)} | {public or ''}{' (many)' if public > PUBLIC_LIMIT else ''} | "
            f"{', '.join(sorted(targets, key=house.order.index))} |"
        )
    lines += ["", "## Aims", "", "| aim | now | |", "|---|---|---|", *aims(house), "", rows_shown()]
    lines += [
        "", "## Structure", "",
        "| what | how many |", "|---|---|",
        f"| arrows between floors | {len(arrows)} ({sum(arrows.values()):,} imports) |",
        f"| imports upward | {counted(f'{start} -> {end}' for start, end in house.upward())} |",
        f"| cycles between floors | {counted(' <-> '.join(part) for part in house.cycles_between())} |",
        f"| cycles of modules | {counted(' <-> '.join(part) for part in house.cycles_inside())} |",
        f"| functions that no door reaches | {unreachable()} |",
        f"| own classes that inherit from own concrete classes | {counted(heirs(house))} |",
        f"| public class names in two modules | {counted(shared_names(house))} |",
        f"| modules named by gerunds | {counted(gerunds(house))} |",
        "", "## Arrows", "", "```mermaid", "graph BT",
        *(f"  {start} -->|{count}| {end}" for (start, end), count in sorted(thinned(house).items())),
        "```", "",
        "The picture leaves out an arrow where a longer way leads to the same floor.",
        "", f"## Files above {FILE_LIMIT} lines", "",
    ]  # fmt: skip
    long = too_long(house)
    lines += [f"- `{where(m)}`: {m.lines} lines; {REASONS.get(where(m), 'no reason is stated')}" for m in long] or [
        "None."
    ]
    lines += ["", f"## Functions above {FUNCTION_LIMIT} lines", ""]
    lines += [f"- `{name}`: {length} lines" for length, name in long_functions(house)[:40]] or ["None."]
    return "\n".join(lines) + "\n"


def thinned(house: House) -> dict[tuple[str, str], int]:
    """Keep the arrows for which there is no longer way round."""
    arrows = house.arrows()
    graph: dict[str, set[str]] = defaultdict(set)
    for start, end in arrows:
        graph[start].add(end)

    def reaches(start: str, end: str, seen: set[str]) -> bool:
        return end in graph[start] or any(
            reaches(step, end, seen | {step}) for step in graph[start] - seen if step != end
        )

    return {
        (start, end): count
        for (start, end), count in arrows.items()
        if not any(reaches(step, end, {start, step}) for step in graph[start] - {end})
    }


def problems(house: House) -> list[str]:
    """Say what breaks the structure."""
    found = [f"`{start}` imports `{end}`, which stands above it" for start, end in house.upward()]
    found += [f"floors import each other: {', '.join(part)}" for part in house.cycles_between()]
    found += [f"modules import each other: {', '.join(part)}" for part in house.cycles_inside()]
    found += [
        f"`{where(module)}` has {module.lines} lines, more than {FILE_LIMIT}, without a reason in scripts/house.py"
        for module in unreasoned(house)
    ]
    known = {where(module) for module in too_long(house)}
    found += [f"scripts/house.py has a reason for `{name}`, which is not that long" for name in REASONS.keys() - known]
    written = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    if re.findall(r"^\| (\w+) \| \d", written, re.MULTILINE) != list(house.floors()):
        found.append("docs/reference/house.md names other floors; run `make house`")
    if rows_shown() not in written:
        found.append("docs/reference/house.md states another number of requirement rows; run `make house`")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check the structure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the structure is broken")
    options = parser.parse_args(arguments)
    house = read_house()
    if not options.check:
        PAGE.write_text(page(house), "utf-8")
    found = problems(house)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
