"""`flow.check`: what the result of a plan tells, by every operator, and what is refused; through `maia conformance`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from maia.testing import Command

Ask = Callable[..., dict[str, Any]]

SOURCES = {
    "reports": {
        "columns": {
            "patient": {"S": ["identifiable"], "I": []}, "hospital": {"S": [], "I": []},
            "text": {"S": [], "I": ["pathlab"]}, "code": {"S": [], "I": ["pathlab"]},
        },
        "carriers": {"text": ["clinical", "patient"], "code": ["clinical", "patient"]},
    },
    "sites": {"columns": {"hospital": {"S": ["network"]}, "town": {"I": ["map"]}}},
}  # fmt: skip
READ = {"read": "reports"}
CLINICAL = {"S": ["clinical(*)"], "I": []}


@pytest.fixture
def ask(maia_command: Command) -> Ask:
    """Ask one question through the adapter."""

    def asked(plan: Any, sink: Any = None, **more: Any) -> dict[str, Any]:
        request = {"id": 1, "verb": "flow.check", "sources": SOURCES, "plan": plan, "sink": sink or {}, **more}
        return maia_command("conformance", stdin=json.dumps(request) + "\n").data

    return asked


PLANS = {
    "a read hands on": (READ, {
        "patient": ("identifiable", ""), "hospital": ("", ""), "text": ("clinical(*)", "pathlab"),
        "code": ("clinical(*)", "pathlab"),
    }),
    "a carrier that is not selected still counts": (
        {"select": ["text"], "from": READ}, {"text": ("clinical(*)", "pathlab")}
    ),
    "a condition taints every column": (
        {"select": ["hospital"], "from": {"where": ["code"], "from": READ}}, {"hospital": ("clinical(*)", "")}
    ),
    "integrity is what all have in common": (
        {"select": ["code"], "from": {"where": ["hospital"], "from": READ}}, {"code": ("clinical(*)", "")}
    ),
    "a join has the labels of its keys from both sides": (
        {"select": ["town"], "from": {"join": [READ, {"read": "sites"}], "on": ["hospital"], "how": "inner"}},
        {"town": ("network", "")},
    ),
    "a left join too": (
        {"select": ["patient"], "from": {"join": [READ, {"read": "sites"}], "on": ["hospital"], "how": "left"}},
        {"patient": ("identifiable network", "")},
    ),
    "a semi join has the columns of the left": (
        {"select": ["hospital"], "from": {"join": [READ, {"read": "sites"}], "on": ["hospital"], "how": "left_semi"}},
        {"hospital": ("network", "")},
    ),
    "a union joins column by column": (
        {"union": [{"select": ["text"], "from": READ}, {"select": ["hospital"], "from": READ}]},
        {"text": ("clinical(*)", "")},
    ),
    "a count tells of its keys": (
        {"group": ["code"], "count": "n", "from": READ},
        {"code": ("clinical(*)", "pathlab"), "n": ("clinical(*)", "pathlab")},
    ),
    "a count of what a condition kept tells of the condition": (
        {"group": ["hospital"], "count": "n", "from": {"where": ["code"], "from": READ}},
        {"hospital": ("clinical(*)", ""), "n": ("clinical(*)", "")},
    ),
    "a count of everything tells nothing": (
        {"select": ["n"], "from": {"group": [], "count": "n", "from": READ}}, {"n": ("", "map pathlab")}
    ),
}  # fmt: skip


@pytest.mark.requirement("17.02")
@pytest.mark.parametrize(("plan", "expected"), PLANS.values(), ids=PLANS.keys())
def test_labels_go_through_every_operator(ask: Ask, plan: Any, expected: Any) -> None:
    """Secrecy adds up and integrity is shared, also where only a condition or the number of rows tells."""
    found = ask(plan)["result"]["columns"]
    assert {name: (" ".join(label["S"]), " ".join(label["I"])) for name, label in found.items()} == expected


@pytest.mark.requirement("17.11")
def test_only_a_component_that_holds_the_privilege_declassifies(ask: Ask) -> None:
    """The anonymiser before the counter lets the count out; fed directly it stays; nobody else is the anonymiser."""
    count = {"group": ["code"], "count": "n", "from": READ}
    assert ask(count)["result"]["allowed"] is False
    freed = {"declassify": ["clinical(*)"], "by": "anonymiser", "from": count}
    held = {"anonymiser": ["clinical(*)", "identifiable"]}
    found = ask(freed, components=held)["result"]
    assert found["allowed"] is True
    assert found["columns"]["n"] == {"S": [], "I": ["pathlab"]}
    for components in ({}, {"anonymiser": ["identifiable"]}, {"monitor": ["clinical(*)"]}):
        answer = ask(freed, components=components)
        assert (answer["result"], answer["reason"]) == ("refused", "DECLASSIFY_NOT_HELD")
    early = {"group": ["code"], "count": "n", "from": {"declassify": ["clinical(*)"], "by": "anonymiser", "from": READ}}
    assert ask(early, components=held)["result"]["allowed"] is True


@pytest.mark.requirement("17.14")
def test_the_whole_family_is_no_single_tag(ask: Ask) -> None:
    """What may be of any patient flows to who may see all of them, and to nobody who may see one."""
    plan = {"select": ["code"], "from": READ}
    assert ask(plan, CLINICAL)["result"]["allowed"] is True
    assert ask(plan, {"S": ["clinical(1234567768)"]})["result"]["allowed"] is False
    assert ask(plan, {"S": ["clinical(*)"], "I": ["pathlab"]})["result"]["allowed"] is True
    assert ask(plan, {"S": ["clinical(*)"], "I": ["other"]})["result"]["allowed"] is False


PATIENTS = {
    name: {"columns": {"hospital": {"S": [], "I": []}, name: {"S": [f"clinical({name})"], "I": []}}}
    for name in ("patterson", "smith")
}


@pytest.mark.requirement("17.14")
def test_two_patients_mixed_carry_both_tags_and_go_to_nobody_with_one(ask: Ask) -> None:
    """Joined or put one under the other: {t_A, t_B}; the holder of t_A gets A's data alone, and of both the result."""
    own, other = {"read": "patterson"}, {"read": "smith"}
    held = {"S": ["clinical(patterson)"]}, {"S": ["clinical(patterson)", "clinical(smith)"]}
    texts = [{"select": [name], "from": {"read": name}} for name in PATIENTS]
    mixed = {
        "joined": {"join": [own, other], "on": ["hospital"], "how": "inner"},
        "under one another": {"union": texts},
        "by a condition on the other": {
            "where": ["smith"], "from": {"join": [own, other], "on": ["hospital"], "how": "inner"},
        },
    }  # fmt: skip
    for name, plan in mixed.items():
        one, both = (ask(plan, sink, sources=PATIENTS)["result"] for sink in held)
        assert (one["allowed"], both["allowed"]) == (False, True), name
        assert {tag for label in one["columns"].values() for tag in label["S"]} == set(held[1]["S"]), name
    assert ask(own, held[0], sources=PATIENTS)["result"]["allowed"] is True
    assert ask(other, held[0], sources=PATIENTS)["result"]["allowed"] is False


