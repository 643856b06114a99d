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
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WAITING = Path(__file__).resolve().parent / "reach_waiting.txt"
BESIDE = ("maia.demo", "maia.bench", "maia.conformance", "maia.testing")
PROGRAMS = ("benchmarks", "vectors", "examples")
OPENED = "maia.open"
DOORS = ("pyspark_maia", "maia.clients")  # what they export is the door; docs/reference/services.md shows the clients
ROUTES = re.compile(r"maia\.services\..*_routes")
LOADED_BY_PATH = "maia.database.migrations"  # Alembic finds them by folder
PASSIVE = re.compile(
    "abstractmethod|cache|cached_property|classmethod|contextmanager|dataclass|final|lru_cache|overload|override|property"
    "|setter|staticmethod|total_ordering|wraps|runtime_checkable|unique"
)
"""Decorators that hand a function to nobody."""
PLAIN_BASES = re.compile(
    "ABC|Enum|Flag|Generic|Int(Enum|Flag)|NamedTuple|Protocol|StrEnum|TypedDict|BaseException|Exception|[A-Za-z]*Error"
    "|bytes|dict|float|frozenset|int|list|object|set|str|tuple"
)
"""Bases from outside that call no method of their own accord."""
SPECIAL = re.compile("__[a-z_]+__|_repr_[a-z]+_")
"""Methods that Python, or a notebook, calls."""
LOADERS = frozenset(("import_module", "_import_module"))
TYPE_MAKERS = frozenset(("cast", "NewType", "TypeVar"))


class Kind(Enum):
    """What a node of the graph is."""

    FUNCTION = "function"
    CLASS = "class"
    METHOD = "method"
    VALUE = "value"


@dataclass(slots=True)
class Uses:
    """What a piece of code mentions: things by their full name, attributes, and modules named by a string."""

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Unit:
    """A top-level function, class or value, or a method."""

    name: str
    kind: Kind
    module: Module
    node: ast.AST
    line: int
    registered: bool = False
    methods: dict[str, Unit] = field(default_factory=dict)


@dataclass(slots=True)
class Module:
    """One file: what it defines, what its imports stand for, and the statements that run when it is loaded."""

    name: str
    path: Path
    package: bool
    units: dict[str, Unit] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    body: list[ast.stmt] = field(default_factory=list)


def read_module(name: str, path: Path) -> Module:
    """Read a file."""
    module = Module(name, path, path.name == "__init__.py")
    _read_body(module, ast.parse(path.read_text("utf-8"), str(path)).body)
    return module


def _read_body(module: Module, body: Iterable[ast.stmt]) -> None:
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                module.imported |= _imported(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _add(module, Kind.FUNCTION, node.name, node)
            case ast.ClassDef():
                _add_class(module, node)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name != "__all__":
                    _add(module, Kind.VALUE, name, node)
                if name.startswith("__"):
                    module.body.append(node)
            case ast.If(test=test, body=inner, orelse=other) if _is_type_checking(test):
                _read_body(module, (*inner, *other))
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Try() | ast.If():
                inner = [*node.body, *node.orelse, *(node.finalbody if isinstance(node, ast.Try) else ())]
                _read_body(module, [item for item in inner if not isinstance(item, ast.Expr)])
                module.body.append(node)
            case _:
                module.body.append(node)


def _add(module: Module, kind: Kind, name: str, node: ast.stmt) -> Unit:
    unit = Unit(f"{module.name}.{name}", kind, module, node, node.lineno, _is_registered(node))
    module.units[name] = unit
    return unit


def _add_class(module: Module, node: ast.ClassDef) -> None:
    unit = _add(module, Kind.CLASS, node.name, node)
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            known = unit.methods.get(item.name)
            method = Unit(f"{unit.name}.{item.name}", Kind.METHOD, module, item, item.lineno, _is_registered(item))
            if known is not None:  # a property and its setter, or overloads: one thing
                method.node = ast.Module([known.node, item], [])  # type: ignore[list-item]
                method.line = known.line
            unit.methods[item.name] = method


def _is_registered(node: ast.stmt) -> bool:
    """Tell whether a decorator hands a function to somebody who will call it."""
    for decorator in getattr(node, "decorator_list", ()):
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
        if not PASSIVE.fullmatch(last) and not isinstance(node, ast.ClassDef):
            return True
    return isinstance(node, ast.FunctionDef) and node.name in {"__getattr__", "__dir__"}


def _is_type_checking(test: ast.expr) -> bool:
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str | None]]:
    """Tell what an import binds: a module, or a name of a module."""
    if isinstance(node, ast.ImportFrom):
        return {item.asname or item.name: (node.module or "", item.name) for item in node.names}
    return {
        item.asname or item.name.split(".")[0]: (item.name if item.asname else item.name.split(".")[0], None)
        for item in node.names
    }


@dataclass(slots=True)
class _Scope:
    """The names that a function binds, and those among them that are imports."""

    bound: set[str]
    imported: dict[str, tuple[str, str | None]]


class House:
    """All files that count, by module, and what names in them stand for."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Know these modules."""
        self.modules = {module.name: module for module in modules}
        self.units = {
            unit.name: unit for module in self.modules.values() for top in module.units.values() for unit in _with(top)
        }

    def find(self, module: str, name: str | None, seen: frozenset[tuple[str, str]] = frozenset()) -> str | None:
        """Tell what a name of a module stands for: the full name of a unit or of a module; ``None`` when not ours."""
        if name is None:
            return module if module in self.modules else None
        known = self.modules.get(module)
        if known is None or (module, name) in seen:
            return None
        if name in known.units:
            return known.units[name].name
        if name in known.imported:
            found = self.find(*known.imported[name], seen | {(module, name)})
            if found is not None:
                return found
        inner = f"{module}.{name}"
        return inner if inner in self.modules else None


