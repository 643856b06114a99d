"""The verbs of reasoning: tables of worlds and rights, with what is malformed refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maia.conformance.adapter import answer_line

ATTRIBUTES = [("plate", "1", "string"), ("speed", "2", "integer"), ("place", "3", "string")]
VERSION = {
    "owner": "pito", "name": "NP", "version": "1", "signer": "pito", "credentials": [],
    "attributes": [{"name": name, "uid": uid, "type": kind} for name, uid, kind in ATTRIBUTES],
}  # fmt: skip
AT = "2026-06-01T12:00:00Z"


def right(attributes: object = "*", rows: object = None, *, name: str = "NP", version: str = "*") -> dict[str, object]:
    """Write a right to subscribe."""
    found = {"type": ["pito", name, version], "actions": ["subscribe"], "attributes": attributes}
    return found if rows is None else found | {"rows": rows}


def given(issuer: str, subject: object, *args: object, delegate: bool = False, **more: object) -> dict[str, object]:
    """Write a certificate."""
    return {"issuer": issuer, "subject": subject, "delegate": delegate, "right": right(*args), **more}


CERTIFICATES = [
    given("pito", "met", delegate=True),
    given("met", "smith", ["1", "3"], [["1", "=", "AE05"]]),
    given("met", {"name": ["met", "officers"]}, ["2"]),
    {"issuer": "met", "name": "officers", "subject": "jones"},
    given("pito", {"threshold": {"k": 2, "of": ["a", "b", "c"]}}, delegate=True),
    given("a", "dan"),
    given("b", "dan", ["1"]),
    given("met", "eve", ["1"], [["1", ">", "x"], ["1", "<", "a"]]),
    given("met", "con", ["2"], conditions=["event['2'] > 5"]),
    given("met", "late", ["3"], not_after="2026-01-01"),
    given("met", "listed", ["3"], tests=[{"kind": "crl", "signer": "met"}]),
    given("eve", "fay", ["1"]),
    given("smith", "gil", ["1"]),
]
SCENARIO = {"types": [VERSION], "certificates": CERTIFICATES, "statements": []}


def ask(verb: str, **fields: object) -> dict[str, Any]:
    """Ask one question."""
    return answer_line(json.dumps({"id": 7, "verb": verb, **fields}).encode())


def readers(uid: object, row: object = None, scenario: object = SCENARIO) -> Any:
    """Ask who reads a cell."""
    cell = {"type": ["pito", "NP"], "attribute": uid} | ({} if row is None else {"row": row})
    return ask("reason.who_can", scenario=scenario, cell=cell, at=AT).get("result")


READERS = {
    "some row: a chain, a threshold, and no contradiction": ("1", None, ["dan", "met", "smith"]),
    "a uid may be a number": (2, None, ["con", "jones", "met"]),
    "a row that the demand admits": ("3", {"plate": "AE05"}, ["met", "smith"]),
    "a row that it does not": ("3", {"plate": "BX51"}, ["met"]),
    "what a row does not name is null": ("3", {}, ["met"]),
    "a condition on the event": ("2", {"speed": 3}, ["jones", "met"]),
    "a condition that holds": ("2", {"speed": 9}, ["con", "jones", "met"]),
    "an attribute that no version has": ("9", None, []),
}


@pytest.mark.parametrize("case", READERS.values(), ids=READERS.keys())
def test_who_can_read_a_cell(case: tuple[object, object, list[str]]) -> None:
    """Keys that read the cell by themselves, the owner left out, sorted."""
    uid, row, expected = case
    assert readers(uid, row) == expected


CONTRADICTIONS = {
    "a number below and above": ([["2", "<", 5]], "event['2'] > 5", []),
    "a number below and the same": ([["2", "<", 5]], "event['2'] >= 5 && event['1'] == 'x'", []),
    "one text and another": ([["1", "=", "a"]], "event['1'] == 'b'", []),
    "two conditions": ([], "event['2'] > 5 && event['2'] < 6", []),
    "a number in common": ([["2", "<", 5]], "event['2'] > 3", ["ann"]),
    "a number far from what is written": ([["2", ">", 500]], "event['2'] > 5", ["ann"]),
    "an alternative": ([["2", "<", 5]], "event['2'] > 5 || event['1'] == 'x'", ["ann"]),
    "a part of a text": ([["2", "<", 5]], "event['1'] != \"z && event['2'] > 5 && z\"", ["ann"]),
}


@pytest.mark.parametrize("case", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_demands_and_conditions_that_contradict_show_no_row(case: tuple[object, str, list[str]]) -> None:
    """Where it can be told that no row meets both, there is no row in which the cell is read."""
    rows, condition, expected = case
    certificates = [given("pito", "ann", "*", rows, conditions=[condition])]
    assert readers("1", None, SCENARIO | {"certificates": certificates}) == expected


def test_a_list_lets_in_and_a_network_keeps_out() -> None:
    """What demands a statement counts once there is one; with a network, everybody needs `connect`."""
    statement = {
        "kind": "crl", "signer": "met", "from": "2026-06-01", "to": "2026-06-02", "sequence": 1, "certificates": [],
        "received": AT,
    }  # fmt: skip
    assert "listed" not in readers("3")
    assert "listed" in readers("3", None, SCENARIO | {"statements": [statement]})
    assert "listed" not in readers("3", None, SCENARIO | {"statements": [statement | {"certificates": [10]}]})
    network = ["pito", "UKPN"]
    connect = {"network": network, "actions": ["connect"]}
    joined = [{"issuer": "pito", "subject": who, "delegate": False, "right": connect} for who in ("met", "smith")]
    inside = SCENARIO | {"network": network, "certificates": [*CERTIFICATES, *joined]}
    assert readers("3", None, inside) == ["met", "smith"]
    joined[0]["tests"] = [{"kind": "crl", "signer": "pito"}]
    inside["certificates"] = [*CERTIFICATES, *joined]
    assert readers("3", None, inside) == ["smith"], "a list is missing, so the answer is no"


ENDS = {
    "the first link ends all behind it": (
        0,
        [["con", "subscribe", "2"], ["jones", "subscribe", "2"], ["met", "subscribe", "1"], ["met", "subscribe", "2"],
         ["met", "subscribe", "3"], ["smith", "subscribe", "1"], ["smith", "subscribe", "3"]],
    ),
    "a name": (3, [["jones", "subscribe", "2"]]),
    "one share of a threshold": (5, [["dan", "subscribe", "1"]]),
    "what gives nothing ends nothing": (7, []),
    "what is over ends nothing": (9, []),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS.keys())
def test_what_ends_with_a_certificate(case: tuple[int, list[list[str]]]) -> None:
    """Who loses which attribute, every attribute of the type for `*`, sorted."""
    number, expected = case
    assert ask("reason.ends", scenario=SCENARIO, certificate=number, at=AT)["result"] == expected


LOW, HIGH = [["2", "<", 5]], [["2", ">=", 5]]
COMPARED = {
    "the same": ([right()], [right()], (True, True, False)),
    "fewer attributes": ([right(["1"])], [right()], (True, False, False)),
    "fewer rows": ([right("*", LOW)], [right()], (True, False, False)),
    "rows apart": ([right("*", LOW)], [right("*", HIGH)], (False, False, True)),
    "two halves leave out the null": ([right(["1"])], [right(["1"], LOW), right(["1"], HIGH)], (False, False, False)),
    "two halves are all that have a value": (
        [right(["1"], [["2", "any", 0]])], [right(["1"], LOW), right(["1"], HIGH)], (True, True, False),
    ),
    "nothing implies everything": ([], [right()], (True, False, True)),
    "a contradiction shows nothing": ([right("*", [*LOW, *HIGH])], [], (True, True, True)),
    "other actions show nothing": ([right() | {"actions": ["publish"]}], [], (True, True, True)),
    "text asked of a number shows nothing": ([right("*", [["2", "=", "x"]])], [], (True, True, True)),
}  # fmt: skip


@pytest.mark.parametrize("types", [[VERSION], {uid: kind for _, uid, kind in ATTRIBUTES}], ids=["versions", "types"])
@pytest.mark.parametrize("case", COMPARED.values(), ids=COMPARED.keys())
def test_rights_compare(case: tuple[list[object], list[object], tuple[bool, bool, bool]], types: object) -> None:
    """Whatever `a` shows, `b` shows; with an event where one of the answers is no."""
    a, b, expected = case
    found = ask("reason.compare", a=a, b=b, types=types)["result"]
    assert (found["implies"], found["equivalent"], found["disjoint"]) == expected
    assert ("witness" in found) == (not all(expected))


def test_rights_on_patterns_of_names_compare_by_what_they_say() -> None:
    """Where only attribute types are known, `N*` is wider than `NP`, and `*P` has a name in common with it."""
    types = {"1": "string"}
    wide, exact, other = right(name="N*"), right(name="NP"), right(name="*P")
    assert ask("reason.compare", a=[exact], b=[wide], types=types)["result"]["implies"]
    assert not ask("reason.compare", a=[wide], b=[exact], types=types)["result"]["implies"]
    assert not ask("reason.compare", a=[wide], b=[other], types=types)["result"]["disjoint"]
    assert ask("reason.compare", a=[wide], b=[right(name="M*")], types=types)["result"]["disjoint"]
    assert ask("reason.compare", a=[right(version="1")], b=[right()], types=types)["result"]["implies"]
    assert not ask("reason.compare", a=[right()], b=[right(version="1")], types=types)["result"]["implies"]


WRONG = {
    "no cell": ("reason.who_can", {"scenario": SCENARIO, "at": AT}),
    "a field that nobody reads": (
        "reason.who_can", {"scenario": SCENARIO, "at": AT, "cell": {"type": ["pito", "NP"], "attribute": "1", "x": 1}},
    ),
    "an attribute that the type does not have": (
        "reason.who_can",
        {"scenario": SCENARIO, "at": AT, "cell": {"type": ["pito", "NP"], "attribute": "1", "row": {"colour": "red"}}},
    ),
    "no moment": ("reason.ends", {"scenario": SCENARIO, "certificate": 0}),
    "an index beyond the list": ("reason.ends", {"scenario": SCENARIO, "certificate": 99, "at": AT}),
    "an index that is none": ("reason.ends", {"scenario": SCENARIO, "certificate": True, "at": AT}),
    "types that are none": ("reason.compare", {"a": [], "b": [], "types": 5}),
    "a field of a version that nobody reads": ("reason.compare", {"a": [], "b": [], "types": [VERSION | {"x": 1}]}),
    "rights that are no list": ("reason.compare", {"a": {}, "b": [], "types": {}}),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_malformed_questions_are_refused(case: tuple[str, dict[str, object]]) -> None:
    """The sender is told which field is wrong."""
    verb, fields = case
    assert ask(verb, **fields)["error"] == "REQUEST_FIELD"


def version(name: str, *attributes: tuple[str, str, str], **fields: object) -> dict[str, object]:
    """Write a version of a type of pito's."""
    listed = [{"name": label, "uid": uid, "type": kind} for label, uid, kind in attributes]
    return VERSION | {"name": name, "attributes": listed} | fields


