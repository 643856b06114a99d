"""What a piece of source code mentions: names through imports and re-exports, attributes, modules named by a string.

`reach.py` walks over it. Functions bind names of their own, so a name is followed only where it is free; a type may be
written as a string.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

PASSIVE = re.compile(
    "abstractmethod|cache|cached_property|classmethod|contextmanager|dataclass|final|lru_cache|overload|override|property"
    "|setter|staticmethod|total_ordering|wraps|runtime_checkable|unique"
)
"""Decorators that hand a function to nobody."""
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
            unit.name: unit
            for module in self.modules.values()
            for top in module.units.values()
            for unit in with_methods(top)
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


def with_methods(unit: Unit) -> Iterator[Unit]:
    """Give a unit and, when it is a class, its methods."""
    yield unit
    yield from unit.methods.values()


def mentioned(house: House, module: Module, nodes: Iterable[ast.AST], *, types: bool = False) -> Uses:
    """Tell what code of a module mentions; with ``types``, strings in it may stand for types."""
    reader = _Reader(house, module)
    for node in nodes:
        if types and isinstance(node, ast.expr):
            reader.visit_type(node)
        else:
            reader.visit(node)
    return reader.uses


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
