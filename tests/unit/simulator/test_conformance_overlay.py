"""The conformance verb of the network: the sample, ordinary cases, refusals, and requests that make no sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maia.conformance.adapter import answer_line

TYPES = {"T": {"price": "integer", "name": "string"}, "U": {"when": "timestamp"}}


def ask(*steps: dict[str, Any], brokers: Any = ("b1", "b2", "b3"), **fields: Any) -> dict[str, Any]:
    """Play steps; give the whole answer."""
    request = {
        "id": 1, "verb": "overlay.run", "brokers": [{"name": name, "domain": "d"} for name in brokers],
        "types": TYPES, "steps": list(steps), **fields,
    }  # fmt: skip
    return answer_line(json.dumps(request).encode())


def play(*steps: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Play steps that make sense."""
    answer = ask(*steps, **fields)
    assert "result" in answer, answer
    result: list[dict[str, Any]] = answer["result"]
    return result


ADVERTISE = {"advertise": ["b1", "p", "T"]}
SUBSCRIBE = {"subscribe": ["b3", "s", "T", "price < 5"]}


def test_the_sample_of_the_verb_passes(shared: Any) -> None:
    """Every sample case has the expected answer; null is anything, and fields that are not named are not compared."""
    asked = 0
    for text in (shared / "peers" / "conformance-sample.jsonl").read_text("utf-8").splitlines():
        case = json.loads(text)
        if (case.get("request") or {}).get("verb") != "overlay.run":
            continue
        asked += 1
        answer = answer_line(json.dumps(case["request"]).encode())["result"]
        for found, expected in zip(answer, case["expect"], strict=True):
            assert expected is None or {name: found[name] for name in expected} == expected, case["why"]
    assert asked


REFUSED = {
    "an event that was not advertised": {"publish": ["b1", "q", "T", {"price": 1}]},
    "an event of another type than advertised": {"publish": ["b1", "p", "U", {}]},
    "a publisher at another broker than it advertised at": {"publish": ["b2", "p", "T", {"price": 1}]},
    "a value of the wrong type": {"publish": ["b1", "p", "T", {"price": "much"}]},
    "a float for an integer": {"publish": ["b1", "p", "T", {"price": 1.5}]},
    "an attribute that is not there": {"publish": ["b1", "p", "T", {"weight": 1}]},
    "a broker that is not there": {"subscribe": ["b9", "s", "T", ""]},
    "a type that is not there": {"subscribe": ["b1", "s", "V", ""]},
    "a filter of the wrong type": {"subscribe": ["b1", "s", "T", "price = 'x'"]},
    "a filter on an attribute that is not there": {"subscribe": ["b1", "s", "T", "weight > 3"]},
    "a text that is no filter": {"subscribe": ["b1", "s", "T", "price <"]},
    "killing a broker that is not there": {"kill": "b9"},
    "joining a broker that is there": {"join": "b2"},
    "taking back at a broker that is not there": {"unsubscribe": ["b9", "s", "T"]},
    "taking back a type that is not there": {"unadvertise": ["b1", "p", "V"]},
}


@pytest.mark.parametrize("step", REFUSED.values(), ids=REFUSED.keys())
def test_a_step_that_cannot_be_is_refused_and_changes_nothing(step: dict[str, Any]) -> None:
    """The answer says so; entries stay, and the network goes on as before."""
    *_, before, refused, after = play(ADVERTISE, SUBSCRIBE, step, {"publish": ["b1", "p", "T", {"price": 4}]})
    assert refused == {"deliveries": [], "entries": before["entries"], "refused": True}
    assert after["deliveries"] == [["s", {"price": 4}]]
    assert after["entries"] == before["entries"]


def test_taking_back_what_is_not_there_is_no_fault() -> None:
    """As with sessions of a broker: nothing happens, and nothing is refused."""
    for verb in ("unsubscribe", "unadvertise"):
        (answer,) = play({verb: ["b1", "nobody", "T"]})
        assert answer == {"deliveries": [], "entries": 0}


