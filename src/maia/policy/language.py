"""From text to rules and facts, within stated limits, with errors that point at line and column.

The grammar is LALR(1) and lives beside this file in ``grammar.lark``; parsing is linear in the text. It is loaded when
the first text is read. Nothing in a text can reach another language: words become values of the tree, nothing else.
"""

from __future__ import annotations

import re
from dataclasses import replace

from maia.policy.limits import DEFAULT_POLICY_LIMITS, PolicyLimits
from maia.policy.problems import PolicySyntaxError
from maia.policy.rules import BoundUse, Policy, Privilege, Rule
from maia.policy.terms import Atom

_SCANNED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*|[()\n]")


def parse_policy(text: str, *, limits: PolicyLimits = DEFAULT_POLICY_LIMITS) -> Policy:
    """Read rules, one a line; blank lines and comments after `#` are skipped.

    The result says what was written; `check` says what is wrong with it as a policy.

    >>> policy = parse_policy("doctor(self) <- employed(self)*  # the personnel office appoints")
    >>> print(policy.rules[0])
    doctor(self) <- employed(self)*
    >>> parse_policy("doctor(self) <- ")
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [POLICY_SYNTAX] line 1, column 17: expected ... but the text ends

    Args:
        text: The policy, as a person writes it.
        limits: How large the text and its parts may be.

    Returns:
        The rules in the order of the text.

    Raises:
        PolicySyntaxError: The text is no policy or passes a limit; ``line`` and ``column`` say where.
    """
    _measure(text, limits)
    from maia.policy.reading import READER  # noqa: PLC0415 - loaded when the first text is read

    return READER.policy(text, limits)


def parse_fact(text: str, *, limits: PolicyLimits = DEFAULT_POLICY_LIMITS) -> Atom:
    """Read a fact or the name of a role with its parameters; here every word is a constant.

    >>> parse_fact("courtOrder(c1, 'AE05 XYZ')").arguments
    (Constant(value='c1'), Constant(value='AE05 XYZ'))

    Args:
        text: The fact.
        limits: How large the text and its parts may be.

    Returns:
        An atom without variables.

    Raises:
        PolicySyntaxError: The text is no fact.
    """
    _measure(text, limits)
    from maia.policy.reading import READER  # noqa: PLC0415 - loaded when the first text is read

    return READER.fact(text, limits)


def parse_privilege(text: str, *, limits: PolicyLimits = DEFAULT_POLICY_LIMITS) -> Privilege:
    """Read a privilege; here every word is a constant.

    >>> print(parse_privilege("subscribe Numberplate(location, numberplate = 'AE05 XYZ')"))
    subscribe Numberplate(location, numberplate = 'AE05 XYZ')

    Args:
        text: The privilege, in one of the forms that may stand right of `|-`.
        limits: How large the text and its parts may be.

    Returns:
        A privilege without variables.

    Raises:
        PolicySyntaxError: The text is no privilege.
    """
    _measure(text, limits)
    from maia.policy.reading import READER  # noqa: PLC0415 - loaded when the first text is read

    return READER.privilege(text, limits)


def parse_bound(text: str, *, limits: PolicyLimits = DEFAULT_POLICY_LIMITS) -> BoundUse:
    """Read an access-control filter as a rule has it behind a right; here every word is a constant.

    >>> print(parse_bound("upper (message = 'new_product', price < 100)"))
    upper (message = 'new_product', price < '100')

    Raises:
        PolicySyntaxError: The text is none.
    """
    _measure(text, limits)
    from maia.policy.reading import READER  # noqa: PLC0415 - loaded when the first text is read

    return READER.bound(text, limits)


def read_rules(text: str) -> tuple[Policy, tuple[PolicySyntaxError, ...]]:
    r"""Read the rules of a text that can be read, and say what is wrong with the lines of all others.

    >>> policy, wrong = read_rules("a(self) <-\nb(self) <- c(self)\n|- d")
    >>> len(policy.rules), [error.line for error in wrong]
    (1, [1, 3])
    """
    try:
        return parse_policy(text), ()
    except PolicySyntaxError as error:
        if error.code == "POLICY_LIMIT":
            return Policy(rules=()), (error,)
    rules: list[Rule] = []
    wrong: list[PolicySyntaxError] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            rules += [replace(rule, line=number) for rule in parse_policy(line).rules]
        except PolicySyntaxError as error:
            message = error.message.replace("line 1,", f"line {number},", 1)
            wrong.append(PolicySyntaxError(message, code=error.code, line=number, column=error.column))
    return Policy(rules=tuple(rules)), tuple(wrong)


def _measure(text: str, limits: PolicyLimits) -> None:
    """Refuse what is too large or too deep before a parser sees it."""
    if len(text) > limits.characters:
        raise PolicySyntaxError(f"a policy has at most {limits.characters} characters", code="POLICY_LIMIT")
    if sum(1 for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")) > limits.rules:
        raise PolicySyntaxError(f"a policy has at most {limits.rules} rules", code="POLICY_LIMIT")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PolicySyntaxError("the text holds lone surrogates", code="POLICY_SURROGATE")
    depth, line, start = 0, 1, 0
    for found in _SCANNED.finditer(text):
        if found[0] == "\n":
            depth, line, start = 0, line + 1, found.end()
        elif found[0] in "()":
            depth += 1 if found[0] == "(" else -1
            if depth > limits.depth:
                column = found.start() - start + 1
                message = f"line {line}, column {column}: terms are nested at most {limits.depth} deep"
                raise PolicySyntaxError(message, code="POLICY_LIMIT", line=line, column=column)
