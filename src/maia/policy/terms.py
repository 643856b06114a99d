"""The terms of the rule language: variables, constants, and atoms with parameters; matching one against another.

Rules:
    1. A constant is its text: ``c1`` in a fact, ``'c1'`` in a rule and the principal ``c1`` are the same constant.
    2. Matching binds a variable once; every later occurrence must be the same term.
    3. Facts are ground, so matching is one-sided and needs no occurs check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

SELF = "self"
_BARE = re.compile(r"[a-z][\w-]*(\.[\w-]+)*|-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Variable:
    """A place that one activation fills once; ``self`` is filled by the principal that activates."""

    name: str
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Show the variable as a rule writes it."""
        return "_" if self.name.startswith("_#") else self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A word that stands for itself."""

    value: str

    def __str__(self) -> str:
        """Show the constant as a fact writes it, in quotes where they are needed.

        >>> print(Constant("smith"), Constant("AE05 XYZ"))
        smith 'AE05 XYZ'
        """
        return self.value if _BARE.fullmatch(self.value) else quoted(self.value)


@dataclass(frozen=True, slots=True)
class Atom:
    """A name with parameters: a role, an appointment, an environment predicate or a privilege."""

    name: str
    arguments: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """Show the atom as a fact writes it.

        >>> print(Atom("npTracker", (Constant("AE05 XYZ"),)))
        npTracker('AE05 XYZ')
        """
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name

    @property
    def signature(self) -> tuple[str, int]:
        """The name and the number of parameters, which together say which role or predicate is meant."""
        return self.name, len(self.arguments)


Term: TypeAlias = Variable | Constant | Atom
Binding: TypeAlias = Mapping[str, Constant | Atom]


def quoted(text: str) -> str:
    """Write a text in quotes, in the kind of quotes that does not occur in it where there is one.

    >>> print(quoted("AE05 XYZ"), quoted("it's"))
    'AE05 XYZ' "it's"
    """
    if "'" in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def variables(term: Term) -> Iterator[Variable]:
    """Walk the variables of a term, as often as they occur.

    >>> [str(found) for found in variables(Atom("f", (Variable("x"), Constant("x"), Variable("y"))))]
    ['x', 'y']
    """
    if isinstance(term, Variable):
        yield term
    elif isinstance(term, Atom):
        for argument in term.arguments:
            yield from variables(argument)


def substitute(term: Term, binding: Binding) -> Term:
    """Fill the bound variables of a term.

    >>> print(substitute(Atom("f", (Variable("x"), Variable("y"))), {"x": Constant("a")}))
    f(a, y)
    """
    if isinstance(term, Variable):
        return binding.get(term.name, term)
    if isinstance(term, Atom):
        return Atom(term.name, tuple(substitute(argument, binding) for argument in term.arguments))
    return term


def match(pattern: Term, ground: Term, binding: dict[str, Constant | Atom]) -> bool:
    """Match a pattern with a ground term, adding to the binding; on failure the binding may hold a part.

    >>> match(Atom("f", (Variable("x"), Variable("x"))), Atom("f", (Constant("a"), Constant("b"))), {})
    False
    """
    if isinstance(pattern, Variable):
        if isinstance(ground, Variable):
            return False
        return binding.setdefault(pattern.name, ground) == ground
    if isinstance(pattern, Constant) or not isinstance(ground, Atom):
        return pattern == ground
    if pattern.signature != ground.signature:
        return False
    return all(match(one, other, binding) for one, other in zip(pattern.arguments, ground.arguments, strict=True))
