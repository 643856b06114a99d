"""A row as people type it: one JSON object, attributes by name."""

from __future__ import annotations

import json

from maia.errors import UsageError


def read_row(text: str) -> dict[str, object]:
    """Read a row.

    Raises:
        UsageError: It is no JSON object: ``ROW_TEXT``.

    >>> read_row('{"location": "Victoria"}')
    {'location': 'Victoria'}
    """
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError('a row is a JSON object, as in `{"location": "Victoria"}`', code="ROW_TEXT") from error
    if not isinstance(row, dict):
        raise UsageError('a row is a JSON object, as in `{"location": "Victoria"}`', code="ROW_TEXT")
    return row
