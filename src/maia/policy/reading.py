"""The parser behind `parse_policy`: lark's tree turned into rules, and lark's errors into words with a column."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Self, TypeVar

from lark import Lark, Token, Transformer, Tree, UnexpectedInput
from lark.exceptions import VisitError

from maia.filters import find_misread
from maia.policy.limits import PolicyLimits, grammar
from maia.policy.problems import PolicySyntaxError
from maia.policy.rules import (
    ActivationRule,
    AttributeUse,
    AuthorisationRule,
    BoundDemand,
    BoundUse,
    DenialRule,
    EventRight,
    Policy,
    Premise,
    Privilege,
    Rule,
)
from maia.policy.terms import Atom, Constant, Term, Variable

_EXPECTATIONS = {
    "NAME": "a name",
    "TYPE": "a type",
    "NUMBER": "a number",
    "TEXT": "a text in quotes",
    "ENVIRONMENT": "`?`",
    "MONITORED": "`*`",
    "COMPARISON": "a comparison",
    "BOUND": "a bound",
    "ANY": "`any`",
    "PATTERN": "a pattern",
    "_IN": "`in`",
    "_WHEN": "`<-`",
    "_GIVES": "`|-`",
    "_DENIES": "`!-`",
    "_NL": "the end of the line",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "$END": "the end",
}
_APPOINTMENTS_ALONE = "left of `!-` stand appointments alone: what is asked outside may be away and deny nothing"
T = TypeVar("T")


class _Reader:
    """Reads each kind of text."""

    def policy(self, text: str, limits: PolicyLimits) -> Policy:
        return _expect(Policy, _build(text, "policy", _Builder(limits, ground=False)))

    def fact(self, text: str, limits: PolicyLimits) -> Atom:
        return _expect(Atom, _build(text, "atom", _Builder(limits, ground=True)))

    def privilege(self, text: str, limits: PolicyLimits) -> Privilege:
        found = _build(text, "privilege", _Builder(limits, ground=True))
        return found if isinstance(found, EventRight | Constant) else _expect(Atom, found)

    def bound(self, text: str, limits: PolicyLimits) -> BoundUse:
        return _expect(BoundUse, _build(text, "bound", _Builder(limits, ground=True)))


READER = _Reader()


@cache
def _parser() -> Lark:
    return Lark(
        grammar(),
        start=["policy", "atom", "privilege", "bound"],
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        propagate_positions=True,
    )


def _build(text: str, start: str, builder: _Builder) -> object:
    try:
        tree: Tree[Token] = _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from error
    try:
        return builder.transform(tree)
    except VisitError as error:
        raise error.orig_exc from None


def _expect(kind: type[T], found: object) -> T:
    if not isinstance(found, kind):  # the grammar allows nothing else
        raise PolicySyntaxError("the text is not what was asked for")
    return found


def _given(children: Sequence[object]) -> Privilege:
    privilege = children[-1]
    return privilege if isinstance(privilege, EventRight | Constant) else _expect(Atom, privilege)


def _values(children: Sequence[object]) -> tuple[Variable | Constant, ...]:
    return tuple(child for child in children if isinstance(child, Variable | Constant))


def _only(kind: type[T], children: Sequence[object]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


class _Name(str):
    """A name with the place where it stands."""

    __slots__ = ("column", "line")

    def __new__(cls, token: Token) -> Self:
        name = super().__new__(cls, token)
        name.line, name.column = token.line or 1, token.column or 1
        return name

    line: int
    column: int


class _PlacedAtom:
    """An atom of a rule with the place where it stands."""

    def __init__(self, atom: Atom, name: _Name) -> None:
        self.atom, self.line, self.column = atom, name.line, name.column


class _Builder(Transformer[Token, object]):
    """Turns lark's tree into Maia's, counting as it goes."""

    def __init__(self, limits: PolicyLimits, *, ground: bool) -> None:
        super().__init__()
        self._limits = limits
        self._ground = ground
        self._blanks = 0

    def policy(self, children: list[object]) -> Policy:
        rules = tuple(child for child in children if isinstance(child, ActivationRule | AuthorisationRule | DenialRule))
        if len(rules) > self._limits.rules:
            raise _refusal(rules[self._limits.rules].line, 1, f"a policy has at most {self._limits.rules} rules")
        return Policy(rules=rules)

    def activation(self, children: list[object]) -> Rule:
        head = _only(_PlacedAtom, children)[0]
        found = _only(_PlacedPremise, children)
        self._count(len(found), self._limits.premises, "a rule", "premises", head)
        premises = tuple(each.premise for each in found)
        return ActivationRule(head=head.atom, premises=premises, line=head.line)

    def authorisation(self, children: list[object]) -> Rule:
        found = _only(_PlacedPremise, children)
        self._count(len(found), self._limits.premises, "a rule", "premises", found[0])
        roles = [each for each in found if not each.premise.environment]
        if len(roles) != 1:
            where = roles[1] if roles else found[0]
            rule = "left of `|-` stands exactly one role, and otherwise only environment predicates with `?`"
            raise _refusal(where.line, where.column, rule, code="POLICY_ROLES")
        conditions = tuple(each.premise for each in found if each.premise.environment)
        return AuthorisationRule(
            role=roles[0].premise.atom, conditions=conditions, privilege=_given(children), line=found[0].line
        )

    def denial(self, children: list[object]) -> Rule:
        found = _only(_PlacedPremise, children)
        self._count(len(found), self._limits.premises, "a rule", "premises", found[0])
        for each in found:
            if each.premise.environment or each.premise.monitored:
                raise _refusal(each.line, each.column, _APPOINTMENTS_ALONE, code="POLICY_DENIAL")
        premises = tuple(each.premise for each in found)
        return DenialRule(premises=premises, privilege=_given(children), line=found[0].line)

    def premise(self, children: list[object]) -> _PlacedPremise:
        marks = {child.type for child in children if isinstance(child, Token)}
        placed = _only(_PlacedAtom, children)[0]
        premise = Premise(atom=placed.atom, environment="ENVIRONMENT" in marks, monitored="MONITORED" in marks)
        return _PlacedPremise(premise, placed)

    def privilege(self, children: list[object]) -> object:
        found = children[0]
        return found.atom if isinstance(found, _PlacedAtom) else found

    def right(self, children: list[object]) -> EventRight:
        action, event_type = (self._name(child) for child in children[:2])
        uses = _only(AttributeUse, children)
        self._count(len(uses), self._limits.arguments, "a right", "attributes", action)
        bounds = _only(BoundUse, children)
        self._count(len(bounds), self._limits.arguments, "a right", "bounds", action)
        return EventRight(action=str(action), event_type=str(event_type), attributes=uses or None, bounds=bounds)

    def attribute(self, children: list[object]) -> AttributeUse:
        name = str(self._name(children[0]))
        if len(children) == 1:
            return AttributeUse(name=name)
        (kept,) = _values(children) or (None,)
        return AttributeUse(name=name, operator=str(children[1]), value=kept)

    def bound(self, children: list[object]) -> BoundUse:
        kind = self._name(children[0])
        demands = _only(BoundDemand, children)
        self._count(len(demands), self._limits.arguments, "a bound", "constraints", kind)
        return BoundUse(kind=str(kind), demands=demands, column=kind.column)

    def demand(self, children: list[object]) -> BoundDemand:
        name, values = self._name(children[0]), _values(children)
        self._count(len(values), self._limits.arguments, "a constraint", "values", name)
        word = children[1] if len(children) > 1 else None
        operator = str(word) if isinstance(word, Token) else "in" if values else "any"
        return BoundDemand(name=str(name), operator=operator, values=values, column=name.column)

    def value(self, children: list[object]) -> object:
        return children[0]

    def atom(self, children: list[object]) -> object:
        name = self._name(children[0])
        atom = self._atom(name, children[1:])
        return atom if self._ground else _PlacedAtom(atom, name)

    def term(self, children: list[object]) -> object:
        return children[0]

    def compound(self, children: list[object]) -> Atom:
        return self._atom(self._name(children[0]), children[1:])

    def variable(self, children: list[object]) -> Term:
        name = self._name(children[0])
        if self._ground:
            return Constant(str(name))
        if name == "_":
            self._blanks += 1
            return Variable(f"_#{self._blanks}", name.column)
        return Variable(str(name), name.column)

    def constant(self, children: list[object]) -> Constant:
        token = children[0]
        name = self._name(token)
        if isinstance(token, Token) and token.type == "TEXT":
            quote = token[0]
            return Constant(token[1:-1].replace(quote * 2, quote))
        return Constant(str(name))

    def _atom(self, name: _Name, terms: Sequence[object]) -> Atom:
        self._count(len(terms), self._limits.arguments, "a term", "parameters", name)
        found = tuple(term for term in terms if isinstance(term, Variable | Constant | Atom))
        return Atom(str(name), found)

    def _name(self, child: object) -> _Name:
        name = _Name(_expect(Token, child))
        self._count(len(name), self._limits.word_characters, "a word", "characters", name)
        return name

    @staticmethod
    def _count(count: int, most: int, whole: str, parts: str, where: _Name | _PlacedAtom | _PlacedPremise) -> None:
        if count > most:
            raise _refusal(where.line, where.column, f"{whole} has at most {most} {parts}")


class _PlacedPremise:
    """A premise with the place where it stands."""

    def __init__(self, premise: Premise, placed: _PlacedAtom) -> None:
        self.premise, self.line, self.column = premise, placed.line, placed.column


def _refusal(line: int, column: int, rule: str, code: str = "POLICY_LIMIT") -> PolicySyntaxError:
    return PolicySyntaxError(f"line {line}, column {column}: {rule}", code=code, line=line, column=column)


def _syntax_error(text: str, error: UnexpectedInput) -> PolicySyntaxError:
    found = find_misread(text, error, lambda terminal: _EXPECTATIONS.get(terminal, terminal))
    return PolicySyntaxError(found.message, line=found.line, column=found.column)