def named(name: str, uid: str, **fields: object) -> dict[str, object]:
    """Write the question for a cell in some row."""
    return {"cell": {"type": ["pito", name], "attribute": uid}, "at": AT, **fields}


TEXT, TIMES = version("A", ("plate", "1", "string")), version("B", ("seen", "1", "timestamp"))
MOMENT = "2026-06-01T00:00:00Z"


@pytest.mark.parametrize("types", [[TEXT, TIMES], [TIMES, TEXT]], ids=["text first", "times first"])
def test_values_of_a_right_are_read_by_the_types_it_names(types: list[object]) -> None:
    """Equal uids of other types count for nothing; a right on all of them is read by the first that has the value."""
    certificates = [
        {"issuer": "pito", "subject": who, "delegate": False, "right": right("*", [["1", "=", wanted]], name=name)}
        for who, name, wanted in (
            ("ann", "A", "AE05"),
            ("bob", "B", MOMENT),
            ("cat", "*", "AE05"),
            ("dan", "A", MOMENT),
        )
    ]
    scenario = {"types": types, "certificates": certificates, "statements": []}
    assert ask("reason.who_can", scenario=scenario, **named("A", "1"))["result"] == ["ann", "cat", "dan"]
    assert ask("reason.who_can", scenario=scenario, **named("B", "1"))["result"] == ["bob"]
    events = [
        {"as": "pito", "type": ["pito", name], "version": "1", "at": AT, "values": {label: value}}
        for name, label, value in (("A", "plate", "AE05"), ("B", "seen", MOMENT))
    ]
    subscriptions = [
        {"as": who, "type": ["pito", name], "version": "1", "filter": ""} for who, name in (("ann", "A"), ("bob", "B"))
    ]
    run = ask("broker.run", scenario=scenario | {"at": AT, "events": events, "subscriptions": subscriptions})["result"]
    assert [(item["to"], item["values"]) for item in run["deliveries"]] == [
        ("ann", {"plate": "AE05"}), ("bob", {"seen": MOMENT})
    ]  # fmt: skip
    held = [right("*", [["1", "=", "AE05"]], name="A")]
    assert not ask("reason.compare", a=held, b=[], types=types)["result"]["implies"]


