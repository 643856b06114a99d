"""Names, uids and types of attributes."""

from __future__ import annotations

import pytest

from maia.errors import FilterTypeError, MalformedError
from maia.events import (
    AttributeType,
    attribute,
    check_attributes,
)
from maia.filters import compile_filter


def test_two_attributes_of_one_name_are_refused() -> None:
    """`numberplate` twice in one version is no version."""
    pair = (attribute("numberplate", 3265, "string"), attribute("numberplate", 7, "string"))
    with pytest.raises(MalformedError, match="ATTRIBUTE_NAME_TWICE"):
        check_attributes(pair)


@pytest.mark.requirement("2.06")
def test_binary_is_a_type_that_no_filter_compares() -> None:
    """`path-report-text` may be binary, `sample-receipt-date` a date; only the latter can be filtered."""
    report, received = attribute("path-report-text", 1, "binary"), attribute("sample-receipt-date", 2, "date")
    types = {item.name: item.type.value for item in (report, received)}
    assert compile_filter("sample-receipt-date >= '2010-02-01'", types)
    with pytest.raises(FilterTypeError):
        compile_filter("path-report-text < 'x'", types)
    assert not report.type.filterable
    assert received.type.filterable
    assert {kind.value for kind in AttributeType if kind.filterable} == {
        *("integer", "float", "decimal", "string", "boolean", "date", "timestamp"),
    }