def test_a_second_subscription_takes_the_place_of_the_first() -> None:
    """One client, one type, one filter: the last one."""
    steps = [
        ADVERTISE,
        SUBSCRIBE,
        {"subscribe": ["b3", "s", "T", "price > 7"]},
        {"publish": ["b1", "p", "T", {"price": 4}]},
        {"publish": ["b1", "p", "T", {"price": 8}]},
        {"unsubscribe": ["b3", "s", "T"]},
        {"publish": ["b1", "p", "T", {"price": 8}]},
    ]
    answers = play(*steps)
    assert [answer["deliveries"] for answer in answers] == [[], [], [], [], [["s", {"price": 8}]], [], []]
    assert answers[1]["entries"] == answers[2]["entries"]


def test_a_client_name_counts_at_its_broker() -> None:
    """The same name at two brokers is two clients; deliveries are sorted by client, then values."""
    steps = [
        ADVERTISE,
        {"subscribe": ["b1", "z", "T", ""]},
        {"subscribe": ["b2", "a", "T", ""]},
        {"subscribe": ["b3", "a", "T", "price any"]},
        {"publish": ["b1", "p", "T", {"price": 4, "name": None}]},
    ]
    values = {"price": 4, "name": None}
    assert play(*steps)[-1]["deliveries"] == [["a", values], ["a", values], ["z", values]]


def test_values_come_as_they_were_written() -> None:
    """Times stay texts, and a contradictory filter gets nothing."""
    steps = [
        {"advertise": ["b1", "p", "U"]},
        {"subscribe": ["b2", "s", "U", "when > '2026-06-01T00:00:00Z'"]},
        {"subscribe": ["b2", "n", "U", "when > '2026-06-01T00:00:00Z' and when < '2026-05-01T00:00:00Z'"]},
        {"publish": ["b1", "p", "U", {"when": "2026-06-02T00:00:00Z"}]},
        {"publish": ["b1", "p", "U", {"when": "2026-05-02T00:00:00Z"}]},
    ]
    answers = play(*steps)
    assert answers[3]["deliveries"] == [["s", {"when": "2026-06-02T00:00:00Z"}]]
    assert answers[4]["deliveries"] == []


def test_clients_of_a_killed_broker_are_gone_and_it_comes_back_empty() -> None:
    """Its entries vanish everywhere; when it joins again, nothing of it is left; the last one may go too."""
    steps = [
        ADVERTISE,
        SUBSCRIBE,
        {"kill": "b3"},
        {"publish": ["b1", "p", "T", {"price": 1}]},
        {"join": "b3"},
        {"publish": ["b1", "p", "T", {"price": 1}]},
        SUBSCRIBE,
        {"publish": ["b1", "p", "T", {"price": 2}]},
        {"kill": "b1"},
        {"kill": "b2"},
        {"kill": "b3"},
        {"join": "b4"},
        {"advertise": ["b4", "p", "T"]},
    ]
    answers = play(*steps)
    assert [answer["deliveries"] for answer in answers[3:8]] == [[], [], [], [], [["s", {"price": 2}]]]
    assert answers[8]["entries"] <= answers[6]["entries"] - 1
    assert [answer["entries"] for answer in answers[10:]] == [0, 0, 1]


def test_entries_count_clients_and_hops() -> None:
    """With one broker each client is one entry; covered filters add none elsewhere; nothing is left at the end."""
    steps = [
        {"advertise": ["b1", "p", "T"]},
        {"advertise": ["b1", "q", "T"]},
        {"subscribe": ["b1", "s", "T", ""]},
        {"subscribe": ["b1", "t", "T", ""]},
        {"unsubscribe": ["b1", "s", "T"]},
        {"unsubscribe": ["b1", "t", "T"]},
        {"unadvertise": ["b1", "p", "T"]},
        {"unadvertise": ["b1", "q", "T"]},
    ]
    assert [answer["entries"] for answer in play(*steps, brokers=["b1"])] == [1, 2, 3, 4, 3, 2, 1, 0]
    wide, narrow = {"subscribe": ["b3", "w", "T", "price > 1"]}, {"subscribe": ["b3", "n", "T", "price > 2"]}
    first, second = play(wide, narrow)
    assert second["entries"] == first["entries"] + 1


