"""The reference page of the filter language says what the code does."""

from __future__ import annotations

import re

from maia.filters import AttributeType, BoundKind, FilterLimits, Operator, Relation, grammar


def test_the_page_shows_the_grammar_the_parser_reads(repository):
    """The block between the markers is the shipped grammar, to the letter."""
    page = (repository / "docs" / "reference" / "filters.md").read_text("utf-8")
    shown = re.search(r"<!-- grammar: begin -->\n```text\n(.*?)\n```\n<!-- grammar: end -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == grammar().rstrip()


def test_the_page_names_every_operator_type_relation_and_bound(repository):
    """Whatever the language has, the page explains."""
    page = (repository / "docs" / "reference" / "filters.md").read_text("utf-8")
    for kind in AttributeType:
        assert f"| {kind.value} |" in page
    for word in (*Operator, *Relation, *BoundKind):
        assert f"`{word.value}`" in page
    limits = FilterLimits()
    for limit in (limits.characters, limits.constraints, limits.values, limits.literal_characters, limits.digits):
        assert f"{limit:,}" in page