def test_equal_uids_of_two_types_end_once() -> None:
    """One certificate on two types: each triple is answered once."""
    both = [{"issuer": "pito", "subject": "ann", "delegate": False, "right": right(name="*")}]
    scenario = {"types": [TEXT, TIMES], "certificates": both}
    found = ask("reason.ends", scenario=scenario, certificate=0, at=AT)["result"]
    assert found == [["ann", "subscribe", "1"]]


def test_of_two_definitions_of_one_version_the_first_counts() -> None:
    """The second is ignored, in a scenario and in a comparison; one that says the same does no harm."""
    other = version("A", ("colour", "9", "string"))
    everything = [{"issuer": "pito", "subject": "ann", "delegate": False, "right": right(name="A")}]
    for types, uid in (([TEXT, other], "1"), ([other, TEXT], "9"), ([TEXT, TEXT], "1")):
        scenario = {"types": types, "certificates": everything}
        assert ask("reason.ends", scenario=scenario, certificate=0, at=AT)["result"] == [["ann", "subscribe", uid]]
    event = {"as": "pito", "type": ["pito", "A"], "version": "1", "at": AT, "values": {"plate": "AE05"}}
    wanted = {"as": "ann", "type": ["pito", "A"], "version": "1", "filter": ""}
    scenario = {
        "types": [TEXT, other], "certificates": everything, "events": [event], "subscriptions": [wanted], "at": AT,
    }  # fmt: skip
    run = ask("broker.run", scenario=scenario)["result"]
    assert ([item["values"] for item in run["deliveries"]], run["refusals"]) == ([{"plate": "AE05"}], [])
    found = ask("reason.compare", a=[right(["9"], name="A")], b=[], types=[TEXT, other])["result"]
    assert found["implies"], "the first definition has no such attribute"


