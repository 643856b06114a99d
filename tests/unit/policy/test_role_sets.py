"""Role sets of parents and what children add; each rule with the case in which it refuses."""

from __future__ import annotations

import pytest

from maia.policy import PolicySource, PolicySyntaxError, combine_sources, parse_policy, parse_source

NATIONAL = PolicySource(
    name="national.rules",
    text="doctor(self) <- registered(self)*\nnurse(self) <- registered(self)*",
    inherited=True,
)
LOCAL = PolicySource(name="local.rules", text="porter(self) <- hired(self)*\ndoctor(d) |- 'use the lift'\n")


def test_a_child_adds_roles_and_privileges():
    """The parent's rules come first, the child's after them, and the whole is one policy."""
    text = combine_sources([LOCAL, NATIONAL])
    policy = parse_policy(text)
    assert [rule.head.name for rule in policy.activations] == ["doctor", "nurse", "porter"]
    assert len(policy.authorisations) == 1


def test_a_sibling_sees_nothing_of_it():
    """What one child adds is in no other child's policy."""
    assert [rule.head.name for rule in parse_policy(combine_sources([NATIONAL])).activations] == ["doctor", "nurse"]


def test_a_child_cannot_loosen_a_national_role():
    """A second way to become a doctor is refused, with its place; another number of parameters is another role."""
    loose = PolicySource(name="loose.rules", text="\ndoctor(self) <- friend(self)")
    with pytest.raises(PolicySyntaxError) as refusal:
        combine_sources([NATIONAL, loose])
    assert (refusal.value.code, refusal.value.line) == ("ROLE_TAKEN", 2)
    assert "`loose.rules`" in refusal.value.message
    other = PolicySource(name="other.rules", text="doctor(self, ward) <- assigned(self, ward)*")
    assert len(parse_policy(combine_sources([NATIONAL, other])).roles) == 3


def test_two_files_of_one_domain_may_share_a_role():
    """Between its own files a domain is free."""
    more = PolicySource(name="more.rules", text="porter(self) <- agency(self)*")
    assert len(parse_policy(combine_sources([LOCAL, more])).activations) == 2


def test_problems_name_their_file():
    """Line and column are those in the file, not in the whole."""
    with pytest.raises(PolicySyntaxError) as refusal:
        parse_source(PolicySource(name="met.rules", text="a(self) <- b(self)*\nc(self) <-"))
    assert (refusal.value.line, refusal.value.message.startswith("`met.rules`, line 2")) == (2, True)


def test_a_name_with_a_line_break_stays_in_its_comment():
    """A file's name never becomes a rule."""
    sly = PolicySource(name="x\nking(self) <- me(self)", text="")
    assert parse_policy(combine_sources([sly])).rules == ()
