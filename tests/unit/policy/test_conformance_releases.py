"""The conformance verb of releases: its answers and its refusals."""

from __future__ import annotations

import json

import pytest

from maia.conformance.adapter import answer_line

TYPE = {
    "attributes": {
        "patient": "string", "hospital": "string", "received": "date", "age": "integer", "lat": "float",
        "cost": "decimal", "at": "timestamp",
    }
}  # fmt: skip


def ask(**fields: object) -> dict[str, object]:
    """Ask for what leaves to the registry, unless the fields say otherwise."""
    request = {"id": 1, "verb": "release.apply", "to": {"domain": "registry"}, "type": TYPE, "rows": [], **fields}
    return answer_line(json.dumps(request).encode())


PEOPLE = [{"patient": f"p{number % 9}", "hospital": "small"} for number in range(30)]
PEOPLE += [{"patient": f"q{number}", "hospital": "large"} for number in range(10)]

ANSWERS = {
    "what no rule keeps is absent": (
        {"rules": "release T to registry keep age", "rows": [{"age": 47, "patient": "x"}]}, [{"age": 47}],
    ),
    "no rule for a destination is no rows": (
        {"rules": "release T to study('registry') keep age", "rows": [{"age": 47}]}, [],
    ),
    "every coarsening": (
        {
            "rules": "release T to registry coarsen received to month coarsen age to bucket(5) coarsen at to year "
            "coarsen patient to first(4) coarsen hospital to last(4) coarsen lat to decimals(1) "
            "coarsen cost to decimals(1)",
            "rows": [
                {"received": "2010-02-04", "age": 47, "at": "2010-12-31T23:59:59Z", "patient": "1234567768",
                 "hospital": "4929123456789012", "lat": 51.4952, "cost": "2.25"}
            ],
        },
        [{"received": "2010-02", "age": "45-49", "at": "2010", "patient": "1234", "hospital": "9012", "lat": 51.5,
          "cost": "2.2"}],
    ),
    "pseudonyms in the order of their appearance": (
        {
            "to": {"study": "bladder-7"},
            "rules": 'release T to study("bladder-7") add p = pseudonym(patient, scope = study) '
            "add h = pseudonym(hospital)",
            "rows": [{"patient": "b", "hospital": "b"}, {"patient": "a"}, {"patient": "b", "hospital": None}],
        },
        [{"p": "#1", "h": "#2"}, {"p": "#3", "h": None}, {"p": "#1", "h": None}],
    ),
    "nine people with thirty rows": (
        {"rules": "release counts of T by hospital to registry\n at least 10 patient", "rows": PEOPLE},
        [{"hospital": "large", "count": 10}],
    ),
    "counts in the order of their values": (
        {
            "rules": "release counts of T by age to registry", "rows": [{"age": 9}, {"age": 10}, {}, {"age": 9}],
        },
        [{"age": 9, "count": 2}, {"age": 10, "count": 1}, {"age": None, "count": 1}],
    ),
    "rules of two texts add up": (
        {
            "rules": "release T to registry keep age\nrelease T to registry keep patient\nrelease T to x keep lat",
            "rows": [{"age": 1, "patient": "p", "lat": 0.5}],
        },
        [{"age": 1, "patient": "p"}],
    ),
    "rules of other types are not looked at": (
        {"rules": "release T to registry keep age\nrelease U to x keep colour", "rows": [{}]}, [{"age": None}],
    ),
    "what is kept comes as it came": (
        {
            "type": {"attributes": {"c": "decimal", "t": "timestamp", "b": "binary"}},
            "rules": "release T to registry keep c, t, b",
            "rows": [{"c": "1.5", "t": 100, "b": "plain"}, {"c": 2.5, "t": "2026-06-01T00:00:00+00:00"}],
        },
        [{"c": "1.5", "t": 100, "b": "plain"}, {"c": 2.5, "t": "2026-06-01T00:00:00+00:00", "b": None}],
    ),
    "groups come as they came first": (
        {
            "rules": "release counts of T by cost, at to registry",
            "rows": [{"cost": "1.50", "at": 100}, {"cost": "1.5", "at": "1970-01-01T00:01:40Z"}, {}],
        },
        [{"cost": "1.50", "at": 100, "count": 2}, {"cost": None, "at": None, "count": 1}],
    ),
    "different booleans are counted": (
        {
            "type": {"attributes": {"a": "string", "b": "boolean"}},
            "rules": "release counts of T by a to registry at least 2 b",
            "rows": [{"a": "x", "b": True}, {"a": "x", "b": False}, {"a": "y", "b": True}, {"a": "y", "b": True}],
        },
        [{"a": "x", "count": 2}],
    ),
    "different floats are counted, and there is one zero": (
        {
            "rules": "release counts of T by hospital to registry at least 2 lat",
            "rows": [{"hospital": "x", "lat": 0.25}, {"hospital": "x", "lat": 0.5}, {"hospital": "y", "lat": 0.0},
                     {"hospital": "y", "lat": -0.0}, {"hospital": "y"}],
        },
        [{"hospital": "x", "count": 2}],
    ),
    "no rules at all": ({"rules": "", "rows": [{"age": 1}]}, []),
}  # fmt: skip