def test_a_witness_speaks_of_the_type_in_question() -> None:
    """Where types have equal uids, the event has the names and values of the one that makes the difference."""
    held = [right("*", [["1", "=", MOMENT]], name="B")]
    for types in ([TEXT, TIMES], [TIMES, TEXT]):
        assert ask("reason.compare", a=held, b=[], types=types)["result"]["witness"] == {"seen": MOMENT}


@pytest.mark.parametrize("word", ["key", "name", "hash", "threshold"])
def test_an_attribute_may_have_the_name_of_a_principal(word: str) -> None:
    """What stands in rows is no principal."""
    scenario = {"types": [version("A", (word, "1", "string"))], "certificates": [given("pito", "met")]}
    scenario["certificates"][0]["right"] = right(name="A")
    cell = {"type": ["pito", "A"], "attribute": "1", "row": {word: "x"}}
    assert ask("reason.who_can", scenario=scenario, cell=cell, at=AT)["result"] == ["met"]


def test_a_public_key_that_is_refused_proves_nothing() -> None:
    """The certificate with it counts for nothing, and the others do."""
    bad = given("pito", {"key": "00" * 32})
    scenario = SCENARIO | {"certificates": [*CERTIFICATES, bad]}
    assert readers("3", None, scenario) == readers("3")
    last = len(CERTIFICATES)
    assert ask("reason.ends", scenario=scenario, certificate=last, at=AT)["result"] == []


def test_keys_are_answered_by_their_symbolic_names() -> None:
    """Also those that only an expression names, and names of any length; a key given by its octets by these."""
    bob = '(cert (issuer $pito) (subject $bob) (tag (maia-type (*) "NP" (*) subscribe)))'
    long = "a very long name " * 10
    plain = {"issuer": "pito", "subject": long, "delegate": False, "right": right()}
    scenario = {"types": [VERSION], "certificates": [plain, {"sexp": bob, "signed_by": "pito"}]}
    assert readers("1", None, scenario) == [long, "bob"]
    ended = ask("reason.ends", scenario=scenario, certificate=1, at=AT)["result"]
    assert ended == [["bob", "subscribe", uid] for uid in ("1", "2", "3")]
