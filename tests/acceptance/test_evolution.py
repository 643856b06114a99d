"""New versions from old ones, their differences, and whom they would hurt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.events import (
    FIRST,
    Add,
    AttributeType,
    EventType,
    ManageAction,
    Options,
    Remove,
    Rename,
    Retype,
    TypeName,
    Uid,
    UnverifiedEventType,
    attribute,
    diff,
    evolve,
    hashed,
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


@pytest.mark.requirement("3.01")
def test_rename_keeps_the_uid_and_retype_does_not() -> None:
    """license-plate -> numberplate keeps 9525; String -> Integer gets another uid; add and remove work too."""
    new = evolve(
        OLD,
        [
            Rename("license-plate", "numberplate"),
            Retype("speed", AttributeType.INTEGER),
            Add("colour", AttributeType.STRING),
            Remove("location"),
        ],
    )
    assert new.by_name("numberplate").uid == "9525"
    assert new.by_name("speed").type is AttributeType.INTEGER
    assert new.by_name("speed").uid != "10"
    assert {item.name for item in new.attributes} == {"numberplate", "speed", "colour"}
    assert [change.action for change in diff(BASE, new).changes] == [REMOVE, RENAME, RETYPE, ADD]


def test_equal_attribute_sets_give_equal_hash_versions() -> None:
    """Two managers with equal sets and different credentials arrive at one version; one more attribute, another."""
    change = [Add("colour", AttributeType.STRING, Uid("77"))]
    one = evolve(OLD, change, version=hashed)
    elsewhere = UnverifiedEventType(BASE, OLD.signer, OLD.signature, OLD.raw)
    two = replace(evolve(elsewhere, change, version=hashed, embed=True), options=Options(padding=8))
    assert one.name.version == two.name.version
    assert one.definition_id != two.definition_id
    more = evolve(OLD, [*change, Add("lane", AttributeType.INTEGER)], version=hashed)
    assert more.name.version != one.name.version
