"""New versions from old ones, their differences, and whom they would hurt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.errors import MalformedError
from maia.events import (
    FIRST,
    Add,
    AttributeType,
    EventType,
    LiveClient,
    ManageAction,
    Options,
    Remove,
    Rename,
    Retype,
    SequenceUids,
    TypeName,
    Uid,
    Version,
    attribute,
    counted,
    diff,
    drawn,
    evolve,
    hash_version,
    hashed,
    lint,
    sign_event_type,
)
from maia.principals import KeySigner

PITO = KeySigner(bytes([1]) * 32)
BASE = EventType(
    name=TypeName(PITO.public_key, "uk.gov.pito.Numberplate", FIRST),
    attributes=(
        attribute("license-plate", 9525, "string"),
        attribute("speed", 10, "string"),
        attribute("location", 3467, "string"),
    ),
)
OLD = sign_event_type(BASE, PITO)
ADD, REMOVE, RENAME, RETYPE = ManageAction


def _with(*attributes: object, version: str = "1") -> EventType:
    return replace(BASE, name=replace(BASE.name, version=Version(version)), attributes=attributes)  # type: ignore[arg-type]


def test_new_version_refers_to_the_old_one_and_carries_no_credentials() -> None:
    """The old definition is named by its hash, or embedded when asked for."""
    assert evolve(OLD, []).previous == OLD.definition_id
    assert evolve(OLD, [], embed=True).previous == OLD
    assert evolve(OLD, []).credentials == ()


def test_versions_are_numbered_by_policy() -> None:
    """A counter, a UUID, the hash of the attributes, or a given number."""
    change = [Add("colour", AttributeType.STRING)]
    assert evolve(OLD, change, version=counted(BASE)).name.version == Version("1")
    assert evolve(OLD, change, version=drawn).name.version != evolve(OLD, change, version=drawn).name.version
    new = evolve(OLD, change, version=hashed, uids=SequenceUids())
    assert new.name.version == hash_version(new.attributes)
    assert evolve(OLD, change, version=Version("77")).name.version == Version("77")
    with pytest.raises(MalformedError, match="VERSION_TAKEN"):
        evolve(OLD, change, version=FIRST)


def test_uids_in_use_are_not_used_again() -> None:
    """Neither the base's uids nor those of other known versions come back."""
    sibling = _with(attribute("lane", 9526, "integer"))
    new = evolve(OLD, [Add("colour", AttributeType.STRING)], uids=SequenceUids(), known=[sibling])
    assert new.by_name("colour").uid == "9527"
    with pytest.raises(MalformedError, match="UID_REUSED"):
        evolve(OLD, [Add("colour", AttributeType.STRING, Uid("9526"))], known=[sibling])
    removed_and_back = [Remove("location"), Add("location", AttributeType.STRING)]
    assert evolve(OLD, removed_and_back, uids=SequenceUids()).by_name("location").uid == "9526"


WRONG = {
    "add a name that is there": (Add("speed", AttributeType.STRING), "ATTRIBUTE_NAME_TWICE"),
    "rename to a name that is there": (Rename("speed", "location"), "ATTRIBUTE_NAME_TWICE"),
    "rename what is not there": (Rename("lane", "x"), "NO_ATTRIBUTE"),
    "remove what is not there": (Remove("lane"), "NO_ATTRIBUTE"),
    "retype what is not there": (Retype("lane", AttributeType.DATE), "NO_ATTRIBUTE"),
    "retype to the same type": (Retype("speed", AttributeType.STRING), "ATTRIBUTE_TYPE"),
    "retype with the old uid": (Retype("speed", AttributeType.DATE, Uid("10")), "UID_REUSED"),
    "add an empty name": (Add("", AttributeType.STRING), "NAME_FORM"),
}


@pytest.mark.parametrize("operation, code", WRONG.values(), ids=WRONG)
def test_impossible_operation_is_refused(operation: object, code: str) -> None:
    """An operation that has no meaning changes nothing."""
    with pytest.raises(MalformedError, match=code):
        evolve(OLD, [operation])  # type: ignore[list-item]


