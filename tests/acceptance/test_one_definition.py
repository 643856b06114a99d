"""One definition for each version: verified bytes only, the first that was accepted, and nobody's name for another."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.authority import Action, Verifier, type_right, verify_event_type
from maia.errors import VerificationError
from maia.events import Attribute, EncryptionMode, EventType, Options, UnverifiedEventType, Version, sign_event_type
from maia.principals import KeySigner, parse_certificate
from maia.testing import ATTRIBUTES, TYPE_NAME, Command, NumberplateHomes, grant, numberplate_homes

TRIES = 24
"""So many forged files lie before and after the genuine one: whoever takes the first or the last takes one."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Give the numberplate homes."""
    return numberplate_homes(tmp_path_factory.mktemp("homes"))


def lay(home: Path, signed: UnverifiedEventType) -> Path:
    """Put a file where definitions lie, without asking anybody."""
    folder = home / "types" / signed.definition.type_id.hex()
    path = folder / f"{hashlib.sha256(signed.raw).hexdigest()}.type"
    path.write_bytes(signed.raw)
    return path


def swapped(event_type: EventType) -> EventType:
    """Exchange the uids of two attributes: the place shows the plate."""
    uids = {"numberplate": ATTRIBUTES["location"], "location": ATTRIBUTES["numberplate"]}
    return replace(
        event_type,
        attributes=tuple(
            Attribute(name=item.name, uid=type(item.uid)(uids.get(item.name, item.uid)), type=item.type)
            for item in event_type.attributes
        ),
    )


@pytest.mark.threat("T35")
@pytest.mark.parametrize("noted", [True, False], ids=["accepted before", "laid there by hand"])
def test_a_forged_definition_beside_the_genuine_one_is_enforced_by_nobody(tmp_path: Path, noted: bool) -> None:
    """Strangers sign the version with two uids swapped: publishers, readers and key groups go by the owner's word."""
    homes = numberplate_homes(tmp_path)
    for note in () if noted else tuple((homes.ccs / "types").rglob("*.accepted")):
        note.unlink()
    for _ in range(TRIES):
        lay(homes.ccs, sign_event_type(swapped(homes.event_type), KeySigner.generate()))
    with maia.open(homes.ccs) as ccs:
        assert ccs.event_type(TYPE_NAME) == homes.event_type
        plan = ccs.publish_plan(TYPE_NAME, client=ccs.prove("CCTV"), publication="now")
        assert plan.event_type() == homes.event_type
    if noted:
        shown = Command(homes.ccs).do("type", "show", f"PITO/{TYPE_NAME}@{homes.event_type.name.version.text}")
        assert {item["name"]: item["uid"] for item in shown["attributes"]} == ATTRIBUTES


@pytest.mark.threat("T35")
def test_the_definition_that_was_accepted_first_counts_and_another_is_refused_and_reported(tmp_path: Path) -> None:
    """The owner signs the version again, unsealed: refused at the registry; laid by hand, it changes nothing."""
    homes = numberplate_homes(tmp_path)
    other = sign_event_type(
        replace(homes.event_type, options=Options(encryption=EncryptionMode.PLAIN)), homes.network.people["PITO"]
    )
    met, file = Command(homes.met), tmp_path / "other.type"
    file.write_bytes(other.raw)
    assert met.refused("type", "add", str(file))[1] == "VERSION_TAKEN"
    lay(homes.met, other)
    with maia.open(homes.met) as domain:
        assert domain.event_type(TYPE_NAME) == homes.event_type
    ran = met("doctor", "--json")
    assert ran.code == 1
    assert any("TYPE_CONFLICT" in item["detail"] for item in ran.data["findings"])
    for note in (homes.met / "types").rglob("*.accepted"):
        note.unlink()  # as if nothing had been accepted: then two that contradict each other are none
    with maia.open(homes.met) as domain, pytest.raises(VerificationError) as refusal:
        domain.event_type(TYPE_NAME)
    assert refusal.value.code == "TYPE_CONFLICT"


def test_a_definition_signed_again_on_other_credentials_is_the_same_definition(tmp_path: Path) -> None:
    """What a version means does not depend on who signed it: a manager renews it, and it is kept beside the first."""
    homes = numberplate_homes(tmp_path)
    pito, manager = homes.network.people["PITO"], KeySigner.generate()
    right = type_right(pito.public_key, TYPE_NAME, actions=[Action.MANAGE])
    credential = parse_certificate(grant(pito, manager, right).raw)
    file = tmp_path / "again.type"
    file.write_bytes(sign_event_type(replace(homes.event_type, credentials=(credential,)), manager).raw)
    Command(homes.met).do("type", "add", str(file))
    with maia.open(homes.met) as domain:
        assert domain.event_type(TYPE_NAME).meaning == homes.event_type.meaning


RENAMINGS = {
    "a fresh name": ({"location": "place"}, True),
    "two names swapped": ({"location": "numberplate", "numberplate": "location"}, False),
    "a name that another had": ({"location": "numberplate", "numberplate": "plate"}, False),
}


@pytest.mark.threat("T39")
@pytest.mark.parametrize("renaming, allowed", RENAMINGS.values(), ids=RENAMINGS)
def test_who_may_only_rename_gives_no_attribute_the_name_of_another(
    homes: NumberplateHomes, renaming: dict[str, str], allowed: bool
) -> None:
    """Publishers name names and rights name uids: a swap would lead plates to the readers of places."""
    pito, clerk, now = homes.network.people["PITO"], KeySigner.generate(), datetime.now(UTC)
    right = type_right(pito.public_key, TYPE_NAME, actions=[Action.EDIT_ATTRIBUTE_NAME])
    renamed = replace(
        homes.event_type,
        name=replace(homes.event_type.name, version=Version("2")),
        attributes=tuple(
            Attribute(name=renaming.get(item.name, item.name), uid=item.uid, type=item.type)
            for item in homes.event_type.attributes
        ),
        previous=sign_event_type(homes.event_type, pito),
        credentials=(parse_certificate(grant(pito, clerk, right).raw),),
    )
    if allowed:
        verify_event_type(sign_event_type(renamed, clerk), verifier=Verifier(), at=now)
        return
    with pytest.raises(VerificationError) as refusal:
        verify_event_type(sign_event_type(renamed, clerk), verifier=Verifier(), at=now)
    assert refusal.value.code == "NOT_PERMITTED"
    whole = replace(renamed, credentials=())
    verify_event_type(sign_event_type(whole, pito), verifier=Verifier(), at=now)