MALFORMED = {
    "two verbs in a step": {"steps": [{"kill": "b1", "join": "b2"}]},
    "no verb": {"steps": [{}]},
    "an unknown verb": {"steps": [{"fly": "b1"}]},
    "a step that is no object": {"steps": ["kill"]},
    "too few words": {"steps": [{"subscribe": ["b1", "s", "T"]}]},
    "too many words": {"steps": [{"advertise": ["b1", "s", "T", ""]}]},
    "a filter that is no text": {"steps": [{"subscribe": ["b1", "s", "T", 5]}]},
    "values that are no object": {"steps": [{"publish": ["b1", "s", "T", [1]]}]},
    "a client that is no name": {"steps": [{"advertise": ["b1", 7, "T"]}]},
    "a kill of a list": {"steps": [{"kill": ["b1"]}]},
    "two brokers of one name": {"brokers": [{"name": "b"}, {"name": "b"}]},
    "a broker without a name": {"brokers": [{"domain": "d"}]},
    "a field nobody reads": {"brokers": [{"name": "b", "colour": "red"}]},
    "a type of attribute that is not there": {"types": {"T": {"x": "colour"}}},
    "types that are no object": {"types": ["T"]},
    "attributes that are no object": {"types": {"T": ["x"]}},
    "another field": {"seed": 3},
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_request_that_makes_no_sense_is_an_error(fields: dict[str, Any]) -> None:
    """The request as a whole is wrong; nothing of it is played."""
    request = {"id": 1, "verb": "overlay.run", "brokers": [{"name": "b1"}], "types": TYPES, "steps": [], **fields}
    answer = answer_line(json.dumps(request).encode())
    assert answer["error"] == "REQUEST_FIELD", answer


LONE = "\ud800"


@pytest.mark.parametrize(
    "fields",
    [
        {"brokers": ("b1", LONE)},
        {"brokers": [LONE]},
        {"types": {LONE: {"price": "integer"}}},
        {"steps": [{"kill": LONE}]},
        {"steps": [{"join": LONE}]},
        {"steps": [{"advertise": [LONE, "p", "T"]}]},
        {"steps": [{"advertise": ["b1", LONE, "T"]}]},
        {"steps": [{"subscribe": ["b1", "p", LONE, ""]}]},
    ],
)
def test_names_that_are_no_unicode_are_errors(fields: dict[str, Any]) -> None:
    """Half a character in the name of a broker, a client or a type is malformed, never a fault of the adapter."""
    assert ask(**fields)["error"] == "REQUEST_FIELD"


def test_texts_that_are_no_unicode_are_refused_or_played() -> None:
    """Half a character in a filter or an event refuses the step at most."""
    answers = play(
        ADVERTISE, {"subscribe": ["b3", "s", "T", f"name = '{LONE}'"]}, {"publish": ["b1", "p", "T", {"name": LONE}]}
    )
    assert len(answers) == 3


def test_a_network_that_does_not_rest_refuses_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is refused; the request is answered."""
    from maia.conformance import overlay

    monkeypatch.setattr(overlay, "_MAX_STEP_WORK", -1)
    answers = play(ADVERTISE, {"kill": "b2"}, SUBSCRIBE)
    assert (len(answers), answers[1]["refused"]) == (3, True)


def test_steps_that_take_too_much_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request keeps the adapter for minutes."""
    from maia.conformance import overlay

    monkeypatch.setattr(overlay, "_MAX_WORK", 50)
    assert ask(*[{"kill": "b1"}, {"join": "b1"}] * 5)["error"] == "OVERLAY_WORK"