def _with(unit: Unit) -> Iterator[Unit]:
    yield unit
    yield from unit.methods.values()


class _Reader(ast.NodeVisitor):
    """Collects what code of one module mentions."""

    def __init__(self, house: House, module: Module) -> None:
        self._house = house
        self._module = module
        self._scopes: list[_Scope] = []
        self.uses = Uses()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if not isinstance(node, ast.Lambda):
            for outer in (*node.decorator_list, *([node.returns] if node.returns else ())):
                self.visit_type(outer)
        self.visit(node.args)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        scope = _scope_of(body)
        scope.bound |= {item.arg for item in arguments if item is not None}
        self._scopes.append(scope)
        for item in body:
            self.visit(item)
        self._scopes.pop()

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node, node.generators, (node.elt,))

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node, node.generators, (node.elt,))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node, node.generators, (node.elt,))

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, node.generators, (node.key, node.value))

    def _comprehension(self, _: ast.expr, generators: Sequence[ast.comprehension], results: Sequence[ast.expr]) -> None:
        self.visit(generators[0].iter)
        targets = (name for item in generators for name in ast.walk(item.target) if isinstance(name, ast.Name))
        self._scopes.append(_Scope({name.id for name in targets}, {}))
        for place, item in enumerate(generators):
            for part in (*([item.iter] if place else ()), *item.ifs):
                self.visit(part)
        for part in results:
            self.visit(part)
        self._scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            found = self._find(node)
            if found is not None:
                self._mention(found)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self._find(node)
        if found is not None:
            self._mention(found)
            return
        self.uses.attributes.add(node.attr)
        self.visit(node.value)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.uses.attributes |= set(node.kwd_attrs)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and "." in node.value and node.value in self._house.modules:
            self.uses.modules.add(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_type(node.annotation)
        if node.value is not None:
            alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            (self.visit_type if alias else self.visit)(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation is not None:
            self.visit_type(node.annotation)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self.visit_type(node.slice)

    def visit_type(self, node: ast.expr) -> None:
        """Visit an expression in which a string may stand for a type."""
        self.visit(node)
        for item in ast.walk(node):
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                for word in re.findall(r"[A-Za-z_][\w.]*", item.value if len(item.value) < 1000 else ""):
                    found = self._house.find(self._module.name, word)
                    if found in self._house.units and self._house.units[found].kind is not Kind.FUNCTION:
                        self.uses.names.add(found)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"getattr", "attrgetter", "methodcaller", "hasattr"}:
            self.uses.attributes |= {item.value for item in node.args if _is_text(item)}  # type: ignore[attr-defined]
        if called in TYPE_MAKERS:
            for item in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.visit_type(item)
        self.generic_visit(node)

    def _mention(self, found: str) -> None:
        if found in self._house.units:
            self.uses.names.add(found)

    def _find(self, node: ast.expr) -> str | None:
        """Tell what an expression stands for when it is a name of ours, or leads to one through modules."""
        match node:
            case ast.Name(id=name):
                for scope in reversed(self._scopes):
                    if name in scope.imported:
                        return self._house.find(*scope.imported[name])
                    if name in scope.bound:
                        return None
                return self._house.find(self._module.name, name)
            case ast.Attribute(value=value, attr=attr):
                base = self._find(value)
                return self._house.find(base, attr) if base in self._house.modules else None
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                return name if last in LOADERS and name in self._house.modules else None
        return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _scope_of(body: Sequence[ast.AST]) -> _Scope:
    """List what statements bind in their own function, not in functions inside it."""
    scope, outside, stack = _Scope(set(), {}), set[str](), list(body)
    while stack:
        node = stack.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                scope.bound.add(name)
            case ast.Import() | ast.ImportFrom():
                scope.imported |= _imported(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                scope.bound.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                scope.bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outside |= set(names)
        stack += ast.iter_child_nodes(node)
    scope.bound -= outside
    return scope


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
                for inner in _with(unit):
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
        reader = _Reader(self._house, unit.module)
        for node in nodes:
            returns = getattr(node, "returns", None)
            if returns is not None:
                reader.visit_type(returns)
        found = (self._house.units[name] for name in reader.uses.names)
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
        reader = _Reader(self._house, unit.module)
        if isinstance(unit.node, ast.ClassDef):
            inner = [item for item in unit.node.body if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
            keywords = [item.value for item in unit.node.keywords]
            for node in (*unit.node.decorator_list, *unit.node.bases, *keywords, *inner):
                reader.visit(node)
        else:
            reader.visit(unit.node)
        return reader.uses

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
            reader = _Reader(self._house, unit.module)
            reader.visit(inner)
            own = [self._house.units[name] for name in reader.uses.names]
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
        reader = _Reader(self._house, module)
        for node in module.body:
            reader.visit(node)
        self._follow(reader.uses)
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
    graph.reach(found for point in points if (found := house.find(*point.split(":"))) is not None)
    exports = [target for door in DOORS if door in house.modules for target in house.modules[door].imported.values()]
    graph.expose(name for target in exports if (name := house.find(*target)) in house.units)
    graph.expose(name for name in (OPENED,) if name in house.units)
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
