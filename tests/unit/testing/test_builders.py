"""The shipped builders do what they say."""

from __future__ import annotations

import copy

import pytest

from maia.authority import parse_tag
from maia.errors import UsageError
from maia.principals import ALWAYS, ObjectHash, Period, TestKind
from maia.testing import People, at, during, grant, naming, online, right, subject_of


def test_people_are_known_by_name():
    """As attributes and as items; strangers are nobody."""
    people = People("pito", "met police")
    assert people["met police"].public_key != people.pito.public_key
    assert list(people) == ["pito", "met police"]
    with pytest.raises(AttributeError):
        people.nobody  # noqa: B018 - looking is the test
    with pytest.raises(UsageError):
        people.name_of(People("nobody").nobody.public_key.key_id)
    assert copy.copy(people).pito.public_key == people.pito.public_key


def test_seeds_make_other_people():
    """The same name with another seed, or with none, is another key."""
    keys = {People("a", seed=seed).a.public_key for seed in ("", "x", None, None)}
    assert len(keys) == 4


def test_instants_and_periods():
    """Seconds, ISO texts with and without a zone, and instants as they are."""
    assert at("2026-06-01T11:00:00+02:00") == at("2026-06-01T09:00:00") == at(at("2026-06-01T09:00:00"))
    assert during(None) == ALWAYS
    assert during((None, 5)) == Period(None, at(5))


def test_rights_in_every_form():
    """A tag, an expression, or text."""
    people = People("a", "b")
    bodies = {grant(people.a, people.b, form).body.tag for form in (parse_tag((b"x",)), (b"x",), "(x)")}
    assert bodies == {(b"x",)}
    assert right(b"x") == b"x"


def test_subjects_are_people_or_principals():
    """A name stands for keys, so an object cannot be named."""
    people = People("a")
    assert subject_of(people.a) == people.a.public_key
    assert subject_of(people.a.public_key) == people.a.public_key
    assert online(TestKind.CRL, people.a) == online(TestKind.CRL, people.a.public_key)
    with pytest.raises(UsageError):
        naming(people.a, "n", ObjectHash(bytes(32)))
