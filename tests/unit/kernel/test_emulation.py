"""Emulation with one sub-event per group of readers, for comparison."""

from __future__ import annotations

import itertools

import pytest
from kernel_world import BROKER, NUMBERPLATE, clause, events

from maia.authority import Action
from maia.encryption import EpochId, KeyGroupId, Keyring, Tolerance
from maia.errors import UsageError
from maia.events import EncryptionMode
from maia.kernel import Sealing, emulate, enforce_publication, key_groups_needed, open_batch, sub_types

GROUPS = ({"3265", "9058"}, {"9058", "3467"}, {"3265", "9058", "3467"})


def ring_of(subs):
    """One key per sub-type."""
    ring = Keyring()
    for number, sub in enumerate(subs):
        ring.add(KeyGroupId(sub.type_id, b"*"), EpochId(0), bytes([number]) * 32)
    return ring


def test_one_publication_becomes_one_event_per_group():
    """Three groups: three events for one publication, each with its group's attributes under its group's key."""
    subs = sub_types(NUMBERPLATE.type_id, GROUPS)
    batch = events(numberplate=["AE05 XYZ"], timestamp=[1], location=["Victoria"])
    admitted = enforce_publication(NUMBERPLATE, batch, [clause(action=Action.PUBLISH)]).batch
    sealing = Sealing(type_id=NUMBERPLATE.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    serial = itertools.count()
    parcels = emulate(
        admitted, subs, sealing, BROKER, ring_of(subs),
        stamp=150, fresh_id=lambda: next(serial).to_bytes(16, "big"), event_base=bytes(16),
    )  # fmt: skip
    assert len(parcels) == len({parcel.header.type_id for parcel in parcels}) == 3
    assert {parcel.header.mode for parcel in parcels} == {EncryptionMode.EVENT}
    assert [parcel.header.stamp for parcel in parcels] == [150, 151, 152]
    kinds = {item.uid: item.type for item in NUMBERPLATE.attributes}
    for number, (sub, parcel) in enumerate(zip(subs, parcels, strict=True)):
        own = Keyring()
        own.add(KeyGroupId(sub.type_id, b"*"), EpochId(0), bytes([number]) * 32)
        seen = []
        for other in parcels:
            found = open_batch(
                other.to_bytes(), kinds, own, arrives=160, tolerance=Tolerance(), check_origin=lambda _: None
            )
            seen.append({uid for uid, value in found.batch.to_pylist()[0].items() if value is not None})
        assert seen[number] == sub.uids
        assert [found for at, found in enumerate(seen) if at != number] == [set(), set()]
        assert parcel.header.count == 1


def test_emulation_needs_up_to_two_to_the_n_key_groups():
    """Five attributes: 32 groups of readers may need a key each, against five keys for five attributes."""
    uids = [str(n) for n in range(5)]
    every = [set(part) for size in range(6) for part in itertools.combinations(uids, size)]
    assert len(sub_types(NUMBERPLATE.type_id, every)) == key_groups_needed(5, emulated=True) == 32
    assert key_groups_needed(5, emulated=False) == 5


def test_groups_are_named_by_what_they_hold():
    """Equal groups are one sub-type whatever their order; sub-types of two types differ; a limit is kept."""
    subs = sub_types(NUMBERPLATE.type_id, GROUPS)
    assert sub_types(NUMBERPLATE.type_id, [*GROUPS[::-1], GROUPS[0]]) == subs
    assert not {s.type_id for s in subs} & {s.type_id for s in sub_types(bytes(32), GROUPS)}
    assert sub_types(bytes(32), [{"1", "23"}])[0].type_id != sub_types(bytes(32), [{"12", "3"}])[0].type_id
    for groups in ([], [{str(n)} for n in range(1025)]):
        with pytest.raises(UsageError):
            sub_types(NUMBERPLATE.type_id, groups)
