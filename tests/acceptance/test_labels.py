"""Labels: the flow rule, joining, privileges, and the lattice they make."""

from __future__ import annotations

import random

import pytest

from maia.errors import FlowError, UnavailableError
from maia.labels import (
    PUBLIC,
    Label,
    LocalTags,
    Privilege,
    can_change,
    can_flow,
    join,
    parse_label_policy,
    read_as,
)


def label(secrecy="", integrity=""):
    """A label of one-letter tags."""
    return Label(secrecy=frozenset(secrecy), integrity=frozenset(integrity))


FLOWS = {
    "up in secrecy, down in integrity": (label("x", "p"), label("xy"), True),
    "secrecy is not lost": (label("x"), label(), False),
    "integrity is not gained": (label(), label("", "p"), False),
    "the public label flows to itself": (PUBLIC, PUBLIC, True),
    "another tag is no cover": (label("x"), label("y"), False),
}


@pytest.mark.requirement("17.01")
@pytest.mark.parametrize(("source", "target", "expected"), FLOWS.values(), ids=FLOWS.keys())
def test_flow(source, target, expected):
    """Data flows when no secrecy is lost and no integrity is gained."""
    assert can_flow(source, target) is expected


@pytest.mark.requirement("17.02")
def test_joining_unites_secrecy_and_keeps_common_integrity():
    """Merging ({A},{p}) and ({B},{}) gives ({A,B},{})."""
    assert join([label("A", "p"), label("B")]) == label("AB")


T = frozenset({"t"})


@pytest.mark.requirement("17.03")
def test_four_privileges_and_their_delegation():
    """The creator of a tag holds all four and gives away what it likes; adding lets read, declassifying lets out."""
    creator = Privilege.over("t")
    secret, vouched = Label(secrecy=T), Label(integrity=T)
    reader = creator.delegate(Privilege(add=T))
    copy = read_as(PUBLIC, secret, reader)
    assert copy == secret
    assert not can_flow(copy, PUBLIC, reader)
    assert not can_change(copy, PUBLIC, reader)
    assert can_flow(copy, PUBLIC, reader.with_(creator.delegate(Privilege(declassify=T))))
    assert can_change(vouched, PUBLIC, creator.delegate(Privilege(drop=T)))
    assert not can_change(PUBLIC, vouched, Privilege(drop=T))
    assert can_change(PUBLIC, vouched, creator.delegate(Privilege(endorse=T)))
    for part in (Privilege(declassify=T), Privilege(drop=T), Privilege(endorse=T), Privilege(add=frozenset({"u"}))):
        with pytest.raises(FlowError, match="PRIVILEGE_NOT_HELD"):
            reader.delegate(part)


def test_a_light_copy_reads_and_the_reader_stays_what_it_was():
    """Reading a secret part raises the copy alone; without the privilege there is no copy."""
    reader = PUBLIC
    copy = read_as(reader, Label(secrecy=T), Privilege(add=T))
    assert (copy.secrecy, reader) == (T, PUBLIC)
    assert can_flow(reader, PUBLIC), "the next event's public output still leaves"
    with pytest.raises(FlowError):
        read_as(reader, Label(secrecy=T))


def test_tags_are_local_and_translate_through_global_names():
    """One URI, different bits on two nodes, the same meaning; without the resolver local flow goes on, others deny."""
    uri = "https://nhs.example/t/identifiable"
    here, there = LocalTags(resolve=lambda name: name == uri), LocalTags(resolve=lambda name: name == uri)
    here.create("identifiable", uri=uri)
    for name in ("ward", "lab"):
        there.create(name)
    there.create("ident", uri=uri)
    sent = here.globalise(Label(secrecy=frozenset({"identifiable"})))
    assert sent == Label(secrecy=frozenset({uri}))
    ours, theirs = here.localise(sent), there.localise(sent)
    assert ours != theirs
    assert theirs == there.localise(Label(secrecy=frozenset({"ident"})))
    assert not there.flows(theirs, there.localise(PUBLIC))
    with pytest.raises(FlowError, match="TAG_LOCAL"):
        there.globalise(Label(secrecy=frozenset({"ward"})))

    def away(_name):
        raise UnavailableError("no answer")

    alone = LocalTags(resolve=away)
    alone.create("ward")
    ward = alone.localise(Label(secrecy=frozenset({"ward"})))
    assert alone.flows(ward, ward)
    for unknown in (uri, "somebody's"):
        with pytest.raises(FlowError, match="TAG_UNRESOLVED"):
            alone.localise(Label(secrecy=frozenset({unknown})))


def test_local_checks_answer_as_names_do():
    """Every pair of 64 labels of up to 8 tags, by bits and by names: the same answer."""
    node = LocalTags(resolve=lambda _name: False)
    names = [f"t{number}" for number in range(16)]
    for name in names:
        node.create(name)
    rng = random.Random(8)
    labels = [
        Label(
            secrecy=frozenset(rng.sample(names, rng.randint(0, 8))),
            integrity=frozenset(rng.sample(names, rng.randint(0, 3))),
        )
        for _ in range(64)
    ]  # fmt: skip
    local = [node.localise(item) for item in labels]
    found = [node.flows(a, b) for a in local for b in local]
    assert found == [can_flow(a, b) for a in labels for b in labels]
    assert set(found) == {True, False}


@pytest.mark.requirement("18.06")
def test_the_list_of_who_can_declassify_is_the_policy():
    """t_identifiable -> {anonymiser}; another component that may, and the list has it; a family counts for its tags."""
    one = '[components.anonymiser]\ndoes = "pass"\ndeclassify = ["identifiable"]\nclients = ["lab"]\n'
    more = '[components.bridge]\ndoes = "pass"\ndeclassify = ["identifiable", "clinical(*)"]\nclients = ["desk"]\n'
    assert parse_label_policy(one.encode()).who_declassifies("identifiable") == ("anonymiser",)
    both = parse_label_policy((one + more).encode())
    assert both.who_declassifies("identifiable") == ("anonymiser", "bridge")
    assert both.who_declassifies("clinical(7)") == ("bridge",)
    assert both.who_declassifies("other") == ()
