"""From text to a filter tree, within stated limits, with errors that point at the column.

The grammar is LALR(1) and lives beside this file in ``grammar.lark``; parsing is linear in the text. Nothing in a text
can reach another language: names and literals become values of the tree and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources

from maia.errors import FilterSyntaxError
from maia.filters.tree import Filter
from maia.filters.values import is_scalar_text


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLimits:
    """How large a filter text may be; whatever is larger is refused before it costs anything."""

    characters: int = 262_144
    constraints: int = 4_096
    values: int = 16_384
    literal_characters: int = 65_536
    name_characters: int = 1_024
    digits: int = 1_024


DEFAULT_LIMITS = FilterLimits()


def grammar() -> str:
    """The grammar of the filter language, as it is shipped and as the reference page shows it.

    >>> "constraint" in grammar()
    True
    """
    return resources.files("maia.filters").joinpath("grammar.lark").read_text(encoding="utf-8")


def parse_filter(text: str, *, limits: FilterLimits = DEFAULT_LIMITS) -> Filter:
    """Read a filter from its text.

    The result says what was written; `check` gives it a meaning. The empty text is the filter without constraints.

    >>> tuple(c.attribute for c in parse_filter("price < 100 and message = 'new_product'").constraints)
    ('price', 'message')
    >>> parse_filter("price <")
    Traceback (most recent call last):
    maia.errors.FilterSyntaxError: [FILTER_SYNTAX] line 1, column 8: expected ... but the text ends

    Args:
        text: The filter, as a person writes it.
        limits: How large the text and its parts may be.

    Returns:
        The constraints in the order of the text.

    Raises:
        FilterSyntaxError: The text is no filter or passes a limit; ``line`` and ``column`` say where.
    """
    if len(text) > limits.characters:
        raise FilterSyntaxError(
            f"a filter has at most {limits.characters} characters, this one has {len(text)}",
            code="FILTER_LIMIT",
        )
    if not is_scalar_text(text):
        raise FilterSyntaxError("the text holds lone surrogates", code="FILTER_SURROGATE")
    return _reader()(text, limits)


@cache
def _reader() -> Callable[[str, FilterLimits], Filter]:
    """The parser, loaded when the first filter is read: many programs only hold filters that others have read."""
    read: Callable[[str, FilterLimits], Filter] = import_module("maia.filters.reading").read
    return read
