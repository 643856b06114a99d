"""Principals, rights, values, instants and foreign text, as they are written and shown on the command line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.authority import Action, parse_tag, type_right
from maia.cli.read.instants import parse_instant_text
from maia.cli.show.output import printable
from maia.cli.show.principals import subject_to_json
from maia.encoding import format_advanced, parse_advanced
from maia.errors import MaiaError, NotFoundError, UsageError
from maia.home import Folder, write_public_key
from maia.home.words import (
    describe_tag,
    describe_value,
    parse_attribute,
    parse_principal_text,
    parse_right,
    parse_value,
    show_subject,
    views,
)
from maia.principals import KeyHash, KeySigner, Name, ObjectHash, Threshold

A, B = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))
AT = datetime(2026, 6, 1, 9, tzinfo=UTC)


@pytest.fixture
def home(tmp_path):
    """Give a home that knows `a` and `met`."""
    for name, key in (("a", A), ("met", B)):
        write_public_key(tmp_path / "keys" / f"{name}.pub", key)
    return Folder(tmp_path)


def test_every_kind_of_principal_can_be_written(home):
    """Names, digits, hashes, local names, thresholds and expressions."""
    cases = {
        "a": A,
        "  a ": A,
        A.raw.hex(): A,
        A.fingerprint: A,
        A.fingerprint[:6]: A,
        f"hash:{A.key_id.hex()}": KeyHash(A.key_id),
        "met: Met Brokers": Name(B, ("Met Brokers",)),
        "met:brokers:london": Name(B, ("brokers", "london")),
        "2 of (a, met, met: x)": Threshold(2, (A, B, Name(B, ("x",)))),
        "1 of (a, 2 of (a, met))": Threshold(1, (A, Threshold(2, (A, B)))),
        format_advanced(Name(A, ("a:b",)).to_sexp()): Name(A, ("a:b",)),
    }
    assert {text: parse_principal_text(text, home) for text in cases} == cases


WRONG = {
    "nobody": NotFoundError,
    "": UsageError,
    "nobody: x": NotFoundError,
    "a:": MaiaError,
    "3 of (a, met)": MaiaError,
    "0 of (a)": MaiaError,
    "2 of (a, met": UsageError,
    "2 of (a, (met)": UsageError,
    "2 of (a), met)": UsageError,
    "2 of ()": UsageError,
    "1 of (" * 12 + "a" + ")" * 12: UsageError,
    "x" * 20_000: UsageError,
    "(public-key)": MaiaError,
    "hash:12": NotFoundError,
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_principal_is_refused(home, text):
    """Unknown keys are not found, broken texts are wrong usage."""
    with pytest.raises(WRONG[text]):
        parse_principal_text(text, home)


@given(st.text(max_size=60))
def test_any_text_gives_a_principal_or_a_maia_error(text):
    """No text makes the reader fail otherwise."""
    try:
        parse_principal_text(text, Folder(Path("does-not-exist")))
    except MaiaError:
        return


def test_ambiguous_prefixes_are_refused(tmp_path):
    """Two keys whose fingerprints start alike are told apart by more characters only."""
    signers = [KeySigner(n.to_bytes(32, "big")) for n in range(1, 1500)]
    seen: dict[str, KeySigner] = {}
    for signer in signers:
        prefix = signer.public_key.fingerprint[:4]
        if prefix in seen:
            for name, key in (("x", signer), ("y", seen[prefix])):
                write_public_key(tmp_path / "keys" / f"{name}.pub", key.public_key)
            with pytest.raises(UsageError, match="AMBIGUOUS"):
                Folder(tmp_path).key(prefix)
            return
        seen[prefix] = signer
    pytest.fail("no two fingerprints start alike")


def test_principals_are_shown_with_the_names_of_this_home(home):
    """A key shows its name and fingerprint, a stranger the fingerprint alone."""
    stranger = KeySigner(bytes([9]) * 32).public_key
    assert show_subject(A, home) == f"a ({A.fingerprint})"
    assert show_subject(stranger, home) == stranger.fingerprint
    assert show_subject(Name(B, ("x", "y")), home) == "met: x: y"
    assert show_subject(Threshold(1, (A, Name(B, ("x",)))), home) == f"1 of (a ({A.fingerprint}), met: x)"
    assert show_subject(ObjectHash(bytes(32)), home) == "object 0000000000000000"
    assert home.decorate(f"no `{A.fingerprint}` here") == f"no `a` ({A.fingerprint}) here"


def test_subjects_for_machines(home):
    """Keys in hexadecimal digits, everything else as objects."""
    assert subject_to_json(KeyHash(A.key_id)) == {"hash": A.key_id.hex(), "fingerprint": A.fingerprint}
    assert subject_to_json(ObjectHash(bytes(32))) == {"object": "00" * 32}
    nested = subject_to_json(Threshold(1, (Name(B, ("x",)),)))
    assert nested == {"threshold": 1, "members": [{"name": [subject_to_json(B), "x"]}]}


def right(home, **given_):
    """Read a right from options that are mostly left out."""
    options = {"type_": None, "network": None, "tag": None, "actions": None, "attributes": None}
    return parse_right(home, **(options | given_))


RIGHTS = {
    "a type": (
        {"type_": "a/uk.gov.X@7", "actions": ["subscribe"]},
        "subscribe on event type uk.gov.X of a, version 7: all attributes",
    ),
    "a glob": ({"type_": "a/uk.*", "actions": ["manage"]}, "manage on event type uk.* of a"),
    "a glob with two ends": ({"type_": "a/uk.*.X", "actions": ["extend"]}, "extend on event type uk.*.X of a"),
    "all types of one owner": ({"type_": "a/*"}, "every action on every event type of a: all attributes"),
    "a blanket": ({"type_": "*"}, "every action on every event type: all attributes"),
    "a narrow blanket": ({"type_": "*", "actions": ["publish"]}, "publish on every event type: all attributes"),
    "actions in one option": (
        {"type_": "a/T", "actions": ["publish,subscribe"], "attributes": ["1"]},
        "publish, subscribe on event type T of a: attribute 1",
    ),
    "demands": (
        {"type_": "a/T", "actions": ["subscribe"], "attributes": ["7>=500", "7<700", "8"]},
        "subscribe on event type T of a: attributes 7 >= 500 and < 700, 8",
    ),
    "a network": (
        {"network": "a/UK Police Network", "actions": ["connect"]},
        "connect on network UK Police Network of a",
    ),
    "all networks": ({"network": "*"}, "every action on every network"),
    "a threshold owner": (
        {"network": "1 of (a, met)/N", "actions": ["install"]},
        "install on network N of ",
    ),
    "cells and management": (
        {"type_": "a/T", "actions": ["subscribe", "addAttribute"], "attributes": ["1"]},
        "manage/addAttribute on event type T of a; subscribe on event type T of a: attribute 1",
    ),
    "any tag": ({"tag": "(ftp (* prefix /home))"}, "(ftp (* prefix /home))"),
    "a name by a set": (
        {"tag": f"(maia-network #{A.key_id.hex()}# (* set M N) connect)"},
        "connect on network (* set M N) of a",
    ),
    "an owner by a set": ({"tag": "(maia-network (* set M N) N)"}, "every action on network N of (* set M N)"),
    "a name that is no text": (
        {"tag": f"(maia-network #{A.key_id.hex()}# #ff# connect)"},
        "connect on network #ff# of a",
    ),
    "rows of another form": (
        {"tag": f"(maia-type #{A.key_id.hex()}# T (*) subscribe (*) (row))"},
        "subscribe on event type T of a: all attributes, where row (row)",
    ),
    "everything": ({"tag": "(*)"}, "everything"),
    "nothing": ({"tag": "(* set)"}, "nothing"),
}


@pytest.mark.parametrize("options, words", RIGHTS.values(), ids=RIGHTS)
def test_rights_are_read_and_said(home, options, words):
    """What the options mean can be said again in words."""
    found = right(home, **options)
    assert found.text.startswith(words)
    assert parse_tag(parse_advanced(format_advanced(found.tag.to_sexp()))) == found.tag


BAD_RIGHTS = {
    "none": {},
    "two": {"type_": "a/T", "network": "a/N"},
    "no owner": {"type_": "T"},
    "an empty name": {"type_": "a/"},
    "an unknown owner": {"type_": "nobody/T"},
    "a relational version": {"type_": "a/T@>=5"},
    "an unknown action": {"type_": "a/T", "actions": ["eat"]},
    "a network action on a type": {"type_": "a/T", "actions": ["connect"]},
    "a type action on a network": {"network": "a/N", "actions": ["publish"]},
    "attributes of a network": {"network": "a/N", "attributes": ["1"]},
    "an action beside a tag": {"tag": "(a)", "actions": ["connect"]},
    "an action of all networks": {"network": "*", "actions": ["connect"]},
    "a broken tag": {"tag": "(a"},
    "a tag that is none": {"tag": "(* bogus)"},
    "a uid with spaces": {"type_": "a/T", "actions": ["publish"], "attributes": ["a b"]},
    "a set without a list": {"type_": "a/T", "actions": ["publish"], "attributes": ["1 in 5"]},
    "an empty value": {"type_": "a/T", "actions": ["publish"], "attributes": ["1="]},
    "an endless attribute": {"type_": "a/T", "actions": ["publish"], "attributes": ["1=" + "x" * 9000]},
}


@pytest.mark.parametrize("options", BAD_RIGHTS.values(), ids=BAD_RIGHTS)
def test_what_is_no_right_is_refused(home, options):
    """A right that is unclear is never guessed."""
    with pytest.raises(MaiaError):
        right(home, **options)


def test_requests_are_exact_where_one_thing_is_named(home):
    """Network actions and management are one request; cells are asked for in part; foreign tags as they stand."""
    assert right(home, network="a/N", actions=["connect"]).request().ground is not None
    assert right(home, network="a/N").request().ground is None
    assert right(home, type_="a/T@1", actions=["manage"]).request().ground is not None
    assert right(home, type_="a/T", actions=["manage"]).request().ground is None
    assert right(home, type_="a/T@1", actions=["subscribe"]).request().ground is None
    assert right(home, tag="(ftp read)").request().ground == (b"ftp", b"read")
    assert right(home, tag="(ftp (* prefix r))").request().ground is None


def test_owner_of_a_raw_right_is_the_one_in_its_name(home):
    """A tag of Maia's own form has the owner that it names; no other tag has one."""
    assert right(home, tag=f"(maia-network #{A.key_id.hex()}# N connect)").owner == KeyHash(A.key_id)
    assert right(home, tag="(maia-network short N connect)").owner is None
    assert right(home, tag="(ftp)").owner is None


