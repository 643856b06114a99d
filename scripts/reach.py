"""Find code in `src` that no door leads to: everything that is kept must be reached, or wait on a list for its issue.

A door is what a user meets: the command line, `maia.open` and what it gives, Spark's data source, the services' routes
and the clients that are documented beside them. The graph is read from the source, not by running it, and errs on the
side of "reached":

- a name in reached code reaches what it stands for, through imports and the re-exports of packages;
- an attribute in reached code reaches every method and property of that name, in every class that is reached;
- a class reaches its bases and its special methods, and all its methods when a base comes from outside of Maia, or when
  something decorated them for a framework;
- a list of exports (an import in ``__init__``, ``__all__``) reaches nothing, and neither does code that is not reached.

The programs beside the product (demo, bench, conformance, testing, benchmarks, vectors) are read too: what only they
reach is counted apart. What waits to be wired in stands in `reach_waiting.txt`: a module, class, function or method a
line, with the issue behind ``#``; what only they use waits with them. A line that names something reachable, or
nothing, fails: the list only shrinks.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mentions import House, Kind, Module, Unit, Uses, mentioned, read_module, with_methods

ROOT = Path(__file__).resolve().parent.parent
WAITING = Path(__file__).resolve().parent / "reach_waiting.txt"
BESIDE = ("maia.demo", "maia.bench", "maia.conformance", "maia.testing")
PROGRAMS = ("benchmarks", "vectors", "examples")
OPENED = ("maia.open", "maia.prepare", "maia.spark.labelled.LabelledFrame", "maia.spark.labelled.LabelledGroups")
"""What is handed out; `Client.labelled` gives a class of a floor above its own, which it cannot name."""
DOORS = ("pyspark_maia", "maia.clients")  # what they export is the door; docs/reference/services.md shows the clients
ROUTES = re.compile(r"maia\.services\..*_routes")
LOADED_BY_PATH = "maia.database.migrations"  # Alembic finds them by folder
PLAIN_BASES = re.compile(
    "ABC|Enum|Flag|Generic|Int(Enum|Flag)|NamedTuple|Protocol|StrEnum|TypedDict|BaseException|Exception|[A-Za-z]*Error"
    "|bytes|dict|float|frozenset|int|list|object|set|str|tuple"
)
"""Bases from outside that call no method of their own accord."""
SPECIAL = re.compile("__[a-z_]+__|_repr_[a-z]+_")
"""Methods that Python, or a notebook, calls."""


class Graph:
    """Walks from doors through what code mentions, until nothing new is found."""

    def __init__(self, house: House) -> None:
        """Begin nowhere."""
        self._house = house
        self.reached: dict[str, str] = {}
        self._from = "a door"
        self._live: set[str] = set()
        self._attributes: set[str] = set()
        self._queue: list[Unit] = []
        self._classes: dict[str, list[Unit]] = defaultdict(list)

    def copy(self) -> Graph:
        """Give a graph that goes on from here without changing this one."""
        other = Graph(self._house)
        other.reached, other._live = dict(self.reached), set(self._live)
        other._attributes = set(self._attributes)
        other._classes = defaultdict(list, {name: list(units) for name, units in self._classes.items()})
        return other

    def reach(self, names: Iterable[str]) -> None:
        """Go through doors."""
        for name in names:
            self._take(name)
        self._run()

    def load(self, module: Module, *, everything: bool) -> None:
        """Load a module as a program: its statements, and when asked for everything in it."""
        self._load(module)
        for unit in module.units.values():
            if everything or unit.kind is Kind.VALUE:
                for inner in with_methods(unit):
                    self._take(inner.name)
        self._run()

    def expose(self, names: Iterable[str]) -> None:
        """Hand things out: the public methods of a class are doors, and so are those of what a function returns."""
        todo, seen = [self._house.units[name] for name in names], set[str]()
        while todo:
            unit = todo.pop()
            if unit.name in seen:
                continue
            seen.add(unit.name)
            self._take(unit.name)
            todo += self._returned(unit)
            todo += [method for name, method in unit.methods.items() if not name.startswith("_")]
        self._run()

    def _returned(self, unit: Unit) -> list[Unit]:
        nodes = unit.node.body if isinstance(unit.node, ast.Module) else [unit.node]
        returns = [node.returns for node in nodes if getattr(node, "returns", None) is not None]  # type: ignore[attr-defined]
        uses = mentioned(self._house, unit.module, returns, types=True)
        found = (self._house.units[name] for name in uses.names)
        return [item for item in found if item.kind is Kind.CLASS]

    def _run(self) -> None:
        while self._queue:
            unit = self._queue.pop()
            self._from = unit.name
            self._load(unit.module)
            self._follow(self._uses_of(unit))
            if unit.kind is Kind.CLASS:
                self._open(unit)
        self._from = "a door"

    def why(self, name: str) -> list[str]:
        """List how something is reached, from it back to a door."""
        found = []
        while name in self.reached:
            found.append(name)
            name = self.reached[name]
        return [*found, name] if found else []

    def _uses_of(self, unit: Unit) -> Uses:
        if not isinstance(unit.node, ast.ClassDef):
            return mentioned(self._house, unit.module, (unit.node,))
        inner = [item for item in unit.node.body if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
        keywords = [item.value for item in unit.node.keywords]
        outer = (*unit.node.decorator_list, *unit.node.bases, *keywords)
        return mentioned(self._house, unit.module, (*outer, *inner))

    def _open(self, unit: Unit) -> None:
        """Let a class's methods be found by name, and go through those that nobody calls by name."""
        called = self._called_from_outside(unit, frozenset())
        for name, method in unit.methods.items():
            self._classes[name].append(method)
            if SPECIAL.fullmatch(name) or called or method.registered or name in self._attributes:
                self._take(method.name)

    def _called_from_outside(self, unit: Unit, seen: frozenset[str]) -> bool:
        """Tell whether a class extends something that is not Maia's, which may call any method."""
        if not isinstance(unit.node, ast.ClassDef) or unit.name in seen:
            return False
        for base in unit.node.bases:
            inner = base.value if isinstance(base, ast.Subscript) else base
            own = [self._house.units[name] for name in mentioned(self._house, unit.module, (inner,)).names]
            last = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
            if not own and not PLAIN_BASES.fullmatch(last):
                return True
            if any(self._called_from_outside(item, seen | {unit.name}) for item in own):
                return True
        return False

    def _take(self, name: str) -> None:
        unit = self._house.units.get(name)
        if unit is not None and name not in self.reached:
            self.reached[name] = self._from
            self._queue.append(unit)

    def _load(self, module: Module) -> None:
        if module.name in self._live:
            return
        self._live.add(module.name)
        above = self._house.modules.get(module.name.rpartition(".")[0])
        if above is not None:
            self._load(above)
        self._follow(mentioned(self._house, module, module.body))
        for unit in module.units.values():
            if unit.registered:
                self._take(unit.name)

    def _follow(self, uses: Uses) -> None:
        for name in uses.names:
            self._take(name)
        for attribute in uses.attributes - self._attributes:
            self._attributes.add(attribute)
            for method in self._classes[attribute]:
                self._take(method.name)
        for name in uses.modules:
            if not name.startswith(BESIDE):
                self._load(self._house.modules[name])
                for unit in self._house.modules[name].units.values():
                    if unit.kind is Kind.VALUE:
                        self._take(unit.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that no door leads to: its name, where it stands, and who else uses it."""

    name: str
    path: str
    line: int
    beside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found: what waits and is on the list, what is not, and lines of the list that should go."""

    unreachable: tuple[Finding, ...]
    beside: tuple[Finding, ...]
    waiting: tuple[Finding, ...]
    stale: tuple[str, ...]
    units: int

    @property
    def good(self) -> bool:
        """Whether everything is reached or waits."""
        return not self.unreachable and not self.stale


def read_house(root: Path) -> House:
    """Read the sources, and the programs beside them."""
    found = []
    for path in sorted((root / "src").rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        found.append(read_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    for folder in PROGRAMS:
        found += [
            read_module(".".join(path.relative_to(root).with_suffix("").parts), path)
            for path in sorted((root / folder).rglob("*.py"))
        ]
    return House(found)


def walk_product(house: House, root: Path) -> Graph:
    """Go through every door of the product."""
    graph = Graph(house)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    points = [*project.get("scripts", {}).values()]
    points += [value for group in project.get("entry-points", {}).values() for value in group.values()]
    named = [point if ":" in point else f"{point}:app" for point in points]  # a verb is a module with an `app`
    graph.reach(found for point in named if (found := house.find(*point.split(":"))) is not None)
    exports = [target for door in DOORS if door in house.modules for target in house.modules[door].imported.values()]
    graph.expose(name for target in exports if (name := house.find(*target)) in house.units)
    graph.expose(name for name in OPENED if name in house.units)
    graph.reach(name for name in house.units if ROUTES.fullmatch(name))
    for module in house.modules.values():
        if module.name.startswith(LOADED_BY_PATH):
            graph.load(module, everything=True)
    return graph


def walk_beside(house: House, product: Graph) -> Graph:
    """Go on from the product through the programs beside it."""
    graph = product.copy()
    for module in house.modules.values():
        if module.name.startswith((*BESIDE, *PROGRAMS)):
            graph.load(module, everything=True)
    return graph


def look(root: Path, waiting: Mapping[str, str]) -> Report:
    """Compare what doors reach with what is there, and with the list of what waits."""
    house = read_house(root)
    product = walk_product(house, root)
    besides = walk_beside(house, product)
    checked = [
        unit
        for unit in house.units.values()
        if unit.kind is not Kind.VALUE and unit.name.startswith("maia.") and not unit.name.startswith(BESIDE)
    ]
    owner = {method.name: unit.name for unit in house.units.values() for method in unit.methods.values()}
    missed = [
        unit
        for unit in checked
        if unit.name not in product.reached and owner.get(unit.name, unit.name) in {unit.name, *product.reached}
    ]
    findings = [
        Finding(
            name=unit.name,
            path=unit.module.path.relative_to(root).as_posix(),
            line=unit.line,
            beside=unit.name in besides.reached,
        )
        for unit in sorted(missed, key=lambda unit: unit.name)
    ]
    covered = {item.name: entry for item in findings for entry in waiting if _covers(entry, item.name)}
    waits = product.copy()
    waits.reach(name for name in house.units if any(_covers(entry, name) for entry in waiting))
    return Report(
        unreachable=tuple(item for item in findings if item.name not in waits.reached and not item.beside),
        beside=tuple(item for item in findings if item.name not in waits.reached and item.beside),
        waiting=tuple(item for item in findings if item.name in waits.reached),
        stale=tuple(_stale(waiting, house, product, covered)),
        units=len(checked),
    )


def _covers(entry: str, name: str) -> bool:
    return name == entry or name.startswith(f"{entry}.")


def _stale(waiting: Mapping[str, str], house: House, product: Graph, covered: Mapping[str, str]) -> Iterator[str]:
    """Name the lines of the list that name nothing, or something that is reached by now."""
    for entry in waiting:
        if entry not in house.units and entry not in house.modules:
            yield f"{entry}: there is no such thing"
        elif entry not in covered.values():
            yield f"{entry}: is reached by now"
        else:
            kinds = (Kind.FUNCTION, Kind.CLASS, Kind.METHOD)
            inside = (name for name, unit in house.units.items() if _covers(entry, name) and unit.kind in kinds)
            reached = sorted(name for name in inside if name in product.reached)
            if reached:
                yield f"{entry}: a part is reached by now, name the rest: {', '.join(reached)}"


def read_waiting(path: Path) -> dict[str, str]:
    """Read the list of what waits: by name, why.

    Raises:
        ValueError: A line gives no reason.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        name, _, reason = line.partition("#")
        if not name.strip():
            continue
        if not reason.strip():
            raise ValueError(f"{path.name}:{number}: `{name.strip()}` does not say which issue wires it in")
        found[name.strip()] = reason.strip()
    return found


def _by_package(findings: Iterable[Finding]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for item in findings:
        counts[".".join(item.name.split(".")[:2])] += 1
    return dict(sorted(counts.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what no door reaches; exit 1 when something is not on the list, or the list is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--beside", action="store_true", help="also list what only programs beside the product reach")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--why", metavar="NAME", help="tell how something is reached, and leave")
    options = parser.parse_args(arguments)
    if options.why:
        print("\n".join(walk_product(read_house(ROOT), ROOT).why(options.why)) or "no door leads there")
        return 0
    report = look(ROOT, read_waiting(WAITING))
    if options.json:
        shown = {kind: [item.name for item in getattr(report, kind)] for kind in ("unreachable", "beside", "waiting")}
        print(json.dumps({**shown, "stale": report.stale, "units": report.units}, indent=2))
        return 0 if report.good else 1
    for item in (*report.unreachable, *(report.beside if options.beside else ())):
        print(f"{item.path}:{item.line}: {item.name}{' (only beside the product)' if item.beside else ''}")
    for line in report.stale:
        print(f"{WAITING.name}: {line}")
    print(
        f"{report.units} functions, classes and methods; {len(report.unreachable)} that no door reaches, "
        f"{len(report.beside)} reached only beside the product, {len(report.waiting)} on the list",
        file=sys.stderr,
    )
    for title, group in (("no door", report.unreachable), ("beside", report.beside), ("waiting", report.waiting)):
        counts = ", ".join(f"{package} {count}" for package, count in _by_package(group).items())
        print(f"  {title}: {counts or 'none'}", file=sys.stderr)
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