@pytest.mark.parametrize("fields, expected", ANSWERS.values(), ids=ANSWERS)
def test_answers(fields: dict[str, object], expected: list[dict[str, object]]) -> None:
    """The rows that leave, as the rules say."""
    assert ask(**fields) == {"id": 1, "result": expected}


ERRORS = {
    "no rule language": ({"rules": "release everything"}, "RELEASE_SYNTAX"),
    "rules that are no text": ({"rules": ["release T to x keep age"]}, "REQUEST_FIELD"),
    "an attribute that is none": ({"rules": "release T to registry keep colour"}, "UNKNOWN_ATTRIBUTE"),
    "a coarsening that does not fit": ({"rules": "release T to registry coarsen age to month"}, "RELEASE_TYPE"),
    "a pseudonym of a boolean": (
        {"type": {"attributes": {"b": "boolean"}}, "rules": "release T to registry add p = pseudonym(b)"},
        "RELEASE_TYPE",
    ),
    "one attribute in two ways": ({"rules": "release T to registry keep age, age"}, "RELEASE_TWICE"),
    "two types": ({"rules": "release T to registry keep age release U to registry keep lat"}, "RELEASE_AMBIGUOUS"),
    "a row with another attribute": ({"rules": "", "rows": [{"colour": 1}]}, "UNKNOWN_ATTRIBUTE"),
    "a value of another type": ({"rules": "", "rows": [{"age": "old"}]}, "VALUE_TYPE"),
    "an integer for a float": ({"rules": "", "rows": [{"lat": 51}]}, "VALUE_TYPE"),
    "rows that are none": ({"rules": "", "rows": {"age": 1}}, "REQUEST_FIELD"),
    "nobody": ({"rules": "", "to": {}}, "REQUEST_FIELD"),
    "two destinations": ({"rules": "", "to": {"domain": "a", "study": "b"}}, "REQUEST_FIELD"),
    "an unknown kind of destination": ({"rules": "", "to": {"group": "a"}}, "REQUEST_FIELD"),
    "an unknown field": ({"rules": "", "limit": 3}, "REQUEST_FIELD"),
    "an unknown type of values": ({"rules": "", "type": {"attributes": {"a": "colour"}}}, "ATTRIBUTE_TYPE"),
    "a type without attributes": ({"rules": "", "type": {}}, "REQUEST_FIELD"),
}


@pytest.mark.parametrize("fields, code", ERRORS.values(), ids=ERRORS)
def test_malformed_requests(fields: dict[str, object], code: str) -> None:
    """What makes no sense is an error with a code."""
    assert ask(**fields)["error"] == code