VALUES = {
    "500": 500, "-1": -1, "0": 0, "007": "007", "1.5": Decimal("1.5"), "true": True, "false": False, "True": "True",
    "2026-06-01": date(2026, 6, 1), "2026-06-01T09:00:00Z": AT, "2026-13-01": "2026-13-01", "'500'": "500", '"a"': "a",
    "''": "", "AE05 XYZ": "AE05 XYZ", " x ": "x", "'": "'",
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_values_are_typed_by_how_they_are_written(text):
    """Numbers, booleans, dates and instants have one spelling; quotes make text."""
    value = parse_value(text)
    assert (type(value), value) == (type(VALUES[text]), VALUES[text])


def test_lists_of_values_respect_quotes():
    """A comma inside quotes belongs to the value."""
    constraint = parse_attribute("3467 in (Victoria, 'a, b', \"c\")")[1]
    assert constraint is not None
    assert constraint.value == ("Victoria", "a, b", "c")


SHOWN = {
    '"AE05 XYZ"': "= 'AE05 XYZ'",
    "(* set a b)": "in ('a', 'b')",
    "(* range numeric ge 1:5 le 1:5)": "= 5",
    "(* range numeric g 1:5)": "> 5",
    "(* prefix AE)": "starts with 'AE'",
    "(* pieces a b)": "like 'a'*'b'",
    "(*)": "any value",
    "(* set (* range alpha l a) (* range alpha g a))": "< 'a' or > 'a'",
    "#ff#": "= #ff#",
}


@pytest.mark.parametrize("form", SHOWN)
def test_demands_are_said_in_words(form):
    """Every form of a demand has its words; octets that are no text are shown as such."""
    assert describe_value(parse_advanced(form)) == SHOWN[form]


def test_unknown_forms_are_shown_as_they_stand(home):
    """A right that is not of the expected shape is not interpreted."""
    odd = "(maia-type a b c d e f g h i)", "(maia-type a b c (*) e f g h)", "(maia-network a b c d)"
    for text in (*odd, "(maia-type a b c (odd))"):
        assert describe_tag(parse_advanced(text), home).startswith("(maia-")
        assert views(parse_advanced(text), home) is None
    assert views(parse_advanced("(maia-type a b c (*) e)"), home) is not None
    many = type_right(A, actions=[Action.SUBSCRIBE], attributes=[str(n) for n in range(9)])
    assert len(views(many.to_sexp(), home) or ()) == 1
    assert "and 10 more" in describe_tag((b"*", b"set", *(b"%d" % n for n in range(50))), home)


INSTANTS = {
    "2026-12-31T00:00:00Z": "2026-12-31T00:00:00+00:00",
    "2026-12-31T02:00:00+02:00": "2026-12-31T00:00:00+00:00",
    "2026-12-31": "2026-12-31T00:00:00+00:00",
    "now": "2026-06-01T09:00:00+00:00",
    "+90s": "2026-06-01T09:01:30+00:00",
    "+1w": "2026-06-08T09:00:00+00:00",
}


@pytest.mark.parametrize("text", INSTANTS)
def test_instants(text):
    """Instants have a zone; durations count from the given instant."""
    assert parse_instant_text(text, at=AT).isoformat() == INSTANTS[text]


@pytest.mark.parametrize("text", ["2026-12-31T00:00:00", "tomorrow", "+5", "+999999y", "2026-02-30", ""])
def test_bad_instants_are_refused(text):
    """No zone, no calendar day, no unit: refused."""
    with pytest.raises(UsageError, match="INSTANT_TEXT"):
        parse_instant_text(text, at=AT)


@given(st.text(max_size=40))
def test_nothing_that_a_terminal_obeys_gets_through(text):
    """Control characters of any kind are escaped; printable text is left alone."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()
