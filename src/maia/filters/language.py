"""From text to a filter tree, within stated limits, with errors that point at the column.

The grammar is LALR(1) and lives beside this file in ``grammar.lark``; parsing is linear in the text. Nothing in a text
can reach another language: names and literals become values of the tree and nothing else.
"""

from __future__ import annotations

from maia.errors import FilterSyntaxError
from maia.filters.limits import DEFAULT_LIMITS, FilterLimits
from maia.filters.tree import Filter
from maia.filters.values import is_scalar_text


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
    from maia.filters.reading import read  # noqa: PLC0415 - many programs only hold filters that others have read

    return read(text, limits)
