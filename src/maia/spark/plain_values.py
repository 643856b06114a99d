"""A cell as a value that JSON has. Needs no Spark."""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime
from decimal import Decimal


def plain(value: object) -> object:
    """Give a cell in a form that JSON has: times as text in UTC, octets in base64, decimals with their digits.

    Of arrays and structs (mappings) each part is given so.

    >>> plain(Decimal("1.50")), plain(b"ab"), plain(float("nan")), plain(datetime(2026, 6, 1, 8, tzinfo=UTC))
    ('1.50', 'YWI=', 'nan', '2026-06-01T08:00:00Z')
    """
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, (Decimal, date)):
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.replace(".000000Z", "Z") if isinstance(value, str) and value.endswith(".000000Z") else value
