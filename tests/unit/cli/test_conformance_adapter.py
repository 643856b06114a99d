"""The conformance adapter answers every line, also nonsense, and never dies of one."""

from __future__ import annotations

import io
import json

import pytest

from maia.conformance import answer_line, run
from maia.conformance.lines import parse_line
from maia.errors import MalformedError

REFUSED = {
    "no JSON": (b"nonsense", "JSON_SYNTAX"),
    "an empty object reaches no verb": (b"{}", "REQUEST_FIELD"),
    "a list": (b"[]", "JSON_SYNTAX"),
    "a string": (b'"sexp.parse"', "JSON_SYNTAX"),
    "a number": (b"5", "JSON_SYNTAX"),
    "null": (b"null", "JSON_SYNTAX"),
    "a key twice": (b'{"id":1,"id":2}', "JSON_REPEATED_KEY"),
    "a key twice inside": (b'{"id":1,"x":{"a":1,"a":1}}', "JSON_REPEATED_KEY"),
    "NaN": (b'{"id":1,"x":NaN}', "JSON_NUMBER"),
    "Infinity": (b'{"id":1,"x":Infinity}', "JSON_NUMBER"),
    "minus Infinity": (b'{"id":1,"x":-Infinity}', "JSON_NUMBER"),
    "a float out of range": (b'{"id":1,"x":1e400}', "JSON_NUMBER"),
    "an integer beyond 64 bits": (b'{"id":1,"x":18446744073709551616}', "JSON_NUMBER"),
    "a very long integer": (b'{"id":1,"x":' + b"9" * 5000 + b"}", "JSON_NUMBER"),
    "octets that are no UTF-8": (b'{"id":"\xff"}', "JSON_SYNTAX"),
    "a lone quote": (b'{"id":"', "JSON_SYNTAX"),
    "something after the object": (b'{"id":1}{"id":2}', "JSON_SYNTAX"),
    "objects nested without end": (b'{"a":' * 100_000, "JSON_SYNTAX"),
    "a verb that is no text": (b'{"id":1,"verb":5}', "REQUEST_FIELD"),
    "a field of the wrong type": (b'{"id":1,"verb":"sexp.parse","canonical":5}', "REQUEST_FIELD"),
    "a field that is missing": (b'{"id":1,"verb":"tag.permits","tag":"(a)"}', "REQUEST_FIELD"),
}


@pytest.mark.threat("T25")
@pytest.mark.parametrize(("line", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_a_malformed_line_gets_an_error(line, code):
    """Repeated keys, NaN, numbers out of range and plain nonsense are answered with a code."""
    assert answer_line(line)["error"] == code


def test_an_event_with_an_attribute_called_result_is_no_answer_of_its_own():
    """What a verb answers stands under `result`, whatever it looks like."""
    event = {"result": "x", "reason": "y"}
    request = {
        "id": 1, "verb": "filter.screen", "rights": "result any and reason any", "filter": "", "event": event,
        "types": {"result": "string", "reason": "string"},
    }  # fmt: skip
    assert answer_line(json.dumps(request).encode()) == {"id": 1, "result": event}


def test_large_integers_stay_exact():
    """A number above 2^53 is not rounded on the way in."""
    assert parse_line(b'{"x":9007199254740993}') == {"x": 9007199254740993}


def test_an_unknown_verb_has_a_code_of_its_own():
    """Only an unknown verb is called that."""
    assert answer_line(b'{"id":"a","verb":"no.such.verb"}') == {
        "id": "a", "error": "unknown-verb", "message": "the verb is unknown",
    }  # fmt: skip


def test_a_fault_of_the_adapter_is_called_internal(monkeypatch):
    """Whatever goes wrong inside, the line is answered and no detail leaks."""
    from maia.conformance import trust

    def broken(_request):
        raise RuntimeError("secret detail")

    monkeypatch.setitem(trust.VERBS, "sexp.parse", broken)
    answer = answer_line(b'{"id":1,"verb":"sexp.parse"}')
    assert answer["error"] == "internal"
    assert "secret" not in json.dumps(answer)


def test_every_line_is_answered_in_order():
    """Blank lines are passed over; everything else gets one line back, also after an error."""
    lines = b'{"id":1,"verb":"tag.permits","tag":"(a)","request":"(a b)"}\n\nbroken\n{"id":2,"verb":"x.y"}\n'
    answers = io.BytesIO()
    run(io.BytesIO(lines), answers)
    found = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert [(answer["id"], answer.get("result"), answer.get("error")) for answer in found] == [
        (1, True, None), (None, None, "JSON_SYNTAX"), (2, None, "unknown-verb"),
    ]  # fmt: skip


def test_a_line_without_end_is_refused_and_skipped(monkeypatch):
    """A line beyond the limit costs one error; the next line is answered."""
    monkeypatch.setattr("maia.conformance.adapter.MAX_LINE", 64)
    answers = io.BytesIO()
    run(io.BytesIO(b"x" * 1000 + b"\n" + b'{"id":2,"verb":"x.y"}\n'), answers)
    found = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert [answer["error"] for answer in found] == ["LINE_TOO_LONG", "unknown-verb"]


def test_parse_line_raises_only_malformed():
    """The reader of lines speaks of malformed input and of nothing else."""
    with pytest.raises(MalformedError):
        parse_line(b"\x00")