PLATE, SPEED, PLACE = BASE.attributes
DIFFS = {
    "nothing changes": (_with(PLATE, SPEED, PLACE), []),
    "order changes nothing": (_with(PLACE, SPEED, PLATE), []),
    "one is added": (_with(PLATE, SPEED, PLACE, attribute("lane", 11, "integer")), [ADD]),
    "one is removed": (_with(PLATE, SPEED), [REMOVE]),
    "one is renamed": (_with(attribute("numberplate", 9525, "string"), SPEED, PLACE), [RENAME]),
    "two swap their names": (
        _with(attribute("speed", 9525, "string"), attribute("license-plate", 10, "string"), PLACE),
        [RENAME, RENAME],
    ),
    "one is retyped": (_with(PLATE, attribute("speed", 12, "float"), PLACE), [RETYPE]),
    "an old name with a new uid is a removal and an addition": (
        _with(attribute("license-plate", 3879, "string"), SPEED, PLACE),
        [REMOVE, ADD],
    ),
    "a new name with a new uid is no rename": (
        _with(attribute("numberplate", 3879, "string"), SPEED, PLACE),
        [REMOVE, ADD],
    ),
    "retyped and renamed at once is a removal and an addition": (
        _with(PLATE, attribute("velocity", 12, "float"), PLACE),
        [REMOVE, ADD],
    ),
}


@pytest.mark.parametrize("new, actions", DIFFS.values(), ids=DIFFS)
def test_differences_are_found_by_uid(new: EventType, actions: list[ManageAction]) -> None:
    """Names never decide what an attribute is."""
    found = diff(BASE, new)
    assert [change.action for change in found.changes] == actions
    assert len(found.beyond(frozenset(ManageAction))) == len(found.taken)
    assert len(found.beyond(frozenset(actions) | {ADD if not actions else actions[0]})) == len(found.taken)
    assert bool(found.taken) == (new == DIFFS["two swap their names"][0])
    for action in set(actions):
        assert found.beyond(frozenset(ManageAction) - {action}) != () or action is RETYPE


def test_retype_may_be_done_by_whoever_may_remove_and_add() -> None:
    """A change of type equals removing and adding, and needs no more than that."""
    found = diff(BASE, DIFFS["one is retyped"][0])
    assert found.beyond(frozenset({RETYPE})) == ()
    assert found.beyond(frozenset({REMOVE, ADD})) == ()
    assert found.beyond(frozenset({REMOVE, RENAME})) == ("retype `speed` from string (10) to float (12)",)
    assert found.of(RETYPE) == found.changes


def test_options_and_inheritance_need_the_whole_right() -> None:
    """Somebody who may add attributes may not turn the encryption off."""
    every = frozenset(ManageAction)
    looser = replace(_with(PLATE, SPEED, PLACE), options=Options(encryption="plain"))  # type: ignore[arg-type]
    assert diff(BASE, looser).beyond(every) == ("change the options",)
    child = replace(_with(PLATE, SPEED, PLACE), extends=TypeName(PITO.public_key, "Other", FIRST))
    assert diff(BASE, child).beyond(every) == ("change the inheritance",)
    assert diff(BASE, _with(PLATE, SPEED, PLACE)).beyond(frozenset()) == ("issue a version",)


def test_incomparable_versions_are_refused() -> None:
    """Two types, one number for two versions, or a uid that changed its type."""
    with pytest.raises(MalformedError, match="OTHER_TYPE"):
        diff(BASE, replace(BASE, name=TypeName(PITO.public_key, "Other", FIRST)))
    with pytest.raises(MalformedError, match="VERSION_TAKEN"):
        diff(BASE, _with(PLATE, version="0"))
    with pytest.raises(MalformedError, match="UID_REUSED"):
        diff(BASE, _with(PLATE, attribute("speed", 10, "integer"), PLACE))


def test_lint_is_silent_about_what_is_safe() -> None:
    """Adding and renaming hurt nobody, nor does removing what nobody uses."""
    everybody = [LiveClient(name="SO"), LiveClient(name="BO", uids=frozenset({Uid("9525")}))]
    safe = _with(attribute("plate", 9525, "string"), SPEED, PLACE, attribute("lane", 11, "integer"))
    assert lint(BASE, safe, everybody) == ()
    assert lint(BASE, _with(PLATE, SPEED), everybody[1:]) == ()


def test_lint_names_those_who_lose_a_retyped_attribute() -> None:
    """A retype takes the old attribute away from everybody who uses it."""
    users = [
        LiveClient(name=name, uids=frozenset({Uid(uid)})) for name, uid in (("z", "10"), ("a", "10"), ("m", "9525"))
    ]
    (finding,) = lint(BASE, DIFFS["one is retyped"][0], users)
    assert finding.code == "ATTRIBUTE_RETYPED"
    assert finding.clients == ("a", "z")
    assert "translator client" in finding.advice
