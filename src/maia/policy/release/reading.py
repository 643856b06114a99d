"""The parser behind `parse_releases`: lark's tree turned into rules, and lark's errors into words with a column."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Lark, Token, Tree, UnexpectedInput

from maia.encoding import did_you_mean
from maia.filters import find_misread
from maia.policy.problems import PolicySyntaxError
from maia.policy.release.language import MAX_NAMES, MAX_NUMBER, MAX_RULES, MAX_WORD
from maia.policy.release.rules import (
    AddPseudonym,
    Clause,
    Coarsen,
    Coarsening,
    Destination,
    DestinationKind,
    Drop,
    Keep,
    Minimum,
    Precision,
    ReleaseRule,
    TextPlace,
)

_EXPECTATIONS = {
    "NAME": "a name",
    "TEXT": "a text in quotes",
    "TYPE": "a type",
    "NUMBER": "a number",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "$END": "the end",
}
_SHOWN = 32
_SIZED = {Precision.BUCKET, Precision.DECIMALS, Precision.FIRST, Precision.LAST}
_MAX_DECIMALS = 15


class RuleReader:
    """Reads rules and destinations by one grammar."""

    def __init__(self, grammar: str) -> None:
        """Load the grammar."""
        self._lark = Lark(
            grammar, start=["releases", "destination"], parser="lalr", lexer="contextual", maybe_placeholders=False,
            propagate_positions=True,
        )  # fmt: skip

    def rules(self, text: str) -> tuple[ReleaseRule, ...]:
        """Read rules."""
        rules = tuple(map(_rule, _parts(self._parse(text, "releases"))))
        if len(rules) > MAX_RULES:
            raise _wrong(rules[MAX_RULES].place, f"a text has at most {MAX_RULES} rules", code="RELEASE_LIMIT")
        return rules

    def destination(self, text: str) -> Destination:
        """Read a destination."""
        return _destination(self._parse(text, "destination"))

    def _parse(self, text: str, start: str) -> Tree[Token]:
        try:
            return self._lark.parse(text, start=start)
        except UnexpectedInput as error:
            raise _syntax_error(text, error) from error


def _rule(tree: Tree[Token]) -> ReleaseRule:
    subject, to, *clauses = _parts(tree)
    by = _names(next(iter(_parts(subject)))) if subject.data == "counts" else ()
    (event_type,) = (str(token) for token in _tokens(subject))
    return ReleaseRule(
        event_type=_short(event_type, _place(subject)), to=_destination(to), by=by,
        clauses=tuple(map(_clause, clauses)), place=TextPlace(tree.meta.line, tree.meta.column, to.meta.end_line),
    )  # fmt: skip


def _clause(tree: Tree[Token]) -> Clause:
    parts, tokens, place = list(_parts(tree)), list(_tokens(tree)), _place(tree)
    match str(tree.data):
        case "keep":
            return Keep(_names(parts[0]), place)
        case "drop":
            return Drop(_names(parts[0]), place)
        case "coarsen":
            return Coarsen(_name(parts[0]), _coarsening(tokens), place)
        case "add":
            return _add(parts, tokens, place)
        case _:
            people = _number(tokens[0])
            if people < 1:
                raise _wrong(_at(tokens[0]), "a group has at least 1", code="RELEASE_SIZE")
            return Minimum(people, _name(parts[0]), place)


def _coarsening(tokens: list[Token]) -> Coarsening:
    word, where = str(tokens[0]).lower(), _at(tokens[0])
    known = [item.value for item in Precision]
    if word not in known:
        message = f"nothing is coarsened to `{_shown(word)}`{did_you_mean(word, known)}; {' or '.join(known)}"
        raise _wrong(where, message, code="RELEASE_PRECISION")
    precision = Precision(word)
    size = _number(tokens[1]) if len(tokens) > 1 else None
    if (size is not None) != (precision in _SIZED):
        form = f"`{word}(N)`" if precision in _SIZED else f"`{word}`, without a number"
        raise _wrong(where, f"write {form}", code="RELEASE_SIZE")
    if size is not None and not _fits(precision, size):
        limit = f"0 to {_MAX_DECIMALS}" if precision is Precision.DECIMALS else "at least 1"
        raise _wrong(_at(tokens[1]), f"the number of `{word}` is {limit}", code="RELEASE_SIZE")
    return Coarsening(precision, size)


def _fits(precision: Precision, size: int) -> bool:
    return size <= _MAX_DECIMALS if precision is Precision.DECIMALS else size >= 1


def _add(parts: list[Tree[Token]], tokens: list[Token], place: TextPlace) -> AddPseudonym:
    if str(tokens[0]).lower() != "pseudonym":
        raise _wrong(_at(tokens[0]), f"only a pseudonym is added, no `{_shown(tokens[0])}`", code="RELEASE_CLAUSE")
    scope = None
    if len(tokens) > 1:
        if str(tokens[1]).lower() != "scope":
            raise _wrong(_at(tokens[1]), f"a pseudonym has a `scope`, no `{_shown(tokens[1])}`", code="RELEASE_CLAUSE")
        scope = _scope(parts[2])
    return AddPseudonym(_name(parts[0]), _name(parts[1]), scope, place)


def _scope(tree: Tree[Token]) -> Destination:
    """Read a scope: a bare `study` or `domain` is the destination itself, whose name is left open."""
    if tree.data == "bare":
        word = _name(next(iter(_parts(tree)))).lower()
        if word in {item.value for item in DestinationKind}:
            return Destination(DestinationKind(word), "")
        message = f'a scope is `study`, `domain`, `study("…")` or `domain("…")`, not `{_shown(word)}`'
        raise _wrong(_place(tree), message, code="RELEASE_SCOPE")
    return _destination(tree)


def _destination(tree: Tree[Token]) -> Destination:
    name = _name(next(iter(_parts(tree))))
    if tree.data == "bare":
        return Destination(DestinationKind.DOMAIN, name)
    (kind,) = _tokens(tree)
    known = [item.value for item in DestinationKind]
    if kind.lower() not in known:
        message = f"a destination is a {' or a '.join(known)}, no `{_shown(kind)}`{did_you_mean(str(kind), known)}"
        raise _wrong(_at(kind), message, code="RELEASE_DESTINATION")
    return Destination(DestinationKind(kind.lower()), name)


def _names(tree: Tree[Token]) -> tuple[str, ...]:
    names = tuple(map(_name, _parts(tree)))
    if len(names) > MAX_NAMES:
        raise _wrong(_place(tree), f"a list has at most {MAX_NAMES} names", code="RELEASE_LIMIT")
    return names


def _name(tree: Tree[Token]) -> str:
    (token,) = _tokens(tree)
    text = str(token)
    if token.type == "TEXT":
        quote = text[0]
        text = text[1:-1].replace(quote * 2, quote)
    return _short(text, _place(tree))


def _short(text: str, place: TextPlace) -> str:
    if len(text) > MAX_WORD:
        raise _wrong(place, f"a word has at most {MAX_WORD} characters", code="RELEASE_LIMIT")
    return text


def _number(token: Token) -> int:
    if len(token) > len(str(MAX_NUMBER)) or int(token) > MAX_NUMBER:
        raise _wrong(_at(token), f"a number is at most {MAX_NUMBER}", code="RELEASE_LIMIT")
    return int(token)


def _parts(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    return (child for child in tree.children if isinstance(child, Tree))


def _tokens(tree: Tree[Token]) -> Iterator[Token]:
    return (child for child in tree.children if isinstance(child, Token))


def _place(tree: Tree[Token]) -> TextPlace:
    return TextPlace(tree.meta.line, tree.meta.column, tree.meta.end_line)


def _at(token: Token) -> TextPlace:
    return TextPlace(token.line or 1, token.column or 1, token.end_line or 1)


def _shown(text: str) -> str:
    return text[:_SHOWN]


def _wrong(place: TextPlace, rule: str, *, code: str) -> PolicySyntaxError:
    message = f"line {place.line}, column {place.column}: {rule}"
    return PolicySyntaxError(message, code=code, line=place.line, column=place.column)


def _syntax_error(text: str, error: UnexpectedInput) -> PolicySyntaxError:
    found = find_misread(text, error, lambda item: _EXPECTATIONS.get(item, f"`{item.strip('_').lower()}`"))
    return PolicySyntaxError(found.message, code="RELEASE_SYNTAX", line=found.line, column=found.column)
