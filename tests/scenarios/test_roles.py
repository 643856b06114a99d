"""Roles as the seeds tell of them: the detective's court order, the referral, the laboratory, the excluded doctor."""

from __future__ import annotations

import json

import pytest

from maia.conformance.adapter import answer_line
from maia.policy import EventRight, PolicyEngine, parse_policy

TRACKING = """
npTracker(plate) <- courtOrder(case, plate)*, detective(self), ?caseAssignment(self, case)*
npTracker(plate) |- subscribe Numberplate(location, timestamp, numberplate = plate)
"""
PLATE = "npTracker('AE05 XYZ')"
RIGHT = "subscribe Numberplate(location, timestamp, numberplate = 'AE05 XYZ')"
PREMISES = {"order": "courtOrder(c1, 'AE05 XYZ')", "detective": "detective(smith)"}
ASSIGNED = "caseAssignment(smith, c1)"


def met(*, without: str = "") -> PolicyEngine:
    """The Met's engine with everything for case c1, except what is named."""
    engine = PolicyEngine(parse_policy(TRACKING))
    for name, fact in PREMISES.items():
        if name != without:
            engine.appoint(fact)
    if without != "assignment":
        engine.observe(ASSIGNED)
    return engine


def test_the_numberplate_rule_gives_the_right_of_the_court_order():
    """Order, detective and assignment give location, timestamp and that plate; without assignment nothing."""
    engine = met()
    engine.activate(PLATE, principal="smith")
    ((holder, right),) = engine.privileges()
    assert (holder, str(right)) == ("smith", RIGHT)
    assert isinstance(right, EventRight)
    assert [use.name for use in right.attributes or ()] == ["location", "timestamp", "numberplate"]
    assert met(without="assignment").privileges() == ()


@pytest.mark.threat("T72")
@pytest.mark.parametrize("fact, falls", [(ASSIGNED, True), (PREMISES["order"], True), (PREMISES["detective"], False)])
def test_only_membership_conditions_are_monitored(fact, falls):
    """The assignment and the order end the role and its privilege; the unmonitored predicate does not."""
    engine = met()
    engine.activate(PLATE, principal="smith")
    assert bool(engine.retract(fact).fallen) is falls
    assert engine.decide(RIGHT, principal="smith").allowed is not falls


def test_the_conformance_verb_answers_one_state_a_step():
    """A failing activation repeats the state before; malformed rules and steps are errors, not states."""
    steps = [
        {"appoint": "employed(ali)"},
        {"activate": "doctor(bob)", "as": "ali"},
        {"activate": "doctor(ali)", "as": "ali"},
    ]
    rules = ["doctor(self) <- employed(self)*", "doctor(d) |- read('the notes')"]
    request = {"id": 1, "verb": "oasis.run", "rules": rules, "steps": steps}
    empty: dict[str, list[object]] = {"roles": [], "privileges": []}
    full = {"roles": [["ali", "doctor(ali)"]], "privileges": [["ali", "read('the notes')"]]}
    assert answer_line(json.dumps(request).encode()) == {"id": 1, "result": [empty, empty, full]}
    for change, code in (
        ({"rules": ["doctor(self) <-"]}, "POLICY_SYNTAX"),
        ({"rules": ["doctor(x) <- employed(self)"]}, "POLICY_UNBOUND"),
        ({"rules": "doctor"}, "REQUEST_FIELD"),
        ({"steps": [{"activate": "doctor(ali)"}]}, "REQUEST_FIELD"),
        ({"steps": [{"appoint": "employed("}]}, "POLICY_SYNTAX"),
        ({"steps": [{"forget": "employed(ali)"}]}, "REQUEST_FIELD"),
    ):
        assert answer_line(json.dumps({**request, **change}).encode())["error"] == code


def test_the_sample_of_the_conformance_cases_is_answered_as_expected(shared):
    """Every state that the sample fixes is the state Maia gives."""
    lines = (shared / "peers" / "conformance-sample.jsonl").read_text("utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["request"]["verb"] == "oasis.run"]
    assert cases
    for case in cases:
        states = answer_line(json.dumps(case["request"]).encode())["result"]
        assert isinstance(states, list)
        for state, expected in zip(states, case["expect"], strict=True):
            if expected is not None:
                assert {field: [(who, what.replace("'", "")) for who, what in state[field]] for field in state} == {
                    field: [(who, what.replace("'", "")) for who, what in expected[field]] for field in expected
                }
