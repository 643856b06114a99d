"""From text to release rules, within stated limits, with errors that point at line and column.

The grammar is LALR(1) and lives beside this file in ``grammar.lark``; parsing is linear in the text. Nothing in a text
can reach another language: words become values of the tree, nothing else.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from maia.policy.problems import PolicySyntaxError
from maia.policy.release.rules import Destination, ReleaseRule

if TYPE_CHECKING:
    from maia.policy.release.reading import RuleReader

MAX_TEXT = 1 << 20
"""Characters of a text of rules at most."""
MAX_RULES = 2_000
MAX_NAMES = 1_024
MAX_WORD = 1_024
MAX_NUMBER = 10**15


def release_grammar() -> str:
    """The grammar of the release language, as it is shipped and as the reference page shows it.

    >>> "coarsen" in release_grammar()
    True
    """
    return resources.files("maia.policy.release").joinpath("grammar.lark").read_text(encoding="utf-8")


def parse_releases(text: str) -> tuple[ReleaseRule, ...]:
    r"""Read release rules, in the order of the text.

    The result says what was written; `check_releases` says what is wrong with it.

    >>> (rule,) = parse_releases("release uk.nhs.path_report to study('bladder-7')\n  coarsen received to month")
    >>> print(rule)
    release uk.nhs.path_report to study("bladder-7")
      coarsen received to month
    >>> parse_releases("release T to registry\n  keep")
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [RELEASE_SYNTAX] line 2, column 7: expected a name or ... but the text ends

    Raises:
        PolicySyntaxError: The text is none of rules, or passes a limit; ``line`` and ``column`` say where.
    """
    _measure(text)
    return _reader().rules(text)


def parse_destination(text: str) -> Destination:
    """Read whom a release is for: ``registry``, ``domain("registry")`` or ``study("bladder-7")``.

    >>> parse_destination("study(bladder-7)").name
    'bladder-7'

    Raises:
        PolicySyntaxError: It is nobody.
    """
    _measure(text)
    return _reader().destination(text)


@cache
def _reader() -> RuleReader:
    from maia.policy.release.reading import RuleReader  # noqa: PLC0415 - loaded when the first text is read

    return RuleReader(release_grammar())


def _measure(text: str) -> None:
    """Refuse what is too large, or no text, before a parser sees it."""
    if len(text) > MAX_TEXT:
        raise PolicySyntaxError(f"a text of release rules has at most {MAX_TEXT} characters", code="RELEASE_LIMIT")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PolicySyntaxError("the text holds lone surrogates", code="RELEASE_SYNTAX")