@pytest.mark.requirement("17.06")
def test_a_part_that_is_always_released_keeps_its_label_and_one_that_may_not_be_gets_all(ask: Ask) -> None:
    """Handed on whatever was read, the hospital stays ({}, {}); released on what was read, it has the process's S."""
    whole = {"select": ["hospital", "text"], "from": READ}
    declared = ask(whole)["result"]["columns"]
    assert declared["hospital"] == {"S": [], "I": []}
    assert declared["text"]["S"] == ["clinical(*)"]
    assert ask({"select": ["hospital"], "from": whole})["result"]["allowed"] is True
    chosen = {"select": ["hospital"], "from": {"where": ["text"], "from": whole}}
    undeclared = ask(chosen)["result"]
    assert undeclared["columns"]["hospital"] == {"S": ["clinical(*)"], "I": []}
    assert undeclared["allowed"] is False
    assert ask(chosen, CLINICAL)["result"]["allowed"] is True


WRONG = {
    "an unknown source": {"read": "nothing"},
    "an unknown column": {"select": ["colour"], "from": READ},
    "an unknown operator": {"sort": ["code"], "from": READ},
    "two operators in one": {"select": ["code"], "where": ["code"], "from": READ},
    "an operator without its input": {"select": ["code"]},
    "a join of one": {"join": [READ], "on": []},
    "an unknown way of joining": {"join": [READ, READ], "on": ["code"], "how": "sideways"},
    "unions of other widths": {"union": [READ, {"read": "sites"}]},
    "a count named like a key": {"group": ["code"], "count": "code", "from": READ},
    "no plan": [],
}


@pytest.mark.parametrize("plan", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_plan_is_an_error(ask: Ask, plan: Any) -> None:
    """It is neither allowed nor refused."""
    answer = ask(plan)
    assert answer["error"] not in ("internal", "unknown-verb")
    assert "result" not in answer


def test_a_plan_has_a_depth(ask: Ask) -> None:
    """One operator too many is an error, not a crash."""
    plan: dict[str, Any] = READ
    for _ in range(300):
        plan = {"where": ["code"], "from": plan}
    assert ask(plan)["error"] == "PLAN_DEPTH"
