"""The command `maia filter`, as a person and as a script use it."""

from __future__ import annotations

import json

import pytest

from maia.cli import app

PRICE = ("-t", "price=integer")


@pytest.fixture
def maia(capsys):
    """Run a command line; give its exit code and what it wrote."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(arguments))
        written = capsys.readouterr()
        return ended.value.code, written.out, written.err

    return run


RUNS = {
    "check": (["check", "price < 100"], 0, "well formed: 1 constraint"),
    "check with types": (["check", "price < 100 and price > 1", *PRICE], 0, "fits the types"),
    "check a contradiction": (["check", "price < 1 and price > 1", *PRICE], 0, "no event can match"),
    "format": (["format", "price<100  AND  color Any"], 0, "price < 100 and color any"),
    "covers": (["covers", "price > 10", "price > 20", *PRICE], 0, "covers"),
    "does not cover": (["covers", "price > 20", "price > 10", *PRICE], 1, "does not cover"),
    "covers as advertisements": (
        ["covers", "price < 5 and price >= 5", "price any", *PRICE, "--relation", "advertisement"],
        0,
        "covers",
    ),
    "explain": (["explain", "price > 3 and price < 5", *PRICE], 0, "price = 4"),
    "explain the tag": (["explain", "price > 3", *PRICE], 0, "range numeric g"),
    "explain an event with a sized decimal": (
        ["explain", "price < 6.0", "-t", "price=decimal(10,2)", "--event", '{"price": 5.5}'],
        0,
        "holds",
    ),
    "explain an event": (["explain", "price > 3", *PRICE, "--event", '{"price": 2}'], 0, "fails       price > 3"),
}


@pytest.mark.parametrize("case", RUNS.values(), ids=RUNS.keys())
def test_answers_for_people(maia, case):
    """Each command says what it found, and its exit code agrees."""
    arguments, code, text = case
    found, out, _ = maia("filter", *arguments)
    assert found == code
    assert text in out


@pytest.mark.parametrize("case", RUNS.values(), ids=RUNS.keys())
def test_answers_for_scripts(maia, case):
    """With --json there is one object, with the exit code in it."""
    arguments, code, _ = case
    found, out, _ = maia("filter", *arguments, "--json")
    assert found == code
    assert json.loads(out)["code"] == code


REFUSED = {
    "bad syntax": (["check", "price <"], 1, "FILTER_SYNTAX"),
    "ill-typed": (["check", "price < 1.0", *PRICE], 1, "FILTER_LITERAL_TYPE"),
    "no types": (["covers", "price < 1", "price < 1"], 2, "FILTER_TYPES_MISSING"),
    "bad type option": (["check", "price < 1", "-t", "price"], 2, "FILTER_TYPE_OPTION"),
    "unknown relation": (["covers", "price < 1", "price < 1", *PRICE, "--relation", "x"], 2, "FILTER_RELATION"),
    "event that is no JSON": (["explain", "price < 1", *PRICE, "--event", "{"], 2, "FILTER_EVENT"),
    "event that is no object": (["explain", "price < 1", *PRICE, "--event", "5"], 2, "FILTER_EVENT"),
    "ill-typed event": (["explain", "price < 1", *PRICE, "--event", '{"price": "1"}'], 1, "EVENT_TYPE"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refusals_carry_their_code(maia, case):
    """Errors reach standard error with a stable code, and standard output as JSON when asked."""
    arguments, code, name = case
    found, out, err = maia("filter", *arguments, "--json")
    assert found == code
    assert name in err
    assert json.loads(out)["error"] == name


def test_types_can_stand_in_a_file(maia, tmp_path):
    """A file of types, perhaps completed by options; a file that is none is refused."""
    good, bad, missing = tmp_path / "types.json", tmp_path / "bad.json", tmp_path / "none.json"
    good.write_text('{"price": "integer"}')
    bad.write_text('{"price": 5}')
    assert maia("filter", "check", "price < 1 and s any", "--types", str(good), "-t", "s=string")[0] == 0
    assert maia("filter", "check", "price < 1", "--types", str(bad))[0] == 2
    assert maia("filter", "check", "price < 1", "--types", str(missing))[0] == 1
