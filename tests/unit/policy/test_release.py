"""The release language: what reads, what does not and where it says so, what the formatter and the checker do."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from maia.errors import MalformedError, UsageError
from maia.events import parse_attribute_type
from maia.policy import PolicySyntaxError, release

KINDS = {
    "ward": "string", "age": "integer", "lat": "float", "cost": "decimal(6,2)", "born": "date", "alive": "boolean",
    "codes": "array<string>", "person": "string", "to": "string",
}  # fmt: skip
TYPES = {"T": {name: parse_attribute_type(kind) for name, kind in KINDS.items()}}

REFUSED = {
    "a clause that stops": ("release T to x\n  keep", 2, 7, "RELEASE_SYNTAX"),
    "no destination": ("release T keep a", 1, 11, "RELEASE_SYNTAX"),
    "a missing comma": ("release T to x keep a b", 1, 23, "RELEASE_SYNTAX"),
    "a clause without a rule": ("keep a", 1, 1, "RELEASE_SYNTAX"),
    "a quote left open": ("release T to 'x keep a", 1, 14, "RELEASE_SYNTAX"),
    "counts of nothing": ("release counts of T to x", 1, 21, "RELEASE_SYNTAX"),
    "an unknown coarsening": ("release T to x coarsen a to week", 1, 29, "RELEASE_PRECISION"),
    "a month with a number": ("release T to x coarsen a to month(2)", 1, 29, "RELEASE_SIZE"),
    "a bucket without one": ("release T to x coarsen a to bucket", 1, 29, "RELEASE_SIZE"),
    "a bucket of nothing": ("release T to x coarsen a to bucket(0)", 1, 36, "RELEASE_SIZE"),
    "no text left": ("release T to x coarsen a to last(0)", 1, 34, "RELEASE_SIZE"),
    "too many decimals": ("release T to x coarsen a to decimals(16)", 1, 38, "RELEASE_SIZE"),
    "a fraction": ("release T to x coarsen a to bucket(2.5)", 1, 36, "RELEASE_SYNTAX"),
    "a number beyond all": ("release T to x coarsen a to bucket(99999999999999999)", 1, 36, "RELEASE_LIMIT"),
    "nobody at least": ("release counts of T by a to x at least 0 b", 1, 40, "RELEASE_SIZE"),
    "something else than a pseudonym": ("release T to x add a = hash(b)", 1, 24, "RELEASE_CLAUSE"),
    "something else than a scope": ("release T to x add a = pseudonym(b, key = study)", 1, 37, "RELEASE_CLAUSE"),
    "a scope that is none": ("release T to x add a = pseudonym(b, scope = all)", 1, 45, "RELEASE_SCOPE"),
    "a destination that is none": ("release T to group(x) keep a", 1, 14, "RELEASE_DESTINATION"),
    "a word that never ends": (f"release T to {'x' * 1025} keep a", 1, 14, "RELEASE_LIMIT"),
}


@pytest.mark.parametrize("text, line, column, code", REFUSED.values(), ids=REFUSED)
def test_what_is_no_rule_is_refused_with_its_place(text: str, line: int, column: int, code: str) -> None:
    """The error points at the first character that makes no sense."""
    with pytest.raises(PolicySyntaxError) as raised:
        release.parse_releases(text)
    assert (raised.value.line, raised.value.column, raised.value.code) == (line, column, code)
    assert f"line {line}, column {column}: " in raised.value.message


LIMITS = {
    "a text without end": "#" * (1 << 20) + "\n",
    "rules without end": "release T to x keep a\n" * 2_001,
    "names without end": f"release T to x keep {', '.join(['a'] * 1_025)}",
}


@pytest.mark.parametrize("text", LIMITS.values(), ids=LIMITS)
def test_texts_are_bounded(text: str) -> None:
    """Whatever is larger is refused."""
    with pytest.raises(PolicySyntaxError, match="RELEASE_LIMIT"):
        release.parse_releases(text)


READ = {
    "one line": ("release T to registry keep a", "release T to registry\n  keep    a"),
    "a domain by name": ('RELEASE T TO domain("registry") Keep a', "release T to registry\n  keep    a"),
    "a name with blanks": ("release T to 'St Mary''s' keep a", 'release T to "St Mary\'s"\n  keep    a'),
    "words as names": ("release to to to keep to, by, keep", "release to to to\n  keep    to, by, keep"),
    "a type called counts": ("release counts to x keep a", "release counts to x\n  keep    a"),
    "a whole type": ("release nhs/uk.T@3 to x keep a", "release nhs/uk.T@3 to x\n  keep    a"),
    "a study in either form": ("release T to study(b-7) keep a", 'release T to study("b-7")\n  keep    a'),
    "counts": (
        "release counts of T by a, b to x coarsen a to bucket(5) at least 10 c",
        "release counts of T by a, b to x\n  coarsen a to bucket(5)\n  at least 10 c",
    ),
    "a scope": (
        "release T to study('x') add p = pseudonym(q, scope = study('y'))",
        'release T to study("x")\n  add     p = pseudonym(q, scope = study("y"))',
    ),
    "nothing": ("# no rules yet\n", ""),
}


@pytest.mark.parametrize("text, spelled", READ.values(), ids=READ)
def test_rules_have_one_spelling(text: str, spelled: str) -> None:
    """Lines break anywhere, quotes and words have two forms; what is written back has one."""
    assert "\n\n".join(map(str, release.parse_releases(text))) == spelled
    assert release.format_releases(spelled) == (f"{spelled}\n" if spelled else "")


def test_comments_stay_where_they_belong() -> None:
    """Behind the clause that ends on their line, else before what follows; blank lines are made one."""
    text = (
        "# top\n\nrelease T to x # who\n keep a, # first\n  b # second\n\n\n# next\nrelease U to y keep c # same\n# end"
    )
    assert release.format_releases(text) == (
        "# top\nrelease T to x  # who\n  # first\n  keep    a, b  # second\n\n# next\nrelease U to y\n"
        "  keep    c  # same\n# end\n"
    )


FINDINGS = {
    "nothing leaves": ("release T to x", ["1:1 error RELEASE_EMPTY"]),
    "only drops": ("release T to x drop age", ["1:1 error RELEASE_EMPTY"]),
    "kept and coarsened": ("release T to x keep age\ncoarsen age to bucket(5)", ["2:1 error RELEASE_TWICE"]),
    "kept by two rules": ("release T to x keep age\nrelease T to x keep age", ["2:16 error RELEASE_TWICE"]),
    "dropped and kept": ("release T to x keep age\n drop age", ["1:16 error RELEASE_TWICE"]),
    "two columns of a name": ("release T to x keep ward\nadd ward = pseudonym(person)", ["2:1 error RELEASE_TWICE"]),
    "at least, of rows": ("release T to x keep age at least 3 person", ["1:25 error RELEASE_CLAUSE"]),
    "keep, in counts": (
        "release counts of T by age to x keep ward at least 2 person", ["1:33 error RELEASE_CLAUSE"],
    ),
    "coarsened, but no group": (
        "release counts of T by age to x coarsen born to year at least 2 person", ["1:33 error RELEASE_CLAUSE"],
    ),
    "a column called count": (
        "release counts of T by age, age to x at least 2 person", ["1:1 error RELEASE_TWICE"],
    ),
    "two minima": (
        "release counts of T by age to x at least 2 person at least 3 ward", ["1:1 error RELEASE_TWICE"],
    ),
    "two counts": (
        "release counts of T by age to x at least 2 person\nrelease counts of T by ward to x at least 2 person",
        ["2:1 error RELEASE_DIFFERENCE"],
    ),
    "counts for two": (
        "release counts of T by age to x at least 2 person\nrelease counts of T by ward to y at least 2 person", [],
    ),
    "no minimum": ("release counts of T by age to x", ["1:1 warning NO_MINIMUM"]),
    "rows beside counts": (
        "release counts of T by age to x at least 2 person\nrelease T to x keep ward", ["1:1 warning ROWS_AND_COUNTS"],
    ),
    "an unknown type": ("release U to x keep age", ["1:1 error UNKNOWN_TYPE"]),
    "an unknown attribute": ("release T to x\n  keep age, wart", ["2:3 error UNKNOWN_ATTRIBUTE"]),
    "an unknown group": ("release counts of T by wart to x at least 2 person", ["1:1 error UNKNOWN_ATTRIBUTE"]),
    "an unknown person": ("release counts of T by age to x at least 2 man", ["1:33 error UNKNOWN_ATTRIBUTE"]),
    "an unknown source": ("release T to x add p = pseudonym(man)", ["1:16 error UNKNOWN_ATTRIBUTE"]),
    "a month of an age": ("release T to x coarsen age to month", ["1:16 error RELEASE_TYPE"]),
    "the last of a date": ("release T to x coarsen born to last(2)", ["1:16 error RELEASE_TYPE"]),
    "a bucket of texts": ("release T to x coarsen ward to bucket(2)", ["1:16 error RELEASE_TYPE"]),
    "decimals of integers": ("release T to x coarsen age to decimals(1)", ["1:16 error RELEASE_TYPE"]),
    "decimals that lose nothing": ("release T to x coarsen cost to decimals(2)", ["1:16 error RELEASE_TYPE"]),
    "an array, coarsened": ("release T to x coarsen codes to first(2)", ["1:16 error RELEASE_TYPE"]),
    "an array that makes groups": (
        "release counts of T by codes to x at least 2 person", ["1:1 error RELEASE_TYPE"],
    ),
    "nobody's pseudonym": ("release T to x add p = pseudonym(alive)", ["1:16 error RELEASE_TYPE"]),
    "people by a float": ("release counts of T by age to x at least 2 lat", []),
    "people by an array": ("release counts of T by age to x at least 2 codes", ["1:33 error RELEASE_TYPE"]),
    "a bucket of one": ("release T to x coarsen age to bucket(1)", ["1:16 warning RELEASE_SIZE"]),
    "a pseudonym beside its person": (
        "release T to x keep person\nadd p = pseudonym(person)", ["2:1 warning PSEUDONYM_OPEN"],
    ),
    "a pseudonym called as its person": (
        "release T to x add person = pseudonym(person)", ["1:16 warning PSEUDONYM_NAME"],
    ),
    "a study's scope for a domain": (
        "release T to x add p = pseudonym(person, scope = study)", ["1:16 warning RELEASE_SCOPE"],
    ),
    "all is well": ("release T to x keep ward, codes coarsen born to year add p = pseudonym(person)", []),
}  # fmt: skip


@pytest.mark.parametrize("text, expected", FINDINGS.values(), ids=FINDINGS)
def test_findings(text: str, expected: list[str]) -> None:
    """What is wrong is found with its place; errors stop a release, warnings do not."""
    rules = release.parse_releases(text)
    found = release.check_releases(rules, TYPES)
    assert [f"{item.line}:{item.column} {item.severity} {item.code}" for item in found] == expected
    errors = [item.code for item in found if item.is_error]
    if errors and errors != ["UNKNOWN_TYPE"]:
        with pytest.raises(PolicySyntaxError, match=errors[0]):
            release.compile_releases(rules, release.parse_destination("x"), TYPES["T"])
    elif not errors:
        assert release.compile_releases(rules, release.parse_destination("x"), TYPES["T"])


def one_tree(text: str) -> release.ReleaseTree:
    """Compile rules of one tree."""
    (tree,) = release.compile_releases(release.parse_releases(text), release.parse_destination("x"), TYPES["T"])
    return tree


def test_rows_without_a_column_are_refused() -> None:
    """A tree reads what the rules name, and says which column is not there or of another type."""
    tree = one_tree("release T to x keep ward coarsen age to bucket(5)")
    for columns in ({"ward": ["a"]}, {"ward": ["a"], "age": ["old"]}):
        with pytest.raises(MalformedError, match="RELEASE_ROWS"):
            list(release.release_batches(tree, [pa.RecordBatch.from_pydict(columns)]))


def test_a_pseudonym_needs_the_secret() -> None:
    """Without the domain's secret nothing is made up."""
    tree = one_tree("release T to x add p = pseudonym(person)")
    with pytest.raises(UsageError, match="RELEASE_SECRET"):
        list(release.release_batches(tree, [pa.RecordBatch.from_pydict({"person": ["a"]})]))


def test_no_rows_make_no_counts_and_dictionaries_are_read() -> None:
    """An empty input is an empty output; columns may come dictionary-encoded."""
    tree = one_tree("release counts of T by ward to x at least 1 person")
    assert [batch.num_rows for batch in release.release_batches(tree, [])] in ([], [0])
    coded = pa.array(["a", "b", "a", None]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([coded, pa.array(["1", "2", "3", "4"])], names=["ward", "person"])
    (made,) = release.release_batches(tree, [batch])
    assert made.to_pylist() == [
        {"ward": "a", "count": 2}, {"ward": "b", "count": 1}, {"ward": None, "count": 1}
    ]  # fmt: skip


def test_the_reference_page_shows_the_grammar(repository: Path) -> None:
    """What the page says the language is, it is."""
    page = (repository / "docs" / "reference" / "release.md").read_text("utf-8")
    shown = re.search(r"<!-- grammar: begin -->\n```text\n(.*?)\n```\n<!-- grammar: end -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() == release.release_grammar().strip()
