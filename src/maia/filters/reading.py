"""The parser behind `parse_filter`: lark's tree turned into Maia's, and lark's errors into words with a column."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from lark import Lark, Token, Transformer, UnexpectedInput
from lark.exceptions import VisitError

from maia.errors import FilterSyntaxError
from maia.filters.limits import FilterLimits, grammar
from maia.filters.misread import find_misread
from maia.filters.tree import Filter, Literal, LiteralKind, Operator, WrittenConstraint

_EXPECTATIONS = {
    "NAME": "an attribute name",
    "QUOTED_NAME": "an attribute name",
    "COMPARISON": "an operator",
    "ANY": "an operator",
    "PATTERN": "an operator",
    "_IN": "an operator",
    "_AND": "`and`",
    "INTEGER": "a number",
    "POINT": "a number",
    "TEXT": "a text in single quotes",
    "TRUTH": "`true` or `false`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "$END": "the end",
}
_EXPONENT = 999


def read(text: str, limits: FilterLimits) -> Filter:
    """Parse a text whose length was checked."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from error
    try:
        return _Builder(limits).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None


@cache
def _parser() -> Lark:
    return Lark(grammar(), start="conjunction", parser="lalr", lexer="contextual", maybe_placeholders=False)


class _Builder(Transformer[Token, Filter]):
    """Turns lark's tree into Maia's, counting as it goes."""

    def __init__(self, limits: FilterLimits) -> None:
        super().__init__()
        self._limits = limits
        self._constraints = 0
        self._values = 0

    def conjunction(self, children: list[WrittenConstraint]) -> Filter:
        return Filter(constraints=tuple(children))

    def name(self, children: list[Token]) -> Token:
        token = children[0]
        text = token[1:-1].replace('""', '"') if token.type == "QUOTED_NAME" else str(token)
        if len(text) > self._limits.name_characters:
            raise _limit(token, f"a name has at most {self._limits.name_characters} characters")
        return token.update(value=text)

    def literal(self, children: list[Token]) -> Literal:
        token = children[0]
        self._values += 1
        if self._values > self._limits.values:
            raise _limit(token, f"a filter has at most {self._limits.values} values")
        if token.type == "TEXT":
            return Literal(kind=LiteralKind.TEXT, value=self._text(token))
        if token.type == "TRUTH":
            return Literal(kind=LiteralKind.TRUTH, value=token.lower() == "true")
        return self._number(token)

    def comparison(self, children: list[object]) -> WrittenConstraint:
        name, operator, literal = children
        return self._constraint(name, Operator(str(operator)), (literal,))

    def presence(self, children: list[object]) -> WrittenConstraint:
        return self._constraint(children[0], Operator.ANY, ())

    def pattern(self, children: list[object]) -> WrittenConstraint:
        name, operator, text = children
        return self._constraint(name, Operator(str(operator).lower()), (self.literal([_token(text)]),))

    def membership(self, children: list[object]) -> WrittenConstraint:
        return self._constraint(children[0], Operator.IN, tuple(children[1:]))

    def _constraint(self, name: object, operator: Operator, literals: tuple[object, ...]) -> WrittenConstraint:
        self._constraints += 1
        if self._constraints > self._limits.constraints:
            raise _limit(_token(name), f"a filter has at most {self._limits.constraints} constraints")
        found = tuple(literal for literal in literals if isinstance(literal, Literal))
        return WrittenConstraint(attribute=str(name), operator=operator, literals=found)

    def _number(self, token: Token) -> Literal:
        rule = f"a number has at most {self._limits.digits} digits and an exponent of at most {_EXPONENT}"
        if len(token) > 2 * self._limits.digits:
            raise _limit(token, rule)
        if token.type == "INTEGER":
            return Literal(kind=LiteralKind.INTEGER, value=int(token))
        value = Decimal(str(token))
        digits = "".join(map(str, value.as_tuple().digits)).strip("0")
        if digits and (len(digits) > self._limits.digits or abs(value.adjusted()) > _EXPONENT):
            raise _limit(token, rule)
        return Literal(kind=LiteralKind.POINT, value=value)

    def _text(self, token: Token) -> str:
        text = token[1:-1].replace("''", "'")
        if len(text) > self._limits.literal_characters:
            raise _limit(token, f"a text has at most {self._limits.literal_characters} characters")
        return text


def _token(item: object) -> Token:
    return item if isinstance(item, Token) else Token("TEXT", "")


def _limit(token: Token, rule: str) -> FilterSyntaxError:
    line, column = token.line or 1, token.column or 1
    message = f"line {line}, column {column}: {rule}"
    return FilterSyntaxError(message, code="FILTER_LIMIT", line=line, column=column)


def _syntax_error(text: str, error: UnexpectedInput) -> FilterSyntaxError:
    found = find_misread(text, error, lambda terminal: _EXPECTATIONS.get(terminal, terminal))
    return FilterSyntaxError(found.message, line=found.line, column=found.column)
