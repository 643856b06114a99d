"""The rule language: what reads, what does not and where it says so, what the formatter and the checker do."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MaiaError
from maia.policy import (
    Atom,
    Constant,
    EventRight,
    PolicyLimits,
    PolicySyntaxError,
    Severity,
    check,
    format_text,
    grammar,
    parse_fact,
    parse_policy,
    parse_privilege,
    require_runnable,
)

NUMBERPLATE = (
    "npTracker(plate) <- courtOrder(case, plate)*, detective(self)*, ?caseAssignment(self, case)*\n"
    "npTracker(plate) |- subscribe Numberplate(location, timestamp, numberplate = plate)\n"
)

REFUSED = {
    "a rule that stops": ("a(x) <- b(x)\nc(x) <-", 2, 8, "POLICY_SYNTAX"),
    "a missing comma": ("a <- b c", 1, 8, "POLICY_SYNTAX"),
    "no premise at all": ("a(self) <-\nb <- c", 1, 11, "POLICY_SYNTAX"),
    "a parenthesis left open": ("a(x <- b", 1, 5, "POLICY_SYNTAX"),
    "a quote left open": ("a('x) <- b", 1, 3, "POLICY_SYNTAX"),
    "a negation": ("a(self) <- not b(self)", 1, 16, "POLICY_SYNTAX"),
    "two roles left of a privilege": ("a(x), b(x) |- c(x)", 1, 7, "POLICY_ROLES"),
    "no role left of a privilege": ("?a(x) |- c(x)", 1, 2, "POLICY_ROLES"),
    "a rule without an arrow": ("a(x)", 1, 5, "POLICY_SYNTAX"),
    "terms nested too deep": ("a(" * 40, 1, 34, "POLICY_LIMIT"),
}


@pytest.mark.parametrize("text, line, column, code", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_policy_is_refused_where_it_stops_making_sense(text, line, column, code):
    """Errors point at line and column and have a stable code."""
    with pytest.raises(PolicySyntaxError) as caught:
        parse_policy(text)
    assert (caught.value.line, caught.value.column, caught.value.code) == (line, column, code)
    assert str(caught.value).startswith(f"[{code}] line {line}, column {column}: ")


def written(policy):
    """Write rules, one a line."""
    return "".join(f"{rule}\n" for rule in policy.rules)


def test_the_rules_of_the_design_read_and_write_as_they_stand():
    """The numberplate rules are canonical already."""
    assert written(parse_policy(NUMBERPLATE)) == NUMBERPLATE


def test_in_rules_bare_words_are_variables_and_in_facts_constants():
    """`c1` is a variable in a rule, and the same constant with or without quotes in a fact."""
    rule = parse_policy("a(c1) <- b(c1, 'c1', 3)").activations[0]
    assert str(parse_policy(str(rule)).rules[0]) == "a(c1) <- b(c1, 'c1', '3')"
    assert parse_fact("b(c1)") == parse_fact("b('c1')") == parse_fact('b("c1")') == Atom("b", (Constant("c1"),))


def test_quotes_inside_constants_survive():
    """Either quote may stand in a constant, and what is shown reads back."""
    for text in ("it's", 'say "x"', 'it\'s "x"', "", "AE05 XYZ", "#"):
        atom = Atom("a", (Constant(text),))
        assert parse_fact(str(atom)) == atom
        assert parse_policy(f"{atom} <- b").activations[0].head.arguments[0] in (Constant(text), *atom.arguments)


def test_a_privilege_may_be_any_term_or_a_right_on_an_event_type():
    """Terms, texts and rights read; their parts are kept."""
    right = parse_privilege("subscribe uk.gov.pito.Numberplate(location, numberplate = 'AE05 XYZ')")
    assert isinstance(right, EventRight)
    assert (right.action, right.event_type, len(right.attributes or ())) == ("subscribe", "uk.gov.pito.Numberplate", 2)
    assert parse_privilege("'read notes'") == Constant("read notes")
    assert parse_privilege("read(file(notes))") == Atom("read", (Atom("file", (Constant("notes"),)),))
    assert parse_privilege("advertise Path") == EventRight(action="advertise", event_type="Path")


def test_the_formatter_keeps_comments_and_blank_lines_and_is_done_after_once():
    """Rules are aligned within their block; nothing a person wrote is lost."""
    text = "# staff\n\na(self)<-b(self)*#one\nlonger(self) <- b( self , '#' )\n\n a(x)|-read(x)\n"
    shown = format_text(text)
    assert shown == ("# staff\n\na(self)      <- b(self)*  #one\nlonger(self) <- b(self, '#')\n\na(x) |- read(x)\n")
    assert format_text(shown) == shown
    assert parse_policy(shown) == parse_policy(text)
    assert format_text("") == ""


FOUND = {
    "a head that no premise binds": ("a(x) <- b(self)", "UNBOUND_VARIABLE", 1, 3, Severity.ERROR),
    "a privilege that nothing binds": (
        "r(self) <- b(self)\nr(d) |- read(x)",
        "UNBOUND_VARIABLE",
        2,
        14,
        Severity.ERROR,
    ),
    "an anonymous variable in a head": ("a(_) <- b(_)", "UNBOUND_VARIABLE", 1, 3, Severity.ERROR),
    "a value that nothing binds": (
        "r(self) <- b(self)\nr(d) |- subscribe T(a = x)",
        "UNBOUND_VARIABLE",
        2,
        25,
        Severity.ERROR,
    ),
    "roles that only lead to each other": ("a(x) <- b(x)\nb(x) <- a(x)", "UNREACHABLE_ROLE", 1, 1, Severity.WARNING),
    "a privilege of no role": ("employed(d) |- read(d)", "NO_SUCH_ROLE", 1, 1, Severity.WARNING),
    "a rule written twice": ("a(x) <- b(x, y)\na(z) <- b(z, w)", "DUPLICATE_RULE", 2, 1, Severity.WARNING),
    "another number of parameters": ("a(x) <- b(x)\nc(x) <- b(x, x)", "PARAMETER_COUNT", 2, 1, Severity.WARNING),
}


@pytest.mark.parametrize("text, code, line, column, severity", FOUND.values(), ids=FOUND.keys())
def test_the_checker_finds(text, code, line, column, severity):
    """Each mistake is found, with its place and weight."""
    finding = check(parse_policy(text))[0]
    assert (finding.code, finding.line, finding.column, finding.severity) == (code, line, column, severity)
    assert str(finding).startswith(f"line {line}, column {column}: {severity}: ")


def test_the_checker_knows_types_when_it_is_told_them():
    """Rights on unknown types and attributes are errors; a good policy has no findings."""
    policy = parse_policy(NUMBERPLATE)
    good = {"Numberplate": {"location", "timestamp", "numberplate"}}
    assert check(policy, types=good) == ()
    assert [found.code for found in check(policy, types={})] == ["UNKNOWN_TYPE"]
    assert [found.code for found in check(policy, types={"Numberplate": {"location", "numberplate"}})] == [
        "UNKNOWN_ATTRIBUTE"
    ]


def test_roles_that_something_leads_to_are_reachable():
    """Also through other roles, in any order of lines, and with a cycle beside the way in."""
    text = "c(x) <- b(x), a(x)\nb(x) <- a(x)\na(x) <- p(x)\na(x) <- c(x)\nb(x) <- c(x)\nc('k') |- read"
    assert check(parse_policy(text)) == ()


def test_rules_that_differ_are_no_duplicates():
    """Another constant, mark or shape makes another rule."""
    text = (
        "a(x) <- b(x, y)\na(x) <- b(x, x)\na(x) <- b(x, y)*\na(x) <- ?b(x, y)\na(x) |- t N(p = x)\na(x) |- t N(q = x)"
    )
    assert not [found for found in check(parse_policy(text)) if found.code == "DUPLICATE_RULE"]


def test_a_policy_with_unbound_variables_may_not_run():
    """What the checker calls an unbound variable, the engine refuses with the place."""
    with pytest.raises(PolicySyntaxError) as caught:
        require_runnable(parse_policy("a(x) <- b(self)"))
    assert (caught.value.code, caught.value.line, caught.value.column) == ("POLICY_UNBOUND", 1, 3)


def test_limits_are_kept():
    """Each stated limit refuses the first text beyond it."""
    small = PolicyLimits(characters=60, rules=2, premises=2, arguments=2, depth=2, word_characters=5)
    for text in (
        "x" * 61,
        "a <- b\nc <- d\ne <- f",
        "a <- b, c, d",
        "a <- b(x, y, z)",
        "a <- b(c(d(e)))",
        "abcdef <- b",
    ):
        with pytest.raises(PolicySyntaxError) as caught:
            parse_policy(text, limits=small)
        assert caught.value.code == "POLICY_LIMIT"
    assert len(parse_policy("a <- b, c(x, y)\nd <- e(f(x))", limits=small).rules) == 2


def test_the_error_survives_copying():
    """Class, code and position come back."""
    error = PolicySyntaxError("x", code="POLICY_LIMIT", line=3, column=4)
    back = copy.copy(error)
    assert (type(back), back.code, back.line, back.column) == (PolicySyntaxError, "POLICY_LIMIT", 3, 4)


@given(text=st.one_of(st.text(max_size=60), st.text(alphabet="ab(),*?'\"<-|_ \n#=", max_size=60)))
def test_a_text_reads_or_is_refused(text):
    """No text makes the parsers raise anything but Maia's errors, and what reads is written back the same."""
    for parse in (parse_policy, parse_fact, parse_privilege):
        try:
            found = parse(text)
        except MaiaError:
            continue
        assert parse(written(found) if parse is parse_policy else str(found)) == found


def test_the_page_shows_the_grammar_the_parser_reads(repository):
    """The block between the markers is the shipped grammar, to the letter."""
    page = (repository / "docs" / "reference" / "policy.md").read_text("utf-8")
    shown = re.search(r"<!-- grammar: begin -->\n```text\n(.*?)\n```\n<!-- grammar: end -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == grammar().rstrip()
