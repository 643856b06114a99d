"""The conformance verbs of filters and bounds: the sample, and requests that make no sense."""

from __future__ import annotations

import json

import pytest

from maia.conformance.filters import VERBS
from maia.errors import MaiaError

TYPES = {"s": "string", "x": "integer", "r": "float", "m": "decimal", "d": "date", "t": "timestamp", "raw": "binary"}


def ask(verb, **fields):
    """Ask one verb."""
    return VERBS[verb]({"id": "1", "verb": verb, "types": TYPES, **fields})


def test_the_sample_of_the_verbs_passes(shared):
    """Every sample case of these verbs has the expected answer."""
    asked = 0
    for line in (shared / "peers" / "conformance-sample.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        request = case.get("request") or {}
        if request.get("verb") not in VERBS:
            continue
        asked += 1
        answer = VERBS[request["verb"]](request)
        expected = case["expect"]
        refused = isinstance(expected, dict) and expected.get("refused") is True
        assert answer in (False, None) if refused else answer == expected, case["why"]
    assert asked >= 20


EVENTS = {
    "decimal from text": ("m > 24.00", {"m": "24.01"}, True),
    "decimal from a number": ("m > 24.00", {"m": 24.01}, True),
    "decimal from an integer": ("m = 24.00", {"m": 24}, True),
    "decimal from words": ("m any", {"m": "much"}, False),
    "date": ("d = '2026-06-01'", {"d": "2026-06-01"}, True),
    "date that is none": ("d any", {"d": "2026-06-31"}, False),
    "timestamp": ("t >= '2026-06-01T00:00:00Z'", {"t": "2026-06-01T00:00:00Z"}, True),
    "timestamp in seconds": ("t = '1970-01-01T00:01:40Z'", {"t": 100}, True),
    "timestamp beyond the calendar": ("t any", {"t": 10**20}, False),
    "timestamp that is none": ("t any", {"t": "yesterday"}, False),
    "binary beside the filter": ("x = 1", {"x": 1, "raw": "AAA="}, True),
    "number for text": ("s = '1'", {"s": 1}, False),
    "integer for float": ("r > 0.0", {"r": 1}, False),
    "float for integer": ("x > 0", {"x": 1.0}, False),
    "unknown attribute": ("x = 1", {"x": 1, "y": 2}, False),
    "ill-typed beside the filter": ("x = 1", {"x": 1, "s": 2}, False),
    "nested": ("x = 1", {"x": {"y": 1}}, False),
}


@pytest.mark.parametrize("case", EVENTS.values(), ids=EVENTS.keys())
def test_events_come_from_json_without_casts(case):
    """JSON values become values of their types or the event does not match."""
    text, event, expected = case
    assert ask("filter.matches", filter=text, event=event) is expected


def test_screening_answers_json():
    """The shown values are those of the request; what is closed, ill-typed or not matched gives null."""
    event = {"x": 1, "t": "2026-06-01T00:00:00Z", "m": "1.50", "s": None}
    assert ask("filter.screen", rights="x any and t any and m any", filter="x = 1", event=event) == {
        "x": 1,
        "t": "2026-06-01T00:00:00Z",
        "m": "1.50",
    }
    assert ask("filter.screen", rights="x any", filter="m any", event=event) is None
    assert ask("filter.screen", rights="x any", filter="x = 2", event=event) is None
    assert ask("filter.screen", rights="x any", filter="x = 1", event={"x": "1"}) is None


def test_bounds_answer_for_events_and_filters():
    """Ill-typed events are not allowed."""
    assert ask("bound.allows", bound="x < 5", kind="upper", side="publish", subject={"x": 1}) is True
    assert ask("bound.allows", bound="x < 5", kind="upper", side="publish", subject={"x": "1"}) is False
    assert ask("bound.allows", bound="x < 5", kind="lower", side="subscribe", subject="x < 4") is True
    assert ask("filter.covers", a="x < 5", b="x < 4", relation="subscription") is True
    assert ask("filter.satisfiable", filter="x < 5 and x > 4") is False


MALFORMED = {
    "no filter": ("filter.matches", {"event": {}}),
    "filter that is no text": ("filter.matches", {"filter": 5, "event": {}}),
    "no event": ("filter.matches", {"filter": ""}),
    "event that is a list": ("filter.matches", {"filter": "", "event": []}),
    "unknown relation": ("filter.covers", {"a": "", "b": "", "relation": "sideways"}),
    "relation that is no text": ("filter.covers", {"a": "", "b": "", "relation": ["subscription"]}),
    "no kind": ("bound.allows", {"bound": "", "side": "publish", "subject": {}}),
    "unknown side": ("bound.allows", {"bound": "", "kind": "upper", "side": "delete", "subject": {}}),
    "filter where an event belongs": ("bound.allows", {"bound": "", "kind": "upper", "side": "publish", "subject": ""}),
    "event where a filter belongs": (
        "bound.allows",
        {"bound": "", "kind": "upper", "side": "subscribe", "subject": {}},
    ),
    "types that are a list": ("filter.satisfiable", {"filter": "", "types": []}),
    "unknown type": ("filter.satisfiable", {"filter": "", "types": {"x": "number"}}),
    "type that is a list": ("filter.satisfiable", {"filter": "", "types": {"x": []}}),
    "bad syntax": ("filter.satisfiable", {"filter": "x <"}),
    "ill-typed filter": ("filter.satisfiable", {"filter": "x < 1.0"}),
    "binary": ("filter.satisfiable", {"filter": "raw any"}),
}


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_requests_are_errors(case):
    """What makes no sense raises a `MaiaError`, which the adapter answers with its code."""
    verb, fields = case
    with pytest.raises(MaiaError):
        ask(verb, **fields)
