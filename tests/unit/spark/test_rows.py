"""Which numbers of a file a decimal of a size holds, without Spark."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from maia.spark.rows import _DECIMAL, _is_rounded

NUMBERS = {
    "2.205": True, "-0.004": True, "1e-3": True, "0.001": True, "2.20": False, "2.2000": False, "-7": False,
    "250e-1": False, "1.5e1": False, "0.000": False, "0e-9": False,
    "12345678901234567890123456789012345.678": True, "12345678901234567890123456789012345.67": False,
    "NaN": True, "Infinity": True, "": True, "1,5": True,
}  # fmt: skip


@pytest.mark.parametrize("text, rounded", NUMBERS.items())
def test_a_number_with_more_digits_behind_the_point_would_be_rounded(text: str, rounded: bool) -> None:
    """As a text and as a number; what is no number is not taken either."""
    assert _is_rounded(text, 2) is rounded
    if re.fullmatch(r"[-0-9.e]+", text):
        assert _is_rounded(Decimal(text), 2) is rounded


@pytest.mark.parametrize("text", ["", ".", "-", "1,5", "1e", "1e9999", "0x1", "1.2.3", "NaN"])
def test_what_is_no_number_is_no_decimal(text: str) -> None:
    """Nor is one whose exponent alone would be work."""
    assert re.match(_DECIMAL, text) is None
