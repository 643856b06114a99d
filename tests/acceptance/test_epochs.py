"""Keys by group and epoch: chosen by the stamp, counted, capped, retired, and stored sealed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sealing_world import COLUMNS, TYPE, header_of, key_of

import maia
from maia.encryption import (
    EpochId,
    KeyGroupId,
    Keyring,
    Tolerance,
    current_epoch,
    epoch_of,
    groups_of,
    replaced_epochs,
    select_epoch,
)
from maia.errors import SealError
from maia.events import EncryptionMode
from maia.testing import TYPE_NAME, numberplate_homes, publish_here, read_here

GROUP = KeyGroupId(TYPE, b"3265")


EPOCHS = (EpochId(100), EpochId(200))


def ring_of(*epochs, groups=(GROUP,), cap=1 << 30):
    """A keyring with keys for these epochs."""
    ring = Keyring(cap=cap)
    for group in groups:
        for epoch in epochs:
            ring.add(group, EpochId(epoch), key_of(group.label, epoch))
    return ring


@pytest.mark.requirement("16.07")
@pytest.mark.parametrize("stamp, epoch", [(100, 100), (199, 100), (200, 200), (10**9, 200)])
def test_the_stamp_chooses_the_key(stamp, epoch):
    """Keys at 100 and 200: an event of 199 has the first, one of 200 the second."""
    assert epoch_of(EPOCHS, stamp) == epoch
    assert current_epoch(ring_of(100, 200), GROUP, stamp) == epoch


@pytest.mark.requirement("16.07")
def test_before_the_first_key_there_is_none():
    """An event of 99 has no key."""
    with pytest.raises(SealError) as caught:
        select_epoch(EPOCHS, stamp=99, arrives=99, tolerance=Tolerance())
    assert caught.value.code == "NO_KEY"
    assert current_epoch(ring_of(100), GROUP, 99) is None
    with pytest.raises(SealError):
        ring_of(100).sealing_epoch(GROUP, 99)


@pytest.mark.requirement("16.07")
def test_what_is_published_is_sealed_and_opened_with_the_key_of_its_stamp(tmp_path: Path) -> None:
    """A home with a second key from some instant on: a millisecond before it the first, from it on the second."""
    homes = numberplate_homes(tmp_path)
    with maia.open(homes.ccs) as ccs:
        home, ring = ccs.home, ccs.home.keyring()
        first = max(max(ring.epochs(group)) for group in ring.groups())
        second = EpochId(first + 60_000)
        for group in ring.groups():
            ring.add(group, second, key_of(group.label, second))
        home.save_keyring(ring)
        row = {"timestamp": datetime.now(UTC), "location": "Victoria"}

        def publish(stamp: int, plate: str) -> int:
            at = datetime.fromtimestamp(stamp / 1000, tz=UTC)
            return publish_here(home, TYPE_NAME, [{**row, "numberplate": plate}], as_="CCTV", at=at, stamped=at)

        with pytest.raises(SealError) as none:
            publish(min(min(ring.epochs(group)) for group in ring.groups()) - 1, "too early")
        assert none.value.code == "NO_KEY"
        assert publish(second - 1, "old") == publish(second, "new") == 1

    def read(*epochs: EpochId) -> list[object]:
        held = Keyring()
        for group in ring.groups():
            for epoch in epochs:
                key = ring.key(group, epoch)
                assert key is not None
                held.add(group, epoch, key)
        home.save_keyring(held)
        later = datetime.fromtimestamp(second / 1000 + 1, tz=UTC)
        return [item["numberplate"] for item in read_here(home, TYPE_NAME, as_="BO", clock=lambda: later)]

    assert read(first, second) == ["old", "new"]
    assert [read(first), read(second)] == [["old"], ["new"]]


@pytest.mark.threat("T41")
@pytest.mark.parametrize("stamp, tried", [(199, ()), (200, (100,)), (260, (100,)), (261, ())])
def test_a_replaced_key_is_tried_while_its_publisher_may_be_deaf(stamp, tried):
    """Replaced at 200, and for 60 its publisher may not know: later nothing is opened with it."""
    deaf = Tolerance(grace=30, skew=5, deaf=60)
    assert replaced_epochs(EPOCHS, stamp=stamp, arrives=stamp, tolerance=deaf) == tried
    assert replaced_epochs(EPOCHS, stamp=stamp, arrives=291, tolerance=deaf) == (), "and nothing that arrives too late"


@pytest.mark.requirement("15.04")
def test_groups_follow_the_mode():
    """A plain type needs no key, an event-level type one, shared by all versions; an attribute-level type one each."""
    assert groups_of(TYPE, COLUMNS, EncryptionMode.PLAIN) == ()
    assert groups_of(TYPE, COLUMNS, EncryptionMode.EVENT) == (KeyGroupId(TYPE, b"*"),)
    assert [group.label for group in groups_of(TYPE, COLUMNS, EncryptionMode.ATTRIBUTE)] == list(COLUMNS)
    assert header_of().type_id == TYPE, "the id of a type leaves the version out"
