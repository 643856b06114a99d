"""Labels: the flow rule, joining, privileges, and the lattice they make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, UsageError
from maia.labels import PUBLIC, Label, Privilege, can_flow, join

tags = st.frozensets(st.sampled_from("abcd"))
labels = st.builds(lambda s, i: Label(secrecy=s, integrity=i), tags, tags)


def label(secrecy="", integrity=""):
    """A label of one-letter tags."""
    return Label(secrecy=frozenset(secrecy), integrity=frozenset(integrity))


def test_privileges_make_the_only_exceptions():
    """Declassifying one tag frees that tag and no other; endorsing vouches for one tag and no other."""
    assert can_flow(label("x"), PUBLIC, Privilege(declassify=frozenset("x")))
    assert not can_flow(label("xy"), PUBLIC, Privilege(declassify=frozenset("x")))
    assert can_flow(PUBLIC, label("", "p"), Privilege(endorse=frozenset("p")))
    assert not can_flow(PUBLIC, label("", "pq"), Privilege(endorse=frozenset("p")))


def test_nothing_has_no_label_and_tags_have_names():
    """An empty join and an empty tag are refused."""
    with pytest.raises(UsageError):
        join([])
    with pytest.raises(EncodingError):
        label().__class__(secrecy=frozenset({""}))
    with pytest.raises(EncodingError):
        Privilege(endorse=frozenset({""}))
    with pytest.raises(EncodingError):
        Label(secrecy=frozenset(str(number) for number in range(5000)))


@given(labels, labels, labels)
def test_labels_are_a_lattice(a, b, c):
    """Flow is reflexive and transitive, both ways means equal, and a join is the least label above its parts."""
    assert can_flow(a, a)
    assert not (can_flow(a, b) and can_flow(b, c)) or can_flow(a, c)
    assert not (can_flow(a, b) and can_flow(b, a)) or a == b
    joined = join([a, b])
    assert can_flow(a, joined)
    assert can_flow(b, joined)
    assert not (can_flow(a, c) and can_flow(b, c)) or can_flow(joined, c)
    assert join([a, join([b, c])]) == join([joined, c])


@given(labels, labels, tags)
def test_no_flow_without_privilege_lowers_secrecy(a, b, held):
    """What arrives is at least as secret as what left, but for the tags that were declassified."""
    if can_flow(a, b, Privilege(declassify=held)):
        assert a.secrecy - b.secrecy <= held
